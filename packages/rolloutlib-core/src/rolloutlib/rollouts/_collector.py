"""The asynchronous iterator over the groups of a run."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import sys
import warnings
from collections.abc import Callable, Generator
from types import TracebackType
from typing import Any, Generic, Protocol, Self

import anyio
from anyio.lowlevel import current_token

from rolloutlib._calls import uncancelled
from rolloutlib._exceptions import add_end_note, attach
from rolloutlib.rollouts._policies import ActionT, ObservationT
from rolloutlib.rollouts._portals import start_portal, try_in_loop
from rolloutlib.rollouts._trajectories import ItemT, TrajectoryGroup

INTERRUPT_SECONDS = 2.0
"""How long Ctrl-C waits for environments that are in a call on a thread."""


class Producer(Protocol[ItemT, ObservationT, ActionT]):
    """Makes the groups that a collector hands out.

    Attributes:
        close_error: What closing its parts raised, if that ended the run.
    """

    close_error: Exception | None

    async def run(self) -> None:
        """Make them, until there are no more or the task is cancelled."""
        ...

    async def take(self) -> TrajectoryGroup[ItemT, ObservationT, ActionT] | None:
        """Return the next finished group, or None when the run has ended."""
        ...

    def rest(self) -> tuple[TrajectoryGroup[ItemT, ObservationT, ActionT], ...]:
        """Return the groups that were begun and not taken."""
        ...

    async def close(self) -> None:
        """Let go of everything, in place of a run that did not begin."""
        ...

    async def wait_abandoned(self) -> None:
        """Wait for the calls on threads that the end of the run cut off."""
        ...

    def end(self) -> None:
        """Let nobody wait for a group any more."""
        ...


class AsyncCollector(Generic[ItemT, ObservationT, ActionT]):
    """An asynchronous iterator over finished groups, which `acollect` makes.

    The run begins with the first group that is asked for, and goes on between the calls. Several
    tasks may take groups from it; each gets others, and all of them come to an end. In `async with`,
    the run ends with the block: what still runs is cancelled, and every environment is closed.
    Without it, the run ends when a call is cancelled, when `aclose` is called, or when nobody refers
    to the collector any more.

    Args:
        engine: What makes the groups.
    """

    def __init__(self, engine: Producer[ItemT, ObservationT, ActionT]) -> None:
        self._engine = engine
        self._background = _Background(engine)
        self._owned = False
        self._told = False  # somebody of the error that ended the run

    @property
    def unclaimed(self) -> tuple[TrajectoryGroup[ItemT, ObservationT, ActionT], ...]:
        """The groups that were begun and not taken, with the members that have ended so far."""
        return self._engine.rest()

    async def aclose(self) -> None:
        """End the run; return when nothing of it is alive, and all environments are closed.

        Raises:
            Exception: What closing the items or the store raised, if nobody was told of it yet.
        """
        await self._background.stop()
        await self._engine.wait_abandoned()
        self._raise_close_error()

    def _raise_close_error(self) -> None:
        error = self._engine.close_error
        if error is not None and not self._told:
            self._told = True
            attach(error, groups=self.unclaimed)
            raise error

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> TrajectoryGroup[ItemT, ObservationT, ActionT]:
        """Return the next finished group.

        Raises:
            StopAsyncIteration: There is none any more.
            StalledError: Too many episodes in a row failed.
            BaseException: What ended the run.
        """
        self._background.start()
        try:
            group = await self._engine.take()
            if group is not None:
                return group
            await self._background.join()
        except BaseException as error:
            if not self._owned:
                await self._close(error)
            raise
        error = self._background.error
        if error is not None:
            self._told = True
            attach(error, groups=self.unclaimed)
            raise error
        raise StopAsyncIteration

    async def __aenter__(self) -> Self:
        self._owned = True
        self._background.start()
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc_value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self._close(exc_value)

    async def _close(self, error: BaseException | None) -> None:
        """End the run, after an error, if any, which no further one hides."""
        try:
            await self._background.stop()
            if error is None or uncancelled(error) is not None:  # else it may be a deadline
                ordinary = error is None or isinstance(error, (Exception, GeneratorExit))
                with anyio.move_on_after(None if ordinary else INTERRUPT_SECONDS):
                    await self._engine.wait_abandoned()
            self._raise_close_error()
        except Exception as further:  # whatever items and stores raise
            if error is None or isinstance(error, GeneratorExit):  # the groups were left early
                raise
            add_end_note(error, further)
        if error is not None:
            attach(error, groups=self.unclaimed)

    def __del__(self) -> None:
        if self._background.abandon():
            warnings.warn(
                "a run was left before its end: take its groups in `async with acollect(...)`",
                ResourceWarning,
                stacklevel=2,
                source=self,
            )


def drain(
    make_collector: Callable[[], AsyncCollector[ItemT, ObservationT, ActionT]],
) -> Generator[TrajectoryGroup[ItemT, ObservationT, ActionT]]:
    """Take the groups of an asynchronous run, which goes on in an event loop on another thread."""

    async def take() -> None:
        async for group in collector:
            taken.append(group)
            return

    taken: list[TrajectoryGroup[ItemT, ObservationT, ActionT]] = []
    with start_portal() as portal:
        # Made there, since the caller's thread may run an event loop of another kind.
        collector = portal.call(make_collector)
        try:
            with portal.wrap_async_context_manager(collector):
                while True:
                    _, failure = try_in_loop(portal, take)
                    if not taken:
                        break
                    yield taken.pop()
        except BaseException as error:
            if taken:  # while Ctrl-C came, so that it did not get over here
                attach(error, groups=(*taken, *collector.unclaimed))
            raise
    if failure is not None:
        raise failure


class _Background:
    """An engine in a task of its own, neither of which refers to the collector."""

    def __init__(self, engine: Producer[Any, Any, Any]) -> None:
        self.error: BaseException | None = None
        self._engine = engine
        self._ended = anyio.Event()
        self._scope: anyio.CancelScope | None = None
        self._stopped = False
        self._loop: Any = None

    def start(self) -> None:
        """Start the engine, unless it was started or stopped before."""
        if self._scope is not None or self._stopped:
            return
        self._scope = anyio.CancelScope()
        self._loop = current_token().native_token
        if isinstance(self._loop, asyncio.AbstractEventLoop):
            task = self._task = self._loop.create_task(self._run(self._scope))
            # The loop may cancel it before it begins, and then not even its `finally` runs.
            task.add_done_callback(lambda _: self._end())
        else:
            trio = sys.modules["trio"]  # whose loop this is, though we do not depend on it
            context = contextvars.copy_context()
            trio.lowlevel.spawn_system_task(self._run, self._scope, context=context)

    async def join(self) -> None:
        """Wait until the engine has ended."""
        if self._scope is not None:
            await self._ended.wait()

    async def stop(self) -> None:
        """Cancel what the engine does, and wait until it has ended."""
        self._stopped = True
        if self._scope is None:
            await self._engine.close()
            return
        self._scope.cancel()
        cancelled: BaseException | None = None
        while not self._ended.is_set():
            try:
                with anyio.CancelScope(shield=True):
                    await self._ended.wait()
            except anyio.get_cancelled_exc_class() as error:  # by asyncio, which knows no shields
                cancelled = error
        if cancelled is not None:
            raise cancelled

    def abandon(self) -> bool:
        """Cancel the engine, from any thread; tell whether it was still at work."""
        if self._scope is None or self._ended.is_set() or self._stopped:
            return False
        call_soon = getattr(self._loop, "call_soon_threadsafe", None) or self._loop.run_sync_soon
        with contextlib.suppress(RuntimeError):  # the loop has ended, and the engine with it
            call_soon(self._scope.cancel)
        return True

    def _end(self) -> None:
        try:
            self._engine.end()
        finally:
            self._ended.set()

    async def _run(self, scope: anyio.CancelScope) -> None:
        try:
            with scope:
                await self._engine.run()
        except anyio.get_cancelled_exc_class():  # by the loop itself, which is about to end
            raise
        except StopAsyncIteration as error:  # would look like the end of the groups
            self.error = RuntimeError(f"a run raised {error!r}")
            self.error.__cause__ = error
        except BaseException as error:  # raised in those who take the groups
            self.error = error
        finally:
            self._end()
