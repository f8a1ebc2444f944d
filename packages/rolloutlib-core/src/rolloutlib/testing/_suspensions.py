"""Awaiting something while looking at each of its suspensions."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Awaitable, Callable, Generator
from typing import Any, Generic, TypeVar

import anyio

T = TypeVar("T")

MOST_CANCELLATIONS = 100
"""What goes on after so many cancellations never ends."""


class Suspensions(Generic[T]):
    """Passes through all that an awaitable says to the event loop and hears from it.

    Args:
        awaitable: The awaitable.
        on_suspend: Called before each suspension with its number, from 0.

    Attributes:
        cancelled_at: The numbers of the suspensions that ended in a cancellation.
        returned: Whether the awaitable has returned, and not raised.
    """

    def __init__(self, awaitable: Awaitable[T], on_suspend: Callable[[int], None]) -> None:
        self.cancelled_at: list[int] = []
        self.returned = False
        self._awaitable = awaitable
        self._on_suspend = on_suspend

    def __await__(self) -> Generator[Any, Any, T]:
        steps: Any = self._awaitable.__await__()
        advance: Callable[[], Any] = functools.partial(next, steps)
        number = 0
        while True:
            try:
                signal = advance()
            except StopIteration as end:
                self.returned = True
                return end.value
            self._on_suspend(number)
            answer = None
            error: BaseException | None = None
            try:
                answer = yield signal
            except BaseException as thrown:  # asyncio's way to tell of a cancellation
                error = thrown
                advance = functools.partial(steps.throw, thrown)
            else:
                error = getattr(answer, "error", None)  # trio's way
                send = functools.partial(steps.send, answer)
                advance = functools.partial(next, steps) if answer is None else send
            if isinstance(error, anyio.get_cancelled_exc_class()):
                self.cancelled_at.append(number)
                if len(self.cancelled_at) >= MOST_CANCELLATIONS:
                    with contextlib.suppress(RuntimeError):  # it does not even react to this
                        steps.close()
                    raise error
            number += 1
