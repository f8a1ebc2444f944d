"""Finding the final answer as text, for answers that are no numbers."""

from __future__ import annotations

import re

from rolloutlib.answers import _boxes as boxes
from rolloutlib.answers._characters import lower_case
from rolloutlib.answers._endings import final_line
from rolloutlib.answers._extraction import UNFINISHED, Extraction, Rule, placed
from rolloutlib.answers._markers import find_markers, is_heading, is_refused
from rolloutlib.answers._readings import DENIED, EMPTY_BOX, SEVERAL
from rolloutlib.answers._retractions import is_denied
from rolloutlib.answers._visible import visible_text

__all__ = ["extract_text"]

_LEAD = re.compile(
    r"(?:[\s*_:]|(?<=\n)[-+]\s|[-=]{1,3}>|[→⇒➡➜✅✔👉🎉🎯➤•]|(?:\$\$|\\\[)\s{0,3}\n)*+"
)
_EDGE = re.compile(r"[\s*_`]*")
_END = re.compile(r"[\s*_`]+(?:\.\s*)?\Z")

_OTHER = re.compile(  # "is A, and the" before "answer is B"
    r"\W{0,6}(?!(?:the|my|final)\b)(\w{1,20})[^\w\n.!?]{1,6}(?:(?:and|or|but|the|my|final)\W{1,3}){0,3}"
)


def extract_text(text: str) -> Extraction:
    """Find the final answer as text, for answers that are no numbers: choices, words, formulas.

    It is the content of the last box, else what follows the last marker on its line, else the final
    line.

    Args:
        text: What the model wrote, thinking included.

    Returns:
        An extraction without a value, whose `text` is the answer without space and emphasis around it.

    Raises:
        TypeError: It is not text.
    """
    visible = visible_text(text)
    if visible is None:
        return UNFINISHED
    lower = lower_case(visible)
    found = _box(visible, lower) or _marked(visible, lower)
    if found is None:
        found = _trimmed(visible, "line", *final_line(visible, lower))
    elif found.status == "found" and found.span is not None and is_denied(lower, found.span[0]):
        reason = "the answer is taken back"
        found = Extraction("ambiguous", None, found.rule, found.span, reason=reason)
    return placed(found, text, ())


def _box(text: str, lower: str) -> Extraction | None:
    openings = boxes.find_boxes(text, lower)
    if not openings:
        return None
    box = boxes.box_of(text, lower, openings[-1][1])
    if box.end is None:
        where = (box.inner, len(text))
        return Extraction("truncated", None, "box", where, reason="the last box does not end")
    content = text[box.inner : box.end].strip()
    if not content:
        return Extraction.of(EMPTY_BOX, "box", box.inner, box.end)
    if not box.tag and boxes.has_rival_box(
        text, lower, openings, lambda other: other.strip() != content
    ):
        return Extraction.of(SEVERAL, "box", box.inner, box.end)
    if not box.tag and boxes.is_refused(boxes.sentence_before(lower, box.start)):
        return Extraction.of(DENIED, "box", box.inner, box.end)
    return _trimmed(text, "box", box.inner, box.end)


def _marked(text: str, lower: str) -> Extraction | None:
    markers = [marker for marker in find_markers(lower, 0) if not is_heading(text, marker)]
    if not markers:
        return None
    marker = markers[-1]
    lead = _LEAD.match(text, marker.end)
    start = marker.end if lead is None else lead.end()
    if start >= len(text):
        where = (len(text), len(text))
        return Extraction("truncated", None, "marker", where, reason="nothing follows the marker")
    end = text.find("\n", start)
    end = len(text) if end < 0 else end
    if is_refused(lower, marker):
        return Extraction.of(DENIED, "marker", start, end)
    if len(markers) > 1:
        other = _OTHER.fullmatch(lower, markers[-2].end, marker.start)
        if other is not None and not lower.startswith(other[1], start):
            return Extraction.of(SEVERAL, "marker", markers[-2].end, end)
    return _trimmed(text, "marker", start, end)


def _trimmed(text: str, rule: Rule, start: int, end: int) -> Extraction:
    edge = _EDGE.match(text, start, end)
    start = start if edge is None else edge.end()
    closing = _END.search(text[max(start, end - 20) : end])
    end -= 0 if closing is None else len(closing[0])
    if start >= end:
        return Extraction("none", None, rule, (start, start), reason="the answer is empty")
    return Extraction("found", None, rule, (start, end))
