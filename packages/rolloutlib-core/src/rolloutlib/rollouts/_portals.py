"""An event loop on a thread of its own, for a synchronous caller."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Awaitable, Callable, Generator
from concurrent.futures import Future, InvalidStateError
from typing import TypeVar

import anyio
from anyio.from_thread import BlockingPortal
from typing_extensions import TypeVarTuple

from rolloutlib._calls import uncancelled

T = TypeVar("T")
ArgsT = TypeVarTuple("ArgsT")


@contextlib.contextmanager
def start_portal() -> Generator[BlockingPortal]:
    """Run an event loop on another thread, in a `with` block.

    As anyio's `start_blocking_portal`, but for an interrupt (Ctrl-C) that comes while the loop
    starts: after it, anyio waits for the end of a loop that nobody ends.

    Raises:
        BaseException: What keeps the loop from starting, or interrupted the wait for it.
    """
    ready: Future[BlockingPortal] = Future()
    # A daemon: a second interrupt ends the wait for it, and then the process may end.
    thread = threading.Thread(target=_serve, args=(ready,), name="rolloutlib loop", daemon=True)
    failed = True
    try:
        thread.start()
        yield ready.result()
        failed = False
    finally:
        if not ready.cancel() and ready.exception() is None:
            portal = ready.result()
            with contextlib.suppress(RuntimeError):  # the loop has ended
                portal.call(portal.stop, failed)
        with contextlib.suppress(RuntimeError):  # the thread has not begun
            thread.join()


def try_in_loop(
    portal: BlockingPortal, function: Callable[[*ArgsT], Awaitable[T]], *args: *ArgsT
) -> tuple[list[T], BaseException | None]:
    """Await a coroutine function on the event loop of a portal.

    Returns:
        The result in a list, or the error, to be raised when the portal has ended. It would end with
        an interrupt, which would come out as an error of the portal, were it raised there. An
        exception that takes no attributes, as a frozen data class, would come out as another one,
        since a portal is a context manager of contextlib.

    Raises:
        BaseException: What interrupted the wait, or the portal's cancellation.
    """

    async def run() -> tuple[list[T], BaseException | None]:
        try:
            return [await function(*args)], None
        except BaseException as error:
            if uncancelled(error) is None:
                raise
            return [], error

    return portal.call(run)


def _serve(ready: Future[BlockingPortal]) -> None:
    async def serve() -> None:
        async with BlockingPortal() as portal:
            try:
                ready.set_result(portal)
            except InvalidStateError:  # the caller was interrupted, and waits for it no more
                return
            await portal.sleep_until_stopped()

    try:
        anyio.run(serve)
    except BaseException as error:  # raised in the caller's thread
        with contextlib.suppress(InvalidStateError):
            ready.set_exception(error)
