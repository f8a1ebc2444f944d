"""What an episode does between its calls: check what came back, copy it and keep it."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from numbers import Integral
from typing import Any, Generic, TypeVar, cast

from rolloutlib._exceptions import attach
from rolloutlib._values import snapshot, to_bool, to_float
from rolloutlib.rollouts._arrays import Logprobs, TokenIds, compact
from rolloutlib.rollouts._policies import ActionT, EpisodeTruncated, ObservationT, PolicyOutput
from rolloutlib.rollouts._steps import StepColumns, read_score
from rolloutlib.rollouts._trajectories import Phase, Trajectory

T = TypeVar("T")


class Recorder(Generic[ObservationT, ActionT]):
    """The record of an episode in the making, the same for both kinds of rollout.

    Args:
        environment: The environment, for error messages.
        seed: The seed of the episode.
        max_steps: The most steps that the episode may have.
        metadata: The caller's facts.
        snapshots: Whether to keep copies of what the environment and the policy return.
        member: Which rollout of its group this is.

    Attributes:
        phase: What the episode is doing.
        ended: Whether it is over.

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
    ) -> None:
        check_max_steps(max_steps)
        self.phase: Phase = "reset"
        self.seed = seed
        self.ended = max_steps == 0
        self._environment = environment
        self._max_steps = max_steps
        self._metadata = snapshot(dict(metadata or {}))
        self._snapshots = snapshots
        self._member = member
        self._columns = StepColumns[ObservationT, ActionT]()
        self._outputs: list[PolicyOutput[ActionT] | None] = []
        self._initial: tuple[ObservationT, dict[str, Any]] | None = None
        self._observation: ObservationT
        self._decision: tuple[ActionT, PolicyOutput[ActionT] | None]

    def begin(self, result: tuple[ObservationT, dict[str, Any]]) -> ObservationT:
        """Take what `reset` returned; return what the policy is to see."""
        try:
            observation, info = result
            info = self._keep(_checked_info(info))
        except (TypeError, ValueError) as error:
            msg = f"{self._environment}: reset() must return (observation, info), got {result!r}"
            raise TypeError(msg) from error
        self._observation = self._keep(observation)
        self._initial = (self._observation, info)
        self.phase = "policy"
        return observation

    def decide(self, output: ActionT | PolicyOutput[ActionT]) -> ActionT:
        """Take what the policy returned; return what the environment is to do."""
        if isinstance(output, PolicyOutput):
            output = cast("PolicyOutput[ActionT]", output)
            action = output.action
            self._decision = (self._keep(action), output)
        elif inspect.isawaitable(output):
            if inspect.iscoroutine(output):
                output.close()
            msg = f"{self._place()}: the policy returned an awaitable, {output!r}: use arollout"
            raise TypeError(msg)
        else:
            action = output
            self._decision = (self._keep(action), None)
        self.phase = "step"
        return action

    def add(self, result: tuple[ObservationT, Any, Any, Any, dict[str, Any]]) -> ObservationT:
        """Take what `step` returned; return what the policy is to see next."""
        try:
            observation, reward, terminated, truncated, info = result
        except (TypeError, ValueError) as error:
            form = "(observation, reward, terminated, truncated, info)"
            msg = f"{self._place()}: step() must return {form}, got {result!r}"
            raise TypeError(msg) from error
        try:
            reward = to_float(reward, "reward")
            terminated = to_bool(terminated, "terminated")
            truncated = to_bool(truncated, "truncated")
            info = self._keep(_checked_info(info))
            if "score" in info:
                read_score(info)
        except (TypeError, ValueError) as error:
            msg = f"{self._place()}: {error}"
            raise type(error)(msg) from error
        columns = self._columns
        action, output = self._decision
        columns.observations.append(self._observation)
        columns.actions.append(action)
        columns.rewards.append(reward)
        self._observation = self._keep(observation)
        columns.next_observations.append(self._observation)
        columns.terminated.append(terminated)
        columns.truncated.append(truncated)
        columns.infos.append(info)
        columns.policy_infos.append({} if output is None else self._keep(output.info))
        self._outputs.append(output)
        self.ended = terminated or truncated or len(columns) == self._max_steps
        self.phase = "policy"
        return observation

    def trajectory(self) -> Trajectory[ObservationT, ActionT]:
        """Return the record of the episode, which is over."""
        columns = self._columns
        terminated = bool(columns) and columns.terminated[-1]
        truncated = bool(columns) and columns.truncated[-1]
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
        columns, outputs = self._columns, self._outputs
        columns.stop_reasons = [output and output.stop_reason for output in outputs]
        columns.tokens = compact(TokenIds, [output and output.tokens for output in outputs])
        columns.logprobs = compact(Logprobs, [output and output.logprobs for output in outputs])
        columns.prompt_tokens = compact(
            TokenIds, [output and output.prompt_tokens for output in outputs]
        )
        return Trajectory(
            observation,
            columns,
            info,
            terminated,
            truncated,
            self._metadata,
            seed=self.seed,
            member=self._member,
        )

    def _keep(self, value: T) -> T:
        return snapshot(value) if self._snapshots else value

    def _place(self) -> str:
        return f"{self._environment}, step {len(self._columns)}"


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


def _checked_info(info: dict[str, Any]) -> dict[str, Any]:
    if not isinstance(cast("object", info), Mapping):
        msg = f"info must be a dictionary, got {info!r}"
        raise TypeError(msg)
    return info
