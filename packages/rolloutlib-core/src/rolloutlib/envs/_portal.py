"""An event loop on a thread of its own, for one asynchronous environment."""

from __future__ import annotations

import contextlib
import logging
import threading
import warnings
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from typing import Any, NamedTuple, TypeVar

import anyio
from anyio.abc import TaskGroup

from rolloutlib._calls import RefuseStrayCancellation
from rolloutlib.envs._threads import Call, find_call_soon

T = TypeVar("T")

GRACE_SECONDS = 5.0
"""How long an interrupted call may take to react to its cancellation."""

_NAP = 1.0
_logger = logging.getLogger("rolloutlib")


class Portal:
    """Runs coroutines for synchronous callers, all on one event loop that other threads call.

    The loop starts with the first call. Its thread is a daemon: a coroutine that never returns does
    not hold up the end of the process. A copy starts a loop of its own.

    To run the loop on the caller's thread would be several times faster, but it would stand still
    between calls, and an interrupt that strikes inside the loop can lose a task's next step.

    Args:
        name: The name of the thread.
        backend: The event loop: "asyncio" or "trio".
        cleanup: Runs once, as the last call on the loop.

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
        self._ready: Future[_Loop] | None = None
        self._thread: threading.Thread | None = None

    def run(self, function: Callable[[], Awaitable[T]]) -> T:
        """Run a coroutine function on the loop, after all earlier calls, and return its result.

        Raises:
            RuntimeError: The call comes from the loop itself, or the portal is closed.
            BaseException: What the coroutine raises. An interrupt (Ctrl-C) that reaches the waiting
                caller cancels the coroutine, waits at most `GRACE_SECONDS` for that to take effect
                (a second interrupt ends the wait), and comes out. If the coroutine has not ended by
                then it is abandoned: the portal is closed, and the cleanup runs when it ends.
        """
        self._refuse_own_loop()
        with self._lock:
            if self.closed:
                msg = f"{self._name} was closed while this call waited for its turn"
                raise RuntimeError(msg)
            return self._run(function)

    def close(self) -> None:
        """Run the cleanup, then end the loop and its thread; on a closed portal this does nothing.

        Raises:
            BaseException: What the cleanup raises, or an interrupt, as in `run`.
        """
        self._refuse_own_loop()
        with self._lock:
            if self.closed:
                return
            try:
                self._run(self._cleanup)
            finally:
                if not self.closed and self._thread is not None:
                    self.closed = True
                    loop = self._started()
                    loop.call_soon(loop.stop)
                    self._thread.join(GRACE_SECONDS)

    def _run(self, function: Callable[[], Awaitable[T]]) -> T:
        loop = self._started()
        call = _Call(function, self._backend)
        loop.call_soon(call.context.run, loop.tasks.start_soon, self._serve, call)
        try:
            # By naps: an interrupt does not wake a wait on Windows, nor one that it comes just before.
            while not call.ended.wait(_NAP):
                pass
        except BaseException:  # the wait was interrupted
            if not call.ended.is_set():
                self.closed = True
                loop.call_soon(call.cancel)
                try:
                    call.ended.wait(GRACE_SECONDS)
                finally:
                    self.closed = call.claim()
            raise
        return call.result()

    async def _serve(self, call: _Call[Any]) -> None:
        await call.run(self._name)
        if call.claim():
            return
        with anyio.CancelScope(shield=True):
            try:
                await self._cleanup()
            except Exception:
                _logger.exception("%s: closing failed after a call was abandoned", self._name)
            self._started().stop()

    def _started(self) -> _Loop:
        if self._ready is None:
            ready: Future[_Loop] = Future()
            self._thread = threading.Thread(
                target=_run_loop, args=(ready, self._backend), name=self._name, daemon=True
            )
            self._thread.start()
            self._ready = ready
        return self._ready.result()

    def _refuse_own_loop(self) -> None:
        if threading.current_thread() is self._thread:
            msg = f"{self._name} was called from its own event loop, which would wait for itself"
            raise RuntimeError(msg)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self._name, self._backend, self._cleanup), {"closed": self.closed}

    def __del__(self) -> None:
        ready = getattr(self, "_ready", None)  # absent if the construction failed
        if ready is not None and not self.closed:
            loop = ready.result()
            with contextlib.suppress(RuntimeError):  # the loop has ended
                loop.call_soon(loop.stop)
            warnings.warn(
                f"{self._name} was never closed", ResourceWarning, stacklevel=2, source=self
            )


class _Loop(NamedTuple):
    """What other threads need of a running event loop: only `call_soon` is for them to call."""

    call_soon: Callable[..., object]
    tasks: TaskGroup
    stop: Callable[[], None]


class _Call(Call[T]):
    """A call on its way from a thread to an event loop and back."""

    def __init__(self, function: Callable[[], Awaitable[T]], backend: str) -> None:
        super().__init__(backend)
        self.ended = threading.Event()
        self._function = function
        self._scope: anyio.CancelScope | None = None
        self._cancelled = False

    async def run(self, place: str) -> None:
        """Run the coroutine function; whatever it raises is for the caller, not for the loop."""
        try:
            with anyio.CancelScope() as self._scope, RefuseStrayCancellation(place):
                if self._cancelled:
                    self._scope.cancel()
                self._value = await self._function()
        except BaseException as error:
            self._error = error
        self.ended.set()

    def cancel(self) -> None:
        """Cancel the coroutine, on its loop."""
        self._cancelled = True  # it may not have begun
        if self._scope is not None:
            self._scope.cancel()


def _run_loop(ready: Future[_Loop], backend: str) -> None:
    async def serve() -> None:
        stopped = anyio.Event()
        async with anyio.create_task_group() as tasks:
            ready.set_result(_Loop(find_call_soon(), tasks, stopped.set))
            await stopped.wait()

    try:
        anyio.run(serve, backend=backend)
    except BaseException as error:
        if ready.done():
            raise
        ready.set_exception(error)
