"""The options of a question, and which of them an answer names."""

from __future__ import annotations

import re
import unicodedata
from string import ascii_uppercase
from typing import Any, cast

from rolloutlib.graders._matches._parts import trim

_WHOLE = re.compile(r"[(\[]?(?P<letter>[A-Za-z])[)\]]?[.:]?")
_LEAD = re.compile(
    r"(?:(?:the|my|this|so|thus|hence|therefore|then|it|that|must|be|best|right|correct|final|most|likely"
    r"|option|choice|answer|letter|is|i\s(?:would\s)?(?:choose|pick|select|go\swith))\b[\s:,]*)*",
    re.IGNORECASE,
)
_LABEL = re.compile(
    r"(?<![\w\u00b0#])(?:[(\[](?P<closed>[A-Za-z])[)\]]|(?P<half>[A-Za-z])\)|(?P<bare>[A-Z])(?!\+\+|[#^=]))(?![\w'])"
)
_WORD = re.compile(
    r"[AI]\s+(?!(?:or|and|nor|to|but|vs|versus|is|are|because|since|as|with|plus)\b)[a-z]"
)
_MARKS = re.compile(
    r"\\(?:text(?:bf|it|rm|tt)?|math(?:rm|bf)|mbox)(?![a-zA-Z])|\\[()\[\]]|\\(?=\s)|[*_`$\"{}]"
)
_VERB = re.compile(r"\s*(?:is|are|was|isn't|can|can't|cannot|could|would|must|seems)\b")
_REASON = re.compile(r"[,;]?\s+(?:because|since)\b[^.!?\n]*")
_NEGATION = re.compile(
    r"\b(?:not|neither|nor|never|cannot|except|wrong|incorrect|false|doubt|unlikely|excluded|eliminated"
    r"|(?:anything|all)\sbut|(?:rather|other)\sthan|instead\sof|ruled?\sout)\b|n't\b",
    re.IGNORECASE,
)
_ITEM = re.compile(r"[\s*-]{0,8}[(\[]?(?P<letter>[A-Za-z])(?:[)\].:]|\s*\Z)")
_MAX_LENGTH = 2000  # of an answer, beside the options' texts


class Options:
    """The options of a question.

    Args:
        choices: How many there are, or their texts.

    Raises:
        TypeError: It is neither a number nor texts.
        ValueError: There are fewer than 2 or more than 26, one is empty, or two have the same text.
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
        self._texts = dict(zip(map(_plain, texts), self._letters, strict=False))
        if len(self._texts) < len(texts) or "" in self._texts:
            msg = f"the texts of the choices must differ and not be empty, got {choices!r}"
            raise ValueError(msg)
        shown = [_shown(text) for text in texts]
        self._shown = {
            text: letter
            for text, letter in zip(shown, self._letters, strict=False)
            if text and shown.count(text) == 1
        }
        self._max_length = _MAX_LENGTH + 2 * max(map(len, texts), default=0)

    def __str__(self) -> str:
        texts = [f"{letter} ({text})" for text, letter in self._texts.items()]
        return ", ".join(texts or self._letters)

    def letter(self, text: str) -> str | None:
        """Return the letter of a text that is nothing but an option's letter or text."""
        whole = _WHOLE.fullmatch(trim(unicodedata.normalize("NFKC", text)))
        if whole is not None and whole["letter"].upper() in self._letters:
            return whole["letter"].upper()
        return self._texts.get(_plain(text)) or self._shown.get(_shown(text))

    def choose(self, answer: str) -> tuple[str, str | None]:
        """Return the status of an answer and, if it is "found", the letter of the option it names."""
        if len(answer) > self._max_length:
            return "ambiguous", None
        letter = self.letter(answer)
        if letter is not None:
            return "found", letter
        text = unicodedata.normalize("NFKC", trim(answer)).replace("\u2019", "'")
        text = _MARKS.sub("", text)
        label = next(filter(self._is_option, _LABEL.finditer(text)), None)
        if label is None:
            return "none", None
        letter, rest = _letter(label), text[label.end() :]
        lead = _LEAD.match(text)
        leads = lead is not None and lead.end() == label.start()
        if leads:
            content = self._content(rest) or self._content(_REASON.sub("", rest))
            if content is not None:  # "B. Rome", "(B) Rome", "Option B, Rome", "B (Rome)"
                return ("found", letter) if content == letter else ("ambiguous", None)
            rest = _REASON.sub("", rest)
            text = text[: label.end()] + rest
        told = leads and (label["bare"] is None or rest[:1] in ".:)") and not _VERB.match(rest)
        named = {_letter(other) for other in _LABEL.finditer(text) if self._is_option(other)}
        if not told:
            named |= self._named(text, letter)
        if len(named) > 1 or (not told and _NEGATION.search(text)):
            return "ambiguous", None
        if leads or label["bare"] is None or label.end() == len(text):
            return "found", letter
        return "none", None

    def _content(self, rest: str) -> str | None:
        """Return the letter of the option whose text stands behind a letter."""
        rest = rest.lstrip(" .:,)-")
        inner = rest.rstrip(" .")
        inner = inner[1:-1] if inner.startswith("(") and inner.endswith(")") else inner
        return self._shown.get(_shown(rest)) or self._shown.get(_shown(inner))

    def _named(self, text: str, letter: str) -> set[str]:
        """Return the letters of the options whose texts stand in an answer, beside that of one."""
        text = _shown(text)
        for words, own in self._shown.items():
            if own == letter:
                text = text.replace(words, " ")
        return {
            other
            for words, other in self._shown.items()
            if words in text and re.search(rf"(?<!\w){re.escape(words)}(?!\w)", text)
        }

    def _is_option(self, label: re.Match[str]) -> bool:
        word = label["bare"] is not None and _WORD.match(label.string, label.start())
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


def _shown(text: str) -> str:
    """Return a text without the signs that only say how it looks."""
    return _plain(_MARKS.sub("", trim(text)))
