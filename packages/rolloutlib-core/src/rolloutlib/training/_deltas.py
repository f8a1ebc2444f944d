"""Prompts of several turns, made of the tokens that the model read and sampled before."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, TypeAlias, cast

from rolloutlib.rollouts._arrays import TokenIds
from rolloutlib.training._rewrites import ChatRewrite, Difference, RewriteCause, compare

Messages: TypeAlias = Sequence[Mapping[str, Any]]


class ChatTokenizer:
    """A chat template and a tokenizer, as three functions.

    With a tokenizer of Hugging Face's transformers:

        ChatTokenizer(
            partial(tokenizer.apply_chat_template, tokenize=False, tools=tools),
            partial(tokenizer.encode, add_special_tokens=False),
            tokenizer.decode,
            end_of_turn="<|im_end|>",
        )

    Args:
        render: Returns the text of a list of messages. It is called with the keyword
            `add_generation_prompt`, which says whether the text goes on to where the model's turn
            begins.
        encode: Returns the ids of a text: those of special tokens for their text, and no others
            before or after it.
        decode: Returns the text of ids, with that of special tokens.
        end_of_turn: The text of the token with which the template ends the model's turns, or of
            several such tokens.
        overrule: Which rewriting of earlier turns gives way to the tokens that the model knows:
            "nothing"; "whitespace" in the turn that was sampled last, that between the keys of a
            tool call for example; or "everything", if new messages are rendered alike in any
            conversation, though the template drops thinking or changes a date. Never a conversation
            whose messages changed.

    Raises:
        TypeError: A function cannot be called.
        ValueError: `encode` adds tokens, or an end of a turn is not one token; `overrule` is none of
            the three.
    """

    def __init__(
        self,
        render: Callable[..., Any],
        encode: Callable[[str], Sequence[int]],
        decode: Callable[[list[int]], str],
        *,
        end_of_turn: str | Sequence[str],
        overrule: Literal["nothing", "whitespace", "everything"] = "whitespace",
    ) -> None:
        for name, function in (("render", render), ("encode", encode), ("decode", decode)):
            if not callable(function):
                msg = f"{name} must be a function, got {function!r}"
                raise TypeError(msg)
        if overrule not in ("nothing", "whitespace", "everything"):
            msg = f"overrule must be 'nothing', 'whitespace' or 'everything', got {overrule!r}"
            raise ValueError(msg)
        self._render, self._encode, self.decode = render, encode, decode
        self.overrule = overrule
        if added := self.encode(""):
            msg = f"encode must add no tokens, got {added!r} for ''; pass add_special_tokens=False"
            raise ValueError(msg)
        self.ends: dict[str, int] = {}
        for end in [end_of_turn] if isinstance(end_of_turn, str) else end_of_turn:
            ids = self.encode(end)
            if len(ids) != 1:
                msg = f"end_of_turn must be the text of one token, but {end!r} is encoded as {ids!r}"
                raise ValueError(msg)
            self.ends[end] = ids[0]

    def encode(self, text: str) -> list[int]:
        """Return the ids of a text."""
        return to_ids(self._encode(text), "what encode returns")

    def render(self, messages: Messages, *, generate: bool) -> str:
        """Return the text of messages, with or without the beginning of the model's turn."""
        text = self._render([dict(message) for message in messages], add_generation_prompt=generate)
        if not isinstance(text, str):
            msg = f"render must return text, got {type(text).__name__}; pass tokenize=False"
            raise TypeError(msg)
        return text

    def check(self, messages: Messages) -> tuple[ChatRewrite, ...]:
        """Tell for which prompts of a conversation its earlier turns would be rewritten.

        For a look at a template before a run. The replies in it are taken to have been sampled as
        their content says, or as the template writes them if they call tools.

        Args:
            messages: A conversation like those of the run: with thinking, tool calls, and whitespace
                where the model puts it.

        Raises:
            ValueError: A message has an image or a sound.
        """
        chat, messages = ChatTokens(self), plain_messages(messages)
        end = next(iter(self.ends))
        for index, message in enumerate(messages):
            if index and message.get("role") == "assistant":
                chat.prompt(messages[:index])
                reply = f"{message['content']}{end}"
                if message.get("tool_calls"):
                    before = self.render(messages[:index], generate=True)
                    written = self.render(messages[: index + 1], generate=False)[len(before) :]
                    reply = written[: written.rfind(end)] + end
                chat.add(self.encode(reply))
        if messages and messages[-1].get("role") != "assistant":
            chat.prompt(messages)
        return chat.rewrites


