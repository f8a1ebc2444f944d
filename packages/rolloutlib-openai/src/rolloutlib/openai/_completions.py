"""Policies over Completions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import openai
from typing_extensions import Unpack

from rolloutlib.openai._endpoints import CompletionEndpoint
from rolloutlib.openai._options import PolicyOptions
from rolloutlib.openai._policies import AsyncServerPolicy, ServerPolicy

CompletionPrompt: TypeAlias = str | Sequence[int]
"""What completion policies are shown: a text, or the ids of its tokens."""


class CompletionPolicy(ServerPolicy[CompletionPrompt, str]):
    """A policy over the Completions of any server that has them: a text goes on.

    Its prompts are texts, or token ids, for those who apply a chat template themselves. Its actions and
    the rest are those of `ChatPolicy`.

    Args:
        model: The name of the model, as the server knows it.
        client: A client of the SDK to use in place of one made from `base_url`, `api_key`, `timeout`,
            `max_connections` and `max_retries`. It stays yours to close.
        options: See `PolicyOptions`.

    Raises:
        TypeError: An option is unknown or has the wrong type.
        ValueError: One is out of its range or that of a given `client`, or there is no key for OpenAI's
            server, or none that can be sent.
    """

    def __init__(
        self, model: str, *, client: openai.OpenAI | None = None, **options: Unpack[PolicyOptions]
    ) -> None:
        super().__init__(CompletionEndpoint(model, options), options, client)


class AsyncCompletionPolicy(AsyncServerPolicy[CompletionPrompt, str]):
    """The asynchronous twin of `CompletionPolicy`, with the connections of `AsyncChatPolicy`.

    Args:
        model: The name of the model, as the server knows it.
        client: A client of the SDK to use in place of one made from `base_url`, `api_key`, `timeout`,
            `max_connections` and `max_retries`. It stays yours to close.
        options: See `PolicyOptions`.

    Raises:
        TypeError: An option is unknown or has the wrong type.
        ValueError: One is out of its range or that of a given `client`, or there is no key for OpenAI's
            server, or none that can be sent.
    """

    def __init__(
        self,
        model: str,
        *,
        client: openai.AsyncOpenAI | None = None,
        **options: Unpack[PolicyOptions],
    ) -> None:
        super().__init__(CompletionEndpoint(model, options), options, client)
