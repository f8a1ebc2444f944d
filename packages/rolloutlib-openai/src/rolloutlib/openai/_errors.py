"""What can go wrong between a policy and a model server.

    ModelServerError
    ├── RequestRefusedError       permanent: a wrong key, model or parameter
    ├── MissingTokensError        permanent: ids or log probabilities were asked for, and not given
    ├── ServerUnavailableError    may pass; a ConnectionError: no connection, 429, 5xx, a cut answer
    └── ServerTimeoutError        may pass; a TimeoutError

A prompt that does not fit the model's context is none of these: it raises core's `EpisodeTruncated`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import cast

import openai

from rolloutlib.openai._http import httpx
from rolloutlib.rollouts import EpisodeTruncated


class ModelServerError(Exception):
    """A request to a model server that brought no action.

    Attributes:
        status_code: The HTTP status of the answer, None if there was none.
        retry_after: The text of the header `Retry-After`, None if there was none.
    """

    status_code: int | None = None
    retry_after: str | None = None


class RequestRefusedError(ModelServerError):
    """The server refuses the request, and would refuse it again."""


class MissingTokensError(ModelServerError):
    """The server left out token ids or log probabilities that the policy asked for."""


class ServerUnavailableError(ModelServerError, ConnectionError):
    """The server cannot be reached, is overloaded or failed, or its answer broke off; it may pass."""


class ServerTimeoutError(ModelServerError, TimeoutError):
    """The server did not answer in time; it may pass."""


class Redaction:
    """Takes keys out of texts that a server or a library wrote.

    Args:
        requests: What was sent, by the client's own headers and address: the SDK's `api_key`, one that is
            renewed with each request, the token of a cloud, a header that a gateway asks for.
    """

    def __init__(self, *requests: httpx.Request) -> None:
        self._secrets = {secret for request in requests for secret in _secrets(request)}

    def __call__(self, text: str, *, limit: int = 2000) -> str:
        """Return the text without the keys, and without what goes beyond the limit."""
        for secret in sorted(self._secrets, key=len, reverse=True):
            text = text.replace(secret, "***")
        return text if len(text) <= limit else f"{text[:limit]}... ({len(text)} characters)"


def sent_for(response: httpx.Response) -> list[httpx.Request]:
    """Return the requests that led to a response; a redirected one lacks the key."""
    return [one.request for one in (*response.history, response)]


def read_error(error: openai.APIError, place: str) -> Exception:
    """Return what a policy raises for an error of the SDK.

    The SDK's error holds the request with its key, so it must not become the cause of what is raised.

    Args:
        error: The SDK's error.
        place: Which model of which server was asked, for messages.
    """
    if isinstance(error, openai.APIStatusError):
        return read_refusal(
            error.status_code,
            error.body if error.body is not None else error.response.text,
            Redaction(*sent_for(error.response)),
            place,
            retry_after=error.response.headers.get("retry-after"),
        )
    redact = Redaction(error.request)
    reason: BaseException = error.__cause__ or error
    if isinstance(error, openai.APITimeoutError):
        return ServerTimeoutError(f"{place} did not answer in time: {_tell(reason, redact)}")
    told = _tell(_root(reason), redact)
    return ServerUnavailableError(f"the connection to {place} failed: {told}")


def read_refusal(
    status: int, body: object, redact: Redaction, place: str, *, retry_after: str | None = None
) -> Exception:
    """Return what a policy raises for an answer that tells of an error.

    Args:
        status: The HTTP status.
        body: The object that describes the error, as OpenAI's and llama.cpp's do, or a text.
        redact: Applied to the body.
        place: Which model of which server was asked, for messages.
        retry_after: The header of that name.
    """
    is_described = isinstance(body, Mapping)
    facts = cast("Mapping[str, object]", body if is_described else {"message": body})
    text = redact(str(facts.get("message") or facts))
    kinds = {str(facts.get("code")), str(facts.get("type"))}
    may_overflow = status in _OVERFLOW_STATUSES
    if may_overflow and (kinds & _OVERFLOW_KINDS or _OVERFLOW_TEXT.search(text)):
        return EpisodeTruncated(f"context_overflow: {text}")
    is_transient = status in _TRANSIENT_STATUSES or (
        status >= _SERVER_ERROR and status not in _NOT_OURS
    )
    kind = ServerUnavailableError if is_transient else RequestRefusedError
    if kinds & _PERMANENT_KINDS:
        kind = RequestRefusedError
    told = f"{place} answered with status {status}: {text}"
    if status in _NOT_OURS:
        told += hint_at_address(place)
    if retry_after is not None:
        retry_after = redact(retry_after)
        told += f" (retry after {retry_after})"
    refusal = kind(told)
    refusal.status_code, refusal.retry_after = status, retry_after
    return refusal


def hint_at_address(place: str) -> str:
    """Return a hint at what may be wrong with the address of what is no model server."""
    if "/v1" in place:
        return ""
    return " (the base_url of most servers ends in /v1)"


def _root(reason: BaseException) -> BaseException:
    """Return what a reason goes back to: the operating system's own words."""
    first = reason.__cause__ or reason.__context__
    parts: object = getattr(reason, "exceptions", ())  # of a group
    if isinstance(parts, tuple) and parts:
        first = cast("tuple[BaseException, ...]", parts)[0]
    return reason if first is None else _root(first)


def _tell(reason: BaseException, redact: Redaction) -> str:
    return redact(str(reason)) or type(reason).__name__


def _secrets(request: httpx.Request) -> Iterator[str]:
    for name, value in (*request.headers.multi_items(), *request.url.params.multi_items()):
        words = value.split()  # of a header, the last one is the key, without its scheme
        if words and len(words[-1]) > _LONGEST_PLACEHOLDER and _SECRET.search(name):
            yield words[-1]
    if password := request.url.password:
        yield password


_SECRET = re.compile("auth|key|token|secret|password|signature", re.IGNORECASE)
_LONGEST_PLACEHOLDER = 5  # "none" and "EMPTY" are no secrets
_NOT_OURS = {404, 405, 501}  # there is no such page, or only one to look at
_SERVER_ERROR = 500
# Request time-out, conflict, too early, too many requests; Anthropic's "overloaded" is 529.
_TRANSIENT_STATUSES = {408, 409, 425, 429}
_PERMANENT_KINDS = {"insufficient_quota"}  # OpenAI's 429 of an account without money
_OVERFLOW_STATUSES = {400, 413, 422, 500}  # llama.cpp once answered with 500
_OVERFLOW_KINDS = {
    "context_length_exceeded",  # OpenAI
    "exceed_context_size_error",  # llama.cpp
    "model_context_window_exceeded",  # Z.ai
}
_OVERFLOW_TEXT = re.compile(
    r"(maximum|model's|available) context (length|size|window)"  # OpenAI, vLLM, SGLang, llama.cpp
    r"|decoder prompt .* longer than the maximum model length"  # vLLM, of images
    r"|exceeds? (the (model's )?)?(context|maximum number of tokens)"  # Google; Anthropic
    r"|context (window|length|size) (exceeds|(has been )?exceeded)"  # MiniMax
    r"|context_length_exceeded"  # gateways
    r"|exceeded (max context length|model token limit)"  # Ollama; Moonshot
    r"|maximum prompt length is"  # xAI
    r"|greater than the context length"  # LM Studio
    r"|reduce the length of the messages"  # Groq, Cerebras
    r"|range of input length should be"  # Alibaba
    r"|(prompt|input) is too long"  # Anthropic; Bedrock
    r"|max_new_tokens` must be <=|inputs` must have less than",  # Text Generation Inference
    re.IGNORECASE,
)
