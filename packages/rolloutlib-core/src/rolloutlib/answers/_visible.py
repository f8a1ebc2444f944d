"""The part of a model's output that is its answer: no thinking, no turns that it invented."""

from __future__ import annotations

import re
from typing import cast

__all__ = ["SAME", "visible_text"]

# Characters that models write for ASCII ones. Each maps to one character, so positions stay true.
SAME = str.maketrans(
    {
        **{chr(0xFF01 + i): chr(0x21 + i) for i in range(94)},  # full-width forms
        "\u2212": "-",  # minus sign
        "\u2010": "-",
        "\u2011": "-",
        "\u2013": "-",  # en dash, written for a minus and in ranges
        "\u00a0": " ",
        "\u2009": " ",
        "\u202f": " ",
        "\u3000": " ",
        "\u2019": "'",
        "\u3002": ".",
        "\r": "\n",
    }
)

_THINKING = re.compile(r"<(/?)(?:think|thinking|thought|reasoning)>", re.IGNORECASE)

_TURN = re.compile(
    r"<\|(?:im_end|im_start|endoftext|end_of_text|eot_id|eom_id|end|user|start_header_id)\|>"
    r"|</s>|<end_of_turn>"
    r"|(?m:^[ \t*#]{0,6}(?:Question|Problem|Q|Human|User|Exercise)[ \t]{0,3}[0-9]{0,4}\**[:.])"
)


# An explicit answer. Without one, "Question:" may be the model telling the problem again.
_EXPLICIT = re.compile(r"####|\\(?:boxed|fbox|framebox)|answer|^A:", re.IGNORECASE | re.MULTILINE)


def visible_text(text: str) -> str | None:
    """Return the text with look-alike characters made plain and what is not the answer blanked out.

    Positions in the result are positions in the text. A closing tag without an opening one means
    that the chat template opened the thinking, so that all before it is thinking.

    Returns:
        Text of at most the same length, or None if thinking was begun and never ended.

    Raises:
        TypeError: It is not text.
    """
    if not isinstance(cast("object", text), str):
        msg = f"an answer must be text, got {text!r}"
        raise TypeError(msg)
    text = text.translate(SAME)
    if "<" in text:
        answer = _without_thinking(text)
        if answer is None:
            return None
        text = answer
    return text[: _first_invented_turn(text)]


def _without_thinking(text: str) -> str | None:
    kept: list[str] = []
    begin, opened, dropped = 0, False, 0
    for tag in _THINKING.finditer(text):
        if tag[1] and opened:
            kept.append("\n" * (tag.end() - begin))
        elif tag[1]:
            kept, dropped = [], tag.end()
        elif opened:
            continue
        else:
            kept.append(text[begin : tag.start()])
        opened = not tag[1]
        begin = tag.start() if opened else tag.end()
    return None if opened else "\n" * dropped + "".join(kept) + text[begin:]


def _first_invented_turn(text: str) -> int:
    """Return where the first turn begins that follows what may be the answer."""
    digit = re.search("[0-9]", text)
    if digit is None:
        return len(text)
    explicit = _EXPLICIT.search(text)
    for turn in _TURN.finditer(text, digit.start()):
        if turn[0][0] == "<" or (explicit is not None and explicit.start() < turn.start()):
            return turn.start()
    return len(text)
