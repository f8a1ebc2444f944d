"""Calling functions that may be synchronous or asynchronous from asynchronous code."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import math
import threading
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine
from numbers import Integral
from typing import Any, TypeGuard, TypeVar, cast

import anyio
import anyio.to_thread
from anyio.abc import TaskGroup
from typing_extensions import TypeVarTuple

T = TypeVar("T")
ArgsT = TypeVarTuple("ArgsT")


def is_async(function: Callable[..., object]) -> bool:
    """Tell whether calling the function gives a coroutine, as far as its definition shows."""
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(
        getattr(function, "__call__", None)  # noqa: B004 - the method itself is wanted
    )


def is_awaitable(value: object) -> TypeGuard[Awaitable[Any]]:
    """Tell whether a value can be awaited, in a tenth of the time of `inspect.isawaitable`."""
    return hasattr(value, "__await__")


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
        BaseException: What the function raises. When the caller is cancelled a call on the worker
            thread that has begun is left to run out, and its result is dropped.
    """
    if inline or is_async(function):
        result = function(*args)
    else:
        begun = threading.Lock()  # whoever takes it first decides: the thread, or the cancellation
        try:
            results, error = await anyio.to_thread.run_sync(
                lambda: _outcome(begun, function, *args),
                abandon_on_cancel=True,
                limiter=anyio.CapacityLimiter(1),
            )
        except BaseException:
            begun.acquire(blocking=False)
            raise
        if error is not None:
            if isinstance(error, RuntimeError) and "event loop" in str(error):
                error.add_note(
                    f"{function!r} was called on a worker thread, since it is not a coroutine "
                    "function: make it one, or pass inline=True"
                )
            raise error
        [result] = results
    if is_awaitable(result):
        return await result
    return cast("T", result)


def _outcome(
    begun: threading.Lock, function: Callable[[*ArgsT], T], *args: *ArgsT
) -> tuple[list[T], BaseException | None]:
    """Return a result in a list, or an error, since not all of either gets out of a thread.

    Nothing is called if the lock is taken, since the caller has gone.

    trio refuses a coroutine as a result, and what anyio does around a call fails for an exception
    that takes no attributes, as a frozen data class does.
    """
    if not begun.acquire(blocking=False):
        return [], None
    try:
        return [function(*args)], None
    except BaseException as error:  # raised on the event loop
        return [], error


def async_form(grader: Callable[[*ArgsT], T]) -> Callable[[*ArgsT], T]:
    """Return a grader's method `ascore`, or the grader itself if it has none.

    A subclass that overrides `__call__` alone means its calls to go there.
    """
    for kind in inspect.getmro(type(grader)):
        if "ascore" in vars(kind):
            return cast("Any", grader).ascore
        if "__call__" in vars(kind):
            break
    return grader


@contextlib.asynccontextmanager
async def task_group() -> AsyncGenerator[TaskGroup]:
    """Open a task group whose tasks raise nothing but cancellation.

    Raises:
        BaseException: What interrupted the wait for the tasks, as it is: trio raises Ctrl-C in the
            task that waits, and its nursery would put it into a group.
    """
    try:
        async with anyio.create_task_group() as tasks:
            yield tasks
    except BaseExceptionGroup as group:
        _, interrupts = group.split(anyio.get_cancelled_exc_class())
        raise (interrupts or group).exceptions[0] from None


async def run_workers(
    work: Callable[[anyio.CancelScope], Coroutine[Any, Any, None]], count: int
) -> None:
    """Run so many copies of a worker at the same time, and wait for all of them.

    Args:
        work: Called with the scope in which the copies run, through which one may cancel the others.
            Raises nothing but cancellation.
        count: How many copies.

    Raises:
        BaseException: As `task_group`.
    """
    async with task_group() as tasks:
        for _ in range(count):
            tasks.start_soon(work, tasks.cancel_scope)


def uncancelled(error: BaseException) -> BaseException | None:
    """Return what an exception is beside a cancellation, which a trio nursery puts into a group."""
    cancellation = anyio.get_cancelled_exc_class()
    if isinstance(error, BaseExceptionGroup):
        return cast("BaseExceptionGroup[Any]", error).split(cancellation)[1]
    return None if isinstance(error, cancellation) else error


class RefuseStrayCancellation:
    """Turns a cancellation that nobody asked for into an error, in a `with` block.

    In asyncio any code may raise `CancelledError`: by awaiting a task that was cancelled, say. A task
    group that an environment keeps open cancels the code around it when one of its tasks fails. Were
    this let through, the task that runs the code would end without a trace.

    Args:
        place: Where it would come from, for the error message.

    Raises:
        RuntimeError: The code inside was cancelled, and its caller was not.
    """

    def __init__(self, place: object) -> None:
        self._place = place

    def __enter__(self) -> None:
        return None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: object
    ) -> None:
        if error is None:
            return
        stray = uncancelled(error) is None or isinstance(error, asyncio.CancelledError)
        if stray and not _is_cancelled():
            msg = f"{self._place} ended in a cancellation that its caller did not ask for"
            raise RuntimeError(msg) from error


def _is_cancelled() -> bool:
    """Tell whether the present task is being cancelled, through a scope or by asyncio itself."""
    if anyio.current_effective_deadline() == -math.inf:
        return True
    if anyio.get_cancelled_exc_class() is not asyncio.CancelledError:
        return False
    task = asyncio.current_task()
    return task is None or task.cancelling() > 0


def read_concurrency(
    concurrency: int | anyio.CapacityLimiter, count: int
) -> tuple[contextlib.AbstractAsyncContextManager[Any], int]:
    """Return what a worker enters for each piece of work, and how many workers there should be.

    Args:
        concurrency: How many pieces may be worked on at once, or a limiter that says so, and that
            may be shared.
        count: How many pieces there are.

    Raises:
        TypeError: `concurrency` is neither an integer nor a limiter.
        ValueError: It is less than 1.
    """
    if isinstance(concurrency, anyio.CapacityLimiter):
        # A limiter may be without tokens now and get some later.
        return concurrency, int(min(count, max(concurrency.total_tokens, 1)))
    check_count("concurrency", concurrency)
    return contextlib.nullcontext(), min(count, concurrency)


def check_count(name: str, value: int, *, least: int = 1) -> None:
    """Refuse what is not a number of things.

    Raises:
        TypeError: The value is not an integer.
        ValueError: It is less than there must be at least.
    """
    if not isinstance(cast("object", value), Integral) or isinstance(value, bool):
        msg = f"{name} must be an integer, got {value!r}"
        raise TypeError(msg)
    if value < least:
        msg = f"{name} must be at least {least}, got {value!r}"
        raise ValueError(msg)
