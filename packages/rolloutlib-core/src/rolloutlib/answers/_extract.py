"""Finding the final answer in what a model wrote.

An explicit answer outranks a looser one: the last box, else the last marker, else a bold or final
line, else (where the benchmark allows it) the last number of the last sentence.
"""

from __future__ import annotations

import re

from rolloutlib.answers._boxes import find_boxes, read_box
from rolloutlib.answers._characters import invisible, lower_case, without_invisible
from rolloutlib.answers._endings import final_line, read_ending, read_line
from rolloutlib.answers._extraction import UNFINISHED, Extraction, narrowed, placed
from rolloutlib.answers._markers import find_markers, read_marker
from rolloutlib.answers._readings import DENIED
from rolloutlib.answers._retractions import is_taken_back
from rolloutlib.answers._visible import visible_text

__all__ = ["extract"]

_DIGIT = re.compile("[0-9]")


def extract(text: str, *, last_number: bool = False) -> Extraction:
    """Find the final answer as a number.

    Linear in the length of the text, and safe in any thread: nothing is evaluated.

    Args:
        text: What the model wrote, thinking included.
        last_number: Whether, without a clearer answer, the last number of the last sentence counts.

    Returns:
        The answer, or why there is none.

    Raises:
        TypeError: It is not text.
    """
    seen = visible_text(text)
    if seen is None:
        return UNFINISHED
    visible = without_invisible(seen)
    found = _find(visible, lower_case(visible), last_number=last_number)
    return placed(narrowed(found, visible), text, invisible(seen))


def _find(text: str, lower: str, *, last_number: bool) -> Extraction:
    openings = find_boxes(text, lower)
    if openings:
        found = read_box(text, lower, openings)
        if found.status != "found" or found.span is None:
            return found
        end = found.span[1]
        markers = find_markers(lower, end)
        marked = read_marker(text, lower, markers) if markers else None
        if marked is not None and marked.reason == DENIED.reason:
            return marked
        if marked is not None and marked.status == "found" and marked.value != found.value:
            reason = "the box and what follows it differ"
            return Extraction("ambiguous", None, "marker", marked.span, reason=reason)
    else:
        markers = find_markers(lower, 0)
        found = read_marker(text, lower, markers) if markers else None
        if found is None:
            found = read_ending(text, lower, last_number=last_number)
    if found.status != "found" or found.span is None or found.rule == "output":
        return found
    if is_taken_back(lower, *found.span, found.value):
        reason = "the answer is taken back"
        return Extraction("ambiguous", None, found.rule, found.span, reason=reason)
    if found.rule in {"box", "marker"} and _ends_otherwise(text, lower, found):
        reason = "the answer and the final line differ"
        return Extraction("ambiguous", None, found.rule, found.span, reason=reason)
    return found


def _ends_otherwise(text: str, lower: str, found: Extraction) -> bool:
    """Tell whether the final line, behind an answer, is nothing but another number."""
    after = len(text) if found.span is None else found.span[1]
    if _DIGIT.search(text, after) is None:
        return False
    start, end = final_line(text, lower)
    last = read_line(text[start:end])
    return start > after and last.status == "found" and last.value != found.value
