"""Answers after a marker: `#### 42`, "The answer is 42", "**Answer:** 42", "答案是 42"."""

from __future__ import annotations

import re
from collections import deque
from dataclasses import dataclass

from rolloutlib.answers._extraction import Extraction
from rolloutlib.answers._numbers import read_phrase, read_whole
from rolloutlib.answers._readings import DENIED, EXPRESSION, QUESTION, SEVERAL, UNREADABLE

__all__ = [
    "SENTENCE_END",
    "Marker",
    "find_markers",
    "is_heading",
    "is_refused",
    "read_marker",
]

_MOST_COMPARED = 8  # markers of a kind, the last ones

SENTENCE_END = re.compile(
    r"[.!?](?=[*_$)\"'`\\\]]{0,4}+(?:\s|$))"
    r"(?<!approx\.)(?<!\brs\.)(?<!\bvs\.)(?<!\bno\.)(?<!\bca\.)(?<!i\.e\.)(?<!e\.g\.)(?<!\.\.\.)|\n"
)
"""The end of a sentence, in lower case."""

_LINKING = (
    r"(?:(?:is|was|are|would\sbe|should\sbe|will\sbe|must\sbe|equals|becomes|comes\s(?:out\s)?to(?:\sbe)?"
    r"|turns\sout\sto\sbe)\b(?:\s(?:thus|therefore|then|indeed|simply|just|exactly|equal\sto|as\sfollows"
    r"|given\sby))*[*_\s]{0,4}:?(?!\s?n't)"
    r"|[:=]>?|[-=]{1,3}>|\s[-\u2014]\s|[→⇒➡≈])"
)
_QUOTES = r"[*_\"'`\s\]]{0,5}"
_ANSWER = re.compile(
    r"answers?(?![a-z])(?:,?\s(?:then|therefore|here|now|thus)\b,?|\s(?:that\s)?(?:we|i|you)\s(?:get|got|found|obtain)\b|\s?\([^()\n]{1,40}\))?"
    rf"(?:{_QUOTES}{_LINKING}|(?!\sto\s(?:another|(?:an?|the)\s(?:other|different|previous|next))\b)\s(?:to|for|of|in)(?:[ ][^\s.:;=<>]{{1,20}}+){{1,8}}?[ ](?:is|was|equals)\b:?)"
)
_FINAL = re.compile(
    rf"final\s(?:solution|result|value|number|amount|total|count)(?:{_QUOTES}{_LINKING}|\]|[*_\s]{{0,4}}\n)"
)
_HEADING = re.compile(r"answers?[*_: ]{0,6}\n")
_LABELS = ("a:", "a*", "a :", "ans:", "ans.", "ans*", "ans ")
_LINE = re.compile(r"\n(?!\n)[ \t*#>]{0,8}+(?:a|ans)\.?[*_]{0,3}\s?[:=]")
_START = re.compile(r"[ \t*#>]{0,8}(?:a|ans)\.?[*_]{0,3}\s?[:=]")
_HASHES = re.compile(r"#{4,}")
_LATIN = (
    "respuesta", "resposta", "risposta", "reponse", "antwo", "odpowied", "jawaban", "cevap", "svar", "jibu",
)  # fmt: skip
_OTHER = re.compile(
    r"(?:respuesta|resposta|risposta|r[ée]ponse|antwort|antwoord|odpowied[źz]|jawaban(?:nya)?|cevap|svar(?:et)?"
    r"|jibu|ответ|відповідь|đáp\s(?:án|số)|答案|答え|答|解答|정답|답|उत्तर|উত্তর|คำตอบ|సమాధానం|الجواب|الإجابة|תשובה)"
    r"(?:\s(?:final[e]?|correct[ae]?|richtige|correta|corretta))?[*_\s]{0,4}"
    r"(?:(?:es|est|ist|lautet|è|é|adalah|là|är|er|is|ni|jest|to)\b|是|为|為|は|은|는|[:=\u2014-]|это|equals)"
    r"(?:\s(?:de|von)\b)?"
)
_LEAD = re.compile(
    r"(?:[\s*_:\"'`]+|(?<=\n)[-+]\s|\$\$|\\[\[(]|\$(?=\s)|[-=]{1,3}>|[→⇒➡➜✅✔👉🎉🎯➤•]|\\[,;:! ]|\\quad|\\displaystyle)*+"
)
_BEFORE = re.compile(
    r"\b(?:(?:[a-z]{2,8}n't|if|whether|suppose|supposing|pretend|let's\ssay|assume|assuming|assumes|unless|imagine|not|never"
    r"|doubt|deny|false|wrong|incorrect|naive|tempting|mistaken|cannot|unsure|uncertain|impossible|unlikely"
    r"|says|said|claims|claimed)"
    r"(?:\s(?:that|think|believe|say|sure|true|be|know|to|for|whether|guess))*"
    r"|if\s[^.\n]{0,20}\b(?:wrong|mistaken|incorrect|not),?(?:\sthen)?"
    r"|(?:or|alternatively|otherwise|maybe|perhaps|possibly),?|reference|gold(?:en)?|ground[-\s]truth)"
    r"\s(?:(?:the|my|its?|your|this|an?)\s)?(?:(?:final|correct|right|true|real)\s)?[*_\"]{0,3}$"
)
_FACTORIAL = re.compile(r"(?<=[0-9])!(?:\s?(?:\$|\\\)|\})|\s[a-z])")
_ITEM = re.compile(r"[1-9][.)]\s+\S")
_HEADED = re.compile(r"[1-9][0-9]?[.)]\s+[^\W\d_]")
_WORDS = re.compile(r"[a-z]{2,}[^0-9\n]*[\s][^0-9\n]*[a-z]{2,}")
_CONDITION = re.compile(r"\bunless\b")
_SUPPOSITION = re.compile(r"\b(?:if|had|were|unless)\b")
_LETTER = re.compile(r"[^\W\d_]")
_DIGIT = re.compile("[0-9]")


