"""A thread that one synchronous environment lives on."""

from __future__ import annotations

import logging
import queue
import threading
import warnings
from collections.abc import Callable
from typing import Any, TypeAlias, TypeVar

import anyio

from rolloutlib.envs._threads import Call, find_call_soon

T = TypeVar("T")
_Calls: TypeAlias = "queue.SimpleQueue[tuple[Callable[[], object], bool]]"
"""Calls, and whether they are the last."""

_logger = logging.getLogger("rolloutlib")


class Worker:
    """Runs calls one after another on a thread of its own.

    Calls may come from any task of any event loop, or of several loops in succession. The thread
    starts with the first call. It is a daemon: a call that never returns does not hold up the end
    of the process. A copy starts a thread of its own.

    Args:
        name: The name of the thread.
        cleanup: Runs once, as the thread's last call.
    """

    def __init__(self, name: str, cleanup: Callable[[], object]) -> None:
        self.closed = False
        self._name = name
        self._cleanup = cleanup
        self._calls: _Calls = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._ending: _Call[object] | None = None  # the cleanup

    async def run(self, function: Callable[[], T]) -> T:
        """Run a function on the thread and return its result.

        Raises:
            BaseException: What the function raises, or the caller's cancellation. In the latter
                case a call that has not begun is dropped. One that has begun is abandoned: it is
                left to run out, the cleanup follows it, and the worker is closed from now on.
        """
        call = _Call(function)
        self._put(call.run)
        try:
            await call.finished.wait()
        except BaseException:
            if not call.claim():
                self.closed = True
                self._ending = _Call(self._clean_up_unwatched)
                self._put(self._ending.run, is_last=True)
            raise
        return call.result()

    async def close(self) -> None:
        """Run the cleanup after all earlier calls, then let the thread end.

        The cleanup runs even if the caller is cancelled while it waits. On a closed worker this
        does nothing; in particular it does not wait for an abandoned call.

        Raises:
            BaseException: What the cleanup raises.
        """
        if self.closed:
            return
        self.closed = True
        self._ending = call = _Call(self._cleanup)
        self._put(call.run, is_last=True)
        await call.finished.wait()
        call.result()

    async def wait_abandoned(self) -> None:
        """Wait until an abandoned call has run out and the cleanup is done; `close` may be that call.

        To be called on the event loop of the caller who abandoned it.
        """
        if self._ending is not None:
            await self._ending.finished.wait()

    def _put(self, function: Callable[[], object], *, is_last: bool = False) -> None:
        """Hand a call over; in one piece with the news that it is the last, for Ctrl-C may come between."""
        if self._thread is None:
            self._thread = threading.Thread(
                target=_work, args=(self._calls,), name=self._name, daemon=True
            )
            self._thread.start()
        self._calls.put((function, is_last))

    def _clean_up_unwatched(self) -> None:
        try:
            self._cleanup()
        except Exception:
            _logger.exception("%s: closing failed after a call was abandoned", self._name)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self._name, self._cleanup), {"closed": self.closed}

    def __del__(self) -> None:
        if self._thread is not None and not self.closed:
            self._calls.put((_nothing, True))
            warnings.warn(
                f"{self._name} was never closed", ResourceWarning, stacklevel=2, source=self
            )


class _Call(Call[T]):
    """A call on its way from an event loop to the thread and back."""

    def __init__(self, function: Callable[[], T]) -> None:
        super().__init__()
        self.finished = anyio.Event()
        self._function = function
        self._call_soon = find_call_soon()

    def run(self) -> None:
        """Run the function on the present thread, unless the caller has gone before."""
        if not self.claim():
            return
        try:
            self._value = self.context.run(self._function)
        except BaseException as error:  # the caller gets it, whatever it is
            self._error = error
        try:
            self._call_soon(self.finished.set)
        except RuntimeError:  # the event loop has ended, and the caller with it
            _logger.debug("nobody is left to take the result of %r", self._function)


def _nothing() -> None:
    pass


def _work(calls: _Calls) -> None:
    is_last = False
    while not is_last:
        function, is_last = calls.get()
        function()
        del function  # an idle thread keeps no call's arguments and results alive
