"""Many episodes: what one costs as their number grows, and 10,000 of them in flight at once."""

from __future__ import annotations

import asyncio
import gc
import tracemalloc
from collections.abc import Callable, Coroutine
from typing import Any

from episodes import AsyncCount, act_later, hand_gather
from measuring import Effort, Measure, Row, Sides, timed
from rolloutlib.rollouts import arollout_group
from rollouts import STEPS, asynchronous

IN_FLIGHT = 10_000


def ours_at_once(count: int) -> Coroutine[Any, Any, object]:
    """Run a group of episodes, all at the same time."""
    return arollout_group(
        "item",
        lambda item: AsyncCount(STEPS),
        act_later,
        num_rollouts=count,
        concurrency=count,
    )


def hand_at_once(count: int) -> Coroutine[Any, Any, object]:
    """Run as many episodes by hand, a task each."""
    return hand_gather(count, act_later, length=STEPS)


def seconds(run: Callable[[int], Coroutine[Any, Any, object]], count: int) -> Measure:
    """Measure how long the episodes take."""
    measure = timed(lambda: asyncio.run(run(count)), Effort(quick=True))
    return lambda: measure() / 1e6


def peak_megabytes(run: Callable[[int], Coroutine[Any, Any, object]], count: int) -> Measure:
    """Measure the most memory that the episodes and their records hold at once."""

    def measure() -> float:
        gc.collect()
        tracemalloc.start()
        try:
            asyncio.run(run(count))
            return tracemalloc.get_traced_memory()[1] / 1e6
        finally:
            tracemalloc.stop()

    return measure


def most_open(run: Callable[[int], Coroutine[Any, Any, object]], count: int) -> Measure:
    """Measure how many environments are open at once."""

    def measure() -> float:
        AsyncCount.most_open = 0
        asyncio.run(run(count))
        return AsyncCount.most_open

    return measure


def in_flight(
    kind: Callable[[Callable[[int], Coroutine[Any, Any, object]], int], Measure],
) -> Callable[[Effort], Sides]:
    """Measure something of many episodes that are all open at once."""

    def prepare(effort: Effort) -> Sides:
        count = effort.count(IN_FLIGHT)
        return Sides(kind(ours_at_once, count), kind(hand_at_once, count))

    return prepare


ROWS = [
    *[
        Row(
            f"episodes-{number}",
            f"{number:,} episodes x {STEPS} steps, concurrency 256",
            "us/episode",
            asynchronous(number, 256, act_later),
            most_rounds=2 if number > 10_000 else 5,
        )
        for number in (10, 100, 1_000, 10_000, 100_000)
    ],
    Row("in-flight", "10,000 episodes in flight", "s", in_flight(seconds), most_rounds=3),
    Row("in-flight-memory", "most memory", "MB", in_flight(peak_megabytes), most_rounds=1),
    Row("in-flight-open", "most open", "environments", in_flight(most_open), most_rounds=1),
]
