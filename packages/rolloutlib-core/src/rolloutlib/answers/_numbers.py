r"""Numbers as models write them: `$1,234.50`, `2 1/2 hours`, `\frac{7}{3}`, `1.5e3`, `12\%`.

Values are exact. A text that holds anything besides one number and its unit has no value here:
nothing is evaluated, so that no answer can cost more than its length.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Literal

from rolloutlib.answers._visible import SAME

__all__ = ["Reading", "read_last", "read_number", "read_phrase", "read_whole", "write_number"]

_MAX_LENGTH = 200  # no single answer is longer
_MAX_DIGITS = 40
_MAX_EXPONENT = 30


@dataclass(frozen=True, slots=True)
class Reading:
    """What a phrase says.

    Attributes:
        status: "found"; "none" where no number stands; "ambiguous" where it is not one plain number.
        value: The exact value, where one was found.
        plain: Whether it is a bare number: no percent sign and no word like "million".
    """

    status: Literal["found", "none", "ambiguous"]
    value: Fraction | None = None
    plain: bool = True


_NONE = Reading("none")
_AMBIGUOUS = Reading("ambiguous")

_NUMBER = r"""(?:
    [1-9][0-9]{0,2}(?:,[0-9]{3})+(?:\.[0-9]+)?(?![0-9])
  | [1-9][0-9]{0,2}(?:[ ][0-9]{3})+(?:\.[0-9]+)?(?![0-9])
  | [1-9][0-9]{0,2}(?:'[0-9]{3})+(?:\.[0-9]+)?(?![0-9])
  | [1-9][0-9]{0,2}(?:\.[0-9]{3})+(?:,[0-9]{1,2}(?![0-9])|(?<=\.[0-9]{3}\.[0-9]{3})(?![0-9]))
  | [0-9]+(?:\.[0-9]+)?
  | \.[0-9]+
)"""
_QUANTITY = re.compile(
    rf"""(?P<sign>[-+]\s?)?(?P<currency>[$€£¥₹]\s?)?(?P<inner>-)?
    (?:(?:(?P<whole>[0-9]{{1,9}})\s)?(?P<top>[0-9]{{1,12}})\s?/\s?(?P<bottom>[0-9]{{1,12}})(?![0-9.,/])
      | (?P<number>{_NUMBER})
        (?:e(?P<e>[-+]?[0-9]{{1,3}})(?![0-9a-z])
          | \s?(?:[\u00d7*]|x(?=\s))\s?10\s?\^\s?(?P<ten>[-+]?[0-9]{{1,3}}))?
    )
    (?P<percent>\s?%)?(?:\s(?P<scale>hundred|thousand|million|billion)\b)?""",
    re.VERBOSE | re.IGNORECASE,
)
_SCALES = {"hundred": 10**2, "thousand": 10**3, "million": 10**6, "billion": 10**9}

_VULGAR = {
    "½": "1/2", "⅓": "1/3", "⅔": "2/3", "¼": "1/4", "¾": "3/4", "⅕": "1/5", "⅖": "2/5",
    "⅗": "3/5", "⅘": "4/5", "⅙": "1/6", "⅚": "5/6", "⅛": "1/8", "⅜": "3/8", "⅝": "5/8", "⅞": "7/8",
}  # fmt: skip
_TEX = re.compile(
    r"\\[dtc]?frac\s?\{(?P<top>[^{}]{1,20})\}\s?\{(?P<bottom>[^{}]{1,20})\}"
    r"|\\[dtc]?frac\s?(?P<short>[0-9]\s?[0-9])(?![0-9])"
    r"|\\(?:text|textbf|textit|textrm|mathrm|mathbf|mathit|mathsf|texttt|mathtt|underline|boldsymbol|mbox"
    r"|bf|rm|displaystyle|large|Large|LARGE|huge|Huge|left|right|bigl?|bigr)(?![a-zA-Z])"
    r"|\{,\}(?P<comma>)"
    r"|\^\s?\{?\s?\\circ\s?\}?(?P<degree>)"
    r"|\\[()\[\]]"
    r"|\\(?P<symbol>[%$#&])"
    r"|\\(?:[,;:! ]|quad\b)"
    r"|\\(?P<times>times|cdot)(?![a-zA-Z])"
    r"|(?P<vulgar>[½⅓⅔¼¾⅕⅖⅗⅘⅙⅚⅛⅜⅝⅞])"
    r"|\$(?=\s*[-\\(a-zA-Z{*]|\s*$)"
    r"|(?<=[0-9)}%])\$"
    r"|\*\*|__|[`{}~]"
)
_UNIT = re.compile(
    r"[\s)]*(?:[°:;.,)\s]|(?:[a-zA-Zµ°][a-zA-Z]+|[gmhsLA])(?:\s*\^\s*[23]|[23])?\b[./'-]?s?)*"
)
_REFUSED = re.compile(
    r"\b(?:or|and|to|not|pi|sqrt|root|factorial|choose|mod|plus|minus|times|over|approximately)\b",
    re.IGNORECASE,
)
_NEGATED = re.compile(
    r"(?:(?:\bnot|n't|\bnever|\bneither|\brather\sthan|\binstead\sof)\b"
    r"|(?:\bnot|n't)\s(?:think|believe)\b(?:\s[a-z']+){0,4})[\s$]*$",
    re.IGNORECASE,
)
_BOUND = re.compile(
    r"(?:\b(?:more|less|greater|fewer)\sthan|\bat\s(?:least|most)|[\u00b1<>≤≥])[\s$]*$"
)
_BETWEEN = re.compile(r"\bbetween\b[^0-9]*[0-9][^.]*\band\b[^0-9]*$", re.IGNORECASE)
_JOINED = re.compile(
    r"[\s,;/|&~:.-]*|[\s(]*(?:[a-zA-Z%°]+,?\s)?[\s,;(]*(?:or(?:\s[a-z]+){0,3}|and|to|through|vs|versus)\b[\s(:$-]*",
    re.IGNORECASE,
)
_OPERATED = re.compile(
    r"\s?[\^\\√π\u00d7÷]|\s?[*/+][\s(]?[0-9a-z(]|\s?-\s?[0-9(]|[({_]|[a-zA-Z]\b(?<![gmhsLA])|![0-9!)]"
)


def read_number(text: str) -> Fraction | None:
    """Return the exact value of text that is nothing but a number, or None if it is anything else.

    A currency sign, a unit, a percent sign and TeX or Markdown around the number change nothing.
    """
    return read_whole(text.translate(SAME)).value


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
    if len(text) > _MAX_LENGTH:
        return _AMBIGUOUS
    text = _plain(text)
    *left, right = re.split("[=≈]", text)
    if any(re.search("[0-9]", part) and re.search(r"[a-zA-Z\\^]", part) for part in left):
        return _AMBIGUOUS
    right = right.strip(" \n\t.*'\"")
    while right.startswith("(") and right.endswith(")"):
        right = right[1:-1].strip()
    first = _QUANTITY.match(right)
    if first is None:
        return _AMBIGUOUS if re.search("[0-9]", right) else _NONE
    rest = right[first.end() :]
    if _OPERATED.match(rest) or _REFUSED.search(rest) or not _UNIT.fullmatch(rest):
        return _AMBIGUOUS
    return _reading(first, right)


def read_phrase(text: str) -> Reading:
    """Read the sentence that a marker such as "the answer is" begins.

    The first number counts, if nothing joins another to it and nothing else comes before it.
    """
    if len(text) > _MAX_LENGTH:
        head = text[:_MAX_LENGTH]
        return _AMBIGUOUS if re.search("[0-9]", head) else _NONE
    text = _plain(text)
    if re.search(r"=[^=]*,\s*[a-zA-Z][^=,]*=", text):
        return _AMBIGUOUS
    text = re.split("[=≈]", text)[-1]
    quantities = list(_QUANTITY.finditer(text))
    if not quantities:
        return _NONE
    first = quantities[0]
    before, after = text[: first.start()], text[first.end() :]
    if _NEGATED.search(before) or _BOUND.search(before) or _OPERATED.match(after):
        return _AMBIGUOUS
    reading = _reading(first, text)
    if _joined_values(quantities, text) != {reading.value}:
        return _AMBIGUOUS
    if re.search("[a-zA-Z]", before) and {_reading(found, text).value for found in quantities} != {
        reading.value
    }:
        return _AMBIGUOUS
    return reading


def read_last(text: str) -> Reading:
    """Read the last number of a sentence, leaving out numbers that are names, as in "horse #12"."""
    text = _plain(text[-_MAX_LENGTH:])
    quantities = [found for found in _QUANTITY.finditer(text) if text[: found.start()][-1:] != "#"]
    if not quantities:
        return _NONE
    last = quantities[-1]
    before = text[: last.start()]
    if _NEGATED.search(before) or _OPERATED.match(text[last.end() :]):
        return _AMBIGUOUS
    reading = _reading(last, text)
    if _joined_values(quantities[::-1], text) != {reading.value}:
        return _AMBIGUOUS
    if (
        len(quantities) > 1
        and _BETWEEN.search(before)
        and reading != _reading(quantities[-2], text)
    ):
        return _AMBIGUOUS
    return reading


def _joined_values(quantities: list[re.Match[str]], text: str) -> set[Fraction | None]:
    """Return the values of the first number and of those that a list, range or hedge ties to it."""
    values = {_reading(quantities[0], text).value}
    for one, other in pairwise(quantities):
        left, right = sorted((one, other), key=lambda found: found.start())
        if not _JOINED.fullmatch(text, left.end(), right.start()):
            break
        values.add(_reading(other, text).value)
    return values


def _reading(match: re.Match[str], text: str) -> Reading:
    """Turn a match into its value, if it is of a sane size."""
    value = _magnitude(match)
    if value is None:
        return _AMBIGUOUS
    scale = match["scale"]
    if scale is not None:
        value *= _SCALES[scale.lower()]
    if match["inner"] or ((match["sign"] or "").startswith("-") and _is_sign(match, text)):
        value = -value
    return Reading("found", value, plain=scale is None and match["percent"] is None)


def _is_sign(match: re.Match[str], text: str) -> bool:
    """Tell a sign from an operator or a hyphen by what stands before it."""
    before = text[: match.start()].rstrip()
    if not before:
        return True
    if match["sign"] == "-" and text[match.start() - 1].isspace():
        return not re.search(r"[0-9%)]$", before)
    return match["sign"] == "-" and not re.search(r"[0-9a-zA-Z%)]$", before)


def _magnitude(match: re.Match[str]) -> Fraction | None:
    if match["top"] is not None:
        bottom = int(match["bottom"])
        if bottom == 0:
            return None
        return Fraction(int(match["whole"] or 0)) + Fraction(int(match["top"]), bottom)
    digits: str = match["number"]
    if len(digits) > _MAX_DIGITS:
        return None
    exponent = int(match["e"] or match["ten"] or 0)
    if abs(exponent) > _MAX_EXPONENT:
        return None
    return Fraction(_decimal(digits)) * Fraction(10) ** exponent


def _decimal(digits: str) -> str:
    """Drop thousands separators, and make the decimal separator a point."""
    digits = digits.replace(" ", "").replace("'", "")
    if digits.count(".") > 1 or ("." in digits and digits.rfind(",") > digits.rfind(".")):
        return digits.replace(".", "").replace(",", ".")
    return digits.replace(",", "")


def _plain(text: str) -> str:
    """Replace TeX and Markdown by the plain text that they show."""
    return _TEX.sub(_shown, text)


def _shown(match: re.Match[str]) -> str:
    if match["top"] is not None:
        return f" {match['top'].strip()}/{match['bottom'].strip()} "
    if match["short"] is not None:
        return f" {match['short'][0]}/{match['short'][-1]} "
    if match["vulgar"] is not None:
        return f" {_VULGAR[match['vulgar']]} "
    if match["comma"] is not None:
        return ","
    if match["degree"] is not None:
        return "°"
    if match["times"] is not None:
        return "\u00d7"
    if match["symbol"] is not None:
        return match["symbol"]
    return " "
