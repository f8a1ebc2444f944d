"""The part of a model's output that is its answer: no thinking, no turns that it invented."""

from __future__ import annotations

import re
from typing import cast

from rolloutlib.answers._characters import look_alikes, lower_case

__all__ = ["THINKING", "visible_text"]

# What closes thinking is in a group. These and the turns are searched in lower case.
THINKING = re.compile(
    r"<(?P<end>/)?(?:seed:)?(?:think|thinking|thought|thoughts|reasoning|reason|reflection|scratchpad"
    r"|analysis|inner_monologue)(?:\s[^<>]{0,40}+)?>"
    r"|<\|(?:begin_of_thought|(?P<end_of>end_of_thought))\|>"
    r"|<\|channel\|>\s?(?:analysis|commentary|(?P<final>final))[^<]{0,40}+<\|message\|>"
    r"|\[(?P<end_bracket>/)?think\]"
    r"|◁(?P<end_triangle>/)?think▷"
)
_THOUGHTS = (
    "think", "thought", "reason", "reflection", "scratchpad", "analysis", "monologue", "commentary",
    "final<|",
)  # fmt: skip

# What stands for code blocks and code spans while the rest is read: full-width letters, none of which
# is left when look-alikes are plain.
_BLOCK, _SPAN = "\uff42", "\uff53"

# Blocks, spans of one line, and comments that begin a line: what begins first holds the others. Other
# comments stand in a paragraph, which a block ends.
_CODE = re.compile(
    r"^[ ]{0,3}(?P<marks>(?P<mark>`){3,}(?=[^`\n]*$)|~{3,})"
    r".*?(?:^[ ]{0,3}(?P=marks)(?(mark)`*|~*)[ \t]*$|\Z)"
    r"|^[ \t]*<!--.*?(?:-->|\Z)|(?<!`)`[^`\n]+`(?!`)",
    re.DOTALL | re.MULTILINE,
)
_MASKED = re.compile(f"[{_BLOCK}{_SPAN}]+")

# A comment without an end hides the rest if it begins a line, and is text if not (CommonMark 0.31, 4.6).
# All that follow one have no end either.
_STRUCK = (
    r"~~(?=\S)[^~\n]+~~|<(?P<tag>del|s|strike)>[^<]*</(?P=tag)>"
    r"|\\(?:sout|cancel|xcancel|bcancel|st)\s?\{[^{}\n]*\}"
)
_HIDDEN = re.compile(rf"<!--[^{_BLOCK}]*?(?:-->|(?P<unended>\Z|(?={_BLOCK})))|{_STRUCK}", re.DOTALL)
_AFTER_UNENDED = re.compile(rf"(?<=\n)[ \t]*<!--.*|{_STRUCK}", re.DOTALL)
_HIDES = ("<!--", "~~", "<del>", "<s>", "<strike>", "cancel", "\\sout", "\\st")

_TOKEN = re.compile(
    r"<\|(?:im_end|im_start|endoftext|end_of_text|eot_id|eom_id|end|return|user|start_header_id"
    r"|end\u2581of\u2581sentence)\|>"
    r"|</s>|<end_of_turn>|<start_of_turn>|\[/?inst\]"
)
_TOKENS = ("<|", "</s>", "_of_turn>", "inst]")
_NAMES = (
    r"question|problem|exercise|instruction|student|task|example|prompt|input|q"
    r"|pregunta|problema|frage|aufgabe|domanda|pergunta|问题|問題|вопрос|задача|문제|질문"
)
_TURN = re.compile(
    r"\n(?!\n)[ \t*#\[<>]{0,8}+(?:"
    rf"(?:(?P<person>human|user)|{_NAMES})[ \t]{{0,3}}+[0-9]{{0,4}}+[ \t*\]#>]{{0,4}}+(?:[:.]|(?<=[0-9*\]#>])\n)"
    r"|(?:next|another|new|similar|follow-up|bonus)[ ](?:question|problem|exercise)\b"
    r"|you[ ]are[ ]an[ ]ai[ ]assistant)"
    r"|\n\#{1,6}[ ](?:instruction|question|problem|exercise)\b"
)

# An explicit answer. Without one, "Question:" may be the model telling the problem again, unless numbers
# stand in the lines before and after it.
_EXPLICIT = re.compile(
    r"####|\\(?:boxed|fbox|framebox)|answer|\na:|\Aa:|答|antwort|respuesta|r[eé]ponse|ответ|jibu|정답"
)
_WORD = re.compile(r"\w")
_DIGIT = re.compile("[0-9]")
_LINE = 1000  # of what is read of a line


