"""Environments and policies that break promises are found out."""

from __future__ import annotations

import asyncio
import itertools
import threading
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from core.rollouts.scripted import AsyncScriptedEnv, ScriptedEnv, apolicy, policy
from rolloutlib.testing import FaultKind, check_faults

each_backend = pytest.mark.parametrize("backend", ["asyncio", "trio"])


def check(make_env: Any, policy: Any, *, patience: float = 60.0, **keywords: Any) -> None:
    """Check a single rollout."""
    check_faults("item", make_env, policy, num_rollouts=1, patience=patience, **keywords)


def make_env(item: object) -> ScriptedEnv:
    return ScriptedEnv()


def amake_env(item: object) -> AsyncScriptedEnv:
    return AsyncScriptedEnv()


class Threaded(ScriptedEnv):
    """Has a thread from its reset on.

    Args:
        ends: When `close` ends it: always, never, or only after an episode that ended.
    """

    def __init__(self, ends: str) -> None:
        super().__init__()
        self._ends = ends
        self._end = threading.Event()

    def reset(self, **keywords: Any) -> Any:
        threading.Thread(target=self._end.wait, args=[20], name="of Threaded", daemon=True).start()
        return super().reset(**keywords)

    def close(self) -> None:
        over = self.steps == self.length
        if self._ends == "always" or (self._ends == "after the end" and over):
            self._end.set()
        super().close()


def test_a_thread_that_stays() -> None:
    message = r"^no fault \(arollout_group under asyncio\): threads are alive.*: of Threaded$"
    with pytest.raises(AssertionError, match=message):
        check(lambda item: Threaded("never"), policy, patience=0.5)


def test_a_thread_that_stays_when_an_episode_is_cut_short() -> None:
    kinds: list[FaultKind] = ["exception"]
    message = r"^an exception after reset of rollout 0 \(arollout_group under asyncio\): threads"
    with pytest.raises(AssertionError, match=message):
        check(lambda item: Threaded("after the end"), policy, kinds=kinds, patience=0.5)


def test_a_thread_that_ends() -> None:
    check(lambda item: Threaded("always"), policy, max_steps=1, kinds=["exception"])


class WithTask(AsyncScriptedEnv):
    """Has a task from its reset on, which its close does not end."""

    async def reset(self, **keywords: Any) -> Any:
        self._task = asyncio.create_task(asyncio.sleep(20), name="of WithTask")
        return await super().reset(**keywords)


def test_a_task_that_stays() -> None:
    with pytest.raises(AssertionError, match="tasks are alive afterwards: of WithTask"):
        check(lambda item: WithTask(), apolicy, backends=["asyncio"])


def test_a_task_of_the_policy_that_outlives_the_run() -> None:
    tasks: set[Any] = set()

    async def restless(observation: str) -> Any:
        tasks.add(asyncio.create_task(asyncio.sleep(20), name="of the policy"))
        return await apolicy(observation)

    with pytest.raises(AssertionError, match="tasks are alive afterwards: of the policy, of the"):
        check(amake_env, restless, backends=["asyncio"])


@each_backend
def test_a_policy_that_swallows_cancellation(backend: str) -> None:
    async def stubborn(observation: str) -> Any:
        try:
            await anyio.lowlevel.checkpoint()
        except anyio.get_cancelled_exc_class():
            pass
        return policy(observation)

    message = (
        r"^a cancellation at await 0 in policy 0 of rollout 0 .*: policy 0 of rollout 0 swallow"
    )
    with pytest.raises(AssertionError, match=message):
        check(amake_env, stubborn, backends=[backend])


@each_backend
def test_a_policy_that_goes_on_when_it_is_cancelled(backend: str) -> None:
    async def endless(observation: str) -> Any:
        done = False
        while not done:
            try:
                await anyio.lowlevel.checkpoint()
                done = True
            except anyio.get_cancelled_exc_class():
                continue
        return policy(observation)

    message = "policy 0 of rollout 0 goes on when it is cancelled"
    with pytest.raises(AssertionError, match=message):
        check(amake_env, endless, backends=[backend])


@each_backend
def test_a_function_may_cancel_what_it_started_itself(backend: str) -> None:
    async def busy(observation: str) -> Any:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(anyio.sleep_forever)
            await anyio.lowlevel.checkpoint()
            tasks.cancel_scope.cancel()
        return policy(observation)

    kinds: list[FaultKind] = ["cancellation", "early close"]
    check(amake_env, busy, backends=[backend], kinds=kinds)


@each_backend
def test_a_close_that_takes_no_end(backend: str) -> None:
    class Endless(AsyncScriptedEnv):
        async def close(self) -> None:
            if self.twin.steps < self.twin.length:
                with anyio.CancelScope(shield=True):
                    await anyio.sleep(20)
            await super().close()

    with pytest.raises(AssertionError, match=r"^an exception .*: it does not end"):
        check(lambda item: Endless(), apolicy, backends=[backend], patience=0.5)


def test_a_run_that_fails_by_itself() -> None:
    def make_faulty_env(item: object) -> ScriptedEnv:
        return ScriptedEnv(faults={"step 1": OSError("the disk is full")})

    message = r"(?s)^no fault .*: 1 episodes failed, the first with:.*OSError: the disk is full"
    with pytest.raises(AssertionError, match=message):
        check(make_faulty_env, policy)


def test_a_factory_that_makes_something_else() -> None:
    with pytest.raises(AssertionError, match=r"(?s)^no fault .*expected a rolloutlib.AsyncEnv"):
        check(lambda item: "env", policy)


def test_runs_that_are_not_the_same_each_time() -> None:
    lengths = itertools.chain([1, 3], itertools.repeat(1))
    message = r"^an exception before policy 1 of rollout 0 .* must be the same each time"
    with pytest.raises(AssertionError, match=message):
        check(lambda item: ScriptedEnv(next(lengths)), policy, inline=True, kinds=["exception"])
