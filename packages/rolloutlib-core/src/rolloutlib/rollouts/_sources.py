"""Where a run takes its items from: any iterable, finite or endless, asynchronous or not."""

from __future__ import annotations

import contextlib
from abc import ABC, abstractmethod
from collections.abc import (
    AsyncGenerator,
    AsyncIterable,
    Generator,
    Iterable,
    Iterator,
)
from typing import Any, Generic, TypeAlias, cast

import anyio
from anyio.abc import TaskGroup

from rolloutlib._calls import RefuseStrayCancellation, uncancelled
from rolloutlib.envs._worker import Worker
from rolloutlib.rollouts._trajectories import ItemT

CLOSE_SECONDS = 30.0
"""How long a generator of items may take to close."""

Items: TypeAlias = Iterable[ItemT] | AsyncIterable[ItemT]


class Source(ABC, Generic[ItemT]):
    """Gives one item after another, to one task at a time."""

    def open(self, tasks: TaskGroup) -> None:
        """Begin; a task that the source needs is started in the group."""

    @abstractmethod
    async def take(self) -> tuple[ItemT] | None:
        """Return the next item in a tuple of one, or None if there is none.

        Raises:
            BaseException: What reading it raises.
        """

    @abstractmethod
    async def close(self) -> None:
        """Stop reading; a generator is closed."""


class InlineSource(Source[ItemT]):
    """Reads an iterable on the event loop."""

    def __init__(self, items: Iterable[ItemT]) -> None:
        self._items = iter(items)

    async def take(self) -> tuple[ItemT] | None:
        """Return the next item."""
        return take(self._items)

    async def close(self) -> None:
        """Stop reading."""
        close(self._items)


class ThreadSource(Source[ItemT]):
    """Reads an iterable, which may block, on a thread of its own."""

    def __init__(self, items: Iterable[ItemT]) -> None:
        iterator = iter(items)
        self._items = iterator
        self._worker = Worker("rolloutlib items", lambda: close(iterator))

    async def take(self) -> tuple[ItemT] | None:
        """Return the next item."""
        return await self._worker.run(lambda: take(self._items))

    async def close(self) -> None:
        """Stop reading, and end the thread."""
        with anyio.move_on_after(CLOSE_SECONDS, shield=True):
            await self._worker.close()


class AsyncSource(Source[ItemT]):
    """Reads an asynchronous iterable from beginning to end in one task, as scopes in it want it."""

    def __init__(self, items: AsyncIterable[ItemT]) -> None:
        self._items = aiter(items)
        self._opened = False
        self._error: BaseException | None = None

    def open(self, tasks: TaskGroup) -> None:
        """Begin to read, one item ahead."""
        self._opened = True
        self._send, self._receive = anyio.create_memory_object_stream[tuple[ItemT]]()
        tasks.start_soon(self._read)

    async def take(self) -> tuple[ItemT] | None:
        """Return the next item."""
        with contextlib.suppress(anyio.EndOfStream):
            return await self._receive.receive()
        if self._error is not None:
            raise self._error
        return None

    async def close(self) -> None:
        """Stop reading."""
        if self._opened:
            self._receive.close()
        else:
            await self._close_items()

    async def _read(self) -> None:
        try:
            with RefuseStrayCancellation("the source of the items"):
                await self._send_items()
        except BaseException as error:  # comes out where an item is taken
            if uncancelled(error) is None:
                raise
            self._error = error
        finally:
            self._send.close()

    async def _send_items(self) -> None:
        try:
            async for item in self._items:
                await self._send.send((item,))
        except anyio.BrokenResourceError:
            pass  # nobody takes more
        finally:
            await self._close_items()

    async def _close_items(self) -> None:
        items: object = self._items
        if isinstance(items, AsyncGenerator):
            with anyio.move_on_after(CLOSE_SECONDS, shield=True):
                await cast("AsyncGenerator[ItemT, None]", items).aclose()


def open_source(items: Items[ItemT], *, inline: bool) -> Source[ItemT]:
    """Return a source over items.

    Args:
        items: What has a length is read on the event loop, another iterable on a thread.
        inline: Read it on the event loop, whatever it is.

    Raises:
        TypeError: The items cannot be iterated over.
    """
    if isinstance(items, AsyncIterable):
        return AsyncSource(items)
    iterable = check_items(items)
    if inline or hasattr(iterable, "__len__"):
        return InlineSource(iterable)
    return ThreadSource(iterable)


def check_items(items: Items[ItemT]) -> Iterable[ItemT]:
    """Return items that synchronous code can iterate over.

    Raises:
        TypeError: They are not such.
    """
    if isinstance(items, (str, bytes)) or not isinstance(items, Iterable):
        msg = f"items must be an iterable of items, got {cast('Any', items)!r}"
        raise TypeError(msg)
    return items


def take(items: Iterator[ItemT]) -> tuple[ItemT] | None:
    """Return the next item in a tuple of one, or None: `StopIteration` gets out of no coroutine."""
    for item in items:
        return (item,)
    return None


def close(items: Iterator[Any]) -> None:
    """Close a generator; leave any other iterator as it is."""
    if isinstance(items, Generator):
        cast("Generator[Any, Any, Any]", items).close()
