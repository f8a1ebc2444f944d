"""Which faults there are to try, once a run without any has shown the places."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from rolloutlib.testing._faults import Fault, FaultKind, Moment
from rolloutlib.testing._probe import Call


def list_faults(
    calls: Collection[Call], kinds: Collection[FaultKind], turns: int
) -> Iterator[Fault]:
    """Give all faults of some kinds in some calls, those first that are simple to understand.

    Args:
        calls: The calls.
        kinds: The kinds.
        turns: How many turns of the event loop there are to stop the run in.
    """
    calls = sorted(calls, key=lambda call: str(call.place.episode or ""))  # whatever their timing
    for kind, raises in _KINDS:
        if kind in kinds:
            for call in calls:
                for moment in _moments(call, kind):
                    yield Fault(kind, call.place, moment, raises)
            if kind in _STOPS:
                for turn in range(turns):
                    yield Fault(kind, None, turn)


_KINDS: tuple[tuple[FaultKind, bool], ...] = (
    ("exception", False),
    ("exception", True),
    ("interrupt", False),
    ("hang", False),
    ("cancellation", False),
    ("early close", False),
)
_STOPS = ("cancellation", "early close")


def _moments(call: Call, kind: FaultKind) -> tuple[Moment, ...]:
    if kind in _STOPS:
        return ("before", "after", *range(call.suspensions))
    if kind == "hang" and call.on_loop and not call.awaited:
        return ()  # nothing else could go on meanwhile
    if call.place.function == "close":
        # An environment whose own `close` never ran could not be blamed for what it leaves.
        return ("after",)
    return ("before", "after")
