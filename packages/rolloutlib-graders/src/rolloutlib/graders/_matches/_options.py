"""The options of a question, and which of them an answer names."""

from __future__ import annotations

import re
import unicodedata
from string import ascii_uppercase
from typing import Any, cast

from rolloutlib.graders._matches._parts import trim

_WHOLE = re.compile(r"[(\[]?(?P<letter>[A-Za-z])[)\]]?[.:]?")
_LEAD = re.compile(r"(?:(?:the|option|choice|answer|letter|is)\b[\s:]*){0,4}", re.IGNORECASE)
_LABEL = re.compile(
    r"(?<!\w)(?:[(\[](?P<closed>[A-Za-z])[)\]]|(?P<half>[A-Za-z])\)|(?P<bare>[A-Z]))(?![\w'])"
)
_WORD = re.compile(
    r"[AI]\s+(?!(?:or|and|nor|to|but|vs|versus|is|are|because|since|as|with|plus)\b)[a-z]"
)
_NEGATION = re.compile(r"\b(?:not|neither|nor|never|except|wrong|incorrect)\b|n't\b", re.IGNORECASE)
_ITEM = re.compile(r"[\s*-]{0,8}[(\[]?(?P<letter>[A-Za-z])[)\].:]")
_MAX_LENGTH = 2000  # of an answer; the longest option is shorter


class Options:
    """The options of a question.

    Args:
        choices: How many there are, or their texts.

    Raises:
        TypeError: It is neither a number nor texts.
        ValueError: There are fewer than 2 or more than 26, or two have the same text.
    """

    def __init__(self, choices: object) -> None:
        texts: list[Any] = []
        count = choices
        if isinstance(choices, (list, tuple)):
            texts = list(cast("list[Any]", choices))
            count = len(texts)
        if not isinstance(count, int) or not all(isinstance(text, str) for text in texts):
            msg = f"choices must be a number or a list of the options' texts, got {choices!r}"
            raise TypeError(msg)
        if not 2 <= count <= len(ascii_uppercase):
            msg = f"there must be from 2 to {len(ascii_uppercase)} choices, got {choices!r}"
            raise ValueError(msg)
        self._letters = ascii_uppercase[:count]
        self._texts = {
            _plain(text): letter for text, letter in zip(texts, self._letters, strict=False)
        }
        if len(self._texts) < len(texts):
            msg = f"the texts of the choices must differ, got {choices!r}"
            raise ValueError(msg)

    def __str__(self) -> str:
        texts = [f"{letter} ({text})" for text, letter in self._texts.items()]
        return ", ".join(texts or self._letters)

    def letter(self, text: str) -> str | None:
        """Return the letter of a text that is nothing but an option's letter or text."""
        text = trim(unicodedata.normalize("NFKC", text))
        whole = _WHOLE.fullmatch(text)
        if whole is not None and whole["letter"].upper() in self._letters:
            return whole["letter"].upper()
        return self._texts.get(_plain(text))

    def choose(self, answer: str) -> tuple[str, str | None]:
        """Return the status of an answer and, if it is "found", the letter of the option it names."""
        if len(answer) > _MAX_LENGTH:
            return "ambiguous", None
        text = trim(unicodedata.normalize("NFKC", answer)).replace("\u2019", "'")
        letter = self.letter(text)
        if letter is not None:
            return "found", letter
        labels = [label for label in _LABEL.finditer(text) if self._is_option(label, text)]
        named = {_letter(label) for label in labels}
        if not named:
            return "none", None
        [label, *_], rest = labels, text[labels[0].end() :]
        leads = label.start() == cast("re.Match[str]", _LEAD.match(text)).end()
        told = leads and (label["bare"] is None or rest[:1] in ".:)")  # "B. Rome", "(B) Rome"
        content = _plain(rest.lstrip(" .:)-"))
        if told and content in self._texts:
            named.add(self._texts[content])
        elif not told:
            named |= {letter for words, letter in self._texts.items() if words in _plain(text)}
        if len(named) > 1 or (not told and _NEGATION.search(text)):
            return "ambiguous", None
        if leads or label["bare"] is None or label.end() == len(text):
            return "found", _letter(label)
        return "none", None

    def _is_option(self, label: re.Match[str], text: str) -> bool:
        word = label["bare"] is not None and _WORD.match(text, label.start())
        return not word and _letter(label) in self._letters


def is_listed(text: str, start: int, end: int) -> bool:
    """Tell whether an answer on a line of its own is an item of a list of options."""
    above = _ITEM.match(text[:start].rstrip().rpartition("\n")[2])
    item = _ITEM.match(text[start:end])
    return above is not None and item is not None and above["letter"] != item["letter"]


def _letter(label: re.Match[str]) -> str:
    return label[label.lastgroup or 0].upper()


def _plain(text: str) -> str:
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split()).rstrip(".")
