"""Finding answers between tags, as the prompts of reasoning-gym ask for them."""

from __future__ import annotations

import re

from rolloutlib.answers import Extraction, visible_text

__all__ = ["extract_tagged"]

_TAG = re.compile(r"<(/?)answer>", re.IGNORECASE)


def extract_tagged(text: str) -> Extraction:
    """Find the content of the last `<answer>` tags, outside of thinking and of invented turns.

    Args:
        text: What the model wrote, thinking included.

    Returns:
        An extraction without a value, whose `text` is the content without space around it.
    """
    visible = visible_text(text)
    if visible is None:
        return Extraction("truncated", reason="the thinking does not end")
    start, span = None, None
    for tag in _TAG.finditer(visible):
        if not tag[1]:
            start = tag.end()
        elif start is not None:
            start, span = None, (start, tag.start())
    if start is not None:
        where = (start, len(visible))
        return Extraction("truncated", None, "box", where, reason="the last answer does not end")
    if span is None:
        return Extraction("none", reason="there are no <answer> tags")
    # Positions are those of the whole text, whose characters count as they are written.
    content = text[slice(*span)].strip()
    if not content:
        return Extraction("none", None, "box", span, reason="the answer is empty")
    return Extraction("found", None, "box", span, content)
