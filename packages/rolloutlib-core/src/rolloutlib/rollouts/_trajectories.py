"""The records of episodes."""

from __future__ import annotations

import traceback
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, Literal, TypeAlias, TypeVar

from rolloutlib._exceptions import class_name, find, read_error
from rolloutlib.rollouts._forms import (
    FACTS,
    SCORES,
    Record,
    Schema,
    record,
    records,
    same_fields,
)
from rolloutlib.rollouts._policies import ActionT, ObservationT, PolicyOutput
from rolloutlib.rollouts._step_forms import STEPS
from rolloutlib.rollouts._steps import (
    Step,
    StepColumns,
    kept_steps,
    read_score,
    to_columns,
)
from rolloutlib.scores import Score

ItemT = TypeVar("ItemT")

Phase: TypeAlias = Literal["make_env", "reset", "policy", "step", "close", "grade"]
"""What an episode was doing; "grade" is the grading of its whole group."""


@dataclass(frozen=True, slots=True)
class Trajectory(Record, Generic[ObservationT, ActionT]):
    """One episode: what was seen and done, step by step.

    The steps are kept by columns; `steps` makes each `Step` when it is asked for, and compares equal
    to the tuple of them.

    Attributes:
        initial_observation: What the environment showed first.
        steps: The steps, in order.
        initial_info: The environment's facts about the beginning.
        terminated: Whether the task reached its end.
        truncated: Whether the episode was cut short, by the environment or by a limit on its steps.
        metadata: The caller's facts about the episode.
        seed: The seed that the environment was reset with, or None.
        member: Which rollout of its group this is, from 0, or None outside a group.
        attempt: Which attempt at it this is, from 0; the earlier ones failed.
    """

    initial_observation: ObservationT
    steps: Sequence[Step[ObservationT, ActionT]] = ()
    initial_info: Mapping[str, Any] = field(default_factory=dict[str, Any])
    terminated: bool = False
    truncated: bool = False
    metadata: Mapping[str, Any] = field(default_factory=dict[str, Any])
    seed: int | None = field(default=None, kw_only=True)
    member: int | None = field(default=None, kw_only=True)
    attempt: int = field(default=0, kw_only=True)

    _schema = Schema("trajectory/1", steps=STEPS, initial_info=FACTS, metadata=FACTS)

    def __post_init__(self) -> None:
        object.__setattr__(self, "steps", kept_steps(self.steps))

    def __eq__(self, other: object) -> bool:
        return same_fields(self, other)

    @classmethod
    def from_exception(cls, error: BaseException) -> Trajectory[Any, Any] | None:
        """Return what was recorded of the episode that an exception ended, if anything was.

        `rollout` and `arollout` attach it to every exception that comes out of them after the
        environment was reset, `KeyboardInterrupt` included. An exception that took the place of
        such a one, as a timeout takes that of a cancellation, leads to it.
        """
        return find(error, "trajectory")

    @property
    def observations(self) -> tuple[ObservationT, ...]:
        """The initial observation, then the next observation of each step."""
        return (self.initial_observation, *self._columns.next_observations)

    @property
    def actions(self) -> tuple[ActionT, ...]:
        """The action of each step."""
        return tuple(self._columns.actions)

    @property
    def rewards(self) -> tuple[float, ...]:
        """The reward of each step."""
        return tuple(self._columns.rewards)

    @property
    def total_reward(self) -> float:
        """The sum of the rewards, undiscounted."""
        return float(sum(self._columns.rewards))

    @property
    def score(self) -> Score:
        """The score in the last step's info, or the total reward as a score if there is none."""
        infos = self._columns.infos
        score = read_score(infos[-1]) if infos else None
        return Score(self.total_reward) if score is None else score

    @property
    def complete(self) -> bool:
        """Whether the episode ended, by termination or by truncation."""
        return self.terminated or self.truncated

    @property
    def _columns(self) -> StepColumns[ObservationT, ActionT]:
        return to_columns(self.steps)


@dataclass(frozen=True, slots=True)
class RolloutError(Record):
    """What became of an episode that failed.

    Attributes:
        error_type: The exception's type: its name, after the module that exports it unless that is
            `builtins`.
        error_message: The exception's text.
        index: Which rollout of its group failed, from 0.
        attempt: Which attempt at it failed, from 0.
        phase: What the episode was doing.
        traceback: The formatted traceback, with the exception's notes and causes.
        seed: The seed of the episode, by which it can be run again.
        trajectory: What was recorded before the failure, or None if it came before the first
            observation. After a failure to grade its group, the whole episode.
        output: What the policy had returned for the step that failed, a plain action in a
            `PolicyOutput` too; None if the failure came elsewhere. The steps of `trajectory` end before.
    """

    error_type: str
    error_message: str
    index: int | None = field(default=None, kw_only=True)
    attempt: int = field(default=0, kw_only=True)
    phase: Phase | None = field(default=None, kw_only=True)
    traceback: str = field(default="", kw_only=True)
    seed: int | None = field(default=None, kw_only=True)
    trajectory: Trajectory[Any, Any] | None = field(default=None, kw_only=True)
    output: PolicyOutput[Any] | None = field(default=None, kw_only=True)

    _schema = Schema("rollout_error/1", trajectory=record(Trajectory), output=record(PolicyOutput))

    @classmethod
    def from_exception(
        cls,
        error: BaseException,
        *,
        index: int | None = None,
        attempt: int = 0,
        phase: Phase | None = None,
        seed: int | None = None,
        trajectory: Trajectory[Any, Any] | None = None,
        output: PolicyOutput[Any] | None = None,
    ) -> RolloutError:
        """Describe an exception, whatever it does when it is asked for its text."""
        return cls(
            class_name(type(error)),
            read_error(error, str),
            index=index,
            attempt=attempt,
            phase=phase,
            traceback=read_error(error, _format_traceback),
            seed=seed,
            trajectory=trajectory,
            output=output,
        )


