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
    r"""\b(?:is|was|are|would\sbe|seems|looks)\s(?:(?:clearly|actually|definitely|probably|also)\s)?
        (?:wrong|incorrect|mistaken|false
          |not\s(?:right|correct|(?:the\s)?(?:right|correct|final|true)?\s?answer))\b
    | (?:isn't|wasn't|that's\snot)\s(?:right|correct|the\s(?:right|correct|final|true)?\s?answer)\b
    | \b(?:that|it|this|which)'s\s(?:wrong|incorrect|not\s(?:right|correct|it))
    | \(\s?(?:this\sis\s)?(?:incorrect|wrong|false)\b
    | [❌✗✘]
    | \bnot! | \?[\s$)*]{1,4}(?:no|nope)\b

    | \bscratch\sthat | \bstrike\sthat | \bnever\s?mind\b | \bon\ssecond\sthought | \boops\b
    | \b(?:disregard|ignore)\s(?:that|this|the\s(?:above|previous|last))
    | \bcorrection\s?: | \bjust\skidding\b | \bmy\s(?:mistake|bad)\b
    | \bi\s(?:have\s)?made\san?\s(?:\w+\s)?(?:mistake|error)
    | \bi\swas\swrong | \bi\stake\s(?:it|that)\sback

    | \b(?:don't|do\snot|doesn't)\s(?:believe|agree|think\sso|know)\b
    | \bdisagree\b | \bi\sdoubt\b | \bno\sidea\b
    | \bi\s(?:couldn't|could\snot|can't|cannot|was\sunable\sto|am\sunable\sto)
        \s(?:solve|answer|determine|find|run)\b
    """,
    re.VERBOSE,
)
_HINT = re.compile(  # what each of these has; much faster to look for
    r"n't|not|never|wrong|incorrect|mistake|false|scratch|strike|disregard|ignore|error|take|second"
    r"|oops|my|correction|agree|doubt|idea|unable|kidding|\?|[❌✗✘]"
)
_PERHAPS = re.compile(
    r"""(?:^ | [.!?\n),;] | \u2014 | \s- | \s(?=(?:no|wait|actually|sorry),))
    [\s*$(]{0,4} (?:but\s|oh,?\s)?
    (?:wait|hold\son|hm+|er|actually|no|sorry|rather(?!\sthan)
      |or|alternatively|maybe|perhaps|it\s(?:should|could|might|may)\s(?:also\s)?be|so\sit(?:'s|\sis)
      |edit|update|let\sme\s(?:re-?do|recalculate|recompute|correct|fix)
      |i\smeant?|i\sshould\shave\ssaid
    )\b""",
    re.VERBOSE,
)
_BESIDE = re.compile(  # what closes an answer, and another one that is offered beside it
    r"""(?:</answer> | \\[\])] | [*_$}\])\s])*+ \.?\s{0,2}
        (?:or|and|/|actually|wait|maybe|perhaps)(?![a-z])[\s,:]{0,2}(?:(?:maybe|perhaps|it's|it\sis)\s)?
        [*$(\\]{0,3}(?P<number>-?[0-9][0-9,.]{0,40})""",
    re.VERBOSE,
)
_OPTION = re.compile(r"\W{0,4}([a-j])\b")  # what a text gives that answers with a letter
_LETTER = re.compile(r"\b[a-j]\b")
_OPTIONS = re.compile(  # at the end: "(b)", "options b and c", of which something is said
    r"\b(?:option|choice|answer)?s?\s?\(?[a-j]\)?(?:(?:,|\s?(?:and|or|&),?)\s?\(?[a-j]\)?){0,8}\s?$"
)
_SUBJECT = 60
_CHECK = re.compile(
    r"\b(?:let\sme|let's|let\sus|i(?:'ll|\swill)|to)\s(?:now\s)?(?:double|re-?|quickly\s)?[-\s]?"
    r"(?:check|verify|confirm)\b"
)
_CONCLUSION = re.compile(r"\b(?:so|thus|hence|therefore|but|instead|then|total)\b|=>|[→⇒]")


def is_denied(lower: str, start: int) -> bool:
    """Tell whether the text from an answer on says plainly that it is wrong.

    Where the answer is the letter of an option, what is said of other options is not said of it.

    Args:
        lower: The text, in lower case.
        start: Where the answer, or the sentence that gives it, starts.
    """
    end = start + _WINDOW
    if _HINT.search(lower, start, end) is None:
        return False
    given = _OPTION.match(lower, start)
    for denial in _PLAINLY.finditer(lower, start, end):
        subject = _OPTIONS.search(lower, max(start, denial.start() - _SUBJECT), denial.start())
        if given is None or subject is None or given[1] in _LETTER.findall(subject[0]):
            return True
    return False


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
    beside = _BESIDE.match(lower, after)
    if beside is not None and _last_value(beside["number"]) not in {None, value}:
        return True
    end = min(after, start + _LONGEST) + _WINDOW
    doubt = _PERHAPS.search(lower, start, end)
    if doubt is not None and _last_value(lower[doubt.end() : end]) not in {None, value}:
        return True
    check = _CHECK.search(lower, after, end)
    if check is None:
        return False
    *_, conclusion = [check, *_CONCLUSION.finditer(lower, check.end(), end)]
    return conclusion is not check and _last_value(lower[conclusion.end() : end]) not in {
        None,
        value,
    }


def _last_value(lower: str) -> Fraction | None:
    """Return the value of the last number in a text, or None."""
    text = plain_text(lower)
    quantities = find_quantities(text)
    return value_of(quantities[-1], text) if quantities else None
