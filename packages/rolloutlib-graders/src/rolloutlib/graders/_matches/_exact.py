"""Answers that are right as they are written."""

from __future__ import annotations

import re
import unicodedata

from rolloutlib.graders._matches._parts import Part, check_part, read_part, trim
from rolloutlib.graders._matches._references import Match, Reference, match_score, read_references
from rolloutlib.scores import Score

_ARTICLES = re.compile(r"\b(?:a|an|the)\b", re.IGNORECASE)
_SIGNS = "*_`\"':>"


class ExactMatch(Match[tuple[str, ...]]):
    r"""Accepts an answer that is the same text as a reference.

    Both are compared in Unicode's form NFC, with each run of white space as one space and none around
    them. Of an answer, and of its references, what surrounds it is dropped: a full stop, quotation
    marks, TeX and Markdown, as in `**Paris.**` or `\text{Paris}`. Nothing else changes unless an
    option says so; options apply to both sides, in the order of the arguments.

    Args:
        on: What is compared: "answer", the final answer; "visible", all but the thinking; "all".
        ignore_case: Compare by Unicode's case folding.
        ignore_punctuation: Drop all characters that Unicode calls punctuation; joined words stay
            joined, and -5 reads as 5, so this is for words.
        ignore_articles: Drop the words "a", "an" and "the", as SQuAD's metric does.

    Raises:
        ValueError: `on` names no part, or (when grading) the options leave nothing of a reference.
    """

    _options = ("on", "ignore_case", "ignore_punctuation", "ignore_articles")

    def __init__(
        self,
        *,
        on: Part = "answer",
        ignore_case: bool = False,
        ignore_punctuation: bool = False,
        ignore_articles: bool = False,
    ) -> None:
        self._on: Part = check_part(on)
        self._ignore_case = ignore_case
        self._ignore_punctuation = ignore_punctuation
        self._ignore_articles = ignore_articles

    def _golds(self, reference: Reference) -> tuple[str, ...]:
        references = read_references(reference)
        trimmed = map(trim, references) if self._on == "answer" else references
        golds = tuple(map(self._normalized, trimmed))
        if "" in golds:
            msg = f"{self} leaves nothing of the reference {references[golds.index('')]!r}"
            raise ValueError(msg)
        return golds

    def _grade(self, text: str, golds: tuple[str, ...]) -> Score:
        found, part = read_part(text, self._on)
        rule = found.rule if self._on == "answer" else self._on
        if found.status != "found":
            return match_score(found, rule=rule)
        answers = {part}
        if self._on == "answer" and found.span is not None:
            answers.add(trim(_with_signs(text, *found.span)))
        normalized = {self._normalized(answer) for answer in answers}
        places = (place for place, gold in enumerate(golds) if gold in normalized)
        return match_score(found, next(places, None), rule=rule)

    def _normalized(self, text: str) -> str:
        text = unicodedata.normalize("NFC", text)
        if self._ignore_case:
            text = unicodedata.normalize("NFC", text.casefold())
        if self._ignore_punctuation:
            marks = [char for char in set(text) if unicodedata.category(char)[0] == "P"]
            text = text.translate(dict.fromkeys(map(ord, marks)))
        if self._ignore_articles:
            text = _ARTICLES.sub(" ", text)
        return " ".join(text.split())


def _with_signs(text: str, start: int, end: int) -> str:
    """Return an answer with the signs at its edges, as in `__init__`, which may only be emphasis."""
    while start > 0 and text[start - 1] in _SIGNS:
        start -= 1
    while end < len(text) and text[end] in _SIGNS:
        end += 1
    return text[start:end]
