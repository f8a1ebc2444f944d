"""Policies over Chat Completions."""

from __future__ import annotations

from typing import Any, TypeAlias, overload

import openai
from typing_extensions import Unpack

from rolloutlib.openai._endpoints import ChatEndpoint
from rolloutlib.openai._options import PolicyOptions
from rolloutlib.openai._policies import AsyncServerPolicy, ServerPolicy
from rolloutlib.rollouts import ActionT
from rolloutlib.tools import Tools
from rolloutlib.types import Chat, Message

ChatPrompt: TypeAlias = Chat | str
"""What chat policies are shown: a conversation, or what a user says first."""


class ChatPolicy(ServerPolicy[ChatPrompt, ActionT]):
    """A policy over the Chat Completions of any server that has them.

    Its actions are the model's texts; with `tools`, messages that may call them. What the server tells
    beside is in the `PolicyOutput`: tokens, log probabilities and the stop reason, and in its info
    "model", "response_id", "usage", "reasoning", "refusal", "seed" and "retries".

    Args:
        model: The name of the model, as the server knows it.
        tools: What the model may call: the tools of an environment, or a list of functions, tools or
            definitions. Without any, "tools=[]", actions are messages all the same.
        client: A client of the SDK to use in place of one made from `base_url`, `api_key`, `timeout`,
            `max_connections` and `max_retries`. It stays yours to close.
        options: See `PolicyOptions`.

    Raises:
        TypeError: An option is unknown or has the wrong type, or something is no tool.
        ValueError: One is out of its range or that of a given `client`, or there is no key for OpenAI's
            server, or none that can be sent.
    """

    @overload
    def __init__(
        self: ChatPolicy[str],
        model: str,
        *,
        tools: None = None,
        client: openai.OpenAI | None = None,
        **options: Unpack[PolicyOptions],
    ) -> None: ...
    @overload
    def __init__(
        self: ChatPolicy[Message],
        model: str,
        *,
        tools: Tools,
        client: openai.OpenAI | None = None,
        **options: Unpack[PolicyOptions],
    ) -> None: ...
    def __init__(
        self,
        model: str,
        *,
        tools: Tools | None = None,
        client: openai.OpenAI | None = None,
        **options: Unpack[PolicyOptions],
    ) -> None:
        super().__init__(ChatEndpoint[Any](model, options, tools), options, client)


class AsyncChatPolicy(AsyncServerPolicy[ChatPrompt, ActionT]):
    """The asynchronous twin of `ChatPolicy`, under asyncio and trio.

    Each event loop that it is used in has connections of its own, which are closed when the loop ends,
    or by `aclose` or `async with`.

    Args:
        model: The name of the model, as the server knows it.
        tools: What the model may call: the tools of an environment, or a list of functions, tools or
            definitions. Without any, "tools=[]", actions are messages all the same.
        client: A client of the SDK to use in place of one made from `base_url`, `api_key`, `timeout`,
            `max_connections` and `max_retries`. It stays yours to close.
        options: See `PolicyOptions`.

    Raises:
        TypeError: An option is unknown or has the wrong type, or something is no tool.
        ValueError: One is out of its range or that of a given `client`, or there is no key for OpenAI's
            server, or none that can be sent.
    """

    @overload
    def __init__(
        self: AsyncChatPolicy[str],
        model: str,
        *,
        tools: None = None,
        client: openai.AsyncOpenAI | None = None,
        **options: Unpack[PolicyOptions],
    ) -> None: ...
    @overload
    def __init__(
        self: AsyncChatPolicy[Message],
        model: str,
        *,
        tools: Tools,
        client: openai.AsyncOpenAI | None = None,
        **options: Unpack[PolicyOptions],
    ) -> None: ...
    def __init__(
        self,
        model: str,
        *,
        tools: Tools | None = None,
        client: openai.AsyncOpenAI | None = None,
        **options: Unpack[PolicyOptions],
    ) -> None:
        super().__init__(ChatEndpoint[Any](model, options, tools), options, client)