@dataclass(frozen=True, slots=True)
class Marker:
    """A marker in a text.

    Attributes:
        start: Where it begins.
        end: Where it ends.
        kind: "hashes"; "label" for one with a colon; "phrase" for "the answer is".
    """

    start: int
    end: int
    kind: str


def find_markers(lower: str, after: int) -> list[Marker]:
    """Find the last markers behind a position, in order."""
    found: list[Marker] = []
    if "answer" in lower:
        for match in (*_last(_ANSWER, lower, after), *_last(_HEADING, lower, after)):
            start = match.start()
            if not start or not lower[start - 1].isalpha():
                found.append(_marker(lower, match))
    if "final" in lower:
        found += [_marker(lower, match) for match in _last(_FINAL, lower, after)]
    if "####" in lower:
        hashes = (match.span() for match in _last(_HASHES, lower, after))
        found += [Marker(*span, "hashes") for span in hashes if not _closes(lower, *span)]
    if any(label in lower for label in _LABELS):
        found += [_marker(lower, match) for match in _last(_LINE, lower, after)]
        start = None if after else _START.match(lower)
        if start is not None:
            found.append(_marker(lower, start))
    if not lower.isascii() or any(word in lower for word in _LATIN):
        for match in _last(_OTHER, lower, after):
            start = match.start()
            if not start or not (match[0][0].isascii() and lower[start - 1].isalpha()):
                found.append(_marker(lower, match))
    found.sort(key=lambda marker: (marker.end, -marker.start))
    return found


def _last(pattern: re.Pattern[str], lower: str, after: int) -> deque[re.Match[str]]:
    return deque(pattern.finditer(lower, after), maxlen=_MOST_COMPARED)


