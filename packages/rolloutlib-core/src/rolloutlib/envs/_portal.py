"""An event loop on a thread of its own, for one asynchronous environment."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from typing import TypeVar

import anyio
from anyio.from_thread import BlockingPortal

T = TypeVar("T")

GRACE_SECONDS = 5.0
"""How long an interrupted call may take to react to its cancellation."""


class Portal:
    """Runs coroutines for synchronous callers, all on one event loop that other threads call.

    The loop starts with the first call. Its thread is a daemon: a coroutine that never returns does
    not hold up the end of the process.

    Args:
        name: The name of the thread.
        backend: The event loop: "asyncio" or "trio".
    """

    def __init__(self, name: str, backend: str) -> None:
        self.closed = False
        self._name = name
        self._backend = backend
        self._lock = threading.Lock()
        self._portal: BlockingPortal | None = None
        self._thread: threading.Thread | None = None

    def run(self, function: Callable[[], Awaitable[T]]) -> T:
        """Run a coroutine function on the loop, after all earlier calls, and return its result.

        Raises:
            BaseException: What the coroutine raises. An interrupt (Ctrl-C) that reaches the waiting
                caller cancels the coroutine, waits at most `GRACE_SECONDS` for that to take effect
                (a second interrupt ends the wait), and comes out. If the coroutine has not ended by
                then the portal is closed.
        """
        with self._lock:
            finished = threading.Event()

            async def run() -> T:
                try:
                    return await function()
                finally:
                    finished.set()

            future = self._started().start_task_soon(run)
            try:
                return future.result()
            except BaseException:
                if not future.done():  # the wait was interrupted; the coroutine is still running
                    self.closed = True
                    # On a thread, since anyio before 4.16 waits here for the loop, which the
                    # coroutine may be holding up.
                    threading.Thread(target=future.cancel, daemon=True).start()
                    self.closed = not finished.wait(GRACE_SECONDS)
                raise

    def close(self) -> None:
        """End the loop and its thread; on a closed portal this does nothing."""
        if self.closed:
            return
        self.closed = True
        if self._portal is not None and self._thread is not None:
            self._portal.call(self._portal.stop)
            self._thread.join(GRACE_SECONDS)

    def _started(self) -> BlockingPortal:
        if self._portal is None:
            ready: Future[BlockingPortal] = Future()
            self._thread = threading.Thread(
                target=_serve, args=(ready, self._backend), name=self._name, daemon=True
            )
            self._thread.start()
            self._portal = ready.result()
        return self._portal

    def __del__(self) -> None:
        if self._portal is not None and not self.closed:
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
