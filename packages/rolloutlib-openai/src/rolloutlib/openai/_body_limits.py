"""Time limits of whole answers; those of HTTP libraries are for the wait between two bytes."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Iterator

import anyio

from rolloutlib.openai._http import httpx


class BodyLimit:
    """Bounds how long the body of an answer may take, also if its bytes come one by one.

    Args:
        seconds: From when its headers have come.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds

    def bound(self, response: httpx.Response) -> None:
        """Bound an answer whose headers have come."""
        if isinstance(response.stream, httpx.SyncByteStream):
            response.stream = _BoundStream(response, response.stream, self._seconds)

    async def abound(self, response: httpx.Response) -> None:
        """Bound an answer whose headers have come."""
        if isinstance(response.stream, httpx.AsyncByteStream):
            response.stream = _AsyncBoundStream(response, response.stream, self._seconds)


class _Deadline:
    def __init__(self, response: httpx.Response, seconds: float) -> None:
        self._request = response.request
        self._seconds = seconds
        self._time = time.monotonic() + seconds

    @property
    def left(self) -> float:
        return self._time - time.monotonic()

    def error(self) -> httpx.ReadTimeout:
        msg = f"the answer had begun, but did not end in {self._seconds} seconds"
        return httpx.ReadTimeout(msg, request=self._request)


class _BoundStream(httpx.SyncByteStream):
    def __init__(
        self, response: httpx.Response, stream: httpx.SyncByteStream, seconds: float
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


class _AsyncBoundStream(httpx.AsyncByteStream):
    def __init__(
        self, response: httpx.Response, stream: httpx.AsyncByteStream, seconds: float
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
