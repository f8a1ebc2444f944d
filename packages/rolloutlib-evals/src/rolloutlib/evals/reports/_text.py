"""Text of models and environments, shown as what it is: nothing in it is hidden, or obeyed."""

from __future__ import annotations

import re
from typing import Any

from rolloutlib.evals._plain import to_text

__all__ = ["HIDDEN", "laid_out", "utf16_length", "visible"]

_WIDE = 72
# In JSON that is laid out no text has a line end.
_NUMBERS = re.compile(r"\[\n([^\[\]{}\"]*)\]")
_EDGE = re.compile(r"(?<=[\[{])\n *|\n *(?=[\]}])")
_BREAK = re.compile(r"\n *")

HIDDEN: tuple[tuple[int, int], ...] = (
    (0x0000, 0x0008),  # control characters but tab and line feed
    (0x000B, 0x001F),
    (0x007F, 0x009F),
    (0x00AD, 0x00AD),  # the soft hyphen
    (0x034F, 0x034F),
    (0x061C, 0x061C),  # marks of the direction of writing
    (0x115F, 0x1160),  # fillers
    (0x17B4, 0x17B5),
    (0x180B, 0x180E),
    (0x200B, 0x200B),  # zero width; not the joiners, which emoji and several scripts need
    (0x200E, 0x200F),
    (0x2028, 0x202E),  # separators of lines and paragraphs; more marks of direction
    (0x2060, 0x206F),
    (0x3164, 0x3164),
    (0xD800, 0xDFFF),  # lone surrogates
    (0xFEFF, 0xFEFF),
    (0xFFA0, 0xFFA0),
    (0xFFF0, 0xFFFB),
    (0xE0000, 0xE007F),  # tags, which spell texts that nobody sees
)
"""The first and the last of each run of code points that cannot be seen, or change what is seen."""

_HIDDEN = re.compile("[" + "".join(f"{chr(low)}-{chr(high)}" for low, high in HIDDEN) + "]")


def visible(text: str) -> str:
    """Return a text in which hidden characters stand as `[U+202E]`; Windows' line ends are none."""
    text = text.replace("\r\n", "\n")
    return _HIDDEN.sub(lambda match: f"[U+{ord(match[0]):04X}]", text)


def laid_out(value: Any) -> str:
    """Return a text as it is, and other data as JSON; what is short stands on one line, numbers too."""
    text = to_text(value, indent=2)
    if isinstance(value, str):
        return text
    if len(to_text(value)) <= _WIDE:
        return _BREAK.sub(" ", _EDGE.sub("", text))
    return _NUMBERS.sub(lambda found: f"[{' '.join(found[1].split())}]", text)


def utf16_length(text: str) -> int:
    """Return how long JavaScript takes a text to be."""
    return len(text) + sum(character > "\uffff" for character in text)
