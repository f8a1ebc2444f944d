"""Telling onlookers of a run that may stop early by which interval it does."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

from rolloutlib._calls import is_async
from rolloutlib.evals._stopping import Stopping
from rolloutlib.rollouts import RolloutEvent
from rolloutlib.rollouts._events import OnEvent

__all__ = ["StoppingEvent", "on_event_of"]


@dataclass(frozen=True, slots=True, kw_only=True)
class StoppingEvent(RolloutEvent):
    """An event of a run that may stop early.

    Attributes:
        stoppings: What tells when each benchmark of the run stops; they go on with the run.
    """

    stoppings: Sequence[Stopping]


def on_event_of(on_event: OnEvent | None, stoppings: Sequence[Stopping]) -> OnEvent | None:
    """Return what a run is to tell its events, so that the user's function is told the intervals too.

    Args:
        on_event: The user's function, which is checked by whoever calls it.
        stoppings: What tells when each benchmark of the run stops; empty if it cannot stop early.
    """
    if not stoppings or not callable(on_event) or is_async(on_event):
        return on_event
    names = [field.name for field in fields(RolloutEvent)]

    def tell(event: RolloutEvent) -> None:
        values = {name: getattr(event, name) for name in names}
        on_event(StoppingEvent(**values, stoppings=stoppings))

    return tell
