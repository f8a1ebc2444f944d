"""Answers that nothing marks: what a program printed, a bold number, the final line or sentence."""

from __future__ import annotations

import re

from rolloutlib.answers._characters import lower_case
from rolloutlib.answers._extraction import Extraction
from rolloutlib.answers._markers import SENTENCE_END
from rolloutlib.answers._numbers import read_last, read_whole
from rolloutlib.answers._readings import SEVERAL, UNREADABLE, Reading

__all__ = ["final_line", "read_ending", "read_line"]

_LONGEST = 2000  # of what is read of a final line
_MOST_LINES = 8  # that may close a text behind its final line
_OUTPUT = re.compile(r"```output\n(?P<value>[^`]{1,200})```")
_BOLD = re.compile(r"\*\*(?P<value>[^*\n]{1,200})\*\*|__(?P<under>[^_\n]{1,200})__")
_CLOSER = re.compile(
    r"""\W{0,4}
    (?:i\shope|hope\s(?:this|that|it)|thank|glad|happy\sto|good\sluck|great\sjob|well\sdone|enjoy
      |have\sa\s(?:great|nice|good)|if\syou\s(?:have|need)
      |q\.?e\.?d|done|(?:that's\s|this\sis\s)?correct\b)
    | \W{0,3}\\(?:(?:black)?square|end)\b
    | <[/|][a-z_|]{1,20}>$""",
    re.VERBOSE,
)
_REMARK = re.compile(  # whatever numbers it has
    r"""\W{0,4}
    (?:(?:please\s)?let\sme\sknow|feel\sfree|would\syou\slike|is\sthere\sanything
      |if\syou(?:'d|\swant|\swould|\sprefer)|do\syou\s(?:have|want|need)|confidence\b
      |(?:note|remark|p\.?s\.?|breakdown|explanation|check|verification|disclaimer)\s?[:*]
      |(?:let\sme|to|let's|we\scan)\s(?:double[-\s]check|verify|check|confirm)\b)""",
    re.VERBOSE,
)
_UNFINISHED = re.compile(
    r"""(?:\b(?:to|of|the|an?|and|or|for|in|with|by|at|per|from|into|on|than
          |that|so|which|if|as|then|but|because|since|when
          |(?<!it\s)is|are|was|has|have|will|would|can|want|wants|needs?|needs?\sto\s[a-z]+
          |we|she|he|they|you|it|each|his|her|their)
      | \s[-+*/=\u00d7÷]
      | [(,:]
    )\s*$
    | [0-9](?:\s[a-z,']+){8,}\s*$""",
    re.VERBOSE,
)
_QUOTE = re.compile(r"(?:>\s)+")
_ITEM = re.compile(r"[\s#*]*(?:-\s|[0-9]{1,2}[.)]\s+[^\W\d_])")
_NUMBER = re.compile(r"\s*([0-9]{1,3})\.\s*")
_DIGIT = re.compile("[0-9]")
_LETTER = re.compile(r"[^\W_]")


def final_line(text: str, lower: str) -> tuple[int, int]:
    """Return where the final line starts and ends, leaving out ends of blocks and polite closings."""
    start, end = 0, len(text.rstrip())
    for _ in range(_MOST_LINES):
        start = text.rfind("\n", 0, end) + 1
        line = lower[start : min(end, start + _LONGEST)]
        if start == 0 or not all(map(_is_closing, SENTENCE_END.split(line))):
            return start, end
        end = len(text[:start].rstrip()) if end - start < _LONGEST else start - 1
    return start, end


def read_ending(text: str, lower: str, *, last_number: bool) -> Extraction:
    """Read the final line: a number in bold, a number alone, else perhaps its last sentence."""
    start, end = final_line(text, lower)
    quote = _QUOTE.match(text, start, end)
    start = start if quote is None else quote.end()
    line = text[start:end]
    if not line.strip():
        return Extraction("none", reason="the text is empty")
    bold = _bold(line, start, end) or _earlier_bold(text, lower, start, end)
    if bold is not None:
        return bold
    if _is_dangling(text, line, start):
        return Extraction.of(UNREADABLE, "line", start, end)
    whole = read_line(line)
    if whole.status == "found" or not last_number:
        return Extraction.of(whole, "line", start, end)
    return _last_sentence(text, line, start, end)


