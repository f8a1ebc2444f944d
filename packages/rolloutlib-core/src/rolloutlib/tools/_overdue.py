"""Time limits of functions that block, for callers that block too."""

from __future__ import annotations

import contextvars
import queue
import threading
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


class OverdueError(Exception):
    """A function did not return in time."""


def run_within(seconds: float, function: Callable[[], T]) -> T:
    """Call a function on a thread of its own, which is left to itself when the time is over.

    Raises:
        OverdueError: The function has not returned by then.
        BaseException: What it raises.
    """
    results: queue.SimpleQueue[tuple[list[T], BaseException | None]] = queue.SimpleQueue()
    context = contextvars.copy_context()

    def run() -> None:
        try:
            results.put(([context.run(function)], None))
        except BaseException as error:
            results.put(([], error))

    threading.Thread(target=run, name="rolloutlib tool", daemon=True).start()
    try:
        values, error = results.get(timeout=seconds)
    except queue.Empty:
        raise OverdueError from None
    if error is not None:
        raise error
    return values[0]
