"""From observations to prompts, which extend the exact tokens of the turns before."""

from __future__ import annotations

import contextlib
import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self, TypeAlias, cast

import numpy as np

from rolloutlib.rollouts import EpisodeTruncated
from rolloutlib.spaces._shapes import is_text, message_problem
from rolloutlib.tinker._cookbook_messages import (
    decode_prompt,
    read_prompt,
    write_messages,
    write_tools,
)
from rolloutlib.tinker._images import encode_marked, image_urls, marked_text, to_chunks
from rolloutlib.tinker._options import PolicyOptions
from rolloutlib.tinker._renderers import ChatTemplateRenderer, Renderer, decode, eos_ids
from rolloutlib.tinker._sdk import load
from rolloutlib.training import Chats, ChatTokenizer, ChatTokens
from rolloutlib.types import Chat, Message, ToolDefinition

if TYPE_CHECKING:
    import tinker

TinkerPrompt: TypeAlias = "Chat | str | Sequence[int] | tinker.ModelInput"
"""What policies are shown: a conversation, what a user says first, token ids, or a prompt of the SDK's."""


@dataclass(frozen=True, slots=True)
class Prompt:
    """What a model is given.

    Attributes:
        ids: Token ids, and negative numbers for what is no text.
        others: What these stand for.
        chat: Takes the tokens that are sampled, if the prompt is of a conversation.
        rewrite: What was not as the model knows it, if the conversation was not extended exactly.
    """

    ids: list[int]
    others: Mapping[int, Any] = field(default_factory=dict[int, Any])
    chat: ChatTokens | None = None
    rewrite: str | None = None

    @property
    def token_ids(self) -> list[int] | None:
        """The ids, None if not all of the prompt is text."""
        return None if self.others else self.ids

    @property
    def size(self) -> int:
        """How many tokens the prompt takes; an image of unknown size counts as one."""
        sizes = [getattr(other, "expected_tokens", None) or 1 for other in self.others.values()]
        return len(self.ids) + sum(sizes) - len(sizes)

    def to_model_input(self) -> tinker.ModelInput:
        """Return the prompt in the SDK's form."""
        return load().ModelInput(chunks=list(to_chunks(self.ids, self.others)))


