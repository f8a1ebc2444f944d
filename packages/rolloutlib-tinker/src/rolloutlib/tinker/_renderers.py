"""From conversations to prompts, and from sampled tokens to messages."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, Protocol, Self, TypeAlias, cast

import numpy as np

from rolloutlib.tinker._images import (
    digest_of,
    encode_marked,
    image_urls,
    mark,
    mark_id,
    marked_text,
    read_image,
    to_chunks,
)
from rolloutlib.tinker._sdk import load
from rolloutlib.tinker._tool_calls import split_calls
from rolloutlib.types import Message, ToolCall, ToolDefinition

if TYPE_CHECKING:
    import tinker

Termination: TypeAlias = Literal["stop_sequence", "eos", "malformed", "length"]
"""How an answer ended.

- "stop_sequence": the model ended its turn, or one of the policy's own stops came.
- "eos": with the end of all text, as base models do.
- "malformed": the sampler stopped, but no such token stands at the end.
- "length": it was cut off.
"""


class Renderer(Protocol):
    """What turns conversations into prompts, and answers into messages: the renderers of tinker-cookbook.

    Those without `create_conversation_prefix_with_tools` cannot tell a model of tools.
    """

    def build_generation_prompt(self, messages: list[Any], /) -> tinker.ModelInput:
        """Return the prompt of a conversation, up to where the model's turn begins."""
        ...

    def get_stop_sequences(self) -> list[str] | list[int]:
        """Return what ends a turn: texts, or ids of tokens."""
        ...

    def parse_response(self, response: list[int], /) -> tuple[Any, Any]:
        """Return the message that was sampled, and how it ended.

        The latter is True or False, or an enumeration with a member `MALFORMED`.
        """
        ...


