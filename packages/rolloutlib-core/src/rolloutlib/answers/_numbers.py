"""Reading the number in an answer, in a sentence that gives one, and in one that ends with one.

Values are exact. A text that holds anything besides one number and its unit has no value here:
nothing is evaluated, so that no answer can cost more than its length.
"""

from __future__ import annotations

import re
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise

from rolloutlib.answers import _phrases as phrases
from rolloutlib.answers._characters import look_alikes, without_invisible
from rolloutlib.answers._quantities import find_quantities, is_plain, match_quantity, value_of
from rolloutlib.answers._readings import (
    BOUND,
    DENIED,
    EXPRESSION,
    NO_NUMBER,
    QUESTION,
    SENTENCE,
    SEVERAL,
    TOO_LONG,
    UNREADABLE,
    Reading,
)
from rolloutlib.answers._tex import plain_text

__all__ = ["read_last", "read_number", "read_phrase", "read_whole", "write_number"]

_LONGEST = 300  # of an answer, or of what is read of a sentence


_SIMPLE = re.compile(r"\s*\$?([0-9]{1,15})(?:\.0{1,4})?[.\s]*")
_DIGIT = re.compile("[0-9]")
_EQUALS = re.compile("[=≈]+>?")
_RELATION = re.compile(r"[<>/~:\\≠]\s?$|!$")
_NAME = re.compile(
    r"[\s$(|]*(?:(?:so|thus|hence|therefore|then|we\sget|the|final|answer|result|total|value)[\s,]+)*"
    r"(?:[a-z]{1,12}|\\[a-z]{1,8}|[αβθ])(?:_\s?[a-z0-9]{1,3}\b)?(?:\s?\([a-z0-9]{1,3}\))?[\s)|]*"
)
_COMMAND = re.compile(r"\\[a-zA-Z]+")
_LABEL = re.compile(
    r"^[\s*]*(?:the\s)?(?:(?:final|correct)\s)?(?:answer(?:\sis\b|\s?:)|(?:solution|result|value|total|sum)\s?:)[\s:]*",
    re.IGNORECASE,
)
_PARTIAL = re.compile(r"[0-9][0-9.,]*$")
_SUPPOSED = re.compile(
    r"^\W*(?:or|maybe|perhaps|possibly|alternatively)\b|\b(?:could|might|may)\s(?:also\s)?be\b|\b(?:would|could|might)\shave\sbeen\b|\b(?:common|easy|typical)\s(?:mistake|error)"
)
_ASIDE = re.compile(r"\s\([^()=]{0,100}[a-zA-Z]{2}[^()=]{0,100}\)\W{0,4}$")
_CASE = re.compile(r"\W*(?:if|let|suppose|assume|when)\b")
_LABELLED = re.compile(r"\b(?:step|chapter|section|see\spage)\s?$")
_SPACED = re.compile(r"[a-z0-9)}\]]\s?$")
_NO_SIGN = re.compile(r"[a-z0-9)}\]]$|(?:[0-9)}\]]|\b[a-z])\s$")
_MILLIONS = re.compile(r"\s?m\b")
_WORD = re.compile(r"[a-zA-Z]{2,}(?:'[a-z]{1,2})?\s")
_NUMERAL = re.compile(r"[^\x00-\x7f]")
_SECOND_NAME = re.compile(r"[0-9)%][^=]{0,60}?[\s,;(][a-z](?:_\s?[a-z0-9]+)?\s*$")


def read_number(text: str) -> Fraction | None:
    """Return the exact value of text that is nothing but a number, or None if it is anything else.

    A currency sign, a unit, a percent sign and TeX or Markdown around the number change nothing.

    Args:
        text: The number, such as "$1,234.50", "-3/4", "2 1/2 hours", "x = 5" or "1.5e3".
    """
    return read_whole(without_invisible(look_alikes(text))).value


