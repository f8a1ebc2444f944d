"""The asynchronous engine: a bounded number of workers over one sequence of episodes."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from typing import Generic, Literal, TypeAlias

import anyio
import anyio.lowlevel
from anyio.abc import TaskGroup

from rolloutlib._calls import (
    RefuseStrayCancellation,
    read_concurrency,
    task_group,
    uncancelled,
)
from rolloutlib._exceptions import add_end_note
from rolloutlib.rollouts._caller import AsyncCaller
from rolloutlib.rollouts._episodes import arun_member
from rolloutlib.rollouts._grading import agrade
from rolloutlib.rollouts._member import Outcomes
from rolloutlib.rollouts._policies import ActionT, ObservationT
from rolloutlib.rollouts._run import Group, Run
from rolloutlib.rollouts._sources import Source
from rolloutlib.rollouts._trajectories import ItemT

Order: TypeAlias = Literal["completion", "dataset"]


class Engine(Generic[ItemT, ObservationT, ActionT]):
    """Plays the groups of a run, and hands them out as they are finished.

    A worker plays one episode after another: the next member of the group that was begun last, or
    the first of the next item's. The one that ends a group's last member finishes the group.

    Args:
        run: What is asked for.
        caller: The run's policy.
        source: The items.
        begin: Makes the record of a group from an item and its position.
        concurrency: How many episodes may be open at once.
        order: The order in which groups are handed out.
        buffer: No group is begun while so many finished ones wait to be taken; by default as many as
            fill the concurrency.

    Attributes:
        close_error: What reading the items or the store raised when they were closed, if it ended the
            run.
    """

    def __init__(
        self,
        run: Run[ItemT, ObservationT, ActionT],
        caller: AsyncCaller[ObservationT, ActionT],
        source: Source[ItemT],
        begin: Callable[[ItemT, int], Outcomes[ItemT, ObservationT, ActionT]],
        *,
        concurrency: int | anyio.CapacityLimiter,
        order: Order = "completion",
        buffer: int | None = None,
    ) -> None:
        self._run = run
        self._caller = caller
        self._source = source
        self._begin = begin
        self._limiter, _ = read_concurrency(concurrency, 1)
        if run.retries.possible and not isinstance(concurrency, anyio.CapacityLimiter):
            self._limiter = anyio.CapacityLimiter(int(concurrency))  # see _back_off
        self._concurrency = concurrency
        self._order = order
        self._buffer = buffer
        self._tasks: TaskGroup
        self._num_workers = 0
        self._num_waiting = 0  # of further workers, for their next attempts
        self._reading = anyio.Lock(fast_acquire=True)
        self._exhausted = False
        self._num_begun = 0
        self._members: Iterator[tuple[int, int]] = iter(())  # of the last group: position, index
        self._unfinished: dict[int, Outcomes[ItemT, ObservationT, ActionT]] = {}
        self._held: dict[int, Group[ItemT, ObservationT, ActionT]] = {}  # until their turn comes
        self._num_handed = 0
        self._finished: deque[Group[ItemT, ObservationT, ActionT]] = deque()
        self._ended = False
        # For who waits for a change: of the queue of finished groups, or of whether there will be more.
        self._changed: anyio.Event | None = None
        self._failure: BaseException | None = None
        self.close_error: Exception | None = None

    async def run(self) -> None:
        """Play all groups.

        Raises:
            BaseException: The first failure that is to be raised, or what interrupted the run.
        """
        try:
            async with task_group() as self._tasks:
                self._source.open(self._tasks)
                self._add_workers(1)
        finally:
            try:
                await self.close()
            except Exception as error:  # whatever items and stores raise
                if self._failure is None:
                    self.close_error = error
                    raise
                add_end_note(self._failure, error)
        if self._failure is not None:
            if isinstance(self._failure, Exception):  # an interrupt is in a hurry
                await self._run.wait_abandoned()
            raise self._failure

    async def wait_abandoned(self) -> None:
        """Wait until the environments that were in a call as the run was ended are closed."""
        await self._run.wait_abandoned()

    async def close(self) -> None:
        """Read no more items, and let nobody wait for a group; also of a run that did not begin."""
        try:
            with anyio.CancelScope(shield=True):
                await self._source.close()
        finally:
            self.end()

    def end(self) -> None:
        """Let nobody wait for a group, and let go of the store."""
        if self._ended:
            return
        self._ended = True
        self._notify()
        if self._run.store is not None:
            self._run.store.close()

    async def take(self) -> Group[ItemT, ObservationT, ActionT] | None:
        """Return the next finished group, or None when the run has ended."""
        while not self._finished:
            if self._ended:
                return None
            await self._change()
        group = self._finished.popleft()
        self._notify()
        return group

    def rest(self) -> tuple[Group[ItemT, ObservationT, ActionT], ...]:
        """Return the groups that were not taken: the finished ones, then what there is of others."""
        partial = [outcomes.group() for outcomes in self._unfinished.values()]
        groups = (*self._finished, *self._held.values(), *partial)
        return tuple([group for group in groups if group.num_requested])

    @property
    def _most_workers(self) -> float:
        if isinstance(self._concurrency, anyio.CapacityLimiter):
            return max(1, self._concurrency.total_tokens)  # it may get tokens later
        return self._concurrency

    @property
    def _most_finished(self) -> float:
        return self._buffer or max(1, self._most_workers / self._run.num_rollouts)

    def _add_workers(self, count: int) -> None:
        for _ in range(int(min(count, self._most_workers - self._num_workers))):
            self._num_workers += 1
            self._tasks.start_soon(self._work)

    async def _work(self) -> None:
        try:
            with RefuseStrayCancellation("a run"):
                while (member := await self._next_member()) is not None:
                    position, index = member
                    outcomes = self._unfinished[position]
                    await self._play(outcomes, index)
                    outcomes.num_playing -= 1
                    if not outcomes.num_playing:
                        await self._finish(position, outcomes)
                    if self._run.inline:  # else nobody's turn would come, nor a cancellation's
                        await anyio.lowlevel.checkpoint()
        except BaseException as error:  # comes out of `run`, as it is and not in an ExceptionGroup
            if uncancelled(error) is None:
                raise
            if self._failure is None:
                self._failure = error
            self._tasks.cancel_scope.cancel()

    async def _next_member(self) -> tuple[int, int] | None:
        while True:
            member = next(self._members, None)
            if member is not None or self._exhausted:
                if isinstance(self._concurrency, anyio.CapacityLimiter):
                    self._add_workers(1)  # it may have grown since the group was begun
                return member
            async with self._reading:
                member = next(self._members, None)
                if member is not None:
                    return member
                if not self._exhausted:
                    await self._begin_group()

    async def _begin_group(self) -> None:
        while len(self._finished) + len(self._held) >= self._most_finished:
            await self._change()
        item = await self._source.take()
        store = self._run.store
        if item is None:
            self._exhausted = True
            if store is not None:
                await store.afinish(self._num_begun)
            return
        position = self._num_begun
        outcomes = self._begin(*item, position)
        self._num_begun += 1
        if store is not None:
            kept = await store.afind(position, outcomes.item, outcomes.item_id, outcomes.seed)
            if kept is not None:
                self._hand_out(position, kept)
                return
        self._unfinished[position] = outcomes
        self._members = ((position, index) for index in range(self._run.num_rollouts))
        # One for each member, this worker included, and one to begin the next group meanwhile.
        self._add_workers(self._run.num_rollouts)

    async def _play(self, outcomes: Outcomes[ItemT, ObservationT, ActionT], index: int) -> None:
        attempt = 0
        while True:
            async with self._limiter:
                member = outcomes.member(index, attempt)
                delay = await arun_member(self._run, self._caller, member)
            if delay is None:
                return
            await self._back_off(delay)
            attempt += 1

    async def _back_off(self, seconds: float) -> None:
        """Wait while another worker takes this one's place, unless as many as work wait already."""
        replaced = self._num_waiting < self._most_workers
        if replaced:
            self._num_waiting += 1
            self._num_workers -= 1
            self._add_workers(1)
        await anyio.sleep(seconds)
        if replaced:
            self._num_waiting -= 1
            self._num_workers += 1

    async def _finish(
        self, position: int, outcomes: Outcomes[ItemT, ObservationT, ActionT]
    ) -> None:
        group = await agrade(self._run, outcomes.group())
        if self._run.store is not None:
            await self._run.store.akeep(position, group)
        del self._unfinished[position]
        self._hand_out(position, group)

    def _hand_out(self, position: int, group: Group[ItemT, ObservationT, ActionT]) -> None:
        if self._order == "completion":
            self._finished.append(group)
        else:
            self._held[position] = group
            while self._num_handed in self._held:
                self._finished.append(self._held.pop(self._num_handed))
                self._num_handed += 1
        self._notify()

    async def _change(self) -> None:
        if self._changed is None:
            self._changed = anyio.Event()
        await self._changed.wait()

    def _notify(self) -> None:
        if self._changed is not None:
            self._changed.set()
            self._changed = None
