r"""One number and its size: `$1,234.50`, `2 1/2`, `7/3`, `1.5e3`, `12%`, `3.5 million`."""

from __future__ import annotations

import re
from fractions import Fraction

__all__ = ["find_quantities", "is_plain", "match_quantity", "value_of"]

_MAX_DIGITS = 40
_MAX_EXPONENT = 30

_NUMBER = r"""(?:
    [1-9][0-9]{0,2}(?:,[0-9]{3})+(?:\.[0-9]+)?(?![0-9])
  | [1-9][0-9]{0,2}(?:[ ][0-9]{3})+(?:\.[0-9]+)?(?![0-9])
  | [1-9][0-9]{0,2}(?:'[0-9]{3})+(?:\.[0-9]+)?(?![0-9])
  | [1-9][0-9]{0,2}(?:\.[0-9]{3})+(?:,[0-9]{1,2}(?![0-9])|(?<=\.[0-9]{3}\.[0-9]{3})(?![0-9]))
  | [0-9]+(?:\.[0-9]+)?
  | \.[0-9]+
)"""
_SCALES = {
    "hundred": 10**2, "thousand": 10**3, "million": 10**6, "billion": 10**9, "trillion": 10**12,
    "lakh": 10**5, "crore": 10**7,
    "百": 10**2, "千": 10**3, "万": 10**4, "萬": 10**4, "亿": 10**8, "億": 10**8,
    "백": 10**2, "천": 10**3, "만": 10**4, "억": 10**8,
}  # fmt: skip
_SCALE = (
    r"(?:hundred|thousand|million|billion|trillion|lakh|crore)s?\b"
    r"|[百千](?![米克瓦])|[万萬亿億백천만억]"
)
_QUANTITY = re.compile(
    rf"""(?P<sign>[-+]\s?|(?<![a-zA-Z0-9\s])\u2014|^\u2014)?
    (?:(?P<code>(?<![a-zA-Z])(?:USD|EUR|GBP|INR|CAD|AUD|CNY|JPY|RMB|Rs\.?))\s?)?
    (?P<currency>(?:US|CA|HK|NZ|R|A|C|S)?[$€£¥₹₩₽¢]\s?)?(?P<inner>-)?
    (?:(?:(?P<whole>[0-9]{{1,9}})\s{{1,3}})?(?P<top>[0-9]{{1,20}})\s?/\s?(?P<bottom>[0-9]{{1,20}})(?![0-9.,/])
      | (?P<number>{_NUMBER})
        (?:e(?P<e>[-+]?[0-9]{{1,3}})(?![0-9a-z])
          | \s?(?:[\u00d7*]|x(?=\s))\s?10\s?\^\s?(?P<ten>[-+]?[0-9]{{1,3}})(?![0-9]))?
    )
    (?P<percent>\s{{0,4}}(?:%|per\s?cents?\b(?!age)))?
    (?P<scale>(?:[\s-]{{0,4}}(?:{_SCALE}))+)?""",
    re.VERBOSE | re.IGNORECASE,
)
_SCALE_WORD = re.compile(_SCALE, re.IGNORECASE)
_UNIT = re.compile(r"\b(?:[cdkm]?m|ft|in|yd|mi|feet|inches|meters|units|s)[\s}]{0,3}\^$")
_IN_NAME = re.compile(r"[a-zA-Z_][-_]?$")
_AFTER_VALUE = re.compile(r"[0-9%)\]]$")
_AFTER_WORD = re.compile(r"[0-9a-zA-Z%)\]]$")


def match_quantity(text: str) -> re.Match[str] | None:
    """Match the quantity that text begins with."""
    return _QUANTITY.match(text)


def find_quantities(text: str) -> list[re.Match[str]]:
    """Find all quantities but numbers that are parts of names or units: "horse #12", "x2", "m^2"."""
    found: list[re.Match[str]] = []
    for match in _QUANTITY.finditer(text):
        start = match.start()
        before = text[max(0, start - 2) : start]
        if before[-1:] == "#":
            continue
        if before[-1:] == "^" and _UNIT.search(text, max(0, start - 8), start):
            continue
        if before and not match["currency"] and not match["code"] and _IN_NAME.search(before):
            continue
        found.append(match)
    return found


def is_plain(match: re.Match[str]) -> bool:
    """Tell whether a quantity is a bare number: no percent sign and no word like "million"."""
    return match["scale"] is None and match["percent"] is None


def value_of(match: re.Match[str], text: str) -> Fraction | None:
    """Return the exact value of a quantity in a text, or None if it is of no sane size or sign."""
    value = _magnitude(match)
    if value is None or (match["sign"] and match["inner"]):
        return None
    if match["scale"] is not None:
        for word in _SCALE_WORD.findall(match["scale"].lower()):
            value *= _SCALES[word.rstrip("s")]
    return -value if match["inner"] or _is_negative(match, text) else value


def _is_negative(match: re.Match[str], text: str) -> bool:
    """Tell a sign from an operator or a hyphen by what stands before it."""
    sign = match["sign"]
    if sign is None or sign[0] == "+":
        return False
    before = text[: match.start()]
    spaced = before[-1:].isspace()
    before = before.rstrip()
    if not before:
        return True
    if len(sign) == 1 and spaced:
        return _AFTER_VALUE.search(before) is None
    return len(sign) == 1 and _AFTER_WORD.search(before) is None


def _magnitude(match: re.Match[str]) -> Fraction | None:
    if match["top"] is not None:
        top, bottom, whole = match["top"], int(match["bottom"]), match["whole"]
        if bottom == 0 or (whole is not None and (top[0] == "0" or int(top) >= bottom)):
            return None
        return Fraction(int(whole or 0) * bottom + int(top), bottom)
    digits: str = match["number"]
    if len(digits) > _MAX_DIGITS:
        return None
    exponent = match["e"] or match["ten"]
    if not digits.isdigit():
        digits = _decimal(digits)
    integer, _, decimals = digits.partition(".")
    power = int(exponent or 0)
    if abs(power) > _MAX_EXPONENT:
        return None
    power -= len(decimals)
    number = int(integer + decimals)
    return Fraction(number * 10**power) if power >= 0 else Fraction(number, 10**-power)


def _decimal(digits: str) -> str:
    """Drop thousands separators, and make the decimal separator a point."""
    digits = digits.replace(" ", "").replace("'", "")
    if digits.count(".") > 1 or ("." in digits and digits.rfind(",") > digits.rfind(".")):
        return digits.replace(".", "").replace(",", ".")
    return digits.replace(",", "")
