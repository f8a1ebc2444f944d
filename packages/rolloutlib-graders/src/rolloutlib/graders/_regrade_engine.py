"""The asynchronous engine of `aregrade`: a bounded number of workers over the episodes of groups."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Generic

import anyio
import anyio.lowlevel
from anyio.abc import TaskGroup

from rolloutlib._calls import RefuseStrayCancellation, read_concurrency, task_group, uncancelled
from rolloutlib._exceptions import add_end_note
from rolloutlib.graders._regrading import ActionT, ItemT, Members, ObservationT, Regrading
from rolloutlib.rollouts import TrajectoryGroup
from rolloutlib.rollouts._sources import Source


class RegradeEngine(Generic[ItemT, ObservationT, ActionT]):
    """Grades the episodes of one group after another, with a bounded number of workers.

    Args:
        regrading: What is asked for.
        source: The groups.
        concurrency: How many episodes are graded at once.

    Attributes:
        close_error: What the groups raised when they were closed, if it ended the run.
    """

    def __init__(
        self,
        regrading: Regrading[ItemT, ObservationT, ActionT],
        source: Source[TrajectoryGroup[ItemT, ObservationT, ActionT]],
        concurrency: int | anyio.CapacityLimiter,
    ) -> None:
        self._regrading = regrading
        self._source = source
        self._limiter, _ = read_concurrency(concurrency, 1)
        self._concurrency = concurrency
        self._tasks: TaskGroup
        self._num_workers = 0
        self._reading = anyio.Lock(fast_acquire=True)
        self._exhausted = self._ended = False
        self._pending: deque[Members[ItemT, ObservationT, ActionT]] = deque()  # not taken yet
        self._work: Iterator[tuple[Members[ItemT, ObservationT, ActionT], int]] = iter(())
        self._changed = anyio.Event()  # the first of the pending, or whether there will be more
        self._failure: BaseException | None = None
        self.close_error: Exception | None = None

    async def run(self) -> None:
        """Grade everything.

        Raises:
            BaseException: The first failure that is to be raised, or what interrupted it.
        """
        try:
            async with task_group() as self._tasks:
                self._source.open(self._tasks)
                self._add_worker()
        finally:
            try:
                await self.close()
            except Exception as error:  # whatever the groups raise
                if self._failure is None:
                    self.close_error = error
                    raise
                add_end_note(self._failure, error)
        if self._failure is not None:
            raise self._failure

    async def take(self) -> TrajectoryGroup[ItemT, ObservationT, ActionT] | None:
        """Return the next group, or None when there are no more."""
        while not (self._pending and self._pending[0].are_done):
            if self._ended:
                return None
            await self._changed.wait()
        group = self._pending.popleft().group()
        self._notify()
        return group

    def rest(self) -> tuple[TrajectoryGroup[ItemT, ObservationT, ActionT], ...]:
        """Return the groups that were graded and not taken."""
        return tuple([members.group() for members in self._pending if members.are_done])

    async def close(self) -> None:
        """Read no more groups, and let nobody wait for one."""
        try:
            with anyio.CancelScope(shield=True):
                await self._source.close()
        finally:
            self.end()

    async def wait_abandoned(self) -> None:
        """Wait for nothing: no environments are open."""

    def end(self) -> None:
        """Let nobody wait for a group."""
        self._ended = True
        self._notify()

    @property
    def _most_workers(self) -> float:
        if isinstance(self._concurrency, anyio.CapacityLimiter):
            return max(1, self._concurrency.total_tokens)  # it may get tokens later
        return self._concurrency

    def _add_worker(self) -> None:
        if self._num_workers < self._most_workers:
            self._num_workers += 1
            self._tasks.start_soon(self._grade)

    async def _grade(self) -> None:
        try:
            with RefuseStrayCancellation("a regrading"):
                while (work := await self._next()) is not None:
                    members, index = work
                    self._add_worker()
                    async with self._limiter:
                        await members.agrade(index)
                    if members.are_done:
                        self._notify()
                    if self._regrading.inline:  # let others have their turn, cancellations too
                        await anyio.lowlevel.checkpoint()
        except BaseException as caught:  # comes out of `run`, as it is and not in an ExceptionGroup
            error = uncancelled(caught)
            if error is None:
                raise
            if self._failure is None:
                self._failure = error
            self._tasks.cancel_scope.cancel()

    async def _next(self) -> tuple[Members[ItemT, ObservationT, ActionT], int] | None:
        """Return the next episode to be graded, or None if there is none."""
        async with self._reading:
            while (work := next(self._work, None)) is None and not self._exhausted:
                while len(self._pending) >= self._most_workers:
                    await self._changed.wait()
                taken = await self._source.take()
                if taken is None:
                    self._exhausted = True
                    break
                members = Members(self._regrading, *taken)
                self._pending.append(members)
                self._work = ((members, index) for index in range(len(members)))
                self._notify()  # of a group in which there is nothing to be graded
            return work

    def _notify(self) -> None:
        self._changed.set()
        self._changed = anyio.Event()
