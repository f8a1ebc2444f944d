"""Prompts of several turns, made of the tokens that the model read and sampled before."""

from __future__ import annotations

import copy
from array import array
from collections.abc import Sequence
from typing import Any

from rolloutlib.training._chat_tokenizer import ChatTokenizer, Messages, plain_messages, to_ids
from rolloutlib.training._rewrites import ChatRewrite, Difference, RewriteCause, compare

_STAND_IN = "a-reply-of-2f7c"  # a text that no template or message has


class ChatTokens:
    """The exact tokens of one conversation.

    The first prompt is the whole conversation, rendered and encoded. Each later one is the prompt
    before it, the ids that were sampled, and the ids of what the template writes after them: the rest
    of the model's turn, the new messages, and the beginning of its next turn. This holds if rendering
    the longer conversation leaves what came before as it was, which is verified for each prompt, on
    the text. Otherwise the prompt is the whole conversation again, and `rewrites` tells why.

    A turn that was cut off is closed with the template's end of a turn, as part of the next prompt.

    Args:
        tokenizer: Renders and encodes the conversation.
        resumed: Whether the first prompt continues turns whose tokens are not known here, which is
            then reported.

    Attributes:
        rewrites: The prompts for which earlier turns were rewritten.
        last_rewrite: That of the last prompt, or None.
    """

    def __init__(self, tokenizer: ChatTokenizer, *, resumed: bool = False) -> None:
        self.rewrites: tuple[ChatRewrite, ...] = ()
        self.last_rewrite: ChatRewrite | None = None
        self._tokenizer = tokenizer
        self._resumed = resumed
        self._turn = -1
        self._messages: list[dict[str, Any]] = []
        self._text = ""
        self._ids = array(
            "q"
        )  # a fifth of what a list takes, for as long as the conversation is kept
        self._sampled: list[int] | None = None
        self._said: str | None = None

    @property
    def reply(self) -> str | None:
        """What was said last, without the end of the turn; None once it has been used."""
        if self._sampled is None or self._said is not None:
            return self._said
        return self._tokenizer.split_sampled(self._sampled)[0]

    def prompt(self, messages: Messages) -> list[int]:
        """Return the ids of a conversation, up to where the model's next turn begins.

        Args:
            messages: The whole conversation: the one of the last prompt, the model's reply, and new
                messages. A reply that calls tools may have no content, "" or None, alike. For the
                messages of the last prompt, while nothing was added, the ids are the same again.

        Raises:
            TypeError: A message is not a mapping, or the renderer returns no text.
            ValueError: A message has an image or a sound, whose tokens are not known here.
        """
        messages = plain_messages(messages)
        if self._turn >= 0 and self._sampled is None and messages == self._messages:
            return list(self._ids)
        text = self._tokenizer.render(messages, generate=True)
        ids = None
        self._turn += 1
        self.last_rewrite = None
        if self._turn:
            ids = self._extend(messages, text)
        elif self._resumed:
            self._report("unknown")
        if ids is None:
            ids = self._tokenizer.encode(text)
        self._messages, self._text, self._ids = messages, text, array("q", ids)
        self._sampled = self._said = None
        return list(ids)

    def add(self, sampled: Sequence[int], *, said: str | None = None) -> None:
        """Take the ids that were sampled for the last prompt, the stop token included.

        Args:
            sampled: The ids.
            said: The content of the message that was made of them. A conversation that goes on with
                other content is a changed one: no `overrule` keeps its tokens, but for whitespace.

        Raises:
            TypeError: They are not integers in one dimension.
            ValueError: There is no prompt that they could be for.
        """
        if self._turn < 0 or self._sampled is not None:
            msg = "add() takes what was sampled for a prompt: call prompt() first, then add() once"
            raise ValueError(msg)
        self._sampled, self._said = to_ids(sampled, "sampled"), said

    def again(self) -> ChatTokens:
        """Return the tokens of the same conversation up to the last prompt, to sample for it anew."""
        other = copy.copy(self)
        other._sampled = other._said = None
        return other

    def _extend(self, messages: list[dict[str, Any]], text: str) -> list[int] | None:
        """Return the ids so far with those of the new messages, or None where that is not valid."""
        if self._sampled is None:
            return self._report("conversation", detail="nothing was sampled for the prompt before")
        count = len(self._messages)
        for index, message in enumerate(self._messages):
            if messages[index : index + 1] != [message]:
                return self._report("conversation", detail=f"message {index} is not what it was")
        if len(messages) == count or messages[count].get("role") != "assistant":
            return self._report("conversation", detail=f"message {count} is no reply of the model")
        shown = messages[count].get("content")
        if (
            self._said is not None
            and isinstance(shown, str)
            and shown.split() != self._said.split()
        ):
            return self._report("conversation", detail=f"message {count} is not what was said")
        difference = compare(self._text, text, whole=False)
        if difference is None:
            return self._append(messages, text)
        return self._overruled(difference, messages, text)

    def _append(self, messages: list[dict[str, Any]], text: str) -> list[int] | None:
        """Return the ids so far with those of what follows the turn, which the text has after them."""
        reply, own_end = self._tokenizer.split_sampled(self._sampled or [])
        body, end, rest = self._tokenizer.split_written(text[len(self._text) :], reply)
        if not end:
            return self._report("end_of_turn", detail=f"the template writes none after {body!r}")
        difference = compare(reply, body, offset=len(self._text), whole=True)
        if difference is not None and difference.cause != "whitespace":
            return self._overruled(difference, messages, text)
        overrule = self._tokenizer.overrule
        if own_end not in ("", end):
            kept = overrule == "everything"
            detail = f"{own_end!r} sampled, {end!r} in the template"
            self._report("end_of_turn", kept=kept, detail=detail)
            if not kept:
                return None
        elif difference is not None:
            self._report_difference(difference, kept=overrule != "nothing")
            if overrule == "nothing":
                return None
        return self._joined(end, rest)

    def _overruled(
        self, difference: Difference, messages: list[dict[str, Any]], text: str
    ) -> list[int] | None:
        """Return the ids so far with those of the new messages, if the text does not matter."""
        tail = None
        if self._tokenizer.overrule == "everything":
            tail = self._context_free_tail(messages, text)
        self._report_difference(difference, kept=tail is not None)
        return None if tail is None else self._joined(*tail)

    def _context_free_tail(
        self, messages: list[dict[str, Any]], text: str
    ) -> tuple[str, str] | None:
        """Return the end of the last reply and what follows, as rendered after a short conversation.

        None if it depends on the conversation, as far as can be seen.
        """
        count = len(self._messages)
        reply: dict[str, Any] = {"role": "assistant", "content": _STAND_IN}
        if calls := messages[count].get("tool_calls"):  # else a template may refuse their results
            reply["tool_calls"] = calls
        short = [{"role": "user", "content": "x"}, reply, *messages[count + 1 :]]
        try:
            written = self._tokenizer.render(short, generate=True)
        except Exception:  # templates raise what they like for a conversation that they refuse
            return None
        _, found, turn = written.partition(_STAND_IN)
        _, end, rest = self._tokenizer.split_written(turn, str(calls or ""))
        return (end, rest) if found and end and text.endswith(end + rest) else None

    def _joined(self, end: str, rest: str) -> list[int]:
        sampled = self._sampled or []
        closed = bool(self._tokenizer.split_sampled(sampled)[1])
        tail = self._tokenizer.encode_tail(end, rest, closed=closed)
        return [*self._ids, *sampled, *tail]

    def _report(self, cause: RewriteCause, *, kept: bool = False, **fields: Any) -> None:
        self.last_rewrite = ChatRewrite(self._turn, cause, kept, **fields)
        self.rewrites += (self.last_rewrite,)

    def _report_difference(self, difference: Difference, *, kept: bool) -> None:
        self._report(
            difference.cause,
            kept=kept,
            position=difference.position,
            expected=difference.expected,
            found=difference.found,
        )


