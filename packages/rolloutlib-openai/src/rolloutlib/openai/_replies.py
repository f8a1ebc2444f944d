"""The parts of servers' answers that policies read, for Chat Completions and Completions alike."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import pydantic

from rolloutlib.tools import read_call
from rolloutlib.types import ToolCall


class TokenEntry(pydantic.BaseModel):
    """One token of an answer; llama.cpp tells its id."""

    id: int | None = None
    logprob: float | None = None


class ReplyLogprobs(pydantic.BaseModel):
    """The tokens of an answer: entries of Chat Completions, or columns of Completions."""

    content: list[TokenEntry] | None = None
    token_logprobs: list[float | None] | None = None


class CalledFunction(pydantic.BaseModel):
    """What a model calls; arguments are a text, unless the server parsed them."""

    name: str | None = None
    arguments: Any = None

    def to_call(self, id: str | None) -> ToolCall:
        """Return the call; arguments that are no object are those of a malformed one."""
        return read_call(self.name or "", self.arguments, id)


class ReplyCall(pydantic.BaseModel):
    """A tool call."""

    id: str | None = None
    function: CalledFunction


class ReplyPart(pydantic.BaseModel):
    """A part of a message; those of other kinds than text have none. Mistral's may be thoughts."""

    text: str | None = None
    thinking: str | list[ReplyPart] | None = None


class ReplyMessage(pydantic.BaseModel):
    """What a model says in a chat; servers call its reasoning by one name or the other."""

    content: str | list[ReplyPart] | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    refusal: str | None = None
    tool_calls: list[ReplyCall] | None = None

    @property
    def text(self) -> str:
        """The text, "" if there is none."""
        return _join(self.content)

    @property
    def thoughts(self) -> str:
        """The reasoning, "" if the server tells none apart."""
        told = self.reasoning_content or self.reasoning
        parts = self.content if isinstance(self.content, list) else []
        return told or "".join(_join(part.thinking) for part in parts)

    def to_calls(self) -> list[ToolCall]:
        """Return the calls."""
        return [call.function.to_call(call.id) for call in self.tool_calls or ()]


def _join(content: str | list[ReplyPart] | None) -> str:
    if isinstance(content, list):
        return "".join(part.text or "" for part in content)
    return content or ""


class Choice(pydantic.BaseModel):
    """One sample; vLLM and SGLang tell ids, and SGLang those of a chat by both names in turn."""

    message: ReplyMessage = ReplyMessage()
    text: str = ""
    finish_reason: str | None = None
    error: dict[str, Any] | str | None = None  # OpenRouter's, beside the finish reason "error"
    logprobs: ReplyLogprobs | None = None
    token_ids: list[int] | None = pydantic.Field(
        None, validation_alias=pydantic.AliasChoices("token_ids", "response_token_ids")
    )
    prompt_token_ids: list[int] | None = None

    @property
    def is_empty(self) -> bool:
        """Whether the model said nothing, for which there may be no token."""
        said = self.message
        return not (self.text or said.text or said.thoughts or said.tool_calls)


class Details(pydantic.BaseModel):
    """Of the tokens that are counted, those of a kind."""

    cached_tokens: int | None = None
    reasoning_tokens: int | None = None


class Usage(pydantic.BaseModel):
    """How many tokens a request took."""

    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    prompt_tokens_details: Details | None = None
    completion_tokens_details: Details | None = None

    def to_dict(self) -> dict[str, int]:
        """Return the numbers that the server told."""
        numbers = {
            "prompt_tokens": self.prompt_tokens,
            "completion_tokens": self.completion_tokens,
            "cached_tokens": (self.prompt_tokens_details or Details()).cached_tokens,
            "reasoning_tokens": (self.completion_tokens_details or Details()).reasoning_tokens,
        }
        return {name: number for name, number in numbers.items() if number is not None}


class LlamaDetails(pydantic.BaseModel):
    """What llama.cpp adds when asked to be verbose: of the first choice alone."""

    prompt: str | None = None
    tokens: list[int] = []


class Tokenized(pydantic.BaseModel):
    """What llama.cpp answers if asked for the ids of a text."""

    tokens: list[int]


def _or_none(choices: object) -> object:
    return choices or []  # null beside an error


class Reply(pydantic.BaseModel):
    """A whole answer."""

    choices: Annotated[list[Choice], pydantic.BeforeValidator(_or_none)] = []
    error: dict[str, Any] | str | None = None  # OpenRouter answers so with status 200
    id: str | None = None
    model: str | None = None
    usage: Usage | None = None
    prompt_token_ids: list[int] | None = None
    retries: int = 0  # set by the reader
    llama: LlamaDetails | None = pydantic.Field(None, alias="__verbose")

    @property
    def failure(self) -> dict[str, Any] | str | None:
        """What the server tells of a fault, in place of choices or where all broke off, or None."""
        if self.error or not self.choices or self.whole:
            return self.error
        return self.choices[0].error or "the answer broke off with an error"

    @property
    def whole(self) -> list[Choice]:
        """The choices that did not break off."""
        return [one for one in self.choices if one.finish_reason != "error"]

    def prompt_tokens(self) -> Sequence[int] | None:
        """Return the ids of the prompt, if the server told them."""
        return self.prompt_token_ids or self.choices[0].prompt_token_ids or None

    def tokens(self, index: int) -> Sequence[int] | None:
        """Return the ids of a choice, if the server told all of them."""
        told = self.choices[index].token_ids
        if told is None and index == 0 and self.llama is not None:
            # Not those of `logprobs`, where llama.cpp leaves some out.
            told = self.llama.tokens or None
        return told if told or self.choices[index].is_empty else None
