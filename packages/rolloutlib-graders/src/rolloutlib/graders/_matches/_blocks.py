"""Code blocks in Markdown."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import replace
from typing import TypeAlias

from rolloutlib.answers import Extraction, visible_text
from rolloutlib.graders._matches._parts import read_part

_FENCE = re.compile(
    r"^ {0,3}(?P<marks>`{3,}(?=[^`\n]*$)|~{3,})[ \t]*(?P<language>\S*)(?P<more>.*)$", re.MULTILINE
)
_Fences: TypeAlias = tuple[re.Match[str], re.Match[str] | None]


def extract_block(text: str, languages: Collection[str], *, bare: bool) -> tuple[Extraction, str]:
    """Find the last code block that names a language, or else the last that names none.

    Args:
        text: What the model wrote, thinking included.
        languages: What may stand after the opening fence, in small letters; "" is nothing. Blocks of
            other languages are passed over.
        bare: Whether a text without such a block is one as a whole.

    Returns:
        An extraction without a rule, whose `text` is what stands between the fences, and the rule:
        "block", or "visible" for a text as a whole.
    """
    visible = visible_text(text, code=True)
    if visible is None:
        return Extraction("truncated", reason="the thinking does not end"), "block"
    found = _last(visible, languages)
    if found.span is None and bare:
        return read_part(text, "visible")[0], "visible"
    if found.status == "found" and found.span is not None:
        found = replace(found, text=text[slice(*found.span)])
    return found, "block"


def _last(text: str, languages: Collection[str]) -> Extraction:
    """Return the last block that names one of the languages; if none does, the last that names none."""
    named: _Fences | None = None
    unnamed: _Fences | None = None
    opening: re.Match[str] | None = None
    for fence in (*_FENCE.finditer(text), None):
        if opening is None:
            opening = fence
        elif fence is None or _closes(fence, opening):
            language = opening["language"].lower()
            if language in languages:
                if language:
                    named = (opening, fence)
                else:
                    unnamed = (opening, fence)
            opening = None
    return _block(text, named or unnamed)


def _block(text: str, fences: _Fences | None) -> Extraction:
    if fences is None:
        return Extraction("none", reason="there is no code block")
    opening, closing = fences
    if closing is None:
        reason = "the last code block does not end"
        return Extraction("truncated", span=(opening.end(), len(text)), reason=reason)
    start = min(opening.end() + 1, closing.start())
    return Extraction("found", span=(start, closing.start()))


def _closes(fence: re.Match[str], opening: re.Match[str]) -> bool:
    plain = not fence["language"] and not fence["more"].strip()
    return plain and fence["marks"].startswith(opening["marks"])