class ChatTokens:
    """The exact tokens of one conversation.

    The first prompt is the whole conversation, rendered and encoded. Each later one is the prompt
    before it, the ids that were sampled, and the ids of what the template writes after them: the rest
    of the model's turn, the new messages, and the beginning of its next turn. That holds if rendering
    the longer conversation leaves what came before as it was, which is verified for each prompt, on
    the text: new tokens are encoded from the token at the end of the turn on, where no others merge
    with them. Otherwise the prompt is the whole conversation again, and `rewrites` tells why.

    A turn that was cut off is closed with the template's end of a turn, as part of the next prompt.

    Args:
        tokenizer: Renders and encodes the conversation.

    Attributes:
        rewrites: The prompts for which earlier turns were rewritten.
        last_rewrite: That of the last prompt, or None.
    """

    def __init__(self, tokenizer: ChatTokenizer) -> None:
        self.rewrites: tuple[ChatRewrite, ...] = ()
        self.last_rewrite: ChatRewrite | None = None
        self._tokenizer = tokenizer
        self._turn = -1
        self._messages: list[dict[str, Any]] = []
        self._text = ""
        self._ids: list[int] = []
        self._sampled: list[int] | None = None

    @property
    def reply(self) -> str | None:
        """The text of the ids that were added last, without the end of the turn."""
        return None if self._sampled is None else self._split(self._sampled)[0]

    def prompt(self, messages: Messages) -> list[int]:
        """Return the ids of a conversation, up to where the model's next turn begins.

        Args:
            messages: The whole conversation: the one of the last prompt, the model's reply, and new
                messages. A reply that calls tools may have no content, "" or None, alike. For the
                messages of the last prompt, while nothing was added, the ids are the same again.

        Raises:
            TypeError: A message is not a mapping, or the renderer returns no text.
            ValueError: A message has an image or a sound, which have no tokens here.
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
        if ids is None:
            ids = self._tokenizer.encode(text)
        self._messages, self._text, self._ids, self._sampled = messages, text, ids, None
        return list(ids)

    def add(self, sampled: Sequence[int]) -> None:
        """Take the ids that were sampled for the last prompt, the stop token included.

        Raises:
            TypeError: They are not integers in one dimension.
            ValueError: There is no prompt that they could be for.
        """
        if self._turn < 0 or self._sampled is not None:
            msg = "add() takes what was sampled for a prompt: call prompt() first, then add() once"
            raise ValueError(msg)
        self._sampled = to_ids(sampled, "sampled")

    def forget(self) -> None:
        """Note that tokens of earlier turns are not known, before the first prompt."""
        self._turn = 0
        self._sampled = []
        self._report("unknown", kept=False)

    def _extend(self, messages: list[dict[str, Any]], text: str) -> list[int] | None:
        """Return the ids so far and those of the new messages, or None if they do not go together."""
        if self._sampled is None:
            return self._report("conversation", detail="nothing was sampled for the prompt before")
        count = len(self._messages)
        if messages[:count] != self._messages:
            pairs = enumerate(zip(messages, self._messages, strict=False))
            index = next((at for at, (new, old) in pairs if new != old), len(messages))
            return self._report("conversation", detail=f"message {index} is not what it was")
        if len(messages) == count or messages[count].get("role") != "assistant":
            return self._report("conversation", detail=f"message {count} is no reply of the model")
        through = self._tokenizer.render(messages[: count + 1], generate=False)
        difference = compare(self._text, through, whole=False) or compare(through, text, whole=False)
        if difference is None:
            return self._append(through[len(self._text) :], text[len(through) :])
        tail = self._tail(messages, text) if self._tokenizer.overrule == "everything" else None
        self._report_difference(difference, kept=tail is not None)
        return None if tail is None else self._joined(tail)

    def _append(self, written: str, rest: str) -> list[int] | None:
        """Return the ids so far and those of what follows the last turn, as the template writes it."""
        body, end, after = split_turn(written, self._tokenizer.ends)
        sampled, own_end = self._split(self._sampled or [])
        if not end:
            return self._report("end_of_turn", detail=f"the template ends the turn {body!r} with none")
        if own_end and own_end != end:
            return self._report("end_of_turn", detail=f"{own_end!r} sampled, {end!r} in the template")
        difference = compare(sampled, body, offset=len(self._text), whole=True)
        if difference is not None:
            whitespace = difference.cause == "whitespace"
            overruled = ("whitespace", "everything") if whitespace else ("everything",)
            kept = self._tokenizer.overrule in overruled
            self._report_difference(difference, kept=kept)
            if not kept:
                return None
        return self._joined(end + after + rest)

    def _tail(self, messages: list[dict[str, Any]], text: str) -> str | None:
        """Return what follows the last reply, rendered after a short conversation instead of this.

        None if it depends on the conversation, as far as that can be seen.
        """
        count = len(self._messages)
        reply = {"role": "assistant", "content": "y"}
        if "tool_calls" in messages[count]:  # results of tools may be refused without the calls
            reply["tool_calls"] = messages[count]["tool_calls"]
        base = [{"role": "user", "content": "x"}, reply]
        try:
            short = self._tokenizer.render(base, generate=False)
            longer = self._tokenizer.render([*base, *messages[count + 1 :]], generate=True)
        except Exception:  # templates raise what they like for a conversation that they refuse
            return None
        _, end, after = split_turn(short, self._tokenizer.ends)
        tail = end + after + longer[len(short) :]
        return tail if end and longer.startswith(short) and text.endswith(tail) else None

    def _joined(self, tail: str) -> list[int]:
        """Return the ids so far with those of a text that begins with the end of the turn."""
        sampled = self._sampled or []
        closed = bool(self._split(sampled)[1])
        ids = self._tokenizer.encode(tail)
        if ids[:1] != [self._tokenizer.ends[next(end for end in self._tokenizer.ends if tail.startswith(end))]]:
            msg = f"encode must begin {tail[:20]!r} with the end of the turn, got {ids[:3]!r}"
            raise ValueError(msg)
        return self._ids + sampled + (ids[1:] if closed else ids)

    def _split(self, sampled: list[int]) -> tuple[str, str]:
        """Return the text that was sampled, and that of the token which ended the turn, if any did."""
        for end, token in self._tokenizer.ends.items():
            if sampled[-1:] == [token]:
                return self._tokenizer.decode(sampled[:-1]), end
        return self._tokenizer.decode(sampled), ""

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
