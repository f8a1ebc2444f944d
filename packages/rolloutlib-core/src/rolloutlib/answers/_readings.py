"""What a stretch of text says, as a number, or why it says none."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

__all__ = [
    "BOUND",
    "DENIED",
    "EMPTY_BOX",
    "EXPRESSION",
    "NO_NUMBER",
    "QUESTION",
    "SENTENCE",
    "SEVERAL",
    "TOO_LONG",
    "UNREADABLE",
    "Reading",
]


@dataclass(frozen=True, slots=True)
class Reading:
    """What a phrase says.

    Attributes:
        status: "found"; "none" where no number stands; "ambiguous" where it is not one plain number.
        value: The exact value, where one was found.
        reason: Why none was found.
        plain: Whether it is a bare number: no percent sign, no word like "million", no "!".
        written: The number as it is written.
    """

    status: Literal["found", "none", "ambiguous"]
    value: Fraction | None = None
    reason: str | None = None
    plain: bool = True
    written: str | None = None


NO_NUMBER = Reading("none", None, "no number stands where the answer should")
EMPTY_BOX = Reading("none", None, "the last box is empty")
SEVERAL = Reading("ambiguous", None, "several values are given")
EXPRESSION = Reading("ambiguous", None, "an expression is given and not a number")
SENTENCE = Reading("ambiguous", None, "a sentence is given and not a number alone")
DENIED = Reading("ambiguous", None, "the answer is denied")
BOUND = Reading("ambiguous", None, "a bound is given and not a number")
QUESTION = Reading("ambiguous", None, "a question is asked")
TOO_LONG = Reading("ambiguous", None, "the answer is too long")
UNREADABLE = Reading("ambiguous", None, "the number cannot be read")
