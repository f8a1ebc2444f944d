"""What a run tells while it goes on."""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from rolloutlib._calls import is_async
from rolloutlib.rollouts._trajectories import RolloutError, Trajectory

EventKind: TypeAlias = Literal["started", "step", "finished", "failed", "retried"]

_logger = logging.getLogger("rolloutlib")


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """The counts of a run so far.

    Attributes:
        started: How many episodes were begun; further attempts at one do not count.
        completed: How many reached the end of their task.
        truncated: How many were cut short.
        failed: How many failed for good.
        retried: How many attempts failed and were followed by another.
        steps: How many steps were made, those of failed attempts included.
        tokens: How many tokens the policy sampled in them, and for steps that failed, as far as it told.
    """

    started: int = 0
    completed: int = 0
    truncated: int = 0
    failed: int = 0
    retried: int = 0
    steps: int = 0
    tokens: int = 0

    @property
    def running(self) -> int:
        """How many episodes have begun and not ended."""
        return self.started - self.completed - self.truncated - self.failed


@dataclass(frozen=True, slots=True, kw_only=True)
class RolloutEvent:
    """Something that happened to an episode.

    Attributes:
        kind: "started"; "step", after each; "finished", completed or truncated; "failed", for good,
            also of an episode that finished, when its group could not be graded; "retried", when an
            attempt failed and another will follow.
        item_id: The name of the item.
        index: Which rollout of its group it is, from 0.
        attempt: Which attempt at it this is, from 0.
        seed: The seed of the attempt.
        progress: The counts of the whole run after the event.
        trajectory: The record of an episode that finished.
        error: The record of one that failed, for good or not.
    """

    kind: EventKind
    item_id: str
    index: int
    attempt: int
    seed: int
    progress: Progress
    trajectory: Trajectory[Any, Any] | None = None
    error: RolloutError | None = None


OnEvent: TypeAlias = Callable[[RolloutEvent], object]


class Reporter:
    """Counts what happens, and calls the user's function.

    The function is an onlooker: when it raises, that is logged, it is not called again, and the run
    goes on.

    Args:
        on_event: The user's function.

    Raises:
        TypeError: It cannot be called, or is a coroutine function.
    """

    def __init__(self, on_event: OnEvent) -> None:
        if not callable(on_event) or is_async(on_event):
            msg = f"on_event must be a function that is not asynchronous, got {on_event!r}"
            raise TypeError(msg)
        self._on_event: OnEvent | None = on_event
        self._progress = Progress()

    def report(
        self,
        kind: EventKind,
        *,
        item_id: str,
        index: int,
        attempt: int,
        seed: int,
        tokens: int = 0,
        trajectory: Trajectory[Any, Any] | None = None,
        error: RolloutError | None = None,
    ) -> None:
        """Count an event and tell it."""
        if self._on_event is None:
            return
        counts = {"steps" if kind == "step" else kind: 1, "tokens": tokens}
        if trajectory is not None:
            counts = {_outcome(trajectory): 1}
        elif error is not None and error.phase == "grade" and error.trajectory is not None:
            counts[_outcome(error.trajectory)] = -1  # it was counted when it finished
        self._progress = progress = dataclasses.replace(
            self._progress,
            **{name: getattr(self._progress, name) + count for name, count in counts.items()},
        )
        event = RolloutEvent(
            kind=kind,
            item_id=item_id,
            index=index,
            attempt=attempt,
            seed=seed,
            progress=progress,
            trajectory=trajectory,
            error=error,
        )
        on_event = self._on_event
        try:
            on_event(event)
        except Exception:
            self._on_event = None
            _logger.exception("%r failed on an event, and is not called again", on_event)


def _outcome(trajectory: Trajectory[Any, Any]) -> str:
    return "completed" if trajectory.terminated else "truncated"
