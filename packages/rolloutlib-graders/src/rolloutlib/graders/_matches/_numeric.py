"""Answers that are numbers."""

from __future__ import annotations

import functools
import math
from fractions import Fraction
from numbers import Real
from typing import cast

from rolloutlib.answers import extract, read_number
from rolloutlib.graders._matches._references import Match, Reference, match_score, read_references
from rolloutlib.scores import Score


class NumericMatch(Match[tuple[Fraction, ...]]):
    """Accepts an answer whose number equals a reference.

    Numbers are compared as exact fractions: 0.5 equals 1/2, and 0.3333 does not equal 1/3. Currency
    signs, units, percent signs and separators of thousands change nothing. Two different numbers,
    ranges and negations are ambiguous, and score 0.

    A reference is a number, or a worked answer whose final answer is marked, as in `#### 42`.

    Args:
        relative: How far an answer may be off, as a part of the reference's size: 0.01 is one in a
            hundred. Read as the decimal number that is written.
        absolute: How far it may be off, whatever the reference. The larger of both bounds counts.
        last_number: Whether, without a clearer answer, the last number of the last sentence counts.

    Raises:
        TypeError: A tolerance is no number.
        ValueError: A tolerance is negative or not finite, or (when grading) a reference holds no
            number.
    """

    _options = ("relative", "absolute", "last_number")

    def __init__(
        self,
        *,
        relative: float | Fraction = 0,
        absolute: float | Fraction = 0,
        last_number: bool = False,
    ) -> None:
        self._relative = _tolerance("relative", relative)
        self._absolute = _tolerance("absolute", absolute)
        self._last_number = last_number

    def _golds(self, reference: Reference) -> tuple[Fraction, ...]:
        return _read_golds(read_references(reference))

    def _grade(self, text: str, golds: tuple[Fraction, ...]) -> Score:
        found = extract(text, last_number=self._last_number)
        if found.value is None:
            return match_score(found)
        return match_score(found, self._place(found.value, golds))

    def _place(self, value: Fraction, golds: tuple[Fraction, ...]) -> int | None:
        for place, gold in enumerate(golds):
            bound = max(self._absolute, self._relative * abs(gold))
            if abs(value - gold) <= bound:
                return place
        return None


def _tolerance(name: str, value: float | Fraction) -> Fraction:
    if not isinstance(cast("object", value), Real) or isinstance(value, bool):
        msg = f"{name} must be a number, got {value!r}"
        raise TypeError(msg)
    if not 0 <= value < math.inf:
        msg = f"{name} must be finite and not negative, got {value!r}"
        raise ValueError(msg)
    return value if isinstance(value, Fraction) else Fraction(str(value))


@functools.lru_cache(maxsize=4096)
def _read_golds(references: tuple[str, ...]) -> tuple[Fraction, ...]:
    return tuple(map(_gold, references))


def _gold(reference: str) -> Fraction:
    value = read_number(reference)
    if value is None:
        found = extract(reference)
        value = found.value if found.rule in ("box", "marker") else None
    if value is None:
        msg = f"a reference must be one number, or end in one that is marked, got {reference!r}"
        raise ValueError(msg)
    return value
