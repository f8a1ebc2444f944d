"""Characters that models write for plain ones, and characters that show nothing."""

from __future__ import annotations

import re
from collections.abc import Iterator

__all__ = ["invisible", "look_alikes", "lower_case", "without_invisible"]

# The zeros of the decimal digits that people write with: Arabic, Persian, Devanagari, Bengali, ...
_ZEROS = (
    0x0660, 0x06F0, 0x0966, 0x09E6, 0x0A66, 0x0AE6, 0x0B66, 0x0BE6, 0x0C66, 0x0CE6, 0x0D66, 0x0E50,
    0x0ED0, 0x0F20, 0x1040, 0x17E0, 0x1810, 0x1D7CE, 0x1D7D8, 0x1D7E2, 0x1D7EC, 0x1D7F6,
)  # fmt: skip
_OTHERS = {
    "-": "\u2212\u2010\u2011\u2012\u2013\ufe63",  # en dash: written for a minus and in ranges
    " ": "\u00a0\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f\u3000",
    "'": "\u2018\u2019\u02bc",
    '"': "\u201c\u201d\u201e\u00ab\u00bb",
    ".": "\u3002\u066b\u0964",
    ",": "\u066c\u060c\u3001",
    "/": "\u2044\u2215",
    "?": "\u061f",
    ":": "\u2236",
    "\n": "\r\u2028\u2029\u0085\x0b\x0c",
}
# Each maps to one character, so that positions stay true.
_SAME = str.maketrans(
    {
        **{chr(0xFF01 + i): chr(0x21 + i) for i in range(94)},  # full-width forms
        **{chr(zero + i): str(i) for zero in _ZEROS for i in range(10)},
        **{other: plain for plain, others in _OTHERS.items() for other in others},
    }
)
# Marks of direction, joiners, variation selectors and the frame of keycap emoji.
_INVISIBLE = re.compile(
    "[\u00ad\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u206f\ufe00-\ufe0f\ufeff\u20e3]+"
)


def look_alikes(text: str) -> str:
    """Return text of the same length with digits, dashes, spaces and punctuation made plain."""
    if text.isascii():
        if "\r" in text or "\x0b" in text or "\x0c" in text:
            return text.replace("\r", "\n").replace("\x0b", "\n").replace("\x0c", "\n")
        return text
    return text.translate(_SAME)


def lower_case(text: str) -> str:
    """Return text of the same length in lower case."""
    return text.lower() if text.isascii() else text.replace("\u0130", "I").lower()


def without_invisible(text: str) -> str:
    """Drop characters that show nothing."""
    return text if text.isascii() else _INVISIBLE.sub("", text)


def invisible(text: str) -> Iterator[tuple[int, int]]:
    """Tell where the characters stand that show nothing, in order."""
    if not text.isascii():
        for found in _INVISIBLE.finditer(text):
            yield found.span()
