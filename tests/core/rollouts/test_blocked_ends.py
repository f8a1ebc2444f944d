"""Runs that end while environments are in calls on their threads: these run out, then it is over."""

from __future__ import annotations

import threading
from typing import Any

import anyio
import pytest

from core.rollouts.scripted import Log, ScriptedEnv
from rolloutlib import acollect, arollout_group

pytestmark = pytest.mark.anyio


class Blocked:
    """An item 0 that is in a step until the end of the run, and an item 1 whose policy sees that end."""

    def __init__(self, *, error: Exception | None = None) -> None:
        self.log = Log()
        self.error = error
        self.entered = anyio.Event()
        self.stepping, self.ended = threading.Event(), threading.Event()

    def make_env(self, number: int) -> Any:
        outer = self

        class Env(ScriptedEnv):
            def reset(self, **arguments: Any) -> tuple[Any, dict[str, Any]]:
                super().reset(**arguments)
                return number, {}

            def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
                outer.stepping.set()
                assert outer.ended.wait(30)
                return super().step(action)

        return Env(log=self.log)

    async def policy(self, number: int) -> str:
        if number == 0:
            return "a"
        if number == 1:
            self.entered.set()
            try:
                await anyio.sleep_forever()
            finally:
                self.ended.set()  # when the step has been given up too
        await self.entered.wait()
        await anyio.to_thread.run_sync(self.stepping.wait, 30)
        if self.error is None:
            await anyio.sleep_forever()
        raise self.error or AssertionError


async def test_a_run_that_fails_returns_when_its_blocked_environments_are_closed() -> None:
    blocked = Blocked(error=ValueError("gone"))
    run = acollect(range(3), blocked.make_env, blocked.policy, concurrency=3, on_error="raise")
    with pytest.raises(ValueError, match="gone"):
        await anext(run)
    assert blocked.log.opened == blocked.log.closed == 3


async def test_a_group_that_fails_returns_when_its_blocked_environments_are_closed() -> None:
    blocked = Blocked(error=ValueError("gone"))
    numbers = iter(range(3))
    with pytest.raises(ValueError, match="gone"):
        await arollout_group(
            "item",
            lambda _: blocked.make_env(next(numbers)),
            blocked.policy,
            num_rollouts=3,
            concurrency=3,
            on_error="raise",
        )
    assert blocked.log.opened == blocked.log.closed == 3


async def test_a_run_that_is_left_early_ends_when_its_blocked_environments_are_closed() -> None:
    blocked = Blocked()
    async with acollect(range(3), blocked.make_env, blocked.policy, concurrency=3):
        await blocked.entered.wait()
        await anyio.to_thread.run_sync(blocked.stepping.wait, 30)
    assert blocked.log.opened == blocked.log.closed == 3
