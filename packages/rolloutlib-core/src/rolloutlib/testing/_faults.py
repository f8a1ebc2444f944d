"""What is injected into a run, and where."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

FaultKind: TypeAlias = Literal["exception", "interrupt", "cancellation", "early close", "hang"]

Function: TypeAlias = Literal[
    "make_env", "reset", "policy", "step", "close", "grade_group", "on_event", "transient"
]

Moment: TypeAlias = Literal["before", "after"] | int
"""Before the user's code runs, after it has returned, or at which of its suspensions, from 0."""


class InjectedError(Exception):
    """The exception that `check_faults` injects."""


@dataclass(frozen=True, slots=True)
class Episode:
    """One attempt at a member of a group.

    Attributes:
        group: Which group of the run, from 0, or None if it has but one.
        member: Which member of the group.
        attempt: Which attempt at it.
    """

    group: int | None
    member: int
    attempt: int = 0

    def __str__(self) -> str:
        name = f"rollout {self.member}"
        if self.group is not None:
            name = f"{name} of group {self.group}"
        return f"attempt {self.attempt} at {name}" if self.attempt else name


@dataclass(frozen=True, slots=True)
class Place:
    """A call of one of the user's functions.

    Attributes:
        function: Which function.
        number: Which call of it in its episode, or in the run if no episode is known, from 0.
        episode: The episode.
    """

    function: Function
    number: int
    episode: Episode | None = None

    def __str__(self) -> str:
        once = self.function in ("reset", "close")  # in each episode
        text = self.function if once else f"{self.function} {self.number}"
        return text if self.episode is None else f"{text} of {self.episode}"


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault of one run.

    Attributes:
        kind: What happens.
        place: In which call, or None if it happens in a turn of the event loop.
        moment: When in the call; or in which turn of the loop.
        raises: Whether the run is asked to raise failures, not to record them.
    """

    kind: FaultKind
    place: Place | None
    moment: Moment
    raises: bool = False

    def __str__(self) -> str:
        article = "an" if self.kind[0] in "aeiou" else "a"
        kind = f"{article} {self.kind}"
        if self.raises:
            kind = f'{kind} with on_error="raise"'
        if self.place is None:
            return f"{kind} in turn {self.moment} of the event loop"
        if isinstance(self.moment, int):
            return f"{kind} at await {self.moment} in {self.place}"
        return f"{kind} {self.moment} {self.place}"
