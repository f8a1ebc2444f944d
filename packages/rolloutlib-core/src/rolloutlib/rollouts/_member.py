"""The members of a group: what each is given, and what became of it."""

from __future__ import annotations

import dataclasses
from typing import Any, Generic

from rolloutlib._exceptions import read_error
from rolloutlib._values import snapshot
from rolloutlib.rollouts._codec import UnstorableError
from rolloutlib.rollouts._events import EventKind
from rolloutlib.rollouts._identity import content_id, member_seed
from rolloutlib.rollouts._policies import ActionT, ObservationT
from rolloutlib.rollouts._recorded import count_tokens
from rolloutlib.rollouts._recorder import Recorder
from rolloutlib.rollouts._run import Run
from rolloutlib.rollouts._trajectories import (
    ItemT,
    RolloutError,
    Trajectory,
    TrajectoryGroup,
)


class Outcomes(Generic[ItemT, ObservationT, ActionT]):
    """The outcomes of a group's members so far.

    Args:
        run: What the group belongs to.
        item: What it is about.
        item_id: The name of the item, or None to make one from its contents.
        seed: The integer that the members' seeds are derived from.

    Attributes:
        item: The item, for the record.
        item_id: The name of the item.
        seed: The integer that the members' seeds are derived from.
        trajectories: The episodes that ended, by member.
        errors: The failures of the others.
        retried: The failures that another attempt followed.
        num_playing: How many members are not over yet, the closing of their environments included.
    """

    def __init__(
        self, run: Run[ItemT, ObservationT, ActionT], item: ItemT, item_id: str | None, seed: int
    ) -> None:
        self.run = run
        self.item_id = content_id(item, run.make_env) if item_id is None else item_id
        self.trajectories: dict[int, Trajectory[ObservationT, ActionT]] = {}
        self.errors: dict[int, RolloutError] = {}
        self.retried: list[RolloutError] = []
        self.num_playing = run.num_rollouts
        # What each member gets a copy of: a source of items may reuse the object meanwhile.
        self._original = snapshot(item) if run.snapshots else item
        # The record has the item itself, but in a store it has to be what was played.
        self.item = item if run.store is None else self._original
        self.seed = seed

    def member(self, index: int, attempt: int) -> Member[ItemT, ObservationT, ActionT]:
        """Return an attempt at a member, with an item and a seed of its own."""
        item = snapshot(self._original) if self.run.snapshots else self._original
        seed = member_seed(self.seed, self.item_id, index, attempt)
        return Member(self, index, attempt, item, seed)

    def group(self) -> TrajectoryGroup[ItemT, ObservationT, ActionT]:
        """Return the record of the members that have an outcome."""
        return TrajectoryGroup(
            self.item,
            self.item_id,
            [self.trajectories[index] for index in sorted(self.trajectories)],
            errors=[self.errors[index] for index in sorted(self.errors)],
            metadata=snapshot(self.run.metadata),
            seed=self.seed,
            retried=sorted(self.retried, key=lambda error: error.index or 0),
        )


class Member(Generic[ItemT, ObservationT, ActionT]):
    """One attempt at an episode of a group.

    Attributes:
        item: The item, for `make_env`.
        index: Which rollout of its group it is.
        attempt: Which attempt at it this is.
    """

    def __init__(
        self,
        outcomes: Outcomes[ItemT, ObservationT, ActionT],
        index: int,
        attempt: int,
        item: ItemT,
        seed: int,
    ) -> None:
        self.item = item
        self._outcomes = outcomes
        self.index = index
        self.attempt = attempt
        self._seed = seed
        self._recorder: Recorder[ObservationT, ActionT] | None = None
        self._reporter = outcomes.run.reporter
        if self._reporter and not attempt:
            self._report("started")

    def __str__(self) -> str:
        return f"rollout {self.index}"

    def record(self, environment: object) -> Recorder[ObservationT, ActionT]:
        """Begin to record in an environment."""
        run = self._outcomes.run
        self._recorder = Recorder(
            environment,
            seed=self._seed,
            max_steps=run.max_steps,
            metadata=None,
            snapshots=run.snapshots,
            member=self.index,
            attempt=self.attempt,
        )
        if self._reporter or (run.store and not run.store.verified):
            self._recorder.on_step = self._after_step
        return self._recorder

    def keep(self, trajectory: Trajectory[ObservationT, ActionT]) -> None:
        """Take the finished episode."""
        self._outcomes.trajectories[self.index] = trajectory

    def note_close_error(self, error: Exception) -> None:
        """Tell in the record of the finished episode that its environment could not be closed."""
        trajectory = self._outcomes.trajectories[self.index]
        metadata = {**trajectory.metadata, "close_error": read_error(error, repr)}
        self.keep(dataclasses.replace(trajectory, metadata=metadata))

    def finish(self) -> None:
        """Count the finished episode, whose environment has been closed."""
        self._outcomes.run.failures.reset()
        if self._reporter:
            self._report("finished", trajectory=self._outcomes.trajectories[self.index])

    def fail(self, exception: BaseException) -> float | None:
        """Take the failure of the attempt.

        Returns:
            How many seconds to wait before the next attempt, or None if the failure is final.

        Raises:
            BaseException: The exception, if final failures are to be raised, or if it is not an error
                of the episode but an interrupt. A `StalledError` if too many failed.
        """
        outcomes = self._outcomes
        if not isinstance(exception, Exception):  # an interrupt, which is no failure of the episode
            raise exception
        if outcomes.run.store and isinstance(exception, UnstorableError):  # as others will be
            raise exception
        recorder = self._recorder
        delay = outcomes.run.retries.take(exception, self.attempt)
        error = RolloutError.from_exception(
            exception,
            index=self.index,
            attempt=self.attempt,
            phase="make_env" if recorder is None else recorder.phase,
            seed=self._seed,
            trajectory=None if recorder is None else recorder.unfinished(),
            output=None if recorder is None else recorder.answer(),
        )
        if delay is None:
            outcomes.errors[self.index] = error
        else:
            outcomes.retried.append(error)
        if self._reporter:
            kind = "failed" if delay is None else "retried"
            self._report(kind, tokens=count_tokens(error.output), error=error)
        if delay is None:
            if outcomes.run.on_error == "raise":
                raise exception
            outcomes.run.failures.add(exception)
        return delay

    def _after_step(self) -> None:
        if self._recorder:
            self._report("step", tokens=self._recorder.last_tokens)
            store = self._outcomes.run.store
            if store and not store.verified:
                store.check(self._recorder.unfinished())

    def _report(self, kind: EventKind, **facts: Any) -> None:
        if self._reporter:
            self._reporter.report(
                kind,
                item_id=self._outcomes.item_id,
                index=self.index,
                attempt=self.attempt,
                seed=self._seed,
                **facts,
            )