@dataclass(frozen=True, slots=True)
class TrajectoryGroup(Record, Generic[ItemT, ObservationT, ActionT]):
    """Several independent episodes of one item: the unit of group-relative algorithms.

    Every requested episode is either in `trajectories` or in `errors`, and what failed and was then
    tried again is in `retried`. All are in the order of their member numbers, which
    `Trajectory.member` and `RolloutError.index` tell, the attempts at one member in order of time.

    Attributes:
        item: The item of the dataset.
        item_id: Its name; one that was made from the item's contents is shared by equal items.
        trajectories: The episodes that ended.
        scores: One score a trajectory; by default each trajectory's own.
        errors: The episodes that failed.
        metadata: The caller's facts about the group.
        seed: The integer that the members' seeds were derived from, or None.
        retried: The failures of earlier attempts.

    Raises:
        ValueError: There are scores, but not one a trajectory.
    """

    item: ItemT
    item_id: str
    trajectories: Sequence[Trajectory[ObservationT, ActionT]]
    scores: Sequence[Score] = ()
    errors: Sequence[RolloutError] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict[str, Any])
    seed: int | None = field(default=None, kw_only=True)
    retried: Sequence[RolloutError] = field(default=(), kw_only=True)

    _schema = Schema(
        "trajectory_group/1",
        trajectories=records(Trajectory),
        scores=SCORES,
        errors=records(RolloutError),
        metadata=FACTS,
        retried=records(RolloutError),
    )

    def __post_init__(self) -> None:
        trajectories = tuple(self.trajectories)
        scores = tuple(self.scores) or tuple([trajectory.score for trajectory in trajectories])
        if len(scores) != len(trajectories):
            msg = (
                f"scores must have one entry per trajectory: group {self.item_id!r} has "
                f"{len(scores)} scores and {len(trajectories)} trajectories"
            )
            raise ValueError(msg)
        object.__setattr__(self, "trajectories", trajectories)
        object.__setattr__(self, "scores", scores)
        object.__setattr__(self, "errors", tuple(self.errors))
        object.__setattr__(self, "retried", tuple(self.retried))

    def __eq__(self, other: object) -> bool:
        return same_fields(self, other)

    def __repr__(self) -> str:
        # Not all that is in it, which may be gigabytes: asyncio.run() forms this text of a result.
        return (
            f"<TrajectoryGroup {self.item_id!r}: {self.num_completed} completed, "
            f"{self.num_truncated} truncated, {self.num_failed} failed>"
        )

    @classmethod
    def from_exception(cls, error: BaseException) -> TrajectoryGroup[Any, Any, Any] | None:
        """Return the finished work of the group that an exception ended, if there is any.

        `rollout_group` and `arollout_group` attach it to every exception that comes out of them once
        they have begun, `KeyboardInterrupt` included. An exception that took the place of such a
        one, as a timeout takes that of a cancellation, leads to it.
        """
        return find(error, "group")

    @classmethod
    def all_from_exception(cls, error: BaseException) -> tuple[TrajectoryGroup[Any, Any, Any], ...]:
        """Return the groups that the exception kept `collect` or `acollect` from handing out.

        Those that were finished but not yet taken, then those that were not finished, each with the
        members that had ended; empty groups are left out.
        """
        return find(error, "groups") or ()

    @property
    def rewards(self) -> tuple[float, ...]:
        """The value of each score."""
        return tuple([score.value for score in self.scores])

    @property
    def num_completed(self) -> int:
        """How many episodes reached the end of their task."""
        return len(self.trajectories) - self.num_truncated

    @property
    def num_truncated(self) -> int:
        """How many episodes were cut short."""
        return sum([not trajectory.terminated for trajectory in self.trajectories])

    @property
    def num_failed(self) -> int:
        """How many episodes failed."""
        return len(self.errors)

    @property
    def num_requested(self) -> int:
        """How many episodes were asked for: the completed, the truncated and the failed ones."""
        return len(self.trajectories) + len(self.errors)


def _format_traceback(error: BaseException) -> str:
    return "".join(traceback.format_exception(error))