class Prompts:
    """Makes the prompts of a policy.

    Args:
        renderer: Renders conversations; None for a model that has no chat template.
        tokenizer: Of the model.
        tools: What the model is told that it may call.
        options: Those of the policy.
    """

    def __init__(
        self,
        renderer: Renderer | None,
        tokenizer: Any,
        tools: Sequence[ToolDefinition],
        options: PolicyOptions,
    ) -> None:
        self._renderer = renderer
        self._tokenizer = tokenizer
        self._tools = tools
        self._max_context = options.get("max_context")
        self.stops: list[Any] = [] if renderer is None else list(renderer.get_stop_sequences())
        if not any(isinstance(stop, str) for stop in self.stops):
            self.stops = list(dict.fromkeys([*self.stops, *eos_ids(tokenizer)]))
        self._chats: Chats | None = None
        ends = [stop for stop in self.stops if not isinstance(stop, str)]
        if renderer is not None and ends:
            chat_tokenizer = ChatTokenizer(
                self._render,
                self._encode,
                self.decode,
                end_of_turn=[self.decode([end]) for end in ends],
                overrule=options.get("overrule") or "everything",
            )
            self._chats = Chats(chat_tokenizer, max_chats=options.get("max_chats") or 4096)

    def read(self, observation: object, seed: int | None, step: int | None) -> Prompt:
        """Return the prompt for an observation.

        Args:
            observation: What the environment shows.
            seed: The episode's seed.
            step: The number of the episode's step.

        Raises:
            TypeError: The observation is no prompt.
            ValueError: It is wrong in its parts.
            EpisodeTruncated: It does not fit the model's context.
        """
        prompt = self._read(observation, seed, step)
        if self._max_context is not None and prompt.size >= self._max_context:
            msg = (
                f"context_overflow: the prompt has {prompt.size} tokens, and the context "
                f"{self._max_context} (max_context) with those of the answer"
            )
            raise EpisodeTruncated(msg)
        if not prompt.ids:
            msg = f"a prompt must have at least one token, got {observation!r}"
            raise ValueError(msg)
        return prompt

    def decode(self, ids: list[int]) -> str:
        """Return the text of token ids."""
        return decode(self._tokenizer, ids)

    def _read(self, observation: object, seed: int | None, step: int | None) -> Prompt:
        if isinstance(observation, str):
            return self._read_chat([{"role": "user", "content": observation}], seed, 0)
        if (chunks := getattr(observation, "chunks", None)) is not None:
            return Prompt(*read_prompt(chunks))
        is_list = isinstance(observation, (Sequence, np.ndarray)) and not isinstance(
            observation, bytes
        )
        entries: Any = cast("Any", observation) if is_list else ()
        if len(entries):
            if isinstance(entries[0], Mapping):
                return self._read_chat(_check(entries), seed, step)
            with contextlib.suppress(TypeError):
                return Prompt(_check_ids([operator.index(token) for token in entries]))
        msg = f"a policy must be shown messages, a text or token ids, got {observation!r}"
        raise TypeError(msg)

    def _read_chat(self, messages: Sequence[Message], seed: int | None, step: int | None) -> Prompt:
        shown = [_to_plain(message) for message in messages]
        if self._chats is None:
            return self._render_anew(shown)
        # Only a conversation with a reply in it goes on from an earlier step.
        is_begun = any(message["role"] == "assistant" for message in messages)
        chat = self._chats.find(shown, seed=seed, step=(1 if step is None else step) * is_begun)
        ids = chat.prompt(shown)
        found = chat.last_rewrite
        # JSON that a model spaces otherwise than the template does is nothing to tell of.
        is_told = found is not None and not (found.kept and found.cause == "whitespace")
        others: Mapping[int, Any] = {}
        if any(token < 0 for token in ids):
            others = self._render_anew(shown).others
        return Prompt(ids, others, chat, str(found) if is_told else None)

    def _render_anew(self, shown: list[dict[str, Any]]) -> Prompt:
        messages = _sources(shown)
        renderer = self._known_renderer()
        if isinstance(renderer, ChatTemplateRenderer):
            ids = self._encode(renderer.render(messages))
            return Prompt(ids, renderer.read_images(messages))
        return Prompt(*read_prompt(self._build(renderer, messages).chunks))

    def _build(self, renderer: Renderer, messages: list[Any]) -> tinker.ModelInput:
        written = write_messages(messages)
        if self._tools:
            written = write_tools(renderer, self._tools, written)
        return renderer.build_generation_prompt(written)

    def _known_renderer(self) -> Renderer:
        if self._renderer is None:
            msg = (
                "the model's tokenizer has no chat template: pass renderer=, or show the policy "
                "token ids"
            )
            raise ValueError(msg)
        return self._renderer

    def _render(self, messages: list[dict[str, Any]], **_: object) -> str:
        """Return the text of a conversation up to the model's turn: all that is asked for here."""
        renderer = self._known_renderer()
        if isinstance(renderer, ChatTemplateRenderer):
            return renderer.render(_sources(messages))
        chunks = self._build(renderer, _sources(messages)).chunks
        return _Rendered(decode_prompt(chunks, self.decode), read_prompt(chunks)[0])

    def _encode(self, text: str) -> list[int]:
        if isinstance(text, _Rendered):
            return text.ids
        return encode_marked(
            text, lambda piece: self._tokenizer.encode(piece, add_special_tokens=False)
        )


class _Rendered(str):
    """The text of a prompt, with the ids that its renderer has for it."""

    __slots__ = ("ids",)

    ids: list[int]

    def __new__(cls, text: str, ids: list[int]) -> Self:
        self = super().__new__(cls, text)
        self.ids = ids
        return self


def _check_ids(ids: list[int]) -> list[int]:
    if min(ids) < 0:
        msg = f"token ids must not be negative, got {min(ids)}"
        raise ValueError(msg)
    return ids


def _check(entries: Sequence[object]) -> list[Message]:
    for position, entry in enumerate(entries):
        # Templates may know further roles.
        roles: list[Any] = (
            [cast("dict[str, Any]", entry).get("role")] if isinstance(entry, dict) else []
        )
        if (problem := message_problem(entry, roles, is_text)) is not None:
            msg = f"message {position} is not as rolloutlib.types.Message says: {problem}"
            raise ValueError(msg)
        content = cast("Message", entry)["content"]
        if not isinstance(content, str) and any(part["type"] == "audio" for part in content):
            msg = f"message {position} has a sound, which no renderer here takes"
            raise ValueError(msg)
    return cast("list[Message]", list(entries))


def _to_plain(message: Message) -> dict[str, Any]:
    """Return a message whose content is text, as the tokens of conversations are kept by."""
    plain: dict[str, Any] = {**message, "content": marked_text(message["content"])}
    if image_urls(message):
        plain["source"] = message
    return plain


def _sources(messages: Sequence[dict[str, Any]]) -> list[Any]:
    return [message.get("source", message) for message in messages]
