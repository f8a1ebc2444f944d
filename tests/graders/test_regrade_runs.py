"""How `regrade` and `aregrade` run: lazily, so many at a time, and ended together."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from rolloutlib import Step, Trajectory, TrajectoryGroup
from rolloutlib.graders import aregrade, regrade
from rolloutlib.rollouts import StalledError

pytestmark = pytest.mark.anyio

Group = TrajectoryGroup[str, str, str]


class TroubleError(Exception):
    """A user's own error."""


def make_group(item: str, *actions: str) -> Group:
    return TrajectoryGroup(
        item,
        f"id of {item}",
        [
            Trajectory(
                "q", (Step("q", action, 0.0, "end", terminated=True, truncated=False, info={}),)
            )
            for action in actions
        ],
    )


def last_action(item: str, trajectory: Trajectory[str, str]) -> tuple[str, str]:
    return item, trajectory.actions[-1]


def is_right(pair: tuple[str, str], rubric: object) -> float:
    item, action = pair
    if action == "fail":
        raise TroubleError
    return float(item == action)


async def ais_right(pair: tuple[str, str], rubric: object) -> float:
    await anyio.lowlevel.checkpoint()
    return is_right(pair, rubric)


async def test_an_error_is_raised_on_demand_after_the_groups_before_it() -> None:
    groups = [make_group("a", "a"), make_group("b", "b", "fail"), make_group("c", "c")]
    options: Any = {"make_input": last_action, "rubric": "r", "on_error": "raise"}
    regraded = regrade(groups, is_right, **options)
    assert next(regraded).item == "a"
    with pytest.raises(TroubleError) as caught:
        next(regraded)
    assert caught.value.__notes__ == ["while grading trajectory 1 of item 'id of b'"]
    async with aregrade(groups, ais_right, concurrency=1, **options) as aregraded:
        assert (await anext(aregraded)).item == "a"
        with pytest.raises(TroubleError) as acaught:
            await anext(aregraded)
    assert acaught.value.__notes__ == caught.value.__notes__


async def test_when_nothing_can_be_graded_the_rest_is_given_up() -> None:
    read: list[str] = []

    def groups() -> Iterator[Group]:
        for index in range(1000):
            read.append("")
            yield make_group(f"item {index}", "fail", "fail")

    options: Any = {"make_input": last_action, "rubric": "r", "max_failures": 10}
    with pytest.raises(StalledError, match="10 episodes in a row") as caught:
        list(regrade(groups(), is_right, **options))
    assert isinstance(caught.value.__cause__, TroubleError)
    with pytest.raises(StalledError):
        async with aregrade(groups(), ais_right, concurrency=2, **options) as regraded:
            _ = [group async for group in regraded]
    assert len(read) < 50


async def test_groups_are_read_when_they_are_asked_for_and_closed_at_the_end() -> None:
    read: list[int] = []

    def groups() -> Iterator[Group]:
        try:
            for index in range(1000):
                read.append(index)
                yield make_group(str(index), "a")
        finally:
            read.append(-1)

    options: Any = {"make_input": last_action, "rubric": "r"}
    regraded = regrade(groups(), is_right, **options)
    assert read == []
    assert next(regraded).item == "0"
    assert read == [0]
    regraded.close()
    assert read == [0, -1]
    read.clear()
    async with aregrade(groups(), ais_right, concurrency=4, **options) as aregraded:
        assert (await anext(aregraded)).item == "0"
        await anyio.wait_all_tasks_blocked()
    assert len(read) <= 8
    assert read[-1] == -1


async def test_asynchronous_groups_may_be_graded() -> None:
    async def groups() -> AsyncIterator[Group]:
        for item in "ab":
            await anyio.lowlevel.checkpoint()
            yield make_group(item, "a")

    options: Any = {"make_input": last_action, "rubric": "r"}
    async with aregrade(groups(), ais_right, **options) as regraded:
        assert [group.rewards async for group in regraded] == [(1.0,), (0.0,)]


@pytest.mark.parametrize("shared", [False, True])
async def test_as_many_episodes_are_graded_at_once_as_concurrency_says(shared: bool) -> None:
    running = most = 0
    full = anyio.Event()

    async def grade(pair: object, rubric: object) -> float:
        nonlocal running, most
        running += 1
        most = max(most, running)
        if running == 5:
            full.set()
        await full.wait()
        await anyio.lowlevel.checkpoint()
        running -= 1
        return 1.0

    concurrency = anyio.CapacityLimiter(5) if shared else 5
    groups = [make_group(str(index), "a", "a") for index in range(20)]
    options: Any = {"make_input": last_action, "rubric": "r", "concurrency": concurrency}
    with anyio.fail_after(20):
        async with aregrade(groups, grade, **options) as regraded:
            assert [group.item async for group in regraded] == [str(index) for index in range(20)]
    assert most == 5


@pytest.mark.parametrize("interrupt", [KeyboardInterrupt, SystemExit])
def test_interrupts_propagate(anyio_backend: str, interrupt: type[BaseException]) -> None:
    def grade(pair: object, rubric: object) -> float:
        raise interrupt

    options: Any = {"make_input": last_action, "rubric": "r"}
    groups = [make_group("a", "a", "b")]

    async def run() -> None:
        async with aregrade(groups, grade, **options) as regraded:
            _ = [group async for group in regraded]

    with pytest.raises(interrupt):
        list(regrade(groups, grade, **options))
    with pytest.raises(interrupt):
        anyio.run(run, backend=anyio_backend)


async def test_a_cancellation_ends_the_grading() -> None:
    ended: list[str] = []
    begun = anyio.Event()

    async def grade(pair: tuple[str, str], rubric: object) -> float:
        try:
            begun.set()
            await anyio.sleep_forever()
        finally:
            ended.append(pair[0])
        return 1.0

    async def run() -> None:
        options: Any = {"make_input": last_action, "rubric": "r", "concurrency": 1}
        async with aregrade([make_group("a", "a")], grade, **options) as regraded:
            _ = [group async for group in regraded]

    with anyio.fail_after(20):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(run)
            await begun.wait()
            tasks.cancel_scope.cancel()
    assert ended == ["a"]