def _closes(lower: str, start: int, end: int) -> bool:
    """Tell whether `####` ends a line that another begins."""
    stop = lower.find("\n", end)
    if lower[end : len(lower) if stop < 0 else stop].strip():
        return False
    return lower.find("####", lower.rfind("\n", 0, start) + 1, start) >= 0


def _marker(lower: str, match: re.Match[str]) -> Marker:
    last = match[0].rstrip()[-1:]
    return Marker(*match.span(), "phrase" if last.isalpha() else "label")


def _marked_span(text: str, lower: str, marker: Marker) -> tuple[int, int]:
    """Return where the sentence that a marker begins starts and ends."""
    lead = _LEAD.match(text, marker.end)
    start = marker.end if lead is None else lead.end()
    ending = SENTENCE_END.search(lower, start)
    return start, len(text) if ending is None else ending.start()


def read_marker(text: str, lower: str, markers: list[Marker]) -> Extraction | None:
    """Read what follows the last marker; None if none of them gives an answer."""
    for index, marker in reversed(list(enumerate(markers))):
        found = _read(text, lower, marker)
        if found is None:
            continue
        if found.status == "found" and _has_rival(text, lower, markers[: index + 1], found):
            return Extraction("ambiguous", None, "marker", found.span, reason=SEVERAL.reason)
        return found
    return None


def _read(text: str, lower: str, marker: Marker) -> Extraction | None:
    """Read what follows a marker; None if it holds no number and the marker is an ordinary phrase."""
    start, end = _marked_span(text, lower, marker)
    if start >= len(text):
        where = (len(text), len(text))
        return Extraction("truncated", None, "marker", where, reason="nothing follows the marker")
    if start == end:
        return None
    content = text[start:end]
    if marker.kind == "hashes":
        if _HEADED.match(text, start):
            return None
        if _LETTER.match(content):
            reading = read_whole(content)
            return (
                None if reading.status != "found" else Extraction.of(reading, "marker", start, end)
            )
        return Extraction.of(read_phrase(content, strict=True), "marker", start, end)
    reading = read_phrase(content)
    if reading.status == "none":
        return None
    if _tells_on(lower, marker, start, end):
        return None
    condition = _SUPPOSITION if lower.find("would", marker.start, marker.end) >= 0 else _CONDITION
    if is_refused(lower, marker) or condition.search(lower, start, end):
        reading = DENIED
    elif text[start - 1] == "\n" and _ITEM.match(text, start):
        reading = UNREADABLE
    elif lower[end : end + 1] == "!" and _FACTORIAL.match(text, end):
        reading = EXPRESSION
    elif lower[end : end + 1] == "?":
        reading = QUESTION
    return Extraction.of(reading, "marker", start, end)


def is_refused(lower: str, marker: Marker) -> bool:
    """Tell whether a marker is denied or only supposed, as in "I doubt that the answer is 5"."""
    return _BEFORE.search(lower, max(0, marker.start - 60), marker.start) is not None


def is_heading(text: str, marker: Marker) -> bool:
    """Tell whether `####` begins the heading of what follows, and no answer."""
    end = text.find("\n", marker.end)
    return marker.kind == "hashes" and end >= 0 and not text[end:].isspace()


def _tells_on(lower: str, marker: Marker, start: int, end: int) -> bool:
    """Tell whether "Answer:" only begins a solution, in sentences whose last is what counts."""
    if marker.kind != "label" or not _WORDS.match(lower, start, end):
        return False
    return _DIGIT.search(lower, end) is not None


def _has_rival(text: str, lower: str, markers: list[Marker], found: Extraction) -> bool:
    """Tell whether a marker in the same sentence gives another value."""
    following = markers[-1].start
    for marker in reversed(markers[:-1]):
        if marker.end > following:
            continue
        if following - marker.end > 200 or SENTENCE_END.search(lower, marker.end, following):
            return False
        reading = read_phrase(text[marker.end : following])
        if reading.status == "found" and reading.value != found.value:
            return True
        following = marker.start
    return False
