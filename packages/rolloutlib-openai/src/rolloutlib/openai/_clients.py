"""Clients of the SDK: one for each process, and one for each event loop."""

from __future__ import annotations

import functools
import os
import ssl
from collections.abc import AsyncGenerator
from typing import TypedDict

import openai
from anyio.lowlevel import RunVar

from rolloutlib.openai._body_limits import BodyLimit
from rolloutlib.openai._http import httpx
from rolloutlib.openai._options import PolicyOptions, check_url

_OF_CLIENTS = ("base_url", "api_key", "timeout", "max_connections", "max_retries")
_TIMEOUT = 600.0
_CONNECT_TIMEOUT = 10.0
# Servers close idle connections after some seconds, 5 is common; a request that is sent at that moment
# is lost.
_KEEPALIVE = 2.0


class ClientSettings(TypedDict):
    """What synchronous and asynchronous clients of the SDK are made with."""

    api_key: str | None
    base_url: str | None
    max_retries: int
    timeout: httpx.Timeout


def client_settings(options: PolicyOptions) -> ClientSettings:
    """Return what the options of a policy say about its client.

    Raises:
        ValueError: There is no key for OpenAI's own server, or the server's address is wrong.
    """
    base_url, api_key = options.get("base_url"), options.get("api_key")
    name, address = "base_url", base_url
    if base_url is None:
        name, address = "OPENAI_BASE_URL", os.environ.get("OPENAI_BASE_URL") or None
        api_key = os.environ.get("OPENAI_API_KEY") if api_key is None else api_key
    if address is not None:
        check_url(name, address)
        # The SDK makes no client without, or with that of the environment.
        api_key = "none" if api_key is None else api_key
    if not api_key:
        msg = (
            "there is no key for OpenAI's server: pass api_key or set OPENAI_API_KEY, or pass the "
            "base_url of a server that needs none"
        )
        raise ValueError(msg)
    timeout, max_retries = options.get("timeout") or _TIMEOUT, options.get("max_retries")
    return {
        "api_key": api_key,
        "base_url": base_url,
        "max_retries": 2 if max_retries is None else max_retries,
        # Waiting for a connection is no fault of the server.
        "timeout": httpx.Timeout(timeout, connect=min(timeout, _CONNECT_TIMEOUT), pool=None),
    }


def check_client(client: object, kind: type[object], options: PolicyOptions) -> None:
    """Refuse a client of the user's that cannot be used, or that options are to change.

    Raises:
        TypeError: It is of another kind.
        ValueError: There are options that are its own.
    """
    if client is None:
        return
    if not isinstance(client, kind):
        got = type(client).__name__  # itself it may be a key
        msg = f"client must be an openai.{kind.__name__}, got an object of type {got}"
        raise TypeError(msg)
    if own := [name for name in _OF_CLIENTS if options.get(name) is not None]:
        msg = f"pass {own[0]} to the client that you make, not beside it"
        raise ValueError(msg)


def check_key(key: str) -> None:
    """Refuse a key that no request can have; the errors of sending it would show it.

    Raises:
        ValueError: It has other characters than ASCII, or white space around it, such as a line's end.
    """
    if not (key.isascii() and key.isprintable() and key == key.strip()):
        msg = "the key has characters that no request can have, such as a line's end: strip() it"
        raise ValueError(msg)


class Clients:
    """A client for all threads, but for each process, since a fork's connections are its parent's.

    Args:
        options: Those of the policy.
        client: One of the user's, for all processes, which is never closed.
    """

    def __init__(self, options: PolicyOptions, client: openai.OpenAI | None) -> None:
        check_client(client, openai.OpenAI, options)
        self._is_given = client is not None
        self._limits = _limits(options)
        self._body_limit = BodyLimit(options.get("timeout") or _TIMEOUT)
        self.template = client or openai.OpenAI(
            **client_settings(options), http_client=self._http()
        )
        self._client, self._process = self.template, os.getpid()

    def get(self) -> openai.OpenAI:
        """Return the client of the running process."""
        if not self._is_given and self._process != os.getpid():
            client = self.template.with_options(http_client=self._http())
            self._client, self._process = client, os.getpid()
        return self._client

    def close(self) -> None:
        """Close the client of the running process."""
        if not self._is_given:
            self._client.close()

    def _http(self) -> httpx.Client:
        return httpx.Client(
            limits=self._limits,
            verify=_ssl_context(),
            follow_redirects=True,
            event_hooks={"response": [self._body_limit.bound]},
        )


class AsyncClients:
    """A client for each event loop that a policy is used in, since connections belong to a loop.

    A client is closed when its loop ends, together with the loop's asynchronous generators, if not
    before.

    Args:
        options: Those of the policy.
        client: One of the user's, for all loops, which is never closed.
    """

    def __init__(self, options: PolicyOptions, client: openai.AsyncOpenAI | None) -> None:
        check_client(client, openai.AsyncOpenAI, options)
        self._is_given = client is not None
        self._limits = _limits(options)
        self._body_limit = BodyLimit(options.get("timeout") or _TIMEOUT)
        self.template = client or openai.AsyncOpenAI(
            **client_settings(options), http_client=self._http()
        )
        self._session = RunVar[tuple[openai.AsyncOpenAI, _Closer] | None]("session", None)

    async def get(self) -> openai.AsyncOpenAI:
        """Return the client of the running loop."""
        if self._is_given:
            return self.template
        session = self._session.get()
        if session is None:
            client = self.template.with_options(http_client=self._http())
            closer = _close_at_end(client)
            await anext(closer)
            session = client, closer
            self._session.set(session)
        return session[0]

    async def aclose(self) -> None:
        """Close the client of the running loop."""
        session = self._session.get()
        if session is not None:
            self._session.set(None)
            await session[1].aclose()

    def _http(self) -> httpx.AsyncClient:
        return httpx.AsyncClient(
            limits=self._limits,
            verify=_ssl_context(),
            follow_redirects=True,
            event_hooks={"response": [self._body_limit.abound]},
        )


_Closer = AsyncGenerator[None, None]


async def _close_at_end(client: openai.AsyncOpenAI) -> _Closer:
    try:
        yield
    finally:
        await client.close()


@functools.cache
def _ssl_context() -> ssl.SSLContext:
    return httpx.create_ssl_context()  # takes a tenth of a second


def _limits(options: PolicyOptions) -> httpx.Limits:
    most = options.get("max_connections")
    return httpx.Limits(
        max_connections=most, max_keepalive_connections=most, keepalive_expiry=_KEEPALIVE
    )
