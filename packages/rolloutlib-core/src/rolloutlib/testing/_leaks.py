"""What is alive after a run and should not be."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection

import anyio

_POOLS = ("AnyIO worker thread", "Trio thread", "asyncio_")
"""Threads that their libraries keep for later calls, while they have none."""


def running_tasks() -> dict[int, str]:
    """Return the names of the tasks of the present event loop."""
    return {task.id: task.name or "a task" for task in anyio.get_running_tasks()}


def wait_for_threads(
    before: Collection[threading.Thread], patience: float, is_quiet: Callable[[], bool]
) -> list[str]:
    """Wait until no thread is alive but those of before, and return the names of those that stay.

    Args:
        before: The threads that were alive before the run.
        patience: How many seconds to wait.
        is_quiet: Tells whether no call of the run is at work any more, on whatever thread.
    """
    end = time.monotonic() + patience
    while True:
        alive = [
            thread.name
            for thread in threading.enumerate()
            if thread not in before and not thread.name.startswith(_POOLS)
        ]
        if not alive and is_quiet():
            return []
        if time.monotonic() > end:
            return alive
        time.sleep(0.001)
