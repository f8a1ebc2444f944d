"""An event loop on a thread of its own, for one asynchronous environment."""

from __future__ import annotations

import concurrent.futures
import contextlib
import logging
import threading
import warnings
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from typing import Any, TypeVar

import anyio
from anyio.from_thread import BlockingPortal

from rolloutlib._calls import RefuseStrayCancellation

T = TypeVar("T")

GRACE_SECONDS = 5.0
"""How long an interrupted call may take to react to its cancellation."""

_logger = logging.getLogger("rolloutlib")


class Portal:
    """Runs coroutines for synchronous callers, all on one event loop that other threads call.

    The loop starts with the first call. Its thread is a daemon: a coroutine that never returns does
    not hold up the end of the process. A copy starts a loop of its own.

    Args:
        name: The name of the thread.
        backend: The event loop: "asyncio" or "trio".
        cleanup: Runs on the loop when a call that was abandoned has ended.

    Raises:
        ValueError: There is no such event loop.
    """

    def __init__(self, name: str, backend: str, cleanup: Callable[[], Awaitable[object]]) -> None:
        if backend not in anyio.get_all_backends():
            msg = f"backend must be one of {anyio.get_all_backends()}, got {backend!r}"
            raise ValueError(msg)
        self.closed = False
        self._name = name
        self._backend = backend
        self._cleanup = cleanup
        self._lock = threading.Lock()
        self._ready: Future[BlockingPortal] | None = None
        self._thread: threading.Thread | None = None

    def run(self, function: Callable[[], Awaitable[T]]) -> T:
        """Run a coroutine function on the loop, after all earlier calls, and return its result.

        Raises:
            BaseException: What the coroutine raises. An interrupt (Ctrl-C) that reaches the waiting
                caller cancels the coroutine, waits at most `GRACE_SECONDS` for that to take effect
                (a second interrupt ends the wait), and comes out. If the coroutine has not ended by
                then it is abandoned: the portal is closed, and the cleanup runs when it ends.
        """
        with self._lock:
            outcome: Future[T] = Future()
            claimed = threading.Lock()  # by the coroutine when it ends, or by who abandons it

            async def run() -> None:
                # Whatever is raised goes to the caller alone: an interrupt would end the loop.
                try:
                    with RefuseStrayCancellation(self._name):
                        outcome.set_result(await function())
                except BaseException as error:
                    outcome.set_exception(error)
                if not claimed.acquire(blocking=False):
                    await self._clean_up_unwatched()

            task = self._started().start_task_soon(run)
            try:
                return outcome.result()
            except BaseException:
                if not outcome.done():  # the wait was interrupted; the coroutine is still running
                    self.closed = True
                    # On a thread, since anyio before 4.16 waits here for the loop, which the
                    # coroutine may be holding up.
                    threading.Thread(target=task.cancel, daemon=True).start()
                    try:
                        concurrent.futures.wait([outcome], GRACE_SECONDS)
                    finally:
                        self.closed = claimed.acquire(blocking=False)
                raise

    def close(self) -> None:
        """End the loop and its thread; on a closed portal this does nothing."""
        if self.closed:
            return
        self.closed = True
        if self._ready is not None and self._thread is not None:
            portal = self._ready.result()
            portal.call(portal.stop)
            self._thread.join(GRACE_SECONDS)

    def _started(self) -> BlockingPortal:
        if self._ready is None:
            ready: Future[BlockingPortal] = Future()
            self._thread = threading.Thread(
                target=_serve, args=(ready, self._backend), name=self._name, daemon=True
            )
            self._thread.start()
            self._ready = ready
        return self._ready.result()

    async def _clean_up_unwatched(self) -> None:
        with anyio.CancelScope(shield=True):
            try:
                await self._cleanup()
            except Exception:
                _logger.exception("%s: closing failed after a call was abandoned", self._name)
            await self._started().stop()

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self._name, self._backend, self._cleanup), {"closed": self.closed}

    def __del__(self) -> None:
        ready = getattr(self, "_ready", None)  # absent if the construction failed
        if ready is not None and not self.closed:
            with contextlib.suppress(RuntimeError):  # the loop has ended, or this runs on it
                ready.result().start_task_soon(ready.result().stop)
            warnings.warn(
                f"{self._name} was never closed", ResourceWarning, stacklevel=2, source=self
            )


def _serve(ready: Future[BlockingPortal], backend: str) -> None:
    async def serve() -> None:
        async with BlockingPortal() as portal:
            ready.set_result(portal)
            await portal.sleep_until_stopped()

    try:
        anyio.run(serve, backend=backend)
    except BaseException as error:
        if ready.done():
            raise
        ready.set_exception(error)
