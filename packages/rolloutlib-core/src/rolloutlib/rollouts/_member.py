"""The members of a group: what each is given, and what became of it."""

from __future__ import annotations

import dataclasses
import logging
import secrets
from collections.abc import Callable, Mapping
from numbers import Integral
from typing import Any, Generic, Literal, TypeAlias, cast, get_args

from rolloutlib._calls import check_count
from rolloutlib._exceptions import read_error
from rolloutlib._values import snapshot
from rolloutlib.rollouts._identity import SEED_BITS, content_id, derive_seed
from rolloutlib.rollouts._policies import ActionT, ObservationT
from rolloutlib.rollouts._recorder import Recorder, check_max_steps
from rolloutlib.rollouts._trajectories import (
    ItemT,
    RolloutError,
    Trajectory,
    TrajectoryGroup,
)

OnError: TypeAlias = Literal["record", "raise"]

_logger = logging.getLogger("rolloutlib")


class Outcomes(Generic[ItemT, ObservationT, ActionT]):
    """What a group was asked for, and the outcomes of its members so far.

    The arguments are those of `rollout_group`.
    """

    def __init__(
        self,
        item: ItemT,
        make_env: Callable[..., object],
        *,
        num_rollouts: int,
        item_id: str | None,
        max_steps: int | None,
        metadata: Mapping[str, Any] | None,
        seed: int | None,
        on_error: OnError,
        snapshots: bool,
    ) -> None:
        check_count("num_rollouts", num_rollouts)
        check_max_steps(max_steps)
        if seed is not None and (not isinstance(cast("object", seed), Integral) or seed < 0):
            msg = f"seed must be a non-negative integer or None, got {seed!r}"
            raise ValueError(msg)
        if on_error not in get_args(OnError):
            msg = f"on_error must be one of {get_args(OnError)}, got {on_error!r}"
            raise ValueError(msg)
        self.snapshots = snapshots
        self.max_steps = max_steps
        self._item = item
        self._item_id = content_id(item, make_env) if item_id is None else item_id
        self._metadata = snapshot(dict(metadata or {}))
        self._seed = secrets.randbits(SEED_BITS) if seed is None else int(seed)
        self._on_error = on_error
        self._trajectories: dict[int, Trajectory[ObservationT, ActionT]] = {}
        self._errors: dict[int, RolloutError] = {}

    def member(self, index: int) -> Member[ItemT, ObservationT, ActionT]:
        """Return a member, with an item and a seed of its own."""
        item = snapshot(self._item) if self.snapshots else self._item
        return Member(self, index, item, derive_seed(self._seed, self._item_id, index))

    def keep(self, index: int, trajectory: Trajectory[ObservationT, ActionT]) -> None:
        """Take a finished episode."""
        self._trajectories[index] = trajectory

    def annotate(self, index: int, **facts: object) -> None:
        """Add facts to the metadata of a finished episode."""
        trajectory = self._trajectories[index]
        metadata = {**trajectory.metadata, **facts}
        self._trajectories[index] = dataclasses.replace(trajectory, metadata=metadata)

    def fail(self, index: int, error: RolloutError, exception: BaseException) -> None:
        """Take a failed episode; one that was finished when it was interrupted stays finished.

        Raises:
            BaseException: The exception, if failures are to be raised, or if it is not an error of
                the episode but an interrupt.
        """
        if index not in self._trajectories:
            self._errors[index] = error
        if self._on_error == "raise" or not isinstance(exception, Exception):
            raise exception

    def group(self) -> TrajectoryGroup[ItemT, ObservationT, ActionT]:
        """Return the record of the members that have an outcome."""
        errors = [self._errors[index] for index in sorted(self._errors)]
        if errors and not self._trajectories:
            _logger.warning(
                "no rollout of item %r ended: %d failed, the first in %s with %s: %s",
                self._item_id,
                len(errors),
                errors[0].phase,
                errors[0].error_type,
                errors[0].error_message,
            )
        return TrajectoryGroup(
            self._item,
            self._item_id,
            [self._trajectories[index] for index in sorted(self._trajectories)],
            errors=errors,
            metadata=self._metadata,
            seed=self._seed,
        )


class Member(Generic[ItemT, ObservationT, ActionT]):
    """One episode of a group.

    Attributes:
        item: The item, for `make_env`.
    """

    def __init__(
        self,
        outcomes: Outcomes[ItemT, ObservationT, ActionT],
        index: int,
        item: ItemT,
        seed: int,
    ) -> None:
        self.item = item
        self._outcomes = outcomes
        self._index = index
        self._seed = seed
        self._recorder: Recorder[ObservationT, ActionT] | None = None

    def record(self, environment: object) -> Recorder[ObservationT, ActionT]:
        """Begin to record in an environment."""
        self._recorder = Recorder(
            environment,
            seed=self._seed,
            max_steps=self._outcomes.max_steps,
            metadata=None,
            snapshots=self._outcomes.snapshots,
            member=self._index,
        )
        return self._recorder

    def __str__(self) -> str:
        return f"rollout {self._index}"

    def keep(self, trajectory: Trajectory[ObservationT, ActionT]) -> None:
        """Take the finished episode."""
        self._outcomes.keep(self._index, trajectory)

    def note_close_error(self, error: Exception) -> None:
        """Tell in the record of the finished episode that its environment could not be closed."""
        self._outcomes.annotate(self._index, close_error=read_error(error, repr))

    def fail(self, exception: BaseException) -> None:
        """Take the failure of the episode.

        Raises:
            BaseException: The exception, if failures are to be raised, or if it is not an error of
                the episode but an interrupt.
        """
        recorder = self._recorder
        error = RolloutError.from_exception(
            exception,
            index=self._index,
            phase="make_env" if recorder is None else recorder.phase,
            seed=self._seed,
            trajectory=None if recorder is None else recorder.unfinished(),
        )
        self._outcomes.fail(self._index, error, exception)
