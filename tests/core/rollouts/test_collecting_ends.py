"""How an asynchronous run ends: for every consumer, with everything closed."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import warnings
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from core.rollouts.scripted import AsyncScriptedEnv, Log, ScriptedEnv, apolicy
from rolloutlib import TrajectoryGroup, acollect, arollout_group
from rolloutlib.rollouts import AsyncCollector, StalledError

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("threads_end")]

Collector = AsyncCollector[Any, str, str]


class Episodes:
    """Episodes of which those of some items hang, in the policy."""

    def __init__(self, *hanging: int) -> None:
        self.log = Log()
        self.hangs = anyio.Event()
        self._hanging = hanging

    def make_env(self, item: int) -> AsyncScriptedEnv:
        return AsyncScriptedEnv(3 if item in self._hanging else 1, log=self.log)

    async def policy(self, observation: str) -> str:
        if observation == "o1":  # only the hanging ones come this far
            self.hangs.set()
            await anyio.sleep_forever()
        await anyio.lowlevel.checkpoint()
        return "a"

    def collect(self, count: int = 20, **arguments: Any) -> Collector:
        return acollect(range(count), self.make_env, self.policy, **arguments)

    def all_closed(self) -> bool:
        return self.log.opened == self.log.closed


async def other_tasks() -> int:
    """Count the tasks that are alive after all that can end has ended."""
    await anyio.wait_all_tasks_blocked()
    return len(anyio.get_running_tasks())


async def test_leaving_the_block_ends_what_runs() -> None:
    before = await other_tasks()
    episodes = Episodes(3, 4)
    async with episodes.collect(concurrency=4) as groups:
        await episodes.hangs.wait()
        async for _ in groups:
            break
    assert episodes.all_closed()
    assert await other_tasks() == before
    events = list(episodes.log.events)
    await anyio.wait_all_tasks_blocked()
    assert episodes.log.events == events
    finished = [group.item for group in groups.unclaimed]
    assert [group.item async for group in groups] == finished


async def test_an_exception_in_the_block_comes_out_and_carries_the_rest() -> None:
    episodes = Episodes(1)
    error = ValueError("from the body")
    groups = episodes.collect(3, num_rollouts=2)
    taken: list[int] = []

    async def consume() -> None:
        async with groups:
            taken.append((await anext(groups)).item)
            await episodes.hangs.wait()
            await anyio.wait_all_tasks_blocked()
            raise error

    with pytest.raises(ValueError, match="from the body") as caught:
        await consume()
    assert caught.value is error
    assert episodes.all_closed()
    rest = TrajectoryGroup.all_from_exception(error)
    assert {*taken, *[group.item for group in rest]} == {0, 2}
    assert groups.unclaimed == rest


async def test_cancellation_ends_the_run_and_comes_out() -> None:
    before = await other_tasks()
    episodes = Episodes(0, 1)
    with anyio.CancelScope() as scope:
        async with episodes.collect(2) as groups:
            await episodes.hangs.wait()
            scope.cancel()
            await anext(groups)
    assert scope.cancelled_caught
    assert episodes.all_closed()
    assert await other_tasks() == before


async def test_without_a_block_a_cancelled_call_ends_the_run() -> None:
    before = await other_tasks()
    episodes = Episodes(0)
    groups = episodes.collect(1)
    with anyio.CancelScope() as scope:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(episodes.hangs.wait)
            tasks.start_soon(_cancel_after, episodes.hangs, scope)
            await anext(groups)
    assert scope.cancelled_caught
    assert episodes.all_closed()
    assert await other_tasks() == before
    assert [group async for group in groups] == []


async def _cancel_after(event: anyio.Event, scope: anyio.CancelScope) -> None:
    await event.wait()
    scope.cancel()


async def test_in_a_block_a_call_may_be_cancelled_and_the_next_goes_on() -> None:
    gate = anyio.Event()

    async def hold(observation: str) -> str:
        await gate.wait()
        return "a"

    async with acollect(range(5), lambda _: AsyncScriptedEnv(1), hold) as groups:
        for _ in range(3):
            with anyio.move_on_after(0) as scope:
                await anext(groups)
            assert scope.cancelled_caught
        gate.set()
        assert sorted([group.item async for group in groups]) == [0, 1, 2, 3, 4]


def test_asyncio_may_cancel_twice_while_an_environment_is_slow_to_close() -> None:
    log = Log()

    async def main() -> None:
        closing, release = asyncio.Event(), asyncio.Event()

        class SlowToClose(AsyncScriptedEnv):
            async def close(self) -> None:
                closing.set()
                await release.wait()
                await super().close()

        hanging = asyncio.Event()

        async def hang(observation: str) -> str:
            hanging.set()
            await asyncio.Event().wait()
            return "never"

        async def consume() -> None:
            async with acollect(range(3), lambda _: SlowToClose(log=log), hang) as groups:
                async for _ in groups:
                    pass

        task = asyncio.create_task(consume())
        await hanging.wait()
        task.cancel()
        await closing.wait()
        task.cancel()
        await asyncio.sleep(0)
        assert not task.done()
        release.set()
        with contextlib.suppress(asyncio.CancelledError):
            await task
        assert task.cancelled()

    asyncio.run(main())
    assert log.opened == log.closed == 3


def test_asyncio_may_cancel_all_tasks_before_the_run_begins() -> None:
    """As it does when its main task ends just then."""
    log = Log()

    async def main() -> None:
        async with acollect(range(9), lambda _: AsyncScriptedEnv(log=log), apolicy) as groups:
            for task in asyncio.all_tasks():
                task.cancel()
            async for _ in groups:
                pass

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(main())
    assert log.opened == 0


@pytest.mark.parametrize("consumers", [2, 7, 40])
async def test_all_consumers_share_the_groups_and_come_to_an_end(consumers: int) -> None:
    taken: list[int] = []
    ended = 0

    async def consume(groups: Collector) -> None:
        nonlocal ended
        async for group in groups:
            taken.append(group.item)
            await anyio.lowlevel.checkpoint()
        ended += 1

    async with Episodes().collect(20) as groups, anyio.create_task_group() as tasks:
        for _ in range(consumers):
            tasks.start_soon(consume, groups)
    assert ended == consumers
    assert sorted(taken) == list(range(20))


async def test_all_consumers_get_the_error_that_ends_the_run() -> None:
    log = Log()
    error = KeyError("lost")
    caught: list[BaseException] = []

    def make_env(item: int) -> AsyncScriptedEnv:
        return AsyncScriptedEnv(faults={"step 0": error} if item == 2 else {}, log=log)

    async def consume() -> None:
        try:
            async for _ in groups:
                pass
        except KeyError as raised:
            caught.append(raised)

    async with acollect(range(9), make_env, apolicy, on_error="raise") as groups:
        async with anyio.create_task_group() as tasks:
            for _ in range(5):
                tasks.start_soon(consume)
        with pytest.raises(KeyError):
            await anext(groups)
    assert caught == [error] * 5
    assert log.opened == log.closed


async def test_closing_ends_the_waiting_of_other_consumers() -> None:
    episodes = Episodes(0, 1)
    ended = 0

    async def consume(groups: Collector) -> None:
        nonlocal ended
        async for _ in groups:
            pass
        ended += 1

    async with anyio.create_task_group() as tasks:
        groups = episodes.collect(2)
        for _ in range(4):
            tasks.start_soon(consume, groups)
        await episodes.hangs.wait()
        await groups.aclose()
    assert ended == 4
    assert episodes.all_closed()


async def test_closing_twice_and_at_the_same_time_does_no_harm() -> None:
    episodes = Episodes(0, 1)
    groups = episodes.collect(2)
    async with anyio.create_task_group() as tasks, groups:
        await episodes.hangs.wait()
        for _ in range(3):
            tasks.start_soon(groups.aclose)
    await groups.aclose()
    assert episodes.log.closed == episodes.log.opened == 2


async def test_closed_before_it_begins_it_has_no_groups() -> None:
    episodes = Episodes()
    for _ in range(2):
        groups = episodes.collect()
        await groups.aclose()
        await groups.aclose()
        assert [group async for group in groups] == []
        async with groups:
            assert [group async for group in groups] == []
    assert episodes.log.opened == 0


async def test_what_was_not_taken_can_still_be_had() -> None:
    episodes = Episodes(7)
    async with episodes.collect(8, num_rollouts=2, concurrency=16, buffer=20) as groups:
        first = await anext(groups)
        await episodes.hangs.wait()
        await anyio.wait_all_tasks_blocked()
    rest = groups.unclaimed
    assert sorted(group.item for group in (first, *rest)) == [0, 1, 2, 3, 4, 5, 6]
    assert all(group.num_completed == 2 for group in rest)


async def test_a_failure_carries_each_group_that_was_not_handed_out_once() -> None:
    failed = anyio.Event()

    def make_env(item: int) -> AsyncScriptedEnv:
        if item == 4:
            failed.set()
            msg = "out of containers"
            raise OSError(msg)
        return AsyncScriptedEnv()

    for owned in (True, False):
        failed = anyio.Event()
        groups = acollect(
            range(9), make_env, apolicy, concurrency=1, buffer=9, on_error="raise", num_rollouts=2
        )
        async with contextlib.AsyncExitStack() as stack:
            if owned:
                await stack.enter_async_context(groups)
            taken = [(await anext(groups)).item]
            await failed.wait()
            await anyio.wait_all_tasks_blocked()
            taken += [(await anext(groups)).item for _ in range(3)]
            assert taken == [0, 1, 2, 3]
            with pytest.raises(OSError, match="containers") as caught:
                await anext(groups)
        [rest] = TrajectoryGroup.all_from_exception(caught.value)
        assert (rest.item, rest.num_failed, rest.num_requested) == (4, 1, 1)


async def test_a_run_in_which_nothing_ends_stops_with_the_cause() -> None:
    log = Log()
    cause = PermissionError("401: the key has expired")

    async def refuse(observation: str) -> str:
        raise cause

    async with acollect(
        iter(range(1000000)), lambda _: AsyncScriptedEnv(log=log), refuse, max_failures=30
    ) as groups:
        with pytest.raises(StalledError, match="30 episodes in a row failed") as caught:
            [None async for _ in groups]
    assert caught.value.__cause__ is cause
    assert log.opened == log.closed
    assert 30 <= log.opened < 200


async def test_one_that_never_begins_leaves_nothing() -> None:
    before = await other_tasks()
    episodes = Episodes()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        groups = episodes.collect()
        del groups
        gc.collect()
    assert caught == []
    assert episodes.log.opened == 0
    assert await other_tasks() == before


@pytest.mark.parametrize("taken", [1, 3])
async def test_one_that_is_left_says_so_and_is_cleaned_up(taken: int) -> None:
    before = await other_tasks()
    episodes = Episodes(5, 6)

    async def leave() -> None:
        groups = episodes.collect()
        for _ in range(taken):
            await anext(groups)
        await episodes.hangs.wait()

        del groups
        gc.collect()

    with pytest.warns(ResourceWarning, match="a run was left before its end"):
        await leave()
    while not episodes.all_closed():
        await anyio.lowlevel.checkpoint()
    assert await other_tasks() == before
    assert episodes.log.opened >= 2


async def test_one_that_is_taken_to_its_end_needs_no_block() -> None:
    before = await other_tasks()
    groups = Episodes().collect()
    assert len([group async for group in groups]) == 20
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        del groups
        gc.collect()
    assert caught == []
    assert await other_tasks() == before


def test_the_loop_may_end_before_the_run(anyio_backend: str) -> None:
    episodes = Episodes(1)
    groups = episodes.collect(2)

    async def main() -> int:
        item = (await anext(groups)).item
        await episodes.hangs.wait()
        assert not episodes.all_closed()
        return item

    assert anyio.run(main, backend=anyio_backend) == 0
    assert episodes.log.opened == episodes.log.closed == 2


def test_it_may_be_made_outside_of_any_loop(anyio_backend: str) -> None:
    groups = Episodes().collect(5)

    async def main() -> list[int]:
        async with groups:
            return [group.item async for group in groups]

    assert sorted(anyio.run(main, backend=anyio_backend)) == [0, 1, 2, 3, 4]


async def test_a_policy_that_raises_an_interrupt_ends_the_run_with_it() -> None:
    log = Log()

    async def interrupt(observation: str) -> str:
        raise SystemExit(3)

    groups = acollect(range(9), lambda _: AsyncScriptedEnv(log=log), interrupt, concurrency=1)
    raised: BaseException | None = None
    try:
        await anext(groups)
    except SystemExit as error:
        raised = error
    assert isinstance(raised, SystemExit)
    assert raised.code == 3
    assert log.opened == log.closed
    assert TrajectoryGroup.all_from_exception(raised) == ()  # no episode has ended, or failed


async def test_episodes_that_never_wait_let_a_cancellation_in() -> None:
    log = Log()
    with anyio.CancelScope() as scope:

        def cancel(observation: str) -> str:
            scope.cancel()
            return "a"

        await arollout_group(
            "item", lambda _: ScriptedEnv(log=log), cancel, num_rollouts=9, inline=True
        )
    assert scope.cancelled_caught
    assert log.opened == log.closed == 1
