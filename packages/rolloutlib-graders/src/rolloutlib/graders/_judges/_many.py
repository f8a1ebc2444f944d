"""Calling a function for many inputs, several at a time, with the errors kept or raised."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any, Literal, TypeAlias, TypeVar, get_args

import anyio
import anyio.lowlevel

from rolloutlib._calls import RefuseStrayCancellation, read_concurrency, run_workers
from rolloutlib.graders._awaitables import AwaitableError

ItemT = TypeVar("ItemT")
T = TypeVar("T")

OnError: TypeAlias = Literal["raise", "record"]


def check_on_error(on_error: object) -> None:
    """Refuse what is no policy for errors.

    Raises:
        ValueError: It is not.
    """
    if on_error not in get_args(OnError):
        msg = f"on_error must be one of {get_args(OnError)}, got {on_error!r}"
        raise ValueError(msg)


def read_cases(cases: Iterable[ItemT], kind: type[ItemT], name: str) -> list[ItemT]:
    """Return what a measurement is made over, before anything is spent on it.

    Args:
        cases: Those that were given.
        kind: What each has to be.
        name: What they are called, for error messages.

    Raises:
        TypeError: One is something else.
        ValueError: There are none.
    """
    known = list(cases)
    for index, case in enumerate(known):
        if not isinstance(case, kind):
            msg = f"{name}[{index}] must be a {kind.__name__}, got {case!r}"
            raise TypeError(msg)
    if not known:
        msg = f"{name} must hold at least one {kind.__name__}, got none"
        raise ValueError(msg)
    return known


def map_all(
    function: Callable[[ItemT], T], items: Iterable[ItemT], *, on_error: OnError
) -> list[T | Exception]:
    """Return what the function returns for each item, in their order.

    Args:
        function: Called with one item after another.
        items: What it is called with.
        on_error: "record" puts an exception in the place of a result.

    Raises:
        AwaitableError: A result would have to be awaited, whatever `on_error` says.
        BaseException: What the function raises, unless it is recorded.
    """
    results: list[T | Exception] = []
    for item in items:
        try:
            results.append(function(item))
        except AwaitableError:
            raise
        except Exception as error:
            if on_error == "raise":
                raise
            results.append(error)
    return results


async def amap_all(
    function: Callable[[ItemT], Awaitable[T]],
    items: Sequence[ItemT],
    *,
    on_error: OnError,
    concurrency: int | anyio.CapacityLimiter,
) -> list[T | Exception]:
    """The asynchronous twin of `map_all`.

    When an exception is raised the other calls are cancelled, and waited for.

    Args:
        function: Called with several items at the same time.
        items: What it is called with.
        on_error: "record" puts an exception in the place of a result.
        concurrency: How many calls there are at once, or a limiter that is shared.

    Raises:
        BaseException: What the function raises, unless it is recorded; of several the first.
    """
    if not items:
        return []
    limiter, num_workers = read_concurrency(concurrency, len(items))
    remaining = iter(enumerate(items))
    results: dict[int, T | Exception] = {}
    failures: list[BaseException] = []

    async def work(scope: anyio.CancelScope) -> None:
        for index, item in remaining:
            try:
                async with limiter:
                    await anyio.lowlevel.checkpoint_if_cancelled()
                    with RefuseStrayCancellation(function):
                        results[index] = await function(item)
            except BaseException as error:  # comes out below, and not in an ExceptionGroup
                if isinstance(error, Exception) and on_error == "record":
                    results[index] = error
                    continue
                failures.append(error)
                scope.cancel()
                if isinstance(error, anyio.get_cancelled_exc_class()):
                    raise
                return

    await run_workers(work, num_workers)
    if failures:
        cancelled = anyio.get_cancelled_exc_class()
        raise min(failures, key=lambda error: _urgency(error, cancelled))
    return [results[index] for index in range(len(items))]


def _urgency(error: BaseException, cancelled: type[BaseException]) -> Any:
    """Order what to raise: an interrupt, else the first error, else a cancellation."""
    return isinstance(error, cancelled), isinstance(error, Exception)
