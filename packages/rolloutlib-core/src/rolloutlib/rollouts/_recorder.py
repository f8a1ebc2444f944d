"""What an episode does between its calls: check what came back, copy it and keep it."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Coroutine, Generator, Mapping
from math import isfinite
from numbers import Integral
from typing import Any, Generic, TypeVar, cast

from rolloutlib._exceptions import attach
from rolloutlib._values import snapshot, to_bool, to_float
from rolloutlib.rollouts._policies import (
    ActionT,
    EpisodeTruncated,
    ObservationT,
    PolicyOutput,
)
from rolloutlib.rollouts._recorded import ENDS, OUTPUT, count_tokens, to_answer, to_columns
from rolloutlib.rollouts._steps import read_score
from rolloutlib.rollouts._trajectories import Phase, Trajectory

T = TypeVar("T")


class Recorder(Generic[ObservationT, ActionT]):
    """The record of an episode in the making, the same for all kinds of rollout.

    `start` gives a function that takes in turn what `reset`, the policy and `step` return, and that
    gives what the policy is to see and the environment is to do:

        record = recorder.start()
        observation = record(environment.reset())
        while not recorder.ended:
            action = record(policy(observation))
            observation = record(environment.step(action))

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
        on_step: Called after each step, if it is set before the first.

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
        self.ended: bool = max_steps == 0
        self.on_step: Callable[[], None] | None = None
        self._environment = environment
        self._max_steps = max_steps
        self._metadata: dict[str, Any] = snapshot(dict(metadata)) if metadata else {}
        self._keep: Callable[[Any], Any] = snapshot if snapshots else _as_it_is
        self._member = member
        self._attempt = attempt
        # One tuple a step, turned into columns at the end: half the cost of ten lists that grow.
        self._rows: list[tuple[Any, ...]] = []
        self._initial: tuple[ObservationT, dict[str, Any]] | None = None
        self._version: int | str | None = None
        self._turns: weakref.ref[Generator[Any, Any]] | None = None
        self._answer: PolicyOutput[Any] | None = None

    @property
    def num_steps(self) -> int:
        """How many steps the episode has had."""
        return len(self._rows)

    @property
    def last_tokens(self) -> int:
        """How many tokens the policy sampled for the last step, as far as it tells."""
        return count_tokens(self._rows[-1][OUTPUT])

    def stamp(self, version: int | str | None) -> None:
        """Take the version of the policy that is about to be called."""
        self._version = version

    def start(self) -> Callable[[Any], Any]:
        """Return the function that records.

        It raises `TypeError` or `ValueError` for what is not of the right form.
        """
        turns = self._record()
        next(turns)
        self._turns = weakref.ref(turns)  # it refers back: in a cycle, episodes would outlive runs
        return turns.send

    def trajectory(self) -> Trajectory[ObservationT, ActionT]:
        """Return the record of the episode, which is over."""
        terminated, truncated = self._rows[-1][ENDS] if self._rows else (False, False)
        return self._make(terminated, truncated or not terminated)

    def truncate(self, reason: EpisodeTruncated) -> Trajectory[ObservationT, ActionT]:
        """Return the record of an episode that cannot go on; re-raise if it has not begun."""
        if self._initial is None:
            raise reason
        self._metadata["truncated_by"] = str(reason)
        return self._make(terminated=False, truncated=True)

    def leave(self, error: BaseException) -> None:
        """Let what was recorded so far travel with the exception that ends the episode."""
        attach(error, trajectory=self.unfinished(), output=self.answer())

    def unfinished(self) -> Trajectory[ObservationT, ActionT] | None:
        """Return the record so far, or None before the first observation."""
        if self._initial is None:
            return None
        return self._make(terminated=False, truncated=False)

    def answer(self) -> PolicyOutput[Any] | None:
        """Return what the policy had returned for the step that failed; nothing is recorded after.

        None if the episode was doing something else.
        """
        turns = None if self._turns is None else self._turns()
        if turns is not None:
            turns.close()
        return self._answer

    def _record(self) -> Generator[Any, Any]:
        # A generator, since in the loop over steps its variables cost a third of what attributes do.
        rows, keep = self._rows, self._keep
        info: Any
        observation, info = self._read_reset((yield))
        before = keep(observation)
        self._initial = (before, keep(info))
        while True:
            self.phase = "policy"
            action: Any = yield observation
            output: PolicyOutput[Any] | None = None
            policy_info: Mapping[str, Any] | None = None
            if isinstance(action, PolicyOutput):
                output = cast("PolicyOutput[Any]", action)
                action = output.action
                policy_info = keep(output.info) or None
            elif hasattr(action, "__await__"):
                raise self._unexpected(action)
            kept_action = keep(action)
            self.phase = "step"
            try:
                result = yield action
                try:
                    observation, reward, terminated, truncated, info = result
                except (TypeError, ValueError) as error:
                    form = "(observation, reward, terminated, truncated, info)"
                    msg = f"{self._place()}: step() must return {form}, got {result!r}"
                    raise TypeError(msg) from error
                if not (
                    type(reward) is float
                    and isfinite(reward)
                    and type(terminated) is type(truncated) is bool
                    and type(info) is dict
                    and "score" not in info
                ):
                    reward, terminated, truncated = self._read(reward, terminated, truncated, info)
                after = keep(observation)
                info = keep(info) if info else {}
            except BaseException:  # costs a step nothing; `close` comes as a GeneratorExit
                self._answer = to_answer(kept_action, output, policy_info, self._version)
                raise
            rows.append(
                (
                    before,
                    after,
                    reward,
                    terminated,
                    truncated,
                    info,
                    kept_action,
                    output,
                    policy_info,
                    self._version,
                )
            )
            before = after
            self.ended = terminated or truncated or len(rows) == self._max_steps
            if self.on_step:
                self.on_step()

    def _read_reset(self, result: Any) -> tuple[Any, Any]:
        try:
            observation, info = result
            _check_info(info)
        except (TypeError, ValueError) as error:
            msg = f"{self._environment}: reset() must return (observation, info), got {result!r}"
            raise TypeError(msg) from error
        return observation, info

    def _read(
        self, reward: object, terminated: object, truncated: object, info: Any
    ) -> tuple[float, bool, bool]:
        try:
            _check_info(info)
            if "score" in info:
                read_score(info)
            return (
                to_float(reward, "reward"),
                to_bool(terminated, "terminated"),
                to_bool(truncated, "truncated"),
            )
        except (TypeError, ValueError) as error:
            msg = f"{self._place()}: {error}"
            raise type(error)(msg) from error

    def _unexpected(self, output: object) -> TypeError:
        if isinstance(output, Coroutine):
            output.close()
        return TypeError(
            f"{self._place()}: the policy returned an awaitable, {output!r}: use arollout"
        )

    def _make(self, terminated: bool, truncated: bool) -> Trajectory[ObservationT, ActionT]:
        observation, info = cast("tuple[ObservationT, dict[str, Any]]", self._initial)
        return Trajectory(
            observation,
            to_columns(self._rows),
            info,
            terminated,
            truncated,
            self._metadata,
            seed=self.seed,
            member=self._member,
            attempt=self._attempt,
        )

    def _place(self) -> str:
        return f"{self._environment}, step {len(self._rows)}"


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


def _check_info(info: object) -> None:
    if not isinstance(info, Mapping):
        msg = f"info must be a dictionary, got {info!r}"
        raise TypeError(msg)


def _as_it_is(value: T) -> T:
    return value
