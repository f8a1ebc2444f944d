"""The keyword arguments that all policies take."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from numbers import Integral
from typing import Any, cast

from typing_extensions import TypedDict

from rolloutlib.openai._http import httpx
from rolloutlib.rollouts._requests import check_names, check_numbers


class PolicyOptions(TypedDict, total=False):
    """Keyword arguments of every policy; what is None or left out is up to the server.

    Attributes:
        base_url: Where the server is, "http://localhost:8000/v1", say. By default OpenAI's, or that of
            the environment variable `OPENAI_BASE_URL`.
        api_key: The key. By default that of the environment variable `OPENAI_API_KEY`, unless
            `base_url` is given: a key is not sent to a server that it was not meant for.
        timeout: How many seconds the server may take to begin its answer, and then to end it; 600 by
            default.
        max_connections: The most requests that are open at once; further ones wait. By default there is
            no limit but the concurrency of the rollouts.
        max_retries: How often a request is sent again after a failure that may pass, as the header
            `Retry-After` says or with growing pauses; 2 by default. The action's info tells how often
            it was. With 0, it is left to core's `Retry`, which begins the episode anew.
        max_tokens: The most tokens of an answer.
        temperature: 1 samples from the model's own distribution, 0 takes the likeliest token.
        top_p: Sample from the likeliest tokens that have this probability together.
        stop: Texts that end an answer.
        seed: Mixed into the seed of each request, which is derived from the episode's seed and the
            number of the step. Without it, requests of episodes without seeds have none.
        send_seed: Whether requests have seeds at all; False for servers that refuse them.
        logprobs: Ask for the log probability of each token.
        tokens: Ask for the ids of the prompt's and the answer's tokens: vLLM, SGLang and llama.cpp have
            them. Other servers may refuse the request.
        max_incomplete: How many answers may lack what `logprobs` or `tokens` asked for; None means any
            number. They are counted, and keep what is whole. By default 0: the first is an error.
        max_samples: The most samples of one prompt that a batch asks for in one request; None, the
            default, means no limit.
        extra_body: Further fields of the request, as the server names them.
    """

    base_url: str | None
    api_key: str | None
    timeout: float | None
    max_connections: int | None
    max_retries: int | None
    max_tokens: int | None
    temperature: float | None
    top_p: float | None
    stop: str | Sequence[str] | None
    seed: int | None
    send_seed: bool
    logprobs: bool
    tokens: bool
    max_incomplete: int | None
    max_samples: int | None
    extra_body: Mapping[str, object] | None


def check_options(model: object, options: PolicyOptions) -> None:
    """Refuse what no server could take, before anything is asked.

    Raises:
        TypeError: A name is unknown, or an argument has the wrong type.
        ValueError: A number is out of its range, the model has no name, or a field has no form in JSON.
    """
    given: Mapping[str, Any] = cast("Mapping[str, Any]", options)
    check_names(given, PolicyOptions.__annotations__, "pass it in extra_body")
    if not isinstance(model, str):
        msg = f"model must be the name of a model, got {model!r}"
        raise TypeError(msg)
    if not model:
        msg = "model must be the name of a model, got ''"
        raise ValueError(msg)
    for name, (kinds, what) in _KINDS.items():
        if given.get(name) is not None and not isinstance(given[name], kinds):
            msg = f"{name} must be {what}, got an object of type {type(given[name]).__name__}"
            raise TypeError(msg)
    for name in given.get("extra_body") or ():
        if name in _NOT_EXTRA:
            msg = f"extra_body may not have {name!r}: {_NOT_EXTRA[name]}"
            raise ValueError(msg)
    try:  # what else there may be, such as a date, OpenAI's SDK can write
        json.dumps(given.get("extra_body"), default=str, allow_nan=False)
    except (TypeError, ValueError) as error:
        msg = f"extra_body must hold what JSON can: {error}"
        raise ValueError(msg) from error
    check_numbers(given, _COUNTS)


def check_url(name: str, text: str) -> None:
    """Refuse an address that is none of a server, or that shows a key to whoever reads a log.

    The text is in no message: it may be a key that was put in the wrong place.

    Args:
        name: The argument or the environment variable that it is from.
        text: The address.

    Raises:
        ValueError: It is not as it should be.
    """
    try:
        url = httpx.URL(text)
    except httpx.InvalidURL:
        url = httpx.URL()
    if url.userinfo or url.query:  # the HTTP client logs addresses
        msg = f"{name} must have neither a user name nor a query: pass a key as api_key"
        raise ValueError(msg)
    if url.scheme not in {"http", "https"} or not url.host:
        msg = f"{name} must begin with http:// or https:// and a host, as http://localhost:8000/v1"
        raise ValueError(msg)


_KINDS: dict[str, tuple[type | tuple[type, ...], str]] = {
    "base_url": (str, "a text"),
    "api_key": (str, "a text"),
    "stop": ((str, list, tuple), "a text or a list of texts"),
    "seed": (Integral, "an integer"),
    "send_seed": (bool, "a bool"),
    "logprobs": (bool, "a bool"),
    "tokens": (bool, "a bool"),
    "extra_body": (Mapping, "a dictionary"),
}
_NOT_EXTRA = {"n": "a batch asks for several samples", "stream": "answers are read as a whole"}
_COUNTS = {
    "max_connections": 1,
    "max_retries": 0,
    "max_tokens": 1,
    "max_incomplete": 0,
    "max_samples": 1,
}
