"""What it takes to hand a call from one thread to another and its result back."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from contextvars import copy_context
from typing import Any, Generic, TypeVar, cast

from anyio.lowlevel import current_token

T = TypeVar("T")


class Call(Generic[T]):
    """A call that one thread asks for and another one makes.

    Args:
        backend: The event loop that runs on the other thread, if one does.

    Attributes:
        context: The context variables of the thread that asks.
    """

    def __init__(self, backend: str | None = None) -> None:
        self.context = copy_context()
        # The mark of the event loop that runs in this thread does not hold in the other one: there
        # it would forbid to start a loop, or name the wrong one.
        if sniffio := sys.modules.get("sniffio"):
            self.context.run(sniffio.current_async_library_cvar.set, backend)
        self._claimed = threading.Lock()
        self._error: BaseException | None = None
        self._value: T

    def claim(self) -> bool:
        """Take the right to decide, which both threads may want: the first to ask gets it."""
        return self._claimed.acquire(blocking=False)

    def result(self) -> T:
        """Return what the call returned, or raise its error, once."""
        if self._error is None:
            return self._value
        try:
            raise self._error
        finally:
            self._error = None  # else error, traceback and frame would keep each other alive


def find_call_soon() -> Callable[..., object]:
    """Return the one method of the running event loop that other threads may call.

    It takes a function and its arguments, and has the loop call it soon. After the loop's end it
    raises `RuntimeError`.
    """
    loop = cast("Any", current_token().native_token)  # asyncio's loop or trio's token
    return getattr(loop, "call_soon_threadsafe", None) or loop.run_sync_soon
