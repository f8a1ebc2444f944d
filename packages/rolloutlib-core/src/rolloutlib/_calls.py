"""Calling functions that may be synchronous or asynchronous from asynchronous code."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from typing import TypeVar

import anyio
import anyio.to_thread
from typing_extensions import TypeVarTuple

T = TypeVar("T")
ArgsT = TypeVarTuple("ArgsT")


def is_async(function: Callable[..., object]) -> bool:
    """Tell whether calling the function gives a coroutine, as far as its definition shows."""
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(
        getattr(function, "__call__", None)  # noqa: B004 - the method itself is wanted
    )


async def call(
    function: Callable[[*ArgsT], T | Awaitable[T]],
    *args: *ArgsT,
    inline: bool = False,
) -> T:
    """Call a function, and await what it returns if that can be awaited.

    Args:
        function: A coroutine function is called on the event loop. Any other may block, so it is
            called on a worker thread; if it turns out to return an awaitable, that is awaited on
            the loop. Each call has a thread to itself: no pool limits how many block at once.
        args: Its arguments.
        inline: Call it on the event loop, whatever it is.

    Raises:
        BaseException: What the function raises. When the caller is cancelled the call on the worker
            thread is left to run out, and its result is dropped.
    """
    if inline or is_async(function):
        result = function(*args)
    else:
        # In a list, since trio refuses a coroutine as the result of a thread.
        [result] = await anyio.to_thread.run_sync(
            lambda: [function(*args)], abandon_on_cancel=True, limiter=anyio.CapacityLimiter(1)
        )
    if inspect.isawaitable(result):
        return await result
    return result
