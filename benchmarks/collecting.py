"""Collecting over a dataset: groups of episodes as a stream, against one task an episode by hand."""

from __future__ import annotations

from collections.abc import Callable

from episodes import AsyncCount, AsyncPolicy, act_later, act_now, hand_gather
from measuring import Effort, Row, Sides, timed_async
from rolloutlib.rollouts import acollect
from rollouts import STEPS

GROUP = 10
CONCURRENCY = 256


async def stream(count: int, policy: AsyncPolicy) -> None:
    """Run episodes in groups, and drop each group when it is finished."""
    groups = acollect(
        range(count // GROUP),
        lambda item: AsyncCount(STEPS),
        policy,
        num_rollouts=GROUP,
        concurrency=CONCURRENCY,
    )
    async with groups:
        async for _ in groups:
            pass


def collecting(number: int, policy: AsyncPolicy) -> Callable[[Effort], Sides]:
    """Run episodes of many items; by hand, all of them are kept till the end."""

    def prepare(effort: Effort) -> Sides:
        count = effort.count(number)
        return Sides(
            timed_async(lambda: stream(count, policy), effort, per=count),
            timed_async(
                lambda: hand_gather(count, policy, length=STEPS, concurrency=CONCURRENCY),
                effort,
                per=count,
            ),
        )

    return prepare


ROWS = [
    Row(
        "collect-256",
        f"acollect, 1,000 items x {GROUP} episodes x {STEPS} steps, concurrency {CONCURRENCY}",
        "us/episode",
        collecting(10_000, act_later),
        1.0,
        in_old=False,
    ),
    Row(
        "collect-256-now",
        "the same with a policy that never suspends",
        "us/episode",
        collecting(10_000, act_now),
        in_old=False,
    ),
]
