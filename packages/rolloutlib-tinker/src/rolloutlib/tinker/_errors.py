"""What can go wrong between a policy and Tinker.

    ModelServerError
    ├── RequestRefusedError       permanent: a wrong key, model or parameter
    ├── MissingTokensError        permanent: an answer without the log probabilities of its tokens
    ├── ServerUnavailableError    may pass; a ConnectionError: no connection, 429, 5xx, a broken answer
    └── ServerTimeoutError        may pass; a TimeoutError: no answer within the policy's time-out

A prompt that does not fit the model's context is none of these: it raises core's `EpisodeTruncated`.
"""

from __future__ import annotations

import re
from concurrent.futures import CancelledError
from typing import Any, cast

from rolloutlib.rollouts import EpisodeTruncated
from rolloutlib.tinker._sdk import load


class ModelServerError(Exception):
    """A request to Tinker that brought no action.

    Attributes:
        status_code: The HTTP status of the answer, None if there was none.
    """

    status_code: int | None = None


class RequestRefusedError(ModelServerError):
    """The server refuses the request, and would refuse it again."""


class MissingTokensError(ModelServerError):
    """The server left out log probabilities of tokens that it sampled."""


class ServerUnavailableError(ModelServerError, ConnectionError):
    """The server cannot be reached, is overloaded or failed, or its answer broke off; it may pass."""


class ServerTimeoutError(ModelServerError, TimeoutError):
    """The server did not answer in time; it may pass."""


def read_error(error: BaseException, place: str) -> Exception:
    """Return what a policy raises for an error of the SDK.

    The SDK's error holds the request with its key, so it must not become the cause of what is raised.

    Args:
        error: What the SDK raised.
        place: What was asked of which model, for messages.
    """
    tinker = load()
    status: int | None = getattr(error, "status_code", None)
    if isinstance(error, ValueError) and isinstance(error.__cause__, tinker.APIStatusError):
        status = cast("Any", error.__cause__).status_code  # of the request for the result
    text = redact(_tell(error))
    if isinstance(error, tinker.APIConnectionError):
        return ServerUnavailableError(f"the connection for {place} failed: {text}")
    if isinstance(error, CancelledError):
        return ServerUnavailableError(f"Tinker's SDK gave up {place}: its client was closed")
    told = f"{place} failed: {text}"
    is_transient = isinstance(error, (TimeoutError, ConnectionError, AssertionError))
    if isinstance(error, tinker.RequestFailedError):
        is_transient = cast("Any", error).category != "user"
    elif status is not None:
        told = f"{place} was answered with status {status}: {text}"
        is_transient = status in _TRANSIENT_STATUSES or status >= _SERVER_ERROR
    elif isinstance(error, ValueError):  # of a result that cannot be read
        is_transient = error.__cause__ is not None
    if not is_transient and _OVERFLOW_TEXT.search(text):
        return EpisodeTruncated(f"context_overflow: {text}")
    known = status is not None or isinstance(error, (tinker.TinkerError, ValueError))
    refusal = RequestRefusedError if known else ModelServerError
    failure = (ServerUnavailableError if is_transient else refusal)(told)
    failure.status_code = status
    return failure


def redact(text: str, *, limit: int = 2000) -> str:
    """Return a text without keys and tokens of access, and without what goes beyond the limit."""
    text = _SECRET.sub("***", text)
    return text if len(text) <= limit else f"{text[:limit]}... ({len(text)} characters)"


def _tell(error: BaseException) -> str:
    body: object = getattr(error, "body", None)
    if isinstance(body, dict):
        facts = cast("dict[str, object]", body)
        described = facts.get("detail") or facts.get("error") or facts.get("message")
        if described:
            return str(described)
    return str(error) or type(error).__name__


_SECRET = re.compile(r"\b(tml-|eyJ)[\w.=-]+")  # a key of Tinker's; a JSON web token
_SERVER_ERROR = 500
_TRANSIENT_STATUSES = {408, 409, 410, 429}  # 410: the promise of a result is gone
_OVERFLOW_TEXT = re.compile(
    r"(maximum|model's|available) context (length|size|window)"
    r"|context (length|window)\W+(is |was )?(exceeded|too)"
    r"|exceeds? the (model's )?(maximum )?(context|sequence length|maximum number of tokens)"
    r"|(prompt|input)( length| is| of \d+ tokens)? (is )?(too long|exceeds)",
    re.IGNORECASE,
)
