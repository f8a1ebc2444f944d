"""Calling graders that may take too long."""

from __future__ import annotations

import math
import threading
from collections.abc import Awaitable, Callable
from typing import TypeVar

import anyio
from typing_extensions import TypeVarTuple

from rolloutlib._calls import uncancelled
from rolloutlib._values import to_float
from rolloutlib.envs._threads import Call

T = TypeVar("T")
ArgsT = TypeVarTuple("ArgsT")


def read_timeout(seconds: float | None) -> float | None:
    """Return a limit as a number of seconds above 0, or None if there is none.

    Raises:
        TypeError: It is not a number.
        ValueError: It is not positive.
    """
    if seconds is None or seconds == math.inf:
        return seconds
    plain = to_float(seconds, "timeout")
    if plain <= 0:
        msg = f"timeout must be positive, got {seconds!r}"
        raise ValueError(msg)
    return plain


def call_within(seconds: float, function: Callable[[*ArgsT], T], *args: *ArgsT) -> T:
    """Call a function on a thread of its own, and wait for it no longer than its time.

    Raises:
        TimeoutError: It took longer. It is left to run out, and its result is dropped.
        BaseException: What the function raises.
    """
    results: list[T] = []
    errors: list[BaseException] = []
    done = threading.Event()
    context = Call[T]().context

    def run() -> None:
        try:
            results.append(context.run(function, *args))
        except BaseException as error:  # raised in the caller
            errors.append(error)
        finally:
            done.set()

    threading.Thread(target=run, name="rolloutlib grader", daemon=True).start()
    if not done.wait(min(seconds, threading.TIMEOUT_MAX)):
        raise _timeout(seconds)
    if errors:
        raise errors[0]
    return results[0]


async def acall_within(
    seconds: float, function: Callable[[*ArgsT], Awaitable[T]], *args: *ArgsT
) -> T:
    """Await a coroutine function, no longer than its time.

    Raises:
        TimeoutError: It took longer, and was cancelled; also if it took no notice of that, or held up
            the event loop, which then had no chance to cancel it.
        BaseException: What the function raises.
    """
    cause: BaseException | None = None
    deadline = anyio.current_time() + seconds
    with anyio.CancelScope(deadline=deadline) as scope:
        try:
            result = await function(*args)
            if not scope.cancel_called and anyio.current_time() < deadline:
                return result
        except BaseException as error:  # a function may make anything of its cancellation
            cause = uncancelled(error)
            if not scope.cancel_called or not isinstance(cause, Exception):
                raise
    raise _timeout(seconds) from cause


def _timeout(seconds: float) -> TimeoutError:
    return TimeoutError(f"grading took longer than {seconds} s")
