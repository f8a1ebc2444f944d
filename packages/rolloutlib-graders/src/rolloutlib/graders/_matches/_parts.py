"""The part of a text that is graded, and plain text for what TeX and Markdown show."""

from __future__ import annotations

import re
from typing import Literal, TypeAlias

from rolloutlib.answers import Extraction, extract_text, visible_text

Part: TypeAlias = Literal["answer", "visible", "all"]
"""Of what a model wrote: the final answer, all but its thinking, or all."""

PARTS: tuple[Part, ...] = ("answer", "visible", "all")

_PAIRED = re.compile(
    r"(?:(?P<mark>\*\*\*|\*\*|\*|`|\"|'|\$\$|\$)(?P<marked>(?:(?!(?P=mark)).)*)(?P=mark)"
    r"|\\(?:text|textbf|textit|textrm|texttt|mathrm|mathbf|mbox|boxed)\s?\{(?P<braced>[^{}]*)\}"
    r"|\\\((?P<inline>.*)\\\)|\\\[(?P<display>.*)\\\]"
    r"|“(?P<quoted>[^”]*)”|\u2018(?P<single>[^\u2019]*)\u2019|«(?P<angled>[^»]*)»)",
    re.DOTALL,
)
_MAX_PAIRS = 8


def check_part(on: Part) -> Part:
    """Refuse what is no name of a part.

    Raises:
        ValueError: It is none.
    """
    if on not in PARTS:
        msg = f"on must be one of {PARTS}, got {on!r}"
        raise ValueError(msg)
    return on


def read_part(text: str, on: Part) -> tuple[Extraction, str]:
    """Return where a part of a text stands, and the part, trimmed if it is the answer; else ""."""
    if on == "answer":
        found = extract_text(text)
        return found, trim(found.text or "") if found.status == "found" else ""
    if on == "all":
        return Extraction("found", span=(0, len(text)), text=text), text
    visible = visible_text(text)
    if visible is None:
        return Extraction("truncated", reason="the thinking does not end"), ""
    end = len(visible.rstrip())
    start = len(visible) - len(visible.lstrip())
    if start >= end:
        return Extraction("none", reason="the answer is empty"), ""
    part = text[start:end]
    return Extraction("found", span=(start, end), text=part), part


def trim(text: str) -> str:
    """Drop what surrounds an answer: white space, a full stop, quotation marks, TeX and Markdown."""
    text = _strip(text)
    for _ in range(_MAX_PAIRS):
        pair = _PAIRED.fullmatch(text)
        if pair is None:
            break
        inner = _strip(next(group for group in pair.group(*_GROUPS) if group is not None))
        if not inner:
            break
        text = inner
    return text


_GROUPS = ("marked", "braced", "inline", "display", "quoted", "single", "angled")


def _strip(text: str) -> str:
    text = text.strip()
    return text[:-1].rstrip() if text.endswith(".") and not text.endswith("..") else text
