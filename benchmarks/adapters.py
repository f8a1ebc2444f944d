"""`as_async` and `as_sync`: what a call through them costs beside the environment."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Awaitable, Callable
from time import perf_counter
from typing import TypeAlias

import anyio
import anyio.to_thread

from episodes import AsyncCount, Count, Info
from measuring import Effort, Measure, Row, Sides, timed
from rolloutlib import AsyncEnv, as_async, as_sync

ENVIRONMENTS = 16
STEPS = 200


Stepped: TypeAlias = tuple[Callable[[int], Awaitable[object]], Callable[[], Awaitable[object]]]
"""The step of an environment, and what closes it."""


class Yielding(AsyncCount):
    """Suspends in each step."""

    async def step(self, action: int) -> tuple[int, float, bool, bool, Info]:
        """Let others run, then count."""
        await asyncio.sleep(0)
        return await super().step(action)


def stepping(
    make: Callable[[], Stepped],
    count: int,
    steps: int,
) -> Measure:
    """Measure steps of several environments at the same time.

    Args:
        make: Makes an environment.
        count: How many environments.
        steps: How many timed steps each takes, after a tenth as many for starting threads.
    """

    async def main() -> float:
        made = [make() for _ in range(count)]

        async def run(step: Callable[[int], Awaitable[object]], number: int) -> None:
            for _ in range(number):
                await step(1)

        for number in (1 + steps // 10, steps):
            gc.collect()
            start = perf_counter()
            async with anyio.create_task_group() as tasks:
                for step, _ in made:
                    tasks.start_soon(run, step, number)
            elapsed = perf_counter() - start
        for _, close in made:
            await close()
        return elapsed / (count * steps) * 1e6

    return lambda: asyncio.run(main())


def threads(effort: Effort) -> Sides:
    """Step environments on threads of their own, and by hand on the pool of the loop."""
    steps = effort.count(STEPS)

    def ours() -> Stepped:
        env = as_async(Count(1))
        return env.step, env.close

    def hand() -> Stepped:
        env = Count(1)

        async def step(action: int) -> object:
            return await anyio.to_thread.run_sync(env.step, action)

        async def close() -> None:
            await anyio.to_thread.run_sync(env.close)

        return step, close

    return Sides(stepping(ours, ENVIRONMENTS, steps), stepping(hand, ENVIRONMENTS, steps))


def inline(effort: Effort) -> Sides:
    """Step an environment on the event loop, and by hand in a coroutine function."""

    def ours() -> Stepped:
        env = as_async(Count(1), inline=True)
        return env.step, env.close

    def hand() -> Stepped:
        env = Count(1)

        async def step(action: int) -> object:
            return env.step(action)

        async def close() -> None:
            env.close()

        return step, close

    steps = effort.count(20_000)
    return Sides(stepping(ours, 1, steps), stepping(hand, 1, steps))


def from_sync(kind: Callable[[int], AsyncEnv[int, int]]) -> Callable[[Effort], Sides]:
    """Step an asynchronous environment from synchronous code, and by hand on an idle event loop."""

    def prepare(effort: Effort) -> Sides:
        env, hand_env = as_sync(kind(1)), kind(1)
        loop = asyncio.new_event_loop()
        env.reset()
        return Sides(
            timed(lambda: env.step(1), effort),
            timed(lambda: loop.run_until_complete(hand_env.step(1)), effort),
        )

    return prepare


ROWS = [
    Row(
        "as-async",
        f"as_async, {ENVIRONMENTS} environments, against anyio.to_thread",
        "us/step",
        threads,
        1.2,
    ),
    Row("as-async-inline", "as_async(inline=True)", "us/step", inline, 2, "ours", in_old=False),
    Row("as-sync", "as_sync, never suspending", "us/step", from_sync(AsyncCount), 2, gated="ours"),
    Row("as-sync-waits", "as_sync, suspending", "us/step", from_sync(Yielding), 20, gated="ours"),
]
