"""A clock that leaps, so that no check waits for a time-out or depends on how long a call takes."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine
from typing import Any

import anyio

LIMIT = 3600.0
"""The time-out of every call in seconds: no call takes so long, unless the clock leaps."""


class LeapingClock:
    """The clock of one event loop: real time, and what was leapt over."""

    def __init__(self) -> None:
        self._leapt = 0.0

    def leap(self) -> None:
        """Let all time-outs pass."""
        self._leapt += 2 * LIMIT

    def run(self, function: Callable[[], Coroutine[Any, Any, None]], backend: str) -> None:
        """Run a coroutine function on a new event loop that goes by this clock.

        Args:
            function: The function.
            backend: The kind of event loop: "asyncio" or "trio".
        """
        clock = {"clock": self} if backend == "trio" else {"loop_factory": self._make_loop}
        anyio.run(function, backend=backend, backend_options=clock)

    def current_time(self) -> float:
        """Return the time in seconds."""
        return time.monotonic() + self._leapt

    # What trio asks of a clock besides.

    def start_clock(self) -> None:
        """Do nothing: the clock goes."""

    def deadline_to_sleep_time(self, deadline: float) -> float:
        """Return how many seconds are left until the deadline, unless the clock leaps."""
        return deadline - self.current_time()

    def _make_loop(self) -> asyncio.AbstractEventLoop:
        loop = asyncio.new_event_loop()
        loop.time = self.current_time
        return loop
