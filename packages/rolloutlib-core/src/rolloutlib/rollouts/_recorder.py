"""What an episode does between its calls: check what came back, copy it and keep it."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from math import isfinite
from numbers import Integral
from typing import Any, Generic, TypeAlias, TypeVar, cast

from rolloutlib._calls import is_awaitable
from rolloutlib._exceptions import attach
from rolloutlib._values import snapshot, to_bool, to_float
from rolloutlib.rollouts._arrays import Logprobs, TokenIds, compact
from rolloutlib.rollouts._policies import (
    ActionT,
    EpisodeTruncated,
    ObservationT,
    PolicyOutput,
    check_version,
)
from rolloutlib.rollouts._steps import StepColumns, read_score
from rolloutlib.rollouts._trajectories import Phase, Trajectory

T = TypeVar("T")

Decision: TypeAlias = tuple[ActionT, PolicyOutput[ActionT] | None, Mapping[str, Any] | None]
"""A copy of the action, what the policy told with it, and a copy of the info in that."""


class Recorder(Generic[ObservationT, ActionT]):
    """The record of an episode in the making, the same for all kinds of rollout.

    Args:
        environment: The environment, for error messages.
        seed: The seed of the episode.
        max_steps: The most steps that the episode may have.
        metadata: The caller's facts.
        snapshots: Whether to keep copies of what the environment and the policy return.
        member: Which rollout of its group this is.
        attempt: Which attempt at it this is.

    Attributes:
        phase: What the episode is doing.
        ended: Whether it is over.
        num_steps: How many steps it has had.
        on_step: Called after each step, if it is set.

    Raises:
        TypeError: `max_steps` is not an integer.
        ValueError: `max_steps` is negative.
    """

    def __init__(
        self,
        environment: object,
        *,
        seed: int | None,
        max_steps: int | None,
        metadata: Mapping[str, Any] | None,
        snapshots: bool,
        member: int | None = None,
        attempt: int = 0,
    ) -> None:
        check_max_steps(max_steps)
        self.phase: Phase = "reset"
        self.seed = seed
        self.ended = max_steps == 0
        self.num_steps = 0
        self.on_step: Callable[[], None] | None = None
        self._environment = environment
        self._max_steps = max_steps
        self._metadata: dict[str, Any] = snapshot(dict(metadata)) if metadata else {}
        self._keep: Callable[[Any], Any] = snapshot if snapshots else _as_it_is
        self._member = member
        self._attempt = attempt
        # One tuple a step, turned into columns at the end: half the cost of nine lists that grow.
        self._rows: list[tuple[Any, ...]] = []
        self._initial: tuple[ObservationT, dict[str, Any]] | None = None
        self._version: int | str | None = None
        self._observation: ObservationT
        self._decision: Decision[ActionT]

    @property
    def last_tokens(self) -> int:
        """How many tokens the policy sampled for the last step, as far as it tells."""
        output = self._decision[1]
        return 0 if output is None or output.tokens is None else len(output.tokens)

    def begin(self, result: tuple[ObservationT, dict[str, Any]]) -> ObservationT:
        """Take what `reset` returned; return what the policy is to see."""
        try:
            observation, info = result
            _check_info(info)
            info = self._keep(info)
        except (TypeError, ValueError) as error:
            msg = f"{self._environment}: reset() must return (observation, info), got {result!r}"
            raise TypeError(msg) from error
        self._observation = self._keep(observation)
        self._initial = (self._observation, info)
        self.phase = "policy"
        return observation

    def stamp(self, version: int | str | None) -> None:
        """Take the version of the policy that is about to be called."""
        check_version(version)
        self._version = version

    def decide(self, output: ActionT | PolicyOutput[ActionT]) -> ActionT:
        """Take what the policy returned; return what the environment is to do."""
        if isinstance(output, PolicyOutput):
            output = cast("PolicyOutput[ActionT]", output)
            action = output.action
            self._decision = (self._keep(action), output, self._keep(output.info))
        else:
            action = output
            self._decision = (self._keep(action), None, None)
        self.phase = "step"
        return action

    def refuse_awaitable(self, output: object) -> None:
        """Raise if the policy of a synchronous episode returned something to await.

        Raises:
            TypeError: It did.
        """
        if is_awaitable(output):
            if isinstance(output, Coroutine):
                output.close()
            msg = f"{self._place()}: the policy returned an awaitable, {output!r}: use arollout"
            raise TypeError(msg)

    def add(self, result: tuple[ObservationT, Any, Any, Any, dict[str, Any]]) -> ObservationT:
        """Take what `step` returned; return what the policy is to see next."""
        try:
            observation, reward, terminated, truncated, info = result
        except (TypeError, ValueError) as error:
            form = "(observation, reward, terminated, truncated, info)"
            msg = f"{self._place()}: step() must return {form}, got {result!r}"
            raise TypeError(msg) from error
        try:
            if type(reward) is not float or not isfinite(reward):
                reward = to_float(reward, "reward")
            if type(terminated) is not bool or type(truncated) is not bool:
                terminated = to_bool(terminated, "terminated")
                truncated = to_bool(truncated, "truncated")
            if type(info) is not dict:
                _check_info(info)
            info = self._keep(info)
            if "score" in info:
                read_score(info)
        except (TypeError, ValueError) as error:
            msg = f"{self._place()}: {error}"
            raise type(error)(msg) from error
        before = self._observation
        self._observation = after = self._keep(observation)
        self._rows.append(
            (before, after, reward, terminated, truncated, info, *self._decision, self._version)
        )
        self.num_steps += 1
        self.ended = terminated or truncated or self.num_steps == self._max_steps
        self.phase = "policy"
        if self.on_step:
            self.on_step()
        return observation

    def trajectory(self) -> Trajectory[ObservationT, ActionT]:
        """Return the record of the episode, which is over."""
        terminated, truncated = self._rows[-1][_ENDS] if self._rows else (False, False)
        return self._make(terminated, truncated or not terminated)

    def truncate(self, reason: EpisodeTruncated) -> Trajectory[ObservationT, ActionT]:
        """Return the record of an episode that cannot go on; re-raise if it has not begun."""
        if self._initial is None:
            raise reason
        self._metadata["truncated_by"] = str(reason)
        return self._make(terminated=False, truncated=True)

    def leave(self, error: BaseException) -> None:
        """Let what was recorded so far travel with the exception that ends the episode."""
        attach(error, trajectory=self.unfinished())

    def unfinished(self) -> Trajectory[ObservationT, ActionT] | None:
        """Return the record so far, or None before the first observation."""
        if self._initial is None:
            return None
        return self._make(terminated=False, truncated=False)

    def _make(self, terminated: bool, truncated: bool) -> Trajectory[ObservationT, ActionT]:
        observation, info = cast("tuple[ObservationT, dict[str, Any]]", self._initial)
        return Trajectory(
            observation,
            _columns(self._rows),
            info,
            terminated,
            truncated,
            self._metadata,
            seed=self.seed,
            member=self._member,
            attempt=self._attempt,
        )

    def _place(self) -> str:
        return f"{self._environment}, step {self.num_steps}"


def check_max_steps(max_steps: int | None) -> None:
    """Refuse what is not a number of steps."""
    if max_steps is None:
        return
    if not isinstance(cast("object", max_steps), Integral) or isinstance(max_steps, bool):
        msg = f"max_steps must be an integer or None, got {max_steps!r}"
        raise TypeError(msg)
    if max_steps < 0:
        msg = f"max_steps must not be negative, got {max_steps!r}"
        raise ValueError(msg)


_ENDS = slice(3, 5)


def _columns(rows: list[tuple[Any, ...]]) -> StepColumns[Any, Any]:
    columns = StepColumns[Any, Any]()
    if not rows:
        return columns
    (
        columns.observations,
        columns.next_observations,
        columns.rewards,
        columns.terminated,
        columns.truncated,
        columns.infos,
        columns.actions,
        outputs,
        policy_infos,
        versions,
    ) = map(list, zip(*rows, strict=True))
    columns.policy_infos = [{} if info is None else info for info in policy_infos]
    if not any(outputs):
        unknown = (None,) * len(rows)
        columns.stop_reasons = columns.tokens = columns.logprobs = columns.prompt_tokens = unknown
        columns.versions = versions
        return columns
    columns.versions = [
        version if output is None or output.version is None else output.version
        for output, version in zip(outputs, versions, strict=True)
    ]
    columns.stop_reasons = [output and output.stop_reason for output in outputs]
    columns.tokens = compact(TokenIds, [output and output.tokens for output in outputs])
    columns.logprobs = compact(Logprobs, [output and output.logprobs for output in outputs])
    columns.prompt_tokens = compact(
        TokenIds, [output and output.prompt_tokens for output in outputs]
    )
    return columns


def _check_info(info: object) -> None:
    if not isinstance(info, Mapping):
        msg = f"info must be a dictionary, got {info!r}"
        raise TypeError(msg)


def _as_it_is(value: T) -> T:
    return value
