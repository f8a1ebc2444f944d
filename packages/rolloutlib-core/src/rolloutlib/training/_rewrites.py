"""Where a chat template writes the turns so far otherwise than the model has read or sampled them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal, TypeAlias

RewriteCause: TypeAlias = Literal[
    "conversation", "end_of_turn", "thinking", "whitespace", "date", "text", "unknown"
]
"""What happened to the turns so far.

- "conversation": the messages before the new ones are not those of the last prompt, or no reply of the
  model follows them.
- "end_of_turn": the model ended its turn with another token than the template.
- "thinking": thinking is left out.
- "whitespace": nothing but whitespace differs.
- "date": a number differs though the messages do not: a date or a time.
- "text": other text differs.
- "unknown": the tokens of the turns so far are not known.
"""

_EXCERPT = 40
_THINKING = re.compile(r"</think(?:ing)?>")
_WHAT = {
    "conversation": "the conversation changed",
    "end_of_turn": "the turn ends with another token",
    "thinking": "thinking was dropped",
    "whitespace": "whitespace was rewritten",
    "date": "a date or another number changed",
    "text": "text was rewritten",
    "unknown": "the tokens of earlier turns are not known",
}


@dataclass(frozen=True, slots=True)
class ChatRewrite:
    """One prompt for which the turns so far were not rendered as the model knows them.

    Attributes:
        turn: Which prompt of the conversation it was, from 0.
        cause: What happened.
        kept: Whether the exact tokens were kept and extended all the same. If not, the prompt is the
            whole conversation, rendered and encoded anew.
        position: The first character that differs, counted from the beginning of the rendered
            conversation; or None where no two texts were compared.
        expected: What follows there in the text that the model knows, at most 40 characters.
        found: What follows there now.
        detail: What else there is to know.
    """

    turn: int
    cause: RewriteCause
    kept: bool
    position: int | None = None
    expected: str = ""
    found: str = ""
    detail: str = ""

    def __str__(self) -> str:
        text = f"prompt {self.turn}: {_WHAT[self.cause]}"
        if self.position is not None:
            text += f" at character {self.position}: {self.expected!r} became {self.found!r}"
        if self.detail:
            text += f" ({self.detail})"
        return text + ("; the tokens were kept" if self.kept else "; rendered anew")


@dataclass(frozen=True, slots=True)
class Difference:
    """The first place where two texts differ, and in what they do."""

    cause: RewriteCause
    position: int
    expected: str
    found: str


def compare(expected: str, found: str, *, offset: int = 0, whole: bool) -> Difference | None:
    """Tell how a text differs from the one expected, or None if it does not.

    Args:
        expected: The text that the model knows.
        found: The text that takes its place.
        offset: What to add to the position.
        whole: Whether the texts must be equal; else `found` may go on.
    """
    if found == expected if whole else found.startswith(expected):
        return None
    position = _common_length(expected, found)
    return Difference(
        _read_cause(expected, found, position, whole=whole),
        offset + position,
        expected[position : position + _EXCERPT],
        found[position : position + _EXCERPT],
    )


def _read_cause(expected: str, found: str, position: int, *, whole: bool) -> RewriteCause:
    one, two = "".join(expected.split()), "".join(found.split())
    if one == two if whole else two.startswith(one):
        return "whitespace"
    known = expected[position:]
    there = found[position:] if whole else found[position : position + len(known)]
    if len(_THINKING.findall(there)) < len(_THINKING.findall(known)):
        return "thinking"
    words = [_word(text, position) for text in (expected, found)]
    if not whole and all(any(map(str.isdigit, word)) for word in words):
        return "date"
    return "text"


def _common_length(one: str, two: str) -> int:
    low, high = 0, min(len(one), len(two))
    while low < high:  # by halves, since comparing slices costs far less than comparing characters
        middle = (low + high + 1) // 2
        if one[low:middle] == two[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _word(text: str, position: int) -> str:
    """Return the word around a position."""
    start = position
    while start and not text[start - 1].isspace():
        start -= 1
    return text[start:].split(maxsplit=1)[0] if text[start:].strip() else ""
