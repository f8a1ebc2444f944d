"""Memory stays flat while a long run is consumed as a stream."""

from __future__ import annotations

import gc
import itertools
import sys
import tracemalloc
from collections.abc import Callable
from typing import Any

import anyio
import gymnasium as gym
import pytest

from rolloutlib import AsyncEnv, Env, PolicyOutput, TrajectoryGroup, acollect, collect
from rolloutlib.rollouts import Progress, Retry, RolloutEvent

Group = TrajectoryGroup[Any, Any, Any]


class OneStep(Env[Any, Any]):
    """Ends with its first step."""

    action_space: gym.Space[Any] = gym.spaces.Discrete(2)
    observation_space: gym.Space[Any] = gym.spaces.Discrete(2)

    def __init__(self, item: int) -> None:
        self.item = item

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[int, dict[str, Any]]:
        return self.item, {}

    def step(self, action: int) -> tuple[int, float, bool, bool, dict[str, Any]]:
        return action, 1.0, True, False, {"item": self.item}


class AsyncOneStep(AsyncEnv[Any, Any]):
    """The asynchronous twin; one in two fails if failures are wanted."""

    action_space: gym.Space[Any] = gym.spaces.Discrete(2)
    observation_space: gym.Space[Any] = gym.spaces.Discrete(2)

    def __init__(self, item: int, *, fails: bool = False) -> None:
        self._twin = OneStep(item)
        self._fails = fails and item % 2 == 1

    async def reset(
        self, *, seed: int | None = None, options: Any = None
    ) -> tuple[int, dict[str, Any]]:
        return self._twin.reset(seed=seed)

    async def step(self, action: int) -> tuple[int, float, bool, bool, dict[str, Any]]:
        if self._fails:
            raise ConnectionError
        return self._twin.step(action)

    async def close(self) -> None:
        pass


def policy(observation: int) -> int:
    return 1


async def apolicy(observation: int) -> int:
    return 1


async def sampler(observation: int) -> PolicyOutput[int]:
    return PolicyOutput(1, tokens=[1, 2, 3], logprobs=[-1.0, -2.0, -3.0])


class Meter:
    """Measures what is allocated after some episodes and after many.

    Args:
        measure: Returns the size of what is allocated.
        before: After how many episodes it is asked first.
        after: After how many it is asked again.
    """

    def __init__(self, measure: Callable[[], int], before: int, after: int) -> None:
        self._measure = measure
        self._marks = (before, after)
        self._episodes = 0
        self._measured: list[int] = []

    def has_enough(self, group: Group) -> bool:
        """Count a group; return whether that was the last."""
        before, self._episodes = self._episodes, self._episodes + group.num_requested
        for mark in self._marks:
            if before < mark <= self._episodes:
                gc.collect()
                self._measured.append(self._measure())
        return self._episodes >= self._marks[-1]

    @property
    def growth(self) -> int:
        before, after = self._measured
        return after - before


MOST = 9_000
"""Bytes that 27,000 episodes may leave: one pointer kept for each of them would be 216,000."""


def traced_bytes() -> int:
    return tracemalloc.get_traced_memory()[0]


@pytest.mark.slow
def test_synchronous_episodes_leave_nothing_behind() -> None:
    meter = Meter(traced_bytes, 3_000, 30_000)
    tracemalloc.start()
    try:
        for group in collect(itertools.count(), OneStep, policy, num_rollouts=10):
            if meter.has_enough(group):
                break
    finally:
        tracemalloc.stop()
    assert meter.growth < MOST


@pytest.mark.slow
def test_asynchronous_episodes_leave_nothing_behind() -> None:
    async def main() -> None:
        async with acollect(
            itertools.count(), AsyncOneStep, apolicy, num_rollouts=10, concurrency=10, inline=True
        ) as groups:
            async for group in groups:
                if meter.has_enough(group):
                    break

    meter = Meter(traced_bytes, 3_000, 30_000)
    tracemalloc.start()
    try:
        anyio.run(main)
    finally:
        tracemalloc.stop()
    assert meter.growth < MOST


@pytest.mark.slow
@pytest.mark.anyio
async def test_failures_retries_grades_and_events_leave_nothing_behind() -> None:
    meter = Meter(sys.getallocatedblocks, 1_000, 6_000)
    last = Progress()

    def see(event: RolloutEvent) -> None:
        nonlocal last
        last = event.progress

    async with acollect(
        itertools.count(),
        lambda item: AsyncOneStep(item, fails=True),
        sampler,
        concurrency=4,
        buffer=1,
        order="dataset",
        inline=True,
        retry=Retry(attempts=2, initial_delay=0, transient=ConnectionError),
        grade_group=lambda group: [0.0] * len(group.trajectories),
        on_event=see,
    ) as groups:
        async for group in groups:
            if meter.has_enough(group):
                break
    assert last.retried >= last.failed >= 2_500
    assert meter.growth < 500  # objects, for 5,000 episodes
