"""Where items come from: read when there is room for them, and never left open."""

from __future__ import annotations

import itertools
import threading
from collections.abc import AsyncGenerator, Callable, Generator
from typing import Any

import anyio
import anyio.lowlevel
import anyio.to_thread
import pytest

from core.rollouts.scripted import AsyncScriptedEnv, Log, ScriptedEnv, apolicy, policy
from rolloutlib import TrajectoryGroup, acollect, collect

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("threads_end")]


class Reading:
    """Items that tell how many of them were read, and whether reading was ended.

    Args:
        error: What reading raises after three items.
    """

    def __init__(self, error: BaseException | None = None) -> None:
        self.count = 0
        self.closed = threading.Event()
        self._error = error

    def items(self) -> Generator[int]:
        try:
            for item in itertools.count():
                if item == 3 and self._error:
                    raise self._error
                self.count += 1
                yield item
        finally:
            self.closed.set()

    async def aitems(self) -> AsyncGenerator[int]:
        try:
            for item in self.items():
                await anyio.lowlevel.checkpoint()
                yield item
        finally:
            await anyio.lowlevel.checkpoint()
            self.closed.set()


def test_one_after_another_an_item_is_read_when_its_group_is_asked_for() -> None:
    reading = Reading()
    groups = collect(reading.items(), lambda _: ScriptedEnv(), policy, num_rollouts=2)
    for taken in range(5):
        assert reading.count == taken
        next(groups)
    groups.close()
    assert reading.closed.is_set()