def write_number(value: Fraction) -> str:
    """Write a number in one canonical form: "1234.5", and "7/3" where no decimal is exact."""
    if value.denominator == 1:
        return str(value.numerator)
    twos, fives, rest = 0, 0, value.denominator
    while rest % 2 == 0:
        twos, rest = twos + 1, rest // 2
    while rest % 5 == 0:
        fives, rest = fives + 1, rest // 5
    if rest != 1:
        return str(value)
    places = max(twos, fives)
    digits = str(abs(value.numerator) * 10**places // value.denominator).rjust(places + 1, "0")
    return f"{'-' if value < 0 else ''}{digits[:-places]}.{digits[-places:]}"


def read_whole(text: str) -> Reading:
    """Read text that is nothing but an answer, such as the content of a box.

    A name or a calculation may stand before an equals sign: `x = 42`, `m+n=73`, `6 * 7 = 42`.
    """
    simple = _SIMPLE.fullmatch(text)
    if simple is not None:
        return Reading("found", Fraction(int(simple[1])), written=simple[0].strip(" .\t\n"))
    if len(text) > _LONGEST:
        return TOO_LONG
    text = _LABEL.sub("", plain_text(text), count=1).strip(' \n\t*_#"')
    *left, right = _EQUALS.split(text)
    if left and _CASE.match(left[0].lower()):
        return UNREADABLE
    for part in left:
        if _RELATION.search(part):
            return BOUND
        letters = re.search("[a-zA-Z]", _COMMAND.sub("", part)) is not None
        if letters and _DIGIT.search(part) and not _NAME.fullmatch(part.lower()):
            return SEVERAL if "," in part else EXPRESSION
    endless = right.rstrip().endswith("..") and "." in right.rstrip(". ")
    right = right.strip(" \n\t*'\"").rstrip(". *")
    if endless:
        return UNREADABLE
    while right.startswith("(") and right.endswith(")"):
        right = right[1:-1].strip()
        if "," in right:
            return SEVERAL
    first = match_quantity(right)
    if first is None:
        if _DIGIT.search(right):
            return SENTENCE if _WORD.match(right) else EXPRESSION
        return NO_NUMBER
    rest = right[first.end() :].lower()
    if phrases.OPERATED.match(rest) or _is_scaled(first, rest):
        return EXPRESSION
    if phrases.NO_UNIT.search(rest) or not phrases.UNIT.fullmatch(rest) or _has_numeral(rest):
        return SEVERAL if _DIGIT.search(rest) else UNREADABLE
    return _reading(first, right)


def read_phrase(text: str, *, strict: bool = False) -> Reading:
    """Read the sentence that a marker such as "the answer is" begins.

    The first number counts, if nothing joins another to it and nothing else comes before it.

    Args:
        text: What follows the marker, up to the end of the sentence.
        strict: Whether any other number beside it makes it ambiguous.
    """
    simple = _SIMPLE.fullmatch(text)
    if simple is not None:
        return Reading("found", Fraction(int(simple[1])), written=simple[0].strip(" .\t\n"))
    if len(text) > _LONGEST:
        text = _PARTIAL.sub("", text[:_LONGEST])
    text = plain_text(text)
    if "=" in text or "≈" in text:
        return _read_chain(text)
    return _read_first(text, strict=strict)


def _read_chain(text: str) -> Reading:
    """Read a chain of equations; a number that stands by itself before it must say the same."""
    head, *middle, last = _EQUALS.split(text)
    if any(_SECOND_NAME.search(part.lower()) for part in middle):
        return SEVERAL
    if any(_RELATION.search(part) for part in (head, *middle)):
        return BOUND
    reading = _read_first(last)
    quantities = find_quantities(head)
    if not quantities or re.search("[a-zA-Z]", head[: quantities[0].start()]):
        return reading
    after = head[quantities[0].end() :].lower()
    alone = after.strip(" .$*)") and not phrases.OPERAND.match(after)
    if alone and value_of(quantities[0], head) != reading.value:
        return SEVERAL
    return reading


def _read_first(text: str, *, strict: bool = False) -> Reading:
    quantities = find_quantities(text)
    if not quantities:
        return NO_NUMBER
    first = quantities[0]
    before, after = text[: first.start()].lower(), text[first.end() :].lower()
    reading = _reading(first, text)
    refusal = _context(first, before, after)
    if refusal is not None:
        return refusal
    if phrases.MINUS.search(before) and reading.value is not None:
        reading = replace(reading, value=-reading.value)
    elif _joined_values(quantities, text) - {reading.value}:
        return SEVERAL
    alone = strict or re.search("[a-z]", before) is not None or phrases.CONDITION.search(after)
    if alone and any(_size(other, text) != _size(first, text) for other in quantities[1:]):
        return SEVERAL
    return reading


def _size(match: re.Match[str], text: str) -> Fraction | None:
    value = value_of(match, text)
    return None if value is None else abs(value)


def read_last(text: str) -> Reading:
    """Read the last number of a sentence, leaving out numbers that are names, as in "horse #12"."""
    if text.rstrip(" *_$\"')\n").endswith("?"):
        return QUESTION
    text = plain_text(text[-_LONGEST:])
    aside = _ASIDE.search(text)
    if aside is not None and len(find_quantities(aside[0])) > 1:
        text = text[: aside.start()]
    quantities = find_quantities(text)
    if not quantities:
        return NO_NUMBER
    last = quantities[-1]
    before, after = text[: last.start()].lower(), text[last.end() :].lower()
    clause = re.split(
        r"[,;:=]\s|\b(?:so|then|therefore|thus|(?<!anything\s)but|because|which|who)\b", before
    )[-1]
    refusal = DENIED if _SUPPOSED.search(before) else _context(last, clause, after)
    if refusal is not None:
        return refusal
    reading = _reading(last, text)
    if phrases.MINUS.search(before) and reading.value is not None:
        return replace(reading, value=-reading.value)
    if _joined_values(quantities[::-1], text) != {reading.value}:
        return SEVERAL
    ranged = len(quantities) > 1 and phrases.BETWEEN.search(before) is not None
    if ranged and reading.value != value_of(quantities[-2], text):
        return SEVERAL
    return reading


def _context(match: re.Match[str], before: str, after: str) -> Reading | None:
    """Return why what stands around a number keeps it from being the answer, or None."""
    if phrases.NEGATED.search(before[-200:]):
        return DENIED
    if phrases.BOUND.search(before[-60:]):
        return BOUND
    sign = match["sign"]
    spaced = _SPACED if sign is not None and sign[-1:].isspace() else _NO_SIGN
    signed = sign is not None and spaced.search(before[-3:]) is not None
    if signed or phrases.OPERATOR.search(before[-60:]) or phrases.OPERATED.match(after):
        return EXPRESSION
    if _is_scaled(match, after):
        return EXPRESSION
    if phrases.ALTERNATIVE.match(after):
        return SEVERAL
    endless = after.startswith((".(", ".\\")) or (after.startswith("..") and "." in match[0])
    named = _LABELLED.search(before[-20:]) is not None
    return UNREADABLE if endless or named or _has_numeral(after[:1]) else None


def _is_scaled(match: re.Match[str], after: str) -> bool:
    """Tell whether a letter behind an amount of money stands for millions, and not for metres."""
    return match["currency"] is not None and _MILLIONS.match(after) is not None


def _has_numeral(text: str) -> bool:
    """Tell whether digits of another kind, or marks that strike out, stand in a text."""
    return not text.isascii() and any(
        letter.isnumeric() or "\u0300" <= letter <= "\u036f" for letter in _NUMERAL.findall(text)
    )


def _joined_values(quantities: list[re.Match[str]], text: str) -> set[Fraction | None]:
    """Return the values of the first number and of those that a list, range or hedge ties to it."""
    values = {value_of(quantities[0], text)}
    for one, other in pairwise(quantities):
        left, right = sorted((one, other), key=lambda found: found.start())
        between = text[left.end() : right.start()].lower()
        enclosed = between.strip() == "(" and text[right.end() :].lstrip()[:1] == ")"
        if not enclosed and not phrases.JOINED.fullmatch(between):
            break
        values.add(value_of(other, text))
    return values


def _reading(match: re.Match[str], text: str) -> Reading:
    """Turn a match into its value, if it is of a sane size."""
    value = value_of(match, text)
    if value is None:
        return UNREADABLE
    exclaimed = text[match.end() : match.end() + 1] == "!"
    plain = is_plain(match) and not exclaimed
    return Reading("found", value, plain=plain, written=match[0].strip())
