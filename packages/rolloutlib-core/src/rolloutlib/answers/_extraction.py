"""Finding the final answer in what a model wrote.

An explicit answer outranks a looser one: the last box, else the last marker, else a bold or final
line, else (where the benchmark allows it) the last number of the last sentence.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Literal, TypeAlias

from rolloutlib.answers._numbers import Reading, read_last, read_phrase, read_whole, write_number
from rolloutlib.answers._visible import visible_text

__all__ = ["Extraction", "Rule", "Status", "extract", "extract_text"]

Status: TypeAlias = Literal["found", "none", "ambiguous", "truncated"]
Rule: TypeAlias = Literal["box", "marker", "output", "bold", "line", "sentence"]


@dataclass(frozen=True, slots=True)
class Extraction:
    """The answer in a text, or why there is none.

    Attributes:
        status: "found"; "none" where no answer is given; "ambiguous" where what is given is not one
            value; "truncated" where the text ends before the answer does.
        value: The exact value, where one was found.
        rule: Which rule decided.
        span: Start and end, in the text, of what was read.
        text: What stands there, as it is written.
        reason: Why there is no answer, where there is none.
        plain: Whether it is a bare number, without percent sign or a word like "million".
    """

    status: Status
    value: Fraction | None = None
    rule: Rule | None = None
    span: tuple[int, int] | None = None
    text: str | None = None
    reason: str | None = None
    plain: bool = True

    def as_metadata(self) -> dict[str, Any]:
        """Return what a score's metadata keep: "extracted", "status", "rule", "span" and "reason"."""
        extracted = self.text if self.value is None else write_number(self.value)
        return {
            "extracted": extracted if self.status == "found" else None,
            "status": self.status,
            "rule": self.rule,
            "span": self.span,
            "reason": self.reason,
        }


_BOX = re.compile(r"\\(?:boxed|fbox|framebox)(?![a-zA-Z])\s?(?P<brace>\{)?|<answer>")
_BRACE = re.compile(r"\\.|[{}]", re.DOTALL)
_MARKER = re.compile(
    r"(?P<hashes>\#{4,})"
    r"|\b(?:final\s)?answers?\b[*_\s]{0,4}(?:(?:is|was|would\sbe|should\sbe)\b[*_\s]{0,4}:?|[:=])"
    r"|\bfinal\s(?:answer|solution|result)\b[*_:\]\s]{0,6}\n"
    r"|^\s?\**A\**:|答案(?:是|为|:)",
    re.IGNORECASE | re.MULTILINE,
)
_LEAD = re.compile(r"(?:[\s*_:]|\$\$|\\[\[(]|\$(?=\s))*")
_SENTENCE_END = re.compile(r"[.!?](?=[\s*_$)\"']*(?:\s|$))|\n")
_HEDGE = re.compile(r"(?:[ $*]|\\[()])*(?:,|or|and|/|;|\\text\{ ?(?:or|and) ?\})?(?:[ $*]|\\[()])*")
_OUTPUT = re.compile(r"```output\n(?P<value>[^`]{1,200})```")
_BOLD = re.compile(r"\*\*(?P<value>[^*\n]{1,200})\*\*")


def extract(text: str, *, last_number: bool = False) -> Extraction:
    """Find the final answer.

    Args:
        text: What the model wrote, thinking included.
        last_number: Whether, without a clearer answer, the last number of the last sentence counts.
    """
    found = _extract(text, last_number=last_number)
    if found.span is None:
        return replace(found, reason=_REASONS.get(found.status))
    start, end = found.span
    return replace(found, text=text[start:end], reason=_REASONS.get(found.status))


_REASONS = {
    "none": "no number stands where the answer should",
    "ambiguous": "what is given is not one value",
    "truncated": "the text ends before the answer does",
}


def extract_text(text: str) -> Extraction:
    """Find the final answer as text, for answers that are no numbers: choices, words, formulas.

    The last box, else what follows the last marker, else the last line.

    Args:
        text: What the model wrote, thinking included.

    Returns:
        An extraction without a value, whose `text` is the answer without the space around it.
    """
    visible = visible_text(text)
    if visible is None:
        return Extraction("truncated", reason=_REASONS["truncated"])
    boxes = _last_two(_BOX.finditer(visible))
    markers = _last_two(_MARKER.finditer(visible))
    if boxes:
        rule, start = "box", boxes[-1].end()
        if boxes[-1][0] == "<answer>":
            end = visible.find("</answer>", start)
        else:
            end = _closing_brace(visible, start) if boxes[-1]["brace"] else -1
        if end < 0:
            return Extraction("truncated", rule=rule, reason=_REASONS["truncated"])
    elif markers:
        rule, lead = "marker", _LEAD.match(visible, markers[-1].end())
        start = markers[-1].end() if lead is None else lead.end()
        end = visible.find("\n", start)
        end = len(visible) if end < 0 else end
    else:
        rule, end = "line", len(visible.rstrip())
        start = visible.rfind("\n", 0, end) + 1
    while start < end and visible[start].isspace():
        start += 1
    while start < end and visible[end - 1].isspace():
        end -= 1
    if start == end:
        return Extraction("none", rule=rule, reason="the answer is empty")
    return Extraction("found", None, rule, (start, end), text[start:end])