def visible_text(text: str, *, code: bool = False) -> str | None:
    """Return the text with look-alike characters made plain and what is not the answer blanked out.

    What is no answer is thinking, turns that the model invented, comments and what is struck out. A
    closing tag without an opening one means that the chat template opened the thinking, so that all
    before it is thinking. Positions in the result are positions in the text.

    Args:
        text: What the model wrote.
        code: Whether fenced code blocks, and code spans of one line, are left as they are where they stand
            outside of thinking. They may have comments, tokens and questions of their own; unless code
            is looked for, an answer is read in them as anywhere else.

    Returns:
        Text of at most the same length, or None if thinking was begun and never ended.

    Raises:
        TypeError: It is not text.
    """
    if not isinstance(cast("object", text), str):
        msg = f"an answer must be text, got {text!r}"
        raise TypeError(msg)
    text = look_alikes(text)
    lower = lower_case(text)
    tagged = "<" in text or "[" in text or "◁" in text
    if tagged and any(word in lower for word in _THOUGHTS):
        answer = _without_thinking(text, lower)
        if answer is None:
            return None
        text = answer
        lower = lower_case(text)
    written, outside = text, lower
    if code:
        text = _CODE.sub(_mask, text)
        outside = lower_case(text)
    if ("<" in text or "~~" in text or "\\" in text) and any(mark in text for mark in _HIDES):
        text = _HIDDEN.sub(_hide, text)
    text = text[: _first_invented_turn(lower, outside)]
    return _MASKED.sub(lambda mask: written[slice(*mask.span())], text) if code else text


def _blank(length: int) -> str:
    """Return as much space; what follows begins a line."""
    return " " * (length - 1) + "\n" if length else ""


def _mask(code: re.Match[str]) -> str:
    if code["marks"]:
        return _BLOCK * len(code[0])
    return _SPAN * len(code[0]) if code[0].startswith("`") else code[0]


def _hide(hidden: re.Match[str]) -> str:
    if hidden["unended"] is not None:
        start = hidden.start()
        before = hidden.string[hidden.string.rfind("\n", 0, start) + 1 : start]
        if before.strip():
            return "<!--" + _AFTER_UNENDED.sub(_blanked, hidden[0][4:])
    return _blanked(hidden)


def _blanked(hidden: re.Match[str]) -> str:
    return " " * len(hidden[0])


def _without_thinking(text: str, lower: str) -> str | None:
    kept: list[str] = []
    begin, opened, dropped = 0, False, 0
    for tag in THINKING.finditer(lower):
        closes = tag.lastgroup is not None
        if closes and opened:
            kept.append(_blank(tag.end() - begin))
        elif closes:
            kept, dropped = [], tag.end()
        elif opened:
            continue
        else:
            kept.append(text[begin : tag.start()])
        opened = not closes
        begin = tag.start() if opened else tag.end()
    return None if opened else _blank(dropped) + "".join(kept) + text[begin:]


def _first_invented_turn(lower: str, outside: str) -> int:
    """Return where the first turn begins, outside of code, that follows what may be the answer."""
    word = _WORD.search(lower)
    if word is None:
        return len(lower)
    end = len(lower)
    if ("<" in outside or "[" in outside) and any(token in outside for token in _TOKENS):
        token = _TOKEN.search(outside, word.start())
        end = end if token is None else token.start()
    turn = _TURN.search(outside, word.end(), end)
    if turn is None or turn["person"]:
        return end if turn is None else turn.start()
    explicit = _EXPLICIT.search(lower, 0, end)
    answered = explicit is not None and explicit.end() <= turn.start()
    if not answered and not _asks_anew(lower, *turn.span()):
        turn = None if explicit is None else _TURN.search(outside, explicit.end(), end)
    return end if turn is None else turn.start()


def _asks_anew(lower: str, start: int, end: int) -> bool:
    """Tell whether numbers stand in the line before a question, as in an answer, and in its own."""
    last = len(lower[:start].rstrip())
    begin = max(lower.rfind("\n", 0, last) + 1, last - _LINE)
    asked = len(lower) - len(lower[end:].lstrip())
    stop = lower.find("\n", asked, asked + _LINE)
    stop = asked + _LINE if stop < 0 else stop
    return _DIGIT.search(lower, begin, last) is not None and (
        _DIGIT.search(lower, asked, stop) is not None
    )