@pytest.mark.parametrize("num_rollouts", [1, 2, 5])
async def test_an_item_is_read_when_there_is_room_for_an_episode_of_it(num_rollouts: int) -> None:
    reading, log = Reading(), Log()
    let_go = anyio.Event()

    async def hold(observation: str) -> str:
        await let_go.wait()
        return "a"

    collector = acollect(
        reading.items(),
        lambda _: AsyncScriptedEnv(log=log),
        hold,
        num_rollouts=num_rollouts,
        concurrency=4,
        inline=True,
    )
    assert reading.count == 0  # nothing happens before the first group is asked for
    async with collector as groups:
        await anyio.wait_all_tasks_blocked()
        assert log.open == 4
        assert reading.count == -(-4 // num_rollouts)
        let_go.set()
        await anext(groups)
    assert reading.closed.is_set()
    assert log.opened == log.closed


@pytest.mark.parametrize("buffer", [1, 3])
async def test_no_item_is_read_while_nobody_takes_groups(buffer: int) -> None:
    for kind, ahead in (("items", 0), ("aitems", 1)):
        reading = Reading()
        collector = acollect(
            getattr(reading, kind)(),
            lambda _: AsyncScriptedEnv(),
            apolicy,
            concurrency=1,
            buffer=buffer,
            inline=True,
        )
        async with collector as groups:
            for taken in range(6):
                await anyio.wait_all_tasks_blocked()
                assert reading.count == taken + buffer + ahead
                assert (await anext(groups)).item == taken
        assert reading.closed.is_set()


async def test_a_thread_reads_no_more_than_there_is_room_for() -> None:
    log, room = Log(), list[int]()

    def items() -> Generator[int]:
        for item in range(50):
            room.append(log.open)
            yield item

    async with acollect(
        items(), lambda _: AsyncScriptedEnv(log=log), apolicy, concurrency=4
    ) as groups:
        assert len([group async for group in groups]) == 50
    assert len(room) == 50
    assert max(room) <= 3  # who reads will play


async def test_items_are_read_on_one_thread_that_is_not_the_loops() -> None:
    threads: set[int] = set()

    def items() -> Generator[int]:
        try:
            for item in range(20):
                threads.add(threading.get_ident())
                yield item
        finally:
            threads.add(threading.get_ident())

    async with acollect(items(), lambda _: AsyncScriptedEnv(), apolicy) as groups:
        async for _ in groups:
            pass
    assert len(threads) == 1
    assert threading.get_ident() not in threads


@pytest.mark.parametrize("kind", ["items", "aitems"])
async def test_endless_items_end_with_the_block(kind: str) -> None:
    reading, log = Reading(), Log()
    taken: list[int] = []
    async with acollect(
        getattr(reading, kind)(), lambda _: AsyncScriptedEnv(log=log), apolicy, concurrency=8
    ) as groups:
        async for group in groups:
            taken.append(group.item)
            if len(taken) == 30:
                break
    assert len(set(taken)) == 30
    assert reading.closed.wait(30)  # on its thread, which may have been reading at the end
    assert log.opened == log.closed


@pytest.mark.parametrize("kind", ["items", "aitems"])
@pytest.mark.parametrize("on_error", ["record", "raise"])
async def test_items_that_fail_in_the_middle_fail_the_run_and_lose_nothing(
    kind: str, on_error: Any
) -> None:
    error = OSError("the disk is gone")
    reading, log = Reading(error), Log()
    collector = acollect(
        getattr(reading, kind)(),
        lambda _: AsyncScriptedEnv(log=log),
        apolicy,
        concurrency=1,
        on_error=on_error,
    )
    taken: list[int] = []

    async def consume() -> None:
        async with collector as groups:
            async for group in groups:
                taken.append(group.item)  # noqa: PERF401 - those before the failure count

    with pytest.raises(OSError, match="the disk is gone") as caught:
        await consume()
    assert caught.value is error
    assert taken == [0, 1, 2]
    assert TrajectoryGroup.all_from_exception(error) == ()
    assert log.opened == log.closed == 3
    assert reading.closed.is_set()


async def test_what_was_in_flight_when_the_items_failed_travels_with_the_error() -> None:
    let_go = anyio.Event()

    def items() -> Generator[int]:
        yield 0
        yield 1
        msg = "the disk is gone"
        raise OSError(msg)

    async def hold(observation: str) -> str:
        if observation == "o1":
            let_go.set()
            await anyio.sleep_forever()
        return "a"

    async def wait_for_it() -> AsyncGenerator[int]:
        for item in items():
            yield item
            if item == 1:
                await let_go.wait()

    log = Log()
    lengths = iter([1, 2, 2, 2])
    collector = acollect(
        wait_for_it(),
        lambda _: AsyncScriptedEnv(next(lengths), log=log),
        hold,
        num_rollouts=2,
        concurrency=4,
    )
    with pytest.raises(OSError, match="the disk is gone") as caught:
        async with collector as groups:
            await anext(groups)
    [first] = TrajectoryGroup.all_from_exception(caught.value)
    assert (first.item, first.num_completed, first.num_requested) == (0, 1, 1)
    assert log.opened == log.closed == 4


def test_one_after_another_items_that_fail_let_the_groups_before_them_out() -> None:
    reading = Reading(OSError("the disk is gone"))
    groups = collect(reading.items(), lambda _: ScriptedEnv(), policy)
    assert [next(groups).item for _ in range(3)] == [0, 1, 2]
    with pytest.raises(OSError, match="the disk is gone"):
        next(groups)


async def test_finished_groups_come_while_an_item_is_slow() -> None:
    slow, aslow = threading.Event(), anyio.Event()

    def items() -> Generator[int]:
        yield 0
        slow.wait(60)
        yield 1

    async def aitems() -> AsyncGenerator[int]:
        yield 0
        await aslow.wait()
        yield 1

    for source, let_go in ((items(), slow), (aitems(), aslow)):
        async with acollect(source, lambda _: AsyncScriptedEnv(), apolicy) as groups:
            assert (await anext(groups)).item == 0
            let_go.set()
            assert [group.item async for group in groups] == [1]


async def test_a_source_that_is_blocked_does_not_hold_up_the_end() -> None:
    blocked, release, closed = threading.Event(), threading.Event(), threading.Event()

    def items() -> Generator[int]:
        try:
            yield 0
            blocked.set()
            release.wait(60)
            yield 1
        finally:
            closed.set()

    log = Log()
    async with acollect(items(), lambda _: AsyncScriptedEnv(log=log), apolicy) as groups:
        assert (await anext(groups)).item == 0
        assert await anyio.to_thread.run_sync(blocked.wait, 60)
    assert not closed.is_set()
    assert log.opened == log.closed == 1
    release.set()
    assert closed.wait(60)  # as soon as it can be


async def test_a_source_that_waits_is_cancelled_and_closed() -> None:
    closed: list[str] = []

    async def items() -> AsyncGenerator[int]:
        try:
            yield 0
            await anyio.sleep_forever()
        finally:
            with anyio.CancelScope(shield=True):
                await anyio.lowlevel.checkpoint()
            closed.append("closed")

    async with acollect(items(), lambda _: AsyncScriptedEnv(), apolicy) as groups:
        assert (await anext(groups)).item == 0
    assert closed == ["closed"]


async def test_an_asynchronous_source_may_use_scopes_of_its_own() -> None:
    async def items() -> AsyncGenerator[int]:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(anyio.sleep_forever)
            for item in range(5):
                with anyio.fail_after(60):
                    await anyio.lowlevel.checkpoint()
                yield item
            tasks.cancel_scope.cancel()

    async with acollect(items(), lambda _: AsyncScriptedEnv(), apolicy, concurrency=2) as groups:
        assert sorted([group.item async for group in groups]) == [0, 1, 2, 3, 4]


class Failing:
    """Items whose closing fails."""

    def items(self) -> Generator[int]:
        try:
            yield from range(3)
        finally:
            msg = "cannot close"
            raise OSError(msg)

    async def aitems(self) -> AsyncGenerator[int]:
        try:
            for item in range(3):
                yield item
        finally:
            msg = "cannot close"
            raise OSError(msg)


@pytest.mark.parametrize("kind", ["items", "aitems"])
@pytest.mark.parametrize("inline", [True, False])
async def test_a_source_that_cannot_be_closed_fails_the_run_and_hangs_nobody(
    kind: str, inline: bool
) -> None:
    source: Callable[[], Any] = getattr(Failing(), kind)
    groups = acollect(source(), lambda _: AsyncScriptedEnv(), apolicy, concurrency=1, inline=inline)
    taken = [(await anext(groups)).item for _ in range(3)]
    assert taken == [0, 1, 2]
    with pytest.raises(OSError, match="cannot close"):
        await anext(groups)


async def test_an_iterator_that_is_no_generator_can_be_read_on() -> None:
    items = iter(range(10))
    async with acollect(
        items, lambda _: AsyncScriptedEnv(), apolicy, concurrency=1, buffer=1
    ) as groups:
        await anext(groups)
        await anyio.wait_all_tasks_blocked()
    rest = list(items)
    assert rest
    assert rest == list(range(rest[0], 10))


async def test_a_part_of_the_items_may_be_read_before() -> None:
    reading, areading = Reading(), Reading()
    items, aitems = reading.items(), areading.aitems()
    assert next(items) == await anext(aitems) == 0
    for source in (items, aitems):
        unread = acollect(source, lambda _: AsyncScriptedEnv(), apolicy)
        await unread.aclose()
    assert reading.closed.is_set()
    assert areading.closed.is_set()
