"""Policies over any OpenAI-compatible endpoint: vLLM, SGLang, llama.cpp, hosted APIs."""

from rolloutlib.openai._chat import AsyncChatPolicy, ChatPolicy, ChatPrompt
from rolloutlib.openai._completions import (
    AsyncCompletionPolicy,
    CompletionPolicy,
    CompletionPrompt,
)
from rolloutlib.openai._errors import (
    MissingTokensError,
    ModelServerError,
    RequestRefusedError,
    ServerTimeoutError,
    ServerUnavailableError,
)
from rolloutlib.openai._options import PolicyOptions

__all__ = [
    "AsyncChatPolicy",
    "AsyncCompletionPolicy",
    "ChatPolicy",
    "ChatPrompt",
    "CompletionPolicy",
    "CompletionPrompt",
    "MissingTokensError",
    "ModelServerError",
    "PolicyOptions",
    "RequestRefusedError",
    "ServerTimeoutError",
    "ServerUnavailableError",
]
