"""Reading scores out of what graders return."""

from __future__ import annotations

from collections.abc import Awaitable

from rolloutlib._values import is_flag, to_float
from rolloutlib.graders._awaitables import at_once
from rolloutlib.graders._criteria import Criterion, Scale
from rolloutlib.scores import Score, ScoreValue


def read_score(
    result: ScoreValue | Awaitable[ScoreValue], place: str, scale: Scale | None
) -> Score:
    """Return the result of a grader as a score.

    Args:
        result: A number or a score.
        place: What it is, for error messages.
        scale: The range that it must lie in, or None for any number.

    Raises:
        TypeError: It is not a number, or has to be awaited.
        ValueError: It is NaN, or outside the scale.
    """
    if not isinstance(result, Score):
        number = at_once(result, place)
        if is_flag(number):
            msg = f"{place} must be a number, got {number!r}: say 1.0 or 0.0"
            raise TypeError(msg)
        result = number if isinstance(number, Score) else Score(to_float(number, place))
    _check_range(result.value, place, scale)
    return result


def scale_by(rubric: object) -> Scale | None:
    """Return the scale of scores by a criterion, or None for any number by something else."""
    return rubric.scale if isinstance(rubric, Criterion) else None


def _check_range(value: float, place: str, scale: Scale | None) -> None:
    """Refuse a value outside a scale.

    Raises:
        ValueError: It is outside.
    """
    if scale is not None and not scale[0] <= value <= scale[1]:
        low, high = scale
        msg = f"{place} must be from {low} to {high}, got {value!r}: is another `scale` meant?"
        raise ValueError(msg)
