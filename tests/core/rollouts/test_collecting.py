"""Collecting the groups of a dataset: order, limits, back-pressure, names and seeds."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncGenerator, Generator, Sequence
from contextlib import aclosing
from typing import Any, cast

import anyio
import anyio.lowlevel
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.rollouts.scripted import AsyncScriptedEnv, Log, ScriptedEnv, apolicy, policy
from rolloutlib import (
    PolicyOutput,
    RLDataset,
    TrajectoryGroup,
    acollect,
    arollout_group,
    collect,
    rollout,
)
from rolloutlib.rollouts import AsyncCollector

pytestmark = pytest.mark.anyio


def make_env(item: object) -> ScriptedEnv:
    return ScriptedEnv()


def amake_env(item: object) -> AsyncScriptedEnv:
    return AsyncScriptedEnv()


async def take(collector: AsyncCollector[Any, Any, Any]) -> list[TrajectoryGroup[Any, Any, Any]]:
    async with collector as groups:
        return [group async for group in groups]


class Gates:
    """Environments that are held in their reset until their item is let go."""

    def __init__(self, items: Sequence[int]) -> None:
        self.log = Log()
        self._gates = {item: anyio.Event() for item in items}

    def open(self, item: int) -> None:
        self._gates[item].set()

    async def make_env(self, item: int) -> AsyncScriptedEnv:
        await self._gates[item].wait()
        return AsyncScriptedEnv(log=self.log)


@pytest.mark.parametrize("num_rollouts", [1, 3])
async def test_groups_come_as_they_are_finished_or_as_their_items_stand(num_rollouts: int) -> None:
    for order, expected in (("completion", [3, 1, 2, 0]), ("dataset", [0, 1, 2, 3])):
        gates = Gates(range(4))
        arguments: dict[str, Any] = {"order": order, "num_rollouts": num_rollouts}
        taken: list[int] = []

        async def consume(groups: AsyncCollector[int, str, str], taken: list[int] = taken) -> None:
            async for group in groups:
                assert group.num_completed == num_rollouts
                taken.append(group.item)

        async with (
            acollect(range(4), gates.make_env, apolicy, **arguments) as groups,
            anyio.create_task_group() as tasks,
        ):
            tasks.start_soon(consume, groups)
            for item in (3, 1, 2, 0):
                gates.open(item)
                await anyio.wait_all_tasks_blocked()
                if order == "dataset":
                    assert taken == ([0, 1, 2, 3] if item == 0 else [])
        assert taken == expected


@pytest.mark.parametrize("order", ["completion", "dataset"])
def test_one_after_another_both_orders_are_the_same(order: Any) -> None:
    groups = list(collect(range(5), make_env, policy, order=order, num_rollouts=2))
    assert [group.item for group in groups] == [0, 1, 2, 3, 4]
    assert all(group.num_completed == 2 for group in groups)


async def test_no_items_give_no_groups() -> None:
    assert list(collect([], make_env, policy)) == []
    assert await take(acollect([], amake_env, apolicy)) == []
    assert await take(acollect(iter(()), amake_env, apolicy)) == []


@pytest.mark.parametrize("concurrency", [1, 3, 8, 40])
@pytest.mark.parametrize("num_rollouts", [1, 5])
async def test_as_many_are_open_at_once_as_the_limit_says(
    concurrency: int, num_rollouts: int
) -> None:
    log, all_open = Log(), anyio.Event()
    expected = min(concurrency, 20 * num_rollouts)

    async def meet(observation: str) -> str:
        if log.open == expected:
            all_open.set()
        await all_open.wait()
        return "a"

    groups = await take(
        acollect(
            range(20),
            lambda _: AsyncScriptedEnv(log=log),
            meet,
            num_rollouts=num_rollouts,
            concurrency=concurrency,
            buffer=20,
        )
    )
    assert len(groups) == 20
    assert log.opened == log.closed == 20 * num_rollouts
    assert log.most_open == expected


async def test_one_limiter_bounds_collectors_and_groups_together() -> None:
    log, limiter = Log(), anyio.CapacityLimiter(5)

    def make(item: object) -> AsyncScriptedEnv:
        return AsyncScriptedEnv(log=log)

    async def run_collector() -> None:
        collector = acollect(range(9), make, apolicy, num_rollouts=2, concurrency=limiter)
        assert len(await take(collector)) == 9

    async def run_group(item: str) -> None:
        group = await arollout_group(item, make, apolicy, num_rollouts=8, concurrency=limiter)
        assert group.num_completed == 8

    async with anyio.create_task_group() as tasks:
        for _ in range(2):
            tasks.start_soon(run_collector)
            tasks.start_soon(run_group, "item")
    assert log.opened == log.closed == 2 * 9 * 2 + 2 * 8
    assert log.most_open == 5
    assert limiter.borrowed_tokens == 0


async def test_a_limiter_that_grows_lets_more_in() -> None:
    log, limiter = Log(), anyio.CapacityLimiter(1)
    collector = acollect(
        range(30), lambda _: AsyncScriptedEnv(log=log), apolicy, concurrency=limiter, buffer=30
    )
    async with collector as groups:
        await anext(groups)
        assert log.most_open == 1
        limiter.total_tokens = 4
        assert len([group async for group in groups]) == 29
    assert log.most_open == 4


@pytest.mark.parametrize("order", ["completion", "dataset"])
async def test_finished_groups_that_nobody_takes_hold_up_the_next(order: Any) -> None:
    log = Log()
    collector = acollect(
        range(100),
        lambda _: AsyncScriptedEnv(log=log),
        apolicy,
        concurrency=1,
        buffer=3,
        order=order,
    )
    async with collector as groups:
        for taken in range(5):
            await anyio.wait_all_tasks_blocked()
            assert log.opened == taken + 3
            assert len(groups.unclaimed) == 3
            await anext(groups)


async def test_the_buffer_may_be_exceeded_by_what_has_begun_and_no_more() -> None:
    log = Log()
    collector = acollect(
        range(100), lambda _: AsyncScriptedEnv(log=log), apolicy, concurrency=8, buffer=2
    )
    async with collector as groups:
        for taken in range(10):
            await anyio.wait_all_tasks_blocked()
            assert taken + 2 <= log.opened <= taken + 2 + 7
            await anext(groups)


async def test_a_group_that_is_late_in_its_order_does_not_hold_up_for_ever() -> None:
    gates = Gates(range(12))
    for item in range(1, 12):
        gates.open(item)
    collector = acollect(
        range(12), gates.make_env, apolicy, concurrency=3, buffer=2, order="dataset"
    )
    async with collector as groups:
        await anyio.wait_all_tasks_blocked()
        held = gates.log.opened
        assert 2 <= held <= 4  # those that are finished wait for the first
        gates.open(0)
        assert [group.item async for group in groups] == list(range(12))


@pytest.mark.parametrize("concurrency", [1, 4])
async def test_groups_are_named_by_their_dataset(concurrency: int) -> None:
    dataset = RLDataset(
        ["a", "b", "c"], make_env=make_env, get_item_id=lambda item: f"problem {item}"
    )
    names = ["problem a", "problem b", "problem c"]
    groups = list(collect(dataset, dataset.make_env, policy, concurrency=concurrency))
    assert sorted(group.item_id for group in groups) == names
    groups = await take(acollect(dataset, dataset.make_env, policy, concurrency=concurrency))
    assert sorted(group.item_id for group in groups) == names
    renamed = await take(acollect(dataset, dataset.make_env, policy, get_item_id=str.upper))
    assert sorted(group.item_id for group in renamed) == ["A", "B", "C"]


async def test_unnamed_groups_are_named_by_their_contents() -> None:
    def names(groups: list[TrajectoryGroup[Any, Any, Any]]) -> list[str]:
        return sorted(group.item_id for group in groups)

    items = [{"q": 1}, {"q": 2}, {"q": 1}]
    first = names(list(collect(items, make_env, policy)))
    assert len(set(first)) == 2
    assert first == names(await take(acollect(items, make_env, policy)))


async def test_a_function_that_cannot_name_an_item_ends_the_run() -> None:
    def name(item: int) -> str:
        return {0: "zero", 1: "one"}[item]

    groups = collect(range(5), make_env, policy, get_item_id=name)
    assert [next(groups).item_id, next(groups).item_id] == ["zero", "one"]
    with pytest.raises(KeyError):
        next(groups)
    log = Log()
    with pytest.raises(KeyError):
        await take(
            acollect(range(5), lambda _: AsyncScriptedEnv(log=log), apolicy, get_item_id=name)
        )
    assert log.opened == log.closed


def seeded(observation: str, *, seed: int, step: int) -> PolicyOutput[str]:
    return PolicyOutput(f"{observation}-{seed % 7}-{step}", {"seed": seed, "step": step})


async def aseeded(observation: str, *, seed: int, step: int) -> PolicyOutput[str]:
    await anyio.lowlevel.checkpoint()
    return seeded(observation, seed=seed, step=step)


async def in_every_way(
    play: tuple[Any, Any], items: Sequence[Any], **arguments: Any
) -> list[list[TrajectoryGroup[Any, Any, Any]]]:
    """Collect in many ways; return the groups of each, sorted by their seeds."""
    answer, aanswer = play
    runs = [
        list(collect(items, make_env, answer, **arguments)),
        list(collect(items, make_env, answer, concurrency=3, **arguments)),
    ]
    for concurrency in (1, 4, 64):
        for order in ("completion", "dataset"):
            more: dict[str, Any] = {"concurrency": concurrency, "order": order, **arguments}
            runs.append(await take(acollect(items, amake_env, aanswer, **more)))
    runs.append(await take(acollect(items, make_env, answer, **arguments)))
    runs.append(await take(acollect(items, make_env, answer, inline=True, **arguments)))
    return [sorted(run, key=lambda group: group.seed or 0) for run in runs]


async def test_the_seed_of_a_group_may_follow_from_its_item_alone() -> None:
    def seed(item: str) -> int:
        return ord(item)

    arguments: dict[str, Any] = {"get_item_id": str, "get_seed": seed}
    groups = list(collect([*"abc"], make_env, cast("Any", seeded), **arguments))
    assert [group.seed for group in groups] == [97, 98, 99]
    [alone] = await take(acollect([*"c"], amake_env, cast("Any", aseeded), **arguments))
    assert alone == groups[2]


@pytest.mark.parametrize("play", [(policy, apolicy), (seeded, aseeded)])
async def test_a_seed_makes_a_run_reproducible_in_any_order(play: tuple[Any, Any]) -> None:
    items = ["a", "b", "a", "c"]
    arguments: dict[str, Any] = {"num_rollouts": 3, "seed": 11, "get_item_id": str}
    first, *others = await in_every_way(play, items, **arguments)
    assert all(other == first for other in others)
    seeds = [trajectory.seed for group in first for trajectory in group.trajectories]
    assert len(set(seeds)) == 12  # those of equal items too
    arguments["seed"] = 12
    again = list(collect(items, make_env, play[0], **arguments))
    assert not {trajectory.seed for group in again for trajectory in group.trajectories} & set(
        seeds
    )


@pytest.mark.parametrize("play", [(policy, apolicy), (seeded, aseeded)])
async def test_each_member_replays_alone(play: tuple[Any, Any]) -> None:
    answer, aanswer = play
    groups = await take(
        acollect(["a", "b"], amake_env, aanswer, num_rollouts=4, concurrency=3, max_steps=3)
    )
    draws: set[Any] = set()
    for group in groups:
        for trajectory in group.trajectories:
            again = rollout(make_env(group.item), answer, seed=trajectory.seed, max_steps=3)
            assert again.steps == trajectory.steps
            draws.add(tuple(step.info["draw"] for step in trajectory.steps))
    assert len(draws) == 8


async def test_runs_without_a_seed_differ() -> None:
    runs = [list(collect(["a"], make_env, policy)) for _ in range(2)]
    runs += [await take(acollect(["a"], amake_env, apolicy)) for _ in range(2)]
    assert len({run[0].seed for run in runs}) == 4


async def test_metadata_options_and_items_are_copies() -> None:
    item, options, metadata = {"q": [1]}, {"level": [1]}, {"run": [1]}

    class Editing(ScriptedEnv):
        def reset(self, *, seed: Any = None, options: Any = None) -> tuple[str, dict[str, Any]]:
            options["level"].append(2)
            return super().reset(seed=seed)

    def make(own: dict[str, list[int]]) -> ScriptedEnv:
        assert own == {"q": [1]}
        own["q"].append(2)
        return Editing()

    arguments: dict[str, Any] = {"num_rollouts": 3, "options": options, "metadata": metadata}
    for groups in (
        list(collect([item], make, policy, **arguments)),
        await take(acollect([item], make, policy, **arguments)),
    ):
        [group] = groups
        assert group.num_completed == 3
        assert group.metadata == {"run": [1]}
        assert (item, options, metadata) == ({"q": [1]}, {"level": [1]}, {"run": [1]})


@given(
    lengths=st.lists(st.integers(1, 4), max_size=8),
    num_rollouts=st.integers(1, 4),
    concurrency=st.integers(1, 6),
    buffer=st.none() | st.integers(1, 3),
    order=st.sampled_from(["completion", "dataset"]),
    broken=st.sets(st.integers(0, 7)),
)
@settings(max_examples=60)
def test_whatever_the_numbers_every_item_gives_one_group(
    lengths: list[int],
    num_rollouts: int,
    concurrency: int,
    buffer: int | None,
    order: Any,
    broken: set[int],
) -> None:
    log = Log()

    def make(item: tuple[int, int]) -> AsyncScriptedEnv:
        position, length = item
        faults: dict[str, BaseException] = {"step 0": KeyError()} if position in broken else {}
        return AsyncScriptedEnv(length, faults, log)

    async def main() -> None:
        groups = await take(
            acollect(
                list(enumerate(lengths)),
                make,
                apolicy,
                num_rollouts=num_rollouts,
                concurrency=concurrency,
                buffer=buffer,
                order=order,
                seed=1,
            )
        )
        positions = [group.item[0] for group in groups]
        assert sorted(positions) == list(range(len(lengths)))
        assert order == "completion" or positions == sorted(positions)
        for group in groups:
            assert group.num_requested == num_rollouts
            assert group.num_failed == (num_rollouts if group.item[0] in broken else 0)
        assert log.opened == log.closed == num_rollouts * len(lengths)
        assert log.most_open <= concurrency

    for backend in ("asyncio", "trio"):
        log = Log()
        anyio.run(main, backend=backend)


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"num_rollouts": 0}, ValueError),
        ({"max_steps": -1}, ValueError),
        ({"seed": -1}, ValueError),
        ({"on_error": "ignore"}, ValueError),
        ({"order": "random"}, ValueError),
        ({"buffer": 0}, ValueError),
        ({"buffer": 1.5}, TypeError),
        ({"concurrency": 0}, ValueError),
        ({"concurrency": 1.5}, TypeError),
        ({"max_failures": 0}, ValueError),
        ({"retry": 3}, TypeError),
        ({"timeouts": 3}, TypeError),
        ({"grade_group": 3}, TypeError),
        ({"on_event": apolicy}, TypeError),
    ],
)
async def test_bad_arguments_are_refused_before_an_item_is_read(
    arguments: dict[str, Any], error: type[Exception]
) -> None:
    read: list[int] = []

    def items() -> Generator[int]:
        read.append(1)
        yield 1

    [name] = arguments
    runs: list[Any] = [acollect, collect]
    for run in runs:
        with pytest.raises(error, match=f"{name} must .*"):
            run(items(), make_env, policy, **arguments)
    assert read == []


@pytest.mark.parametrize("items", [5, "text", b"bytes", None])
async def test_what_gives_no_items_is_refused(items: Any) -> None:
    for run in (collect, acollect):
        with pytest.raises(TypeError, match="items must be an iterable"):
            run(items, make_env, policy)


async def test_asynchronous_items_are_for_asynchronous_code() -> None:
    async def items() -> AsyncGenerator[int]:
        yield 1

    wrong: Any = items()
    for concurrency in (1, 2):
        with pytest.raises(TypeError, match="items must be an iterable"):
            collect(wrong, make_env, policy, concurrency=concurrency)
    async with aclosing(wrong):
        pass


async def test_a_run_longer_than_any_buffer_loses_nothing() -> None:
    seen: Counter[int] = Counter()
    async with acollect(
        range(1000), lambda _: AsyncScriptedEnv(1), apolicy, concurrency=32, buffer=1
    ) as groups:
        async for group in groups:
            seen[group.item] += 1
    assert len(seen) == 1000
    assert set(seen.values()) == {1}
