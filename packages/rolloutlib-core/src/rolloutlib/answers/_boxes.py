r"""Answers in boxes: `\boxed{...}`, `\fbox{...}`, `\framebox{...}` and `<answer>...</answer>`."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace

from rolloutlib.answers import _phrases as phrases
from rolloutlib.answers._extraction import Extraction
from rolloutlib.answers._numbers import read_phrase, read_whole
from rolloutlib.answers._readings import DENIED, EMPTY_BOX, EXPRESSION, SEVERAL, Reading
from rolloutlib.answers._tex import plain_text

__all__ = [
    "Box",
    "box_of",
    "find_boxes",
    "has_rival_box",
    "is_refused",
    "read_box",
    "sentence_before",
]

_LONGEST = 10_000  # content of a box; what does not end by then does not end
_MOST_BOXES = 32  # that are looked at
_MOST_SPELLINGS = 8  # of values side by side, before they are several whatever they say

_TEX_BOX = re.compile(r"\\(?:boxed|fbox|framebox)(?![a-zA-Z])\s{0,3}(?P<brace>\{)?")
_TAG = re.compile(r"<(?P<name>(?:final[ _-]?)?answer)>")
_BARE = re.compile(r"\$?-?[0-9][0-9,.]*(?<![,.])(?![0-9a-zA-Z\\^_])")
_BRACE = re.compile(r"\\.|[{}]", re.DOTALL)
_OPERATED = re.compile(
    r"""\s?[\^*/\u00d7√π](?!\s?\{?\s?\\circ|[*\s])
    | \s?\\(?:cdot|times|sqrt|pi|[dt]?frac|div)(?![a-zA-Z])
    | [0-9_] | \{\s?[0-9] | [.,][0-9] | [xyznkie]\b | !\s?(?:\$|\\\)|[0-9])
    | \s?\+\s?[0-9]+(?!\s?[0-9=])
    | [\s$\\)\]}]{0,6}(?:text\{\s?)?(?:hundred|thousand|million|billion)\b""",
    re.VERBOSE,
)
_FACTOR = re.compile(
    r"""(?:[0-9)}\]] | [*/^\u00d7√·] | [\^_/]\s?\{ | \\[a-z]{1,20}\s?\{?
      | (?:^|[\s=(])[-\u2014] | (?:^|[\s$(])(?:[a-z0-9]{1,3}\s?[<>]|<)
    )\s?$""",
    re.VERBOSE,
)
_PERCENT = re.compile(r"[\s$\\)]{0,4}%")
_SENTENCE = re.compile(r"[.!?;\n]\s")
_OR_AFTER = re.compile(
    r"[\s$)\\\]]{0,6}(?:\(?(?:or|and/or)\s[^.\n]{0,30}?[0-9]|(?:and|to|,)\s\$?[0-9]+\b(?!\s?[a-z=+*/-]))"
)
_OR_BEFORE = re.compile(
    r"(?:^|[0-9][^.,\n]{0,20}\s)(?:or|and/or|alternatively,?|maybe|perhaps)(?:\s(?:maybe|perhaps|even))?$"
)
_MENTIONED = re.compile(  # and not given
    r"\b(?:wrong|incorrect|false|mistaken|trap)\s(?:final\s)?(?:answer|value|result|solution|guess|choice)\b[^0-9]*$"
    r"|\b(?:expected|reference|gold(?:en)?|ground[-\s]truth)\s(?:final\s)?answer(?:\sis)?:?$"
    r"|\bfor\s(?:example|instance),?$|\b(?:e\.g\.|such\sas|like)$"
    r"|\b(?:write|put|give|enter|box|state)\s(?:your|the)\s(?:final\s)?answer\s(?:as|like|in|within|inside)$"
)
_HARMLESS = re.compile(  # before a box, though it may look like a factor
    r"[0-9)}\]]\s$|\*\*\s?$|\\(?:implies|(?:long)?rightarrow|to|therefore|because|iff|approx|equiv|q?quad|left"
    r"|displaystyle|centering|center|large|huge|color|text|textbf|textit|mathbf|mathrm|[hm]box|boxed)\s?\{?\s?$"
    r"|\\[\])]\s?$"
)
_APART = re.compile(r"[=.:?!]|\b(?:so|then|thus|hence|therefore|finally|now|wait|actually|final)\b")
_SEPARATOR = re.compile(r"[\s,;/|&+*<>≤≥\u00d7~-]*")
_LINKED = re.compile(r"(?:[a-z]+,?\s)?(?:and|to|through|und|y|et|和)(?:\s[a-z]+)?")
_EITHER = re.compile(r"\b(?:or|oder|o|ou|if)\b|或")


@dataclass(frozen=True, slots=True)
class Box:
    """A box in a text.

    Attributes:
        start: Where its opening begins.
        inner: Where its content begins.
        end: Where its content ends, or None if it does not.
        tag: Whether it is an `<answer>`.
    """

    start: int
    inner: int
    end: int | None
    tag: bool


def find_boxes(text: str, lower: str) -> list[tuple[int, re.Match[str]]]:
    """Find the openings of the last boxes, in order."""
    found: list[tuple[int, re.Match[str]]] = []
    if "box" in text:
        matches = deque(_TEX_BOX.finditer(text), maxlen=_MOST_BOXES)
        found = [(match.start(), match) for match in matches]
    if "answer>" in lower:
        matches = deque(_TAG.finditer(lower), maxlen=_MOST_BOXES)
        found += [(match.start(), match) for match in matches]
        found.sort(key=lambda pair: pair[0])
    return found


def box_of(text: str, lower: str, opening: re.Match[str], limit: int | None = None) -> Box:
    """Find where a box ends, before a limit."""
    inner = opening.end()
    last = len(text) if limit is None else limit
    groups = opening.groupdict()
    if "name" in groups:
        end = lower.find(f"</{opening['name']}>", inner, last)
        return Box(opening.start(), inner, None if end < 0 else end, tag=True)
    if opening["brace"]:
        return Box(opening.start(), inner, _closing_brace(text, inner, last), tag=False)
    bare = _BARE.match(text, inner, last)
    return Box(opening.start(), inner, None if bare is None else bare.end(), tag=False)


def read_box(text: str, lower: str, openings: list[tuple[int, re.Match[str]]]) -> Extraction:
    """Read the last box, together with boxes that stand beside it."""
    box = box_of(text, lower, openings[-1][1])
    if box.end is None:
        where = (box.inner, len(text))
        return Extraction("truncated", None, "box", where, reason="the last box does not end")
    reading = _read_content(text[box.inner : box.end], tag=box.tag)
    if reading.status == "found" and not box.tag:
        reading = _refusal(text, lower, box, box.end) or reading
    if box.tag and _OR_BEFORE.search(sentence_before(lower, box.start)):
        reading = SEVERAL
    if reading.status == "found" and not box.tag and len(openings) > 1:
        value = reading.value
        if _is_part(text, lower, box, openings[-2][1]):
            reading = EXPRESSION
        elif has_rival_box(text, lower, openings, lambda other: read_whole(other).value != value):
            reading = SEVERAL
    if not box.tag and _PERCENT.match(text, box.end + 1):
        reading = replace(reading, plain=False)
    return Extraction.of(reading, "box", box.inner, box.end)


def _is_part(text: str, lower: str, box: Box, opening: re.Match[str]) -> bool:
    """Tell whether a box stands inside another beside something else."""
    outer = box_of(text, lower, opening)
    if outer.tag or box.end is None or outer.end is None or outer.end < box.end:
        return False
    beside = text[outer.inner : box.start] + text[box.end + 1 : outer.end]
    return beside.strip(" \n${}") != ""


def _read_content(content: str, *, tag: bool) -> Reading:
    reading = read_whole(content)
    if not content.strip():
        return EMPTY_BOX
    return read_phrase(content) if tag and reading.status != "found" else reading


def _refusal(text: str, lower: str, box: Box, end: int) -> Reading | None:
    """Return why what stands around a box keeps its content from being the answer, or None."""
    before = sentence_before(lower, box.start)
    if is_refused(before):
        return DENIED
    adjacent = lower[max(0, box.start - 24) : box.start]
    if _FACTOR.search(adjacent) and not _HARMLESS.search(adjacent):
        return EXPRESSION
    if _OPERATED.match(text, end + 1):
        return EXPRESSION
    if _OR_AFTER.match(lower, end + 1):
        return SEVERAL
    return SEVERAL if _OR_BEFORE.search(before) else None


def is_refused(before: str) -> bool:
    r"""Tell whether a box is denied or only mentioned behind such words, as in "not \boxed{5}"."""
    if _MENTIONED.search(before):
        return True
    return phrases.NOT.search(before.rsplit(", ", 1)[-1]) is not None


def sentence_before(lower: str, end: int) -> str:
    """Return what stands before a position in its sentence."""
    before = plain_text(lower[max(0, end - 80) : end])
    return _SENTENCE.split(before)[-1].rstrip(" $*")


def has_rival_box(
    text: str,
    lower: str,
    openings: list[tuple[int, re.Match[str]]],
    differs: Callable[[str], bool],
) -> bool:
    r"""Tell whether another value stands beside the last box, as in `\boxed{1} or \boxed{2}`."""
    spellings: set[str] = set()
    following = openings[-1][0]
    for start, opening in reversed(openings[:-1]):
        if "name" in opening.groupdict():
            return False
        box = box_of(text, lower, opening, following)
        if box.end is None or not _beside(text[box.end + 1 : following]):
            return False
        content = text[box.inner : box.end]
        if content not in spellings:
            spellings.add(content)
            if len(spellings) > _MOST_SPELLINGS or differs(content):
                return True
        following = start
    return False


def _beside(between: str) -> bool:
    if len(between) > 60:
        return False
    words = plain_text(between.lower()).strip(" $*\n()")
    if _EITHER.search(words):
        return True
    if _APART.search(words) or (not words and "\n" in between):
        return False
    return _SEPARATOR.fullmatch(words) is not None or _LINKED.fullmatch(words) is not None


def _closing_brace(text: str, start: int, end: int) -> int | None:
    depth = 1
    for brace in _BRACE.finditer(text, start, min(end, start + _LONGEST)):
        if brace[0] == "{":
            depth += 1
        elif brace[0] == "}":
            depth -= 1
            if depth == 0:
                return brace.start()
    return None
