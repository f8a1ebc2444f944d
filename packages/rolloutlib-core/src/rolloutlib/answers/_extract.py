"""Finding the final answer in what a model wrote.

An explicit answer outranks a looser one: the last box, else the last marker, else a bold or final
line, else (where the benchmark allows it) the last number of the last sentence.
"""

from __future__ import annotations

from dataclasses import replace

from rolloutlib.answers._boxes import box_of, find_boxes, read_box
from rolloutlib.answers._characters import lower_case, without_invisible
from rolloutlib.answers._endings import final_line, read_ending
from rolloutlib.answers._extraction import Extraction, Rule
from rolloutlib.answers._markers import find_markers, marked_span, read_marker
from rolloutlib.answers._readings import DENIED
from rolloutlib.answers._retractions import is_taken_back
from rolloutlib.answers._visible import visible_text

__all__ = ["extract", "extract_text"]

_UNFINISHED = Extraction("truncated", reason="the thinking does not end")


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
        return _UNFINISHED
    visible, cuts = without_invisible(seen)
    found = _find(visible, lower_case(visible), last_number=last_number)
    return _placed(found, text, cuts)


def extract_text(text: str) -> Extraction:
    """Find the final answer as text, for answers that are no numbers: choices, words, formulas.

    It is the content of the last box, else what follows the last marker on its line, else the final
    line.

    Args:
        text: What the model wrote, thinking included.

    Returns:
        An extraction without a value, whose `text` is the answer without the space around it.

    Raises:
        TypeError: It is not text.
    """
    visible = visible_text(text)
    if visible is None:
        return _UNFINISHED
    lower = lower_case(visible)
    openings = find_boxes(visible, lower)
    rule: Rule
    if openings:
        rule, box = "box", box_of(visible, lower, openings[-1][1])
        if box.end is None:
            where = (box.inner, len(visible))
            return Extraction("truncated", None, rule, where, reason="the last box does not end")
        start, end = box.inner, box.end
    elif markers := find_markers(lower, 0):
        rule = "marker"
        start, _ = marked_span(visible, lower, markers[-1])
        end = visible.find("\n", start)
        end = len(visible) if end < 0 else end
    else:
        rule = "line"
        start, end = final_line(visible, lower)
    content = visible[start:end]
    start += len(content) - len(content.lstrip())
    end = start + len(content.strip())
    if start >= end:
        return Extraction("none", None, rule, (start, start), reason="the answer is empty")
    return _placed(Extraction("found", None, rule, (start, end)), text, [])


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
    return found


def _placed(found: Extraction, text: str, cuts: list[tuple[int, int]]) -> Extraction:
    """Tell where in the whole text an answer stands, and what stands there."""
    if found.span is None:
        return found
    start, end = found.span
    for begin, stop in cuts:
        if begin <= start:
            start += stop - begin
        if begin < end:
            end += stop - begin
    return replace(found, span=(start, end), text=text[start:end])
