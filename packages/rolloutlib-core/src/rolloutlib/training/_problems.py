"""What is wrong with rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from rolloutlib.training._reports import describe

ProblemKind: TypeAlias = Literal[
    "length",
    "type",
    "tokens",
    "mask",
    "padding",
    "logprobs",
    "advantages",
    "spans",
    "context",
    "coverage",
]
"""What a problem is about."""

_LISTED = 10


@dataclass(frozen=True, slots=True)
class RowProblem:
    """One thing that is wrong with rows; its text says all of it.

    Attributes:
        kind: What it is about.
        message: What is wrong.
        row: Which row, from 0, or None if the fault is that there is none.
        position: Which token of the row, the first of several, or None.
        item_id: The name of the item whose action it concerns, if that is known.
        member: Which rollout of the item's group.
        step: Which step of the rollout.
    """

    kind: ProblemKind
    message: str
    row: int | None = None
    position: int | None = None
    item_id: str | None = None
    member: int | None = None
    step: int | None = None

    def __str__(self) -> str:
        places: list[str] = []
        if self.row is not None:
            places.append(f"row {self.row}")
        if self.position is not None:
            places.append(f"token {self.position}")
        if self.member is not None:
            places.append(describe(self.item_id, self.member, self.step))
        return f"{', '.join(places) or 'rows'}: {self.message}"


class InvalidRowsError(ValueError):
    """Rows are not fit to train on.

    Attributes:
        problems: All that is wrong with them.
    """

    def __init__(self, problems: list[RowProblem]) -> None:
        self.problems = problems
        lines = [f"rows have {len(problems)} problems", *map(str, problems[:_LISTED])]
        if len(problems) > _LISTED:
            lines.append(f"and {len(problems) - _LISTED} more")
        super().__init__("\n  ".join(lines))

    def __reduce__(self) -> tuple[type[InvalidRowsError], tuple[list[RowProblem]]]:
        return type(self), (self.problems,)