def find_rewrites(tokenizer: ChatTokenizer, messages: Messages) -> tuple[ChatRewrite, ...]:
    """Tell for which prompts of a conversation a template rewrites the turns before.

    For a look at a template before a run. Replies are taken to have been sampled as their content
    says, or as the template writes them if they call tools or have thinking beside their content.

    Args:
        tokenizer: The template.
        messages: A conversation like those of the run: with thinking, tool calls, and whitespace
            where the model puts it.

    Raises:
        TypeError: A message is not a mapping.
        ValueError: A message has an image or a sound.
    """
    chat, messages = ChatTokens(tokenizer), plain_messages(messages)
    for index, message in enumerate(messages):
        if index and message.get("role") == "assistant":
            chat.prompt(messages[:index])
            before = tokenizer.render(messages[:index], generate=True)
            through = tokenizer.render(messages[: index + 1], generate=False)
            difference = compare(before, through, whole=False)
            start = len(before) if difference is None else difference.position
            body, end, _ = tokenizer.split_written(through[start:], str(message))
            content = message.get("content")
            if isinstance(content, str) and message.keys() <= {"role", "content"}:
                body = content
            chat.add(tokenizer.encode(body + end))
    if messages and messages[-1].get("role") != "assistant":
        chat.prompt(messages)
    return chat.rewrites
