"""Verdicts in words, of models too small for JSON."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from rolloutlib.graders._judges._replies import answer_start, refuse

_QUOTED = re.compile(
    r"\"[^\"\n]*\"|\u201c[^\u201c\u201d\n]*\u201d|```.*?```|`[^`\n]*`|(?m:^>[^\n]*)", re.DOTALL
)
_RATING = re.compile(r"\[\[\s*([0-9]{1,9}(?:\.[0-9]{1,9})?)\s*\]\]")
_QUESTION = re.compile(r"(?:\A|(?<=[.!?\uff1f\n]))[^.!?\uff1f\n]*[?\uff1f]")
# As in "not entirely correct" and "I cannot say yes".
_NEGATION = re.compile(
    r"(?:\b(?:not|never|neither|nor|hardly|cannot|without|far from|anything but)|n['\u2019]t)"
    r"(?:\s+[\w'\u2019]+){0,3}\s+$"
)
_NEGATION_LENGTH = 80


def read_word(reply: str, words: Mapping[str, float]) -> float:
    """Return the value of the one word of a reply that is a verdict.

    Case does not count, nor does what is quoted or asked.

    Raises:
        VerdictError: There is none, there are several of different values, or one is negated.
    """
    text = _QUESTION.sub(" ", _unquoted(reply)).replace("*", "").lower()
    values = {word.lower(): value for word, value in words.items()}
    pattern = "|".join([re.escape(word) for word in sorted(values, key=len, reverse=True)])
    found: dict[float, str] = {}
    for match in re.finditer(rf"(?<!\w)(?<!\w-)(?:{pattern})(?!\w)", text):
        before = text[max(0, match.start() - _NEGATION_LENGTH) : match.start()]
        if _NEGATION.search(before):
            refuse(f"{match[0]!r} is negated")
        found[values[match[0]]] = match[0]
    return _only(found, f"one of the words {', '.join(words)}")


def read_rating(reply: str) -> float | None:
    """Return the number that a reply has in double brackets, as in "Rating: [[5]]".

    The convention is that of Zheng et al., "Judging LLM-as-a-Judge with MT-Bench and Chatbot Arena"
    (2023), appendix A. What is quoted does not count.

    Raises:
        VerdictError: There are several of different values.
    """
    found = {float(match[1]): match[0] for match in _RATING.finditer(_unquoted(reply))}
    return _only(found, "one rating") if found else None


def check_words(words: Iterable[tuple[str, float]]) -> None:
    """Refuse words that are no verdicts.

    Raises:
        ValueError: There are fewer than two words, two that differ in case alone, or none that a
            reply can be found to say; or a value is not from 0 to 1.
    """
    pairs = list(words)
    if len({word.lower() for word, _ in pairs}) < max(len(pairs), 2):
        msg = f"words must be two or more, that differ not in case alone, got {dict(pairs)!r}"
        raise ValueError(msg)
    for word, value in pairs:
        if not word or word != word.strip() or not 0 <= value <= 1:
            msg = f"words must have values from 0 to 1, got {word!r}: {value!r}"
            raise ValueError(msg)


def _only(found: Mapping[float, str], what: str) -> float:
    if not found:
        refuse(f"there is not {what}")
    if len(found) > 1:
        refuse(f"there are several verdicts, {', '.join(map(repr, found.values()))}")
    return next(iter(found))


def _unquoted(reply: str) -> str:
    return _QUOTED.sub(" ", reply[answer_start(reply) :])