def _extract(text: str, *, last_number: bool) -> Extraction:
    visible = visible_text(text)
    if visible is None:
        return Extraction("truncated")
    box = _last_box(visible)
    after = 0 if box is None or box.span is None else box.span[1]
    marked = _last_marker(visible, after)
    if box is not None:
        differs = marked is not None and marked.status == box.status == "found"
        if differs and marked is not None and marked.value != box.value:
            return Extraction("ambiguous", None, "marker", marked.span)
        return box
    if marked is not None:
        return marked
    return _final_line(visible, last_number=last_number)


def _of(reading: Reading, rule: Rule, start: int, end: int) -> Extraction:
    return Extraction(reading.status, reading.value, rule, (start, end), plain=reading.plain)


def _last_box(text: str) -> Extraction | None:
    boxes = _last_two(_BOX.finditer(text))
    if not boxes:
        return None
    last = _box(text, boxes[-1])
    if len(boxes) == 2 and last.status == "found":
        previous = _box(text, boxes[0])
        if previous.value != last.value and _joined(text, previous, boxes[1]):
            return Extraction("ambiguous", None, "box", last.span)
    return last


def _joined(text: str, previous: Extraction, box: re.Match[str]) -> bool:
    r"""Tell whether a box offers its value beside another's, as in `\boxed{1} or \boxed{2}`."""
    if previous.span is None or box[0] == "<answer>":
        return False
    start = previous.span[1] + 1
    return box.start() - start < 30 and bool(_HEDGE.fullmatch(text, start, box.start()))


def _last_two(matches: Iterator[re.Match[str]]) -> list[re.Match[str]]:
    kept: list[re.Match[str]] = []
    for match in matches:
        kept = [*kept[-1:], match]
    return kept


def _box(text: str, opening: re.Match[str]) -> Extraction:
    start = opening.end()
    if opening[0] == "<answer>":
        end = text.find("</answer>", start)
    else:
        end = _closing_brace(text, start) if opening["brace"] else -1
    if end < 0:
        return Extraction("truncated", None, "box", (start, len(text)))
    content = text[start:end]
    reading = read_whole(content)
    if reading.status != "found" and opening[0] == "<answer>":
        reading = read_phrase(content)
    return _of(reading, "box", start, end)


def _closing_brace(text: str, start: int) -> int:
    depth = 1
    for brace in _BRACE.finditer(text, start):
        if brace[0] == "{":
            depth += 1
        elif brace[0] == "}":
            depth -= 1
            if depth == 0:
                return brace.start()
    return -1


def _last_marker(text: str, after: int) -> Extraction | None:
    markers = _last_two(_MARKER.finditer(text, after))
    if not markers:
        return None
    found = _marked(text, markers[-1])
    if len(markers) == 2 and found is not None and found.status == "found":
        start, end = markers[0].end(), markers[1].start()
        if end - start <= 200 and not _SENTENCE_END.search(text, start, end):
            earlier = read_phrase(text[start:end])
            if earlier.status == "found" and earlier.value != found.value:
                return Extraction("ambiguous", None, "marker", (start, end))
    return found


def _marked(text: str, marker: re.Match[str]) -> Extraction | None:
    """Read what follows a marker; None if it holds no number and the marker is an ordinary phrase."""
    lead = _LEAD.match(text, marker.end())
    start = marker.end() if lead is None else lead.end()
    ending = _SENTENCE_END.search(text, start)
    end = len(text) if ending is None else ending.start()
    if start == end:
        return Extraction("truncated", None, "marker", (start, end))
    reading = read_phrase(text[start:end])
    if reading.status == "none" and not marker["hashes"]:
        return None
    return _of(reading, "marker", start, end)


def _final_line(text: str, *, last_number: bool) -> Extraction:
    end = len(text.rstrip())
    start = text.rfind("\n", 0, end) + 1
    line = text[start:end]
    bolds = [(m, read_whole(m["value"])) for m in _BOLD.finditer(line[-2000:])]
    readings = [(m, reading) for m, reading in bolds if reading.status == "found"]
    if readings:
        if len({reading.value for _, reading in readings}) > 1:
            return Extraction("ambiguous", None, "bold", (start, end))
        return _of(readings[-1][1], "bold", start, end)
    whole = read_whole(line)
    if whole.status == "found" or not last_number:
        return _of(whole, "line", start, end)
    return _last_sentence(text, line, start, end)


def _last_sentence(text: str, line: str, start: int, end: int) -> Extraction:
    """Read the last sentence; what a program printed counts if the sentence repeats it or is mute."""
    *_, begin = [0, *(m.end() for m in _SENTENCE_END.finditer(line, 0, max(0, len(line) - 1)))]
    sentence = line[begin:]
    last = read_last(sentence)
    outputs = _last_two(_OUTPUT.finditer(text))
    if outputs:
        printed = read_whole(outputs[-1]["value"])
        repeated = printed.value in {read_whole(word).value for word in sentence[:400].split()}
        if printed.status == "found" and (last.status == "none" or repeated):
            return _of(printed, "output", *outputs[-1].span("value"))
    return _of(last, "sentence", start + begin, end)
