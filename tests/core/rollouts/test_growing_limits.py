"""Limiters that get more tokens while a run goes on."""

from __future__ import annotations

import anyio
import pytest

from core.rollouts.scripted import AsyncScriptedEnv, Log, apolicy
from rolloutlib import PolicyOutput, acollect
from rolloutlib.rollouts import arollout_group

pytestmark = pytest.mark.anyio


class Gate:
    """A policy that gives a limiter more tokens, and then waits until so many episodes are open."""

    def __init__(self, log: Log, limiter: anyio.CapacityLimiter, tokens: int) -> None:
        self._log = log
        self._limiter = limiter
        self._tokens = tokens
        self._full = anyio.Event()
        self._num_calls = 0

    async def __call__(self, observation: str) -> PolicyOutput[str]:
        self._num_calls += 1
        if self._num_calls == 2:  # the first episode is about to end
            self._limiter.total_tokens = self._tokens
        if self._num_calls > 2:
            if self._log.open == self._tokens:
                self._full.set()
            await self._full.wait()
        return await apolicy(observation)


async def test_the_members_that_one_group_still_has_are_played_side_by_side() -> None:
    log, limiter = Log(), anyio.CapacityLimiter(1)
    with anyio.fail_after(20):
        group = await arollout_group(
            "item",
            lambda _: AsyncScriptedEnv(log=log),
            Gate(log, limiter, 4),
            num_rollouts=9,
            concurrency=limiter,
        )
    assert group.num_completed == 9
    assert log.most_open == 4


async def test_the_default_buffer_grows_with_the_limiter() -> None:
    """With the buffer of the beginning, a late group would let no more than one other be played."""
    log, limiter = Log(), anyio.CapacityLimiter(1)
    others_ended = anyio.Event()
    num_begun = 0

    async def choose(observation: str) -> PolicyOutput[str]:
        nonlocal num_begun
        num_begun += observation == "o0"
        limiter.total_tokens = 8
        if log.closed >= 6:
            others_ended.set()
        if num_begun == 2:
            await others_ended.wait()
        return await apolicy(observation)

    with anyio.fail_after(20):
        async with acollect(
            range(12),
            lambda _: AsyncScriptedEnv(log=log),
            choose,
            concurrency=limiter,
            order="dataset",
        ) as stream:
            items = [group.item async for group in stream]
    assert items == list(range(12))
