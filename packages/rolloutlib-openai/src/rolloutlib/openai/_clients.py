"""Clients of the SDK: one for all threads, and one for each event loop."""

from __future__ import annotations

import functools
import os
import ssl
import time
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from typing import TypedDict

import anyio
import httpx2
import openai
from anyio.lowlevel import RunVar

from rolloutlib.openai._options import PolicyOptions

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
    timeout: httpx2.Timeout


def client_settings(options: PolicyOptions) -> ClientSettings:
    """Return what the options of a policy say about its client.

    Raises:
        ValueError: There is no key for OpenAI's own server.
    """
    base_url, api_key = options.get("base_url"), options.get("api_key")
    if api_key is None and base_url is None:
        api_key = os.environ.get("OPENAI_API_KEY")
    if api_key is None and (base_url or os.environ.get("OPENAI_BASE_URL")):
        api_key = "none"  # the SDK makes no client without, or with that of the environment
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
        "timeout": httpx2.Timeout(timeout, connect=min(timeout, _CONNECT_TIMEOUT), pool=None),
    }


def make_client(options: PolicyOptions) -> openai.OpenAI:
    """Return a client with the options of a policy, for any number of threads."""
    limit = BodyLimit(options)
    http = httpx2.Client(
        limits=_limits(options),
        verify=_ssl_context(),
        follow_redirects=True,
        event_hooks={"response": [limit.bound]},
    )
    return openai.OpenAI(**client_settings(options), http_client=http)


class AsyncClients:
    """A client for each event loop that a policy is used in, since connections belong to a loop.

    A client is closed when its loop ends, together with the loop's asynchronous generators, if not
    before.

    Args:
        options: Those of the policy.
        client: One of the user's, for all loops, which is never closed.
    """

    def __init__(self, options: PolicyOptions, client: openai.AsyncOpenAI | None) -> None:
        self._is_given = client is not None
        self._limits = _limits(options)
        self._limit = BodyLimit(options)
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

    def _http(self) -> httpx2.AsyncClient:
        return httpx2.AsyncClient(
            limits=self._limits,
            verify=_ssl_context(),
            follow_redirects=True,
            event_hooks={"response": [self._limit.abound]},
        )


_Closer = AsyncGenerator[None, None]


async def _close_at_end(client: openai.AsyncOpenAI) -> _Closer:
    try:
        yield
    finally:
        await client.close()


@functools.cache
def _ssl_context() -> ssl.SSLContext:
    return httpx2.create_ssl_context()  # takes a tenth of a second


def _limits(options: PolicyOptions) -> httpx2.Limits:
    most = options.get("max_connections")
    return httpx2.Limits(
        max_connections=most, max_keepalive_connections=most, keepalive_expiry=_KEEPALIVE
    )


class BodyLimit:
    """Bounds how long the body of an answer may take, also if its bytes come one by one.

    Args:
        options: Those of the policy.
    """

    def __init__(self, options: PolicyOptions) -> None:
        self._seconds = options.get("timeout") or _TIMEOUT

    def bound(self, response: httpx2.Response) -> None:
        """Bound an answer whose headers have come."""
        if isinstance(response.stream, httpx2.SyncByteStream):
            response.stream = _BoundStream(response, response.stream, self._seconds)

    async def abound(self, response: httpx2.Response) -> None:
        """Bound an answer whose headers have come."""
        if isinstance(response.stream, httpx2.AsyncByteStream):
            response.stream = _AsyncBoundStream(response, response.stream, self._seconds)


class _Deadline:
    def __init__(self, response: httpx2.Response, seconds: float) -> None:
        self._request = response.request
        self._seconds = seconds
        self._time = time.monotonic() + seconds

    @property
    def left(self) -> float:
        return self._time - time.monotonic()

    def error(self) -> httpx2.ReadTimeout:
        msg = f"the answer had begun, but did not end in {self._seconds} seconds"
        return httpx2.ReadTimeout(msg, request=self._request)


class _BoundStream(httpx2.SyncByteStream):
    def __init__(
        self, response: httpx2.Response, stream: httpx2.SyncByteStream, seconds: float
    ) -> None:
        self._deadline = _Deadline(response, seconds)
        self._stream = stream

    def __iter__(self) -> Iterator[bytes]:
        for chunk in self._stream:
            if self._deadline.left < 0:
                raise self._deadline.error()
            yield chunk

    def close(self) -> None:
        self._stream.close()


class _AsyncBoundStream(httpx2.AsyncByteStream):
    def __init__(
        self, response: httpx2.Response, stream: httpx2.AsyncByteStream, seconds: float
    ) -> None:
        self._deadline = _Deadline(response, seconds)
        self._stream = stream

    async def __aiter__(self) -> AsyncIterator[bytes]:
        chunks = aiter(self._stream)
        chunk: bytes | None = b""
        while chunk is not None:
            yield chunk
            # Cancelled from within, the generators of the libraries below end too.
            with anyio.move_on_after(self._deadline.left) as scope:
                chunk = await anext(chunks, None)
            if scope.cancelled_caught:
                raise self._deadline.error()

    async def aclose(self) -> None:
        await self._stream.aclose()
