"""Grades that are being made, for which others wait."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Generator
from contextvars import ContextVar

import anyio

from rolloutlib.envs._threads import find_call_soon

_making: ContextVar[tuple[Flight, ...]] = ContextVar("rolloutlib_flights", default=())


class Flights:
    """The grades that one process is making, by their keys."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._flights: dict[str, Flight] = {}

    def claim(self, key: str, *, blocking: bool) -> tuple[Flight, bool]:
        """Return the making of a grade, and whether it is up to the caller.

        It is if nobody makes it yet, or whoever does could not go on while the caller waits.

        Args:
            key: What is graded.
            blocking: Whether the caller would wait by blocking its thread.
        """
        flight = Flight()
        with self._lock:
            made = self._flights.setdefault(key, flight)
        is_ours = made is flight or made.needs_caller(blocking=blocking)
        return (flight, True) if is_ours else (made, False)

    @contextlib.contextmanager
    def making(self, key: str, flight: Flight) -> Generator[None]:
        """Have a grade made by what is called, in a `with` block; its end wakes all who wait."""
        before = _making.get()
        _making.set((*before, flight))
        try:
            yield
        finally:
            _making.set(before)
            with self._lock:
                if self._flights.get(key) is flight:
                    del self._flights[key]
            flight.land()


class Flight:
    """A grade that is being made, and who waits for it."""

    def __init__(self) -> None:
        self._thread = threading.get_ident()  # that makes it, or whose event loop does
        self._lock = threading.Lock()
        self._landed = False
        self._waiting: list[Callable[[], object]] = []

    def needs_caller(self, *, blocking: bool) -> bool:
        """Tell whether it could not go on while the caller waits for it.

        The caller is part of its making, or, if it waits by blocking its thread, holds up the event
        loop that makes it.
        """
        return self in _making.get() or (blocking and self._thread == threading.get_ident())

    def wait(self) -> None:
        """Wait until it is there, or has failed."""
        event = threading.Event()
        if self._tell(event.set):
            event.wait()

    async def await_(self) -> None:
        """Wait for the same in an event loop."""
        event = anyio.Event()
        call_soon = find_call_soon()
        if self._tell(lambda: call_soon(event.set)):
            await event.wait()

    def land(self) -> None:
        """Wake all who wait."""
        with self._lock:
            self._landed = True
        for wake in self._waiting:
            with contextlib.suppress(RuntimeError):  # an event loop that has ended
                wake()

    def _tell(self, wake: Callable[[], object]) -> bool:
        with self._lock:
            if not self._landed:
                self._waiting.append(wake)
            return not self._landed
