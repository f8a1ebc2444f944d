"""Answers that are taken back after they were given."""

from __future__ import annotations

import re
from fractions import Fraction

from rolloutlib.answers._quantities import find_quantities, value_of
from rolloutlib.answers._tex import plain_text

__all__ = ["is_denied", "is_taken_back"]

_LONGEST = 300  # of a sentence that gives an answer
_WINDOW = 1500  # how far behind an answer it may be taken back

_PLAINLY = re.compile(
    r"\b(?:is|was|are|would\sbe|seems|looks)\s(?:clearly\s|actually\s|definitely\s|probably\s|also\s)?"
    r"(?:not\s(?:right|correct|(?:the\s)?(?:right|correct|final|true)?\s?answer)|wrong|incorrect|mistaken|false)\b"
    r"|(?:isn't|wasn't|that's\snot)\s(?:right|correct|the\s(?:right|correct|final|true)?\s?answer)\b"
    r"|\b(?:that|it|this|which)'s\s(?:wrong|incorrect|not\s(?:right|correct|it))"
    r"|\bscratch\sthat|\bnever\s?mind\b|\bstrike\sthat|\b(?:disregard|ignore)\s(?:that|this|the\s(?:above|previous|last))"
    r"|\(\s?(?:this\sis\s)?(?:incorrect|wrong|false)\b"
    r"|\bi\s(?:made|have\smade)\s(?:a|an)\s(?:\w+\s)?(?:mistake|error)|\bi\swas\swrong|\bi\stake\s(?:it|that)\sback"
    r"|\bon\ssecond\sthought|\boops\b|\bmy\s(?:mistake|bad)\b|\bcorrection\s?:"
)
_HINT = re.compile(  # what each of these has; much faster to look for
    r"n't|not|never|wrong|incorrect|mistake|false|scratch|strike|disregard|ignore|error|take|second|oops|my|correction"
)
_PERHAPS = re.compile(
    r"(?:^|[.!?\n),;]|\u2014|\s-)[\s*$(]{0,4}(?:but\s|oh,?\s)?(?:wait|hold\son|hm+|actually|no|alternatively|maybe|perhaps|sorry"
    r"|let\sme\s(?:re|double|check|correct|fix)|it\s(?:should|could|might|may)\sbe|or)\b"
)


def is_denied(lower: str, start: int) -> bool:
    """Tell whether the text from an answer on says plainly that it is wrong.

    Args:
        lower: The text, in lower case.
        start: Where the answer, or the sentence that gives it, starts.
    """
    end = start + _WINDOW
    return (
        _HINT.search(lower, start, end) is not None
        and _PLAINLY.search(lower, start, end) is not None
    )


def is_taken_back(lower: str, start: int, after: int, value: Fraction | None) -> bool:
    """Tell whether the text behind an answer says that it is wrong or gives another number.

    Args:
        lower: The text, in lower case.
        start: Where the answer, or the sentence that gives it, starts.
        after: Where it ends.
        value: The answer.
    """
    if is_denied(lower, start):
        return True
    end = min(after, start + _LONGEST) + _WINDOW
    doubt = _PERHAPS.search(lower, start, end)
    if doubt is None:
        return False
    rest = plain_text(lower[doubt.end() : end])
    quantities = find_quantities(rest)
    return bool(quantities) and value_of(quantities[-1], rest) != value
