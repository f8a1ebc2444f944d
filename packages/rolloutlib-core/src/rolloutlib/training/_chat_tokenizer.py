"""A chat template and a tokenizer, as the functions that prompts need of them."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, TypeAlias, cast

from rolloutlib.rollouts._arrays import TokenIds

Messages: TypeAlias = Sequence[Mapping[str, Any]]

Overrule: TypeAlias = Literal["nothing", "whitespace", "everything"]


class ChatTokenizer:
    """A chat template and a tokenizer.

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
            "nothing"; "whitespace" in the turn that was sampled last, in the JSON of a tool call for
            example; or "everything", as long as new messages are rendered alike after any
            conversation: what the template does to thinking or to a date then does not matter. Never
            a change of earlier messages themselves.

    Raises:
        TypeError: A function cannot be called, or `encode` returns no ids.
        ValueError: `encode` adds tokens, `decode` leaves special ones out, `end_of_turn` is none or
            not one token, or `overrule` is none of the three.
    """

    def __init__(
        self,
        render: Callable[..., Any],
        encode: Callable[[str], Sequence[int]],
        decode: Callable[[list[int]], str],
        *,
        end_of_turn: str | Sequence[str],
        overrule: Overrule = "whitespace",
    ) -> None:
        for name, function in (("render", render), ("encode", encode), ("decode", decode)):
            if not callable(function):
                msg = f"{name} must be a function, got {function!r}"
                raise TypeError(msg)
        if overrule not in ("nothing", "whitespace", "everything"):
            msg = f"overrule must be 'nothing', 'whitespace' or 'everything', got {overrule!r}"
            raise ValueError(msg)
        self.overrule: Overrule = overrule
        self._render, self._encode, self._decode = render, encode, decode
        if added := self.encode(""):
            msg = f"encode must add no tokens, got {added!r} for ''; pass add_special_tokens=False"
            raise ValueError(msg)
        self._ends: dict[str, int] = {}
        for end in [end_of_turn] if isinstance(end_of_turn, str) else end_of_turn:
            ids = self.encode(end)
            if len(ids) != 1:
                msg = (
                    f"end_of_turn must be the text of one token, but {end!r} is encoded as {ids!r}"
                )
                raise ValueError(msg)
            if (text := self._decode(ids)).strip() != end.strip():
                msg = f"decode must keep special tokens, but {end!r} comes back as {text!r}"
                raise ValueError(msg)
            self._ends[end] = ids[0]
        if not self._ends:
            msg = "end_of_turn must name a token, got none"
            raise ValueError(msg)
        self._end = re.compile("|".join(map(re.escape, self._ends)))

    def render(self, messages: Messages, *, generate: bool) -> str:
        """Return the text of messages, with or without the beginning of the model's turn.

        Raises:
            TypeError: The renderer does not return text.
        """
        text = self._render([dict(message) for message in messages], add_generation_prompt=generate)
        if not isinstance(text, str):
            msg = f"render must return text, got {type(text).__name__}; pass tokenize=False"
            raise TypeError(msg)
        return text

    def encode(self, text: str) -> list[int]:
        """Return the ids of a text.

        Raises:
            TypeError: The encoder returns something else.
        """
        return to_ids(self._encode(text), f"what encode returns for {text[:20]!r}")

    def split_sampled(self, ids: list[int]) -> tuple[str, str]:
        """Return the text of sampled ids, and that of the token which ended the turn, if one did."""
        for end, token in self._ends.items():
            if ids[-1:] == [token]:
                return self._decode(ids[:-1]), end
        return self._decode(ids), ""

    def split_written(self, text: str, reply: str) -> tuple[str, str, str]:
        """Return what a template writes of a turn, the token that ends it, and what follows.

        Args:
            text: The conversation from where the turn begins.
            reply: What was said in it, which may have the text of such a token in itself.
        """
        ends = list(self._end.finditer(text))
        count = len(self._end.findall(reply))
        if count >= len(ends):
            return text, "", ""
        return text[: ends[count].start()], ends[count][0], text[ends[count].end() :]

    def encode_tail(self, end: str, rest: str, *, closed: bool) -> list[int]:
        """Return the ids of what follows a turn: its end, unless it is closed already, and the rest.

        They are encoded from the end of the turn on, since no token reaches across a special one.

        Raises:
            ValueError: The end of the turn is not encoded as the token that it is alone.
        """
        ids = self.encode(end + rest)
        if ids[:1] != [self._ends[end]]:
            msg = f"encode must begin {end + rest[:20]!r} with {self._ends[end]}, got {ids[:3]!r}"
            raise ValueError(msg)
        return ids[1:] if closed else ids


def plain_messages(messages: Messages) -> list[dict[str, Any]]:
    """Return copies of messages in which content that is None, beside tool calls, is "".

    Raises:
        TypeError: A message is not a mapping.
        ValueError: A message has an image or a sound.
    """
    plain: list[dict[str, Any]] = []
    for index, message in enumerate(messages):
        if not isinstance(cast("object", message), Mapping):
            msg = f"a conversation is a list of messages, but message {index} is {message!r}"
            raise TypeError(msg)
        copy = dict(message)
        if copy.get("tool_calls") and copy.get("content") is None:
            copy["content"] = ""
        content: Any = copy.get("content")
        parts = cast("list[Any]", content) if isinstance(content, list) else []
        for part in parts:
            kind = part.get("type") if hasattr(part, "get") else part
            if kind != "text":
                msg = (
                    f"message {index} has a part of type {kind!r}, whose tokens are not those of a "
                    "text; render such conversations with the processor of the model"
                )
                raise ValueError(msg)
        plain.append(copy)
    return plain


def to_ids(values: Sequence[int], name: str) -> list[int]:
    """Return token ids as a list.

    Raises:
        TypeError: They are not integers in one dimension.
    """
    return TokenIds.of(values, name).numbers.tolist()
