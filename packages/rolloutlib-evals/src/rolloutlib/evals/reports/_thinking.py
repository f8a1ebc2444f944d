"""The thinking in a reply, told apart from the answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from rolloutlib.answers._characters import lower_case
from rolloutlib.answers._visible import THINKING
from rolloutlib.evals.reports._conversation import Highlight, Turn

__all__ = ["take_thinking"]


def take_thinking(
    turn: Turn, marks: Sequence[Highlight]
) -> tuple[str | None, Turn, Sequence[Highlight]]:
    """Return the thinking that a reply begins with, the turn without it, and its marks.

    Where an answer was read within the thinking, or nothing follows it, the turn stays whole.

    Args:
        turn: What was said.
        marks: Where its text is marked.
    """
    text = turn.parts[0] if turn.parts else None
    if turn.step is None or not isinstance(text, str):
        return None, turn, marks
    ends = [tag.end() for tag in THINKING.finditer(lower_case(text)) if tag.lastgroup]
    rest = text[ends[-1] :].lstrip() if ends else ""
    start = len(text) - len(rest)
    if not rest or any(mark.start < start for mark in marks):
        return None, turn, marks
    moved = [replace(mark, start=mark.start - start, stop=mark.stop - start) for mark in marks]
    return text[:start].rstrip(), replace(turn, parts=(rest, *turn.parts[1:])), moved