class ChatTemplateRenderer:
    """Renders conversations by the chat template of a tokenizer.

    Args:
        tokenizer: Of transformers, or with its methods `apply_chat_template`, `encode` and `decode`.
        tools: The definitions of tools that the template shows the model. A policy with `tools` gives
            its own.
        end_of_turn: The text of the token that ends the model's turns; found in the template by default.
        read_calls: Splits the text of an answer into what is said and the calls of tools. By default
            calls are JSON between `<tool_call>` and `</tool_call>`.
        image_token: The text that the template writes for an image, "<|image_pad|>", say, in whose
            place it is put. Without it, and where the template writes none, an image is put where the
            message has it.
        count_image_tokens: Returns how many tokens an image takes, from its bytes; it is told to
            Tinker, and counted for `max_context`.
        options: Further arguments of the template, such as `enable_thinking=False`, or a
            `chat_template` in place of the tokenizer's own.

    Raises:
        ValueError: There is no template, or no end of a turn is found in it.
    """

    def __init__(
        self,
        tokenizer: Any,
        *,
        tools: Iterable[ToolDefinition] | None = None,
        end_of_turn: str | None = None,
        read_calls: Callable[[str], tuple[str, list[ToolCall]]] = split_calls,
        image_token: str | None = None,
        count_image_tokens: Callable[[bytes], int] | None = None,
        **options: Any,
    ) -> None:
        if not (options.get("chat_template") or getattr(tokenizer, "chat_template", None)):
            msg = (
                f"the tokenizer {_name(tokenizer)} has no chat template: pass chat_template=, or "
                "another renderer"
            )
            raise ValueError(msg)
        self.tokenizer: Any = tokenizer
        self.tools: list[ToolDefinition] | None = None if tools is None else list(tools)
        self._read_calls = read_calls
        self._image_token = image_token or getattr(tokenizer, "image_token", None)
        self._count_image_tokens = count_image_tokens
        self._options = options
        self.end_of_turn: str = end_of_turn or self._find_end()
        self._end = self.encode(self.end_of_turn)
        if len(self._end) != 1:
            msg = f"end_of_turn must be the text of one token, but {self.end_of_turn!r} is {self._end!r}"
            raise ValueError(msg)

    def with_tools(self, tools: Iterable[ToolDefinition]) -> Self:
        """Return a renderer that shows the model other tools."""
        copy = object.__new__(type(self))
        copy.__dict__.update(self.__dict__)
        copy.tools = list(tools)
        return copy

    def render(self, messages: Sequence[Mapping[str, Any]]) -> str:
        """Return the text of a conversation up to the model's turn, with a mark for each image.

        Raises:
            ValueError: The template refuses the conversation.
        """
        urls = [url for message in messages for url in image_urls(message)]
        if urls and self._image_token:
            shown = [_to_template(message, images=True) for message in messages]
            pieces = self._apply(shown, generate=True).split(self._image_token)
            if len(pieces) == len(urls) + 1:
                marks = [mark(digest_of(url)) for url in urls]
                return "".join(
                    part for pair in zip(pieces, [*marks, ""], strict=True) for part in pair
                )
        return self._apply([_to_template(message) for message in messages], generate=True)

    def read_images(self, messages: Sequence[Mapping[str, Any]]) -> dict[int, Any]:
        """Return the images in a conversation, by the numbers that stand for them among token ids.

        Raises:
            ValueError: One is no PNG or JPEG in a `data:` URL.
        """
        urls = [url for message in messages for url in image_urls(message)]
        return {mark_id(digest_of(url)): read_image(url, self._count_image_tokens) for url in urls}

    def encode(self, text: str) -> list[int]:
        """Return the ids of a text, as it is, and those of the images that are marked in it."""
        return encode_marked(
            text, lambda piece: self.tokenizer.encode(piece, add_special_tokens=False)
        )

    def decode(self, ids: list[int]) -> str:
        """Return the text of ids, special tokens included."""
        return decode(self.tokenizer, ids)

    def build_generation_prompt(self, messages: list[Any], /) -> tinker.ModelInput:
        """Return the prompt of a conversation, up to where the model's turn begins.

        Raises:
            ValueError: The template refuses the conversation, or an image cannot be read.
        """
        ids = self.encode(self.render(messages))
        return load().ModelInput(chunks=list(to_chunks(ids, self.read_images(messages))))

    def get_stop_sequences(self) -> list[int]:
        """Return the ids of the tokens that end a turn, or all text."""
        return list(dict.fromkeys([*self._end, *eos_ids(self.tokenizer)]))

    def parse_response(self, response: list[int], /) -> tuple[Message, Termination]:
        """Return the message that was sampled, and how it ended.

        Its content is the text as it was sampled, thinking included, without the end of the turn; with
        tools, also without the calls that were read in it.
        """
        termination: Termination = "malformed"
        if response and response[-1] in self._end:
            termination = "stop_sequence"
        elif response and response[-1] in eos_ids(self.tokenizer):
            termination = "eos"
        text = self.decode(response if termination == "malformed" else response[:-1])
        message: Message = {"role": "assistant", "content": text}
        if self.tools is not None:
            message["content"], calls = self._read_calls(text)
            if calls:
                message["tool_calls"] = calls
        return message, termination

    def _apply(self, messages: list[dict[str, Any]], *, generate: bool) -> str:
        import jinja2  # noqa: PLC0415 - the tokenizer needs it here and nowhere else

        try:
            return self.tokenizer.apply_chat_template(
                messages,
                tokenize=False,
                add_generation_prompt=generate,
                tools=self.tools or None,
                **self._options,
            )
        except jinja2.TemplateError as error:
            msg = f"the chat template refuses the conversation: {error}"
            raise ValueError(msg) from error

    def _find_end(self) -> str:
        """Return the text of the first special token that the template writes after a reply.

        Where it writes one after a last reply, that is it: gpt-oss ends parts of a turn with the other.
        """
        asked, said = {"role": "user", "content": "x"}, {"role": "assistant", "content": _STAND_IN}
        added = getattr(self.tokenizer, "added_tokens_decoder", {})
        for probe in ([asked, said], [asked, said, asked]):
            _, _, rest = self._apply(probe, generate=False).partition(_STAND_IN)
            for token in self.encode(rest):
                if token in added or token in eos_ids(self.tokenizer):
                    return self.decode([token])
        msg = "found no token with which the chat template ends a turn: pass end_of_turn="
        raise ValueError(msg)


def eos_ids(tokenizer: Any) -> list[int]:
    """Return the ids of the tokens that end all text."""
    found: Any = getattr(tokenizer, "eos_token_id", None)
    if found is None:
        return []
    return [int(one) for one in np.atleast_1d(found)]


def decode(tokenizer: Any, ids: list[int]) -> str:
    """Return the text of ids, with special tokens, and with white space as it is."""
    return tokenizer.decode(ids, skip_special_tokens=False, clean_up_tokenization_spaces=False)


def _to_template(message: Mapping[str, Any], *, images: bool = False) -> dict[str, Any]:
    """Return a message as chat templates take it."""
    shown = {name: message[name] for name in ("role", "name", "tool_call_id") if name in message}
    content = message["content"]
    shown["content"] = marked_text(content)
    if images and image_urls(message):
        shown["content"] = [
            part if part["type"] == "text" else {"type": "image"}
            for part in cast("list[dict[str, str]]", content)
        ]
    if calls := message.get("tool_calls"):
        shown["tool_calls"] = [
            {
                **({"id": call["id"]} if "id" in call else {}),
                "type": "function",
                "function": {
                    "name": call["name"],
                    "arguments": call.get("malformed", call["arguments"]),
                },
            }
            for call in calls
        ]
    return shown


def _name(tokenizer: Any) -> str:
    return repr(getattr(tokenizer, "name_or_path", None) or type(tokenizer).__name__)


_STAND_IN = "a-reply-of-7c31"