def read_line(line: str) -> Reading:
    """Read a line that is nothing but an answer, and no item of a list."""
    reading = read_whole(line)
    return UNREADABLE if reading.status == "found" and _ITEM.match(line) else reading


def _is_dangling(text: str, line: str, start: int) -> bool:
    """Tell whether a line is the number of an item that a list breaks off in."""
    item = _NUMBER.fullmatch(line)
    if item is None:
        return False
    return f"\n{int(item[1]) - 1}. " in f"\n{text[max(0, start - _LONGEST) : start]}"


def _bold(line: str, start: int, end: int) -> Extraction | None:
    if "**" not in line and "__" not in line:
        return None
    if line.rstrip(" *_").endswith("?"):
        return None
    offset = max(0, len(line) - _LONGEST)
    readings: list[tuple[re.Match[str], Reading]] = []
    for match in _BOLD.finditer(line, offset):
        reading = read_whole(match["value"] or match["under"])
        if reading.status == "found":
            readings.append((match, reading))
    if not readings:
        return None
    if len({reading.value for _, reading in readings}) > 1:
        return Extraction("ambiguous", None, "bold", (start, end), reason=SEVERAL.reason)
    match, reading = readings[-1]
    shown = (
        line[max(offset, match.start() - 200) : match.start()]
        + " "
        + (match["value"] or match["under"])
    )
    context = read_last(SENTENCE_END.split(shown.lower())[-1] or shown)
    if context.status == "ambiguous":
        reading = context
    name = "value" if match["value"] is not None else "under"
    return Extraction.of(reading, "bold", start + match.start(name), start + match.end(name))


def _earlier_bold(text: str, lower: str, start: int, end: int) -> Extraction | None:
    """Read the bold number that finished sentences without any number follow."""
    for _ in range(_MOST_LINES):
        if start == 0 or text[end - 1] not in ".!?)" or _DIGIT.search(text, start, end):
            return None
        start, end = final_line(text[:start], lower[:start])
        bold = _bold(text[start:end], start, end)
        if bold is not None:
            return bold if bold.status == "found" else None
    return None


def _last_sentence(text: str, line: str, start: int, end: int) -> Extraction:
    """Read the last sentence; what a program printed counts if the sentence repeats it or is mute."""
    lower = lower_case(line)
    ends = SENTENCE_END.finditer(lower, max(0, len(line) - _LONGEST))
    begin, stop = 0, len(line)
    for match in reversed(list(ends)):
        if not _is_closing(lower[match.end() : stop]):
            begin = match.end()
            break
        stop = match.end()
    sentence = line[begin:stop]
    last = read_last(sentence)
    if last.status == "found" and _UNFINISHED.search(lower[-200:]):
        return Extraction(
            "truncated",
            None,
            "sentence",
            (start + begin, start + stop),
            reason="the last sentence does not end",
        )
    if "```output" in text:
        *_, printed = [None, *_OUTPUT.finditer(text)]
        if printed is not None:
            reading = read_whole(printed["value"])
            repeated = reading.value in {read_whole(word).value for word in sentence[:400].split()}
            if reading.status == "found" and (last.status == "none" or repeated):
                return Extraction.of(reading, "output", *printed.span("value"))
    return Extraction.of(last, "sentence", start + begin, start + stop)


def _is_closing(lower: str) -> bool:
    """Tell whether a sentence says nothing, or only something polite."""
    if _DIGIT.search(lower) is not None:
        return _REMARK.match(lower) is not None
    return _LETTER.search(lower) is None or any(
        pattern.match(lower) for pattern in (_CLOSER, _REMARK)
    )
