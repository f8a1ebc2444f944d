"""Many episodes: what one costs as their number grows, and 10,000 of them in flight at once."""

from __future__ import annotations

import asyncio
import gc
import tracemalloc
from collections.abc import Callable, Coroutine
from typing import Any, TypeAlias

from collecting import collecting, stream
from episodes import AsyncCount, AsyncPolicy, act_later, hand_gather
from measuring import Effort, Measure, Row, Sides, timed_async
from rolloutlib.rollouts import arollout_group
from rollouts import STEPS, asynchronous

IN_FLIGHT = 10_000
MOST_SECONDS = 60
"""How long episodes wait for so many to be open, should that never be."""

Run: TypeAlias = Callable[[int], Coroutine[Any, Any, object]]
"""Runs so many episodes."""


async def ours_at_once(count: int) -> None:
    """Run a group of episodes that are all open at the same time."""
    await arollout_group(
        "item",
        lambda item: AsyncCount(STEPS),
        meeting(count),
        num_rollouts=count,
        concurrency=count,
    )


async def hand_at_once(count: int) -> None:
    """Run as many episodes by hand, a task each."""
    await hand_gather(count, meeting(count), length=STEPS)


def meeting(count: int) -> AsyncPolicy:
    """Return a policy that does not act before so many environments are open."""
    all_open = asyncio.Event()
    asyncio.get_running_loop().call_later(MOST_SECONDS, all_open.set)

    async def policy(observation: int) -> int:
        if observation == 0:
            if AsyncCount.open == count:
                all_open.set()
            await all_open.wait()
        return await act_later(observation)

    return policy


def seconds(run: Run, count: int) -> Measure:
    """Measure how long the episodes take."""
    measure = timed_async(lambda: run(count), Effort(quick=True))
    return lambda: measure() / 1e6


def peak_megabytes(run: Run, count: int) -> Measure:
    """Measure the most memory that the episodes and their records hold at once."""

    async def measure() -> float:
        await run(10)  # so that what is imported on first use is not counted
        gc.collect()
        tracemalloc.start()
        try:
            await run(count)
            return tracemalloc.get_traced_memory()[1] / 1e6
        finally:
            tracemalloc.stop()

    return lambda: asyncio.run(measure())


def most_open(run: Run, count: int) -> Measure:
    """Measure how many environments are open at once."""

    async def measure() -> float:
        AsyncCount.most_open = 0
        await run(count)
        return AsyncCount.most_open

    return lambda: asyncio.run(measure())


def stream_memory(number: int) -> Callable[[Effort], Sides]:
    """Measure the memory of groups that are taken and dropped."""

    def prepare(effort: Effort) -> Sides:
        return Sides(
            peak_megabytes(lambda count: stream(count, act_later), effort.count(number)),
        )

    return prepare


def in_flight(kind: Callable[[Run, int], Measure]) -> Callable[[Effort], Sides]:
    """Measure something of many episodes that are all open at once."""

    def prepare(effort: Effort) -> Sides:
        count = effort.count(IN_FLIGHT)
        return Sides(kind(ours_at_once, count), kind(hand_at_once, count))

    return prepare


NUMBERS = (10, 100, 1_000, 10_000, 100_000)

ROWS = [
    *[
        Row(
            f"group-{number}",
            f"{number:,} episodes x {STEPS} steps as one group, concurrency 256",
            "us/episode",
            asynchronous(number, 256, act_later),
            most_rounds=2 if number > 10_000 else 5,
        )
        for number in NUMBERS
    ],
    *[
        Row(
            f"stream-{number}",
            f"{number:,} episodes x {STEPS} steps as a stream of groups",
            "us/episode",
            collecting(number, act_later),
            in_old=False,
            most_rounds=2 if number > 10_000 else 5,
        )
        for number in NUMBERS
    ],
    *[
        Row(
            f"stream-{number}-memory",
            f"{number:,} episodes as a stream: most memory",
            "MB",
            stream_memory(number),
            in_old=False,
            most_rounds=1,
        )
        for number in NUMBERS[-2:]
    ],
    Row("in-flight", "10,000 episodes in flight", "s", in_flight(seconds), most_rounds=3),
    Row(
        "in-flight-memory",
        "10,000 episodes in flight: most memory",
        "MB",
        in_flight(peak_megabytes),
        most_rounds=1,
    ),
    Row(
        "in-flight-open",
        "10,000 episodes in flight: most open",
        "environments",
        in_flight(most_open),
        most_rounds=1,
    ),
]
