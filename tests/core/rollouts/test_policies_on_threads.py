"""Policies that are called on worker threads."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import anyio
import anyio.to_thread
import pytest

from core.rollouts.scripted import AsyncScriptedEnv, Log, ScriptedEnv
from rolloutlib import TrajectoryGroup, arollout, collect
from rolloutlib.rollouts import Timeouts

pytestmark = pytest.mark.anyio


async def test_a_policy_whose_thread_has_not_begun_when_the_rollout_is_cancelled_is_not_called(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run_sync: Any = anyio.to_thread.run_sync
    may_begin = threading.Event()
    over = threading.Event()
    called: list[str] = []

    async def run_sync_late(function: Callable[[], Any], **keywords: Any) -> Any:
        def late() -> Any:
            may_begin.wait()
            try:
                return function()
            finally:
                over.set()

        return await run_sync(late, **keywords)

    monkeypatch.setattr(anyio.to_thread, "run_sync", run_sync_late)

    async def cancel(scope: anyio.CancelScope) -> None:
        await anyio.wait_all_tasks_blocked()
        scope.cancel()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(cancel, tasks.cancel_scope)
        await arollout(AsyncScriptedEnv(), lambda observation: called.append(observation) or "a")
    may_begin.set()
    assert over.wait(60)
    assert called == []


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit])
def test_an_interrupt_that_a_policy_raises_comes_out_of_collect_with_what_was_finished(
    kind: type[BaseException],
) -> None:
    interrupt = kind("stop")
    log = Log()

    def policy(observation: str) -> str:
        if observation == "o1" and log.opened == 3:
            raise interrupt
        return "a"

    def make_env(item: int) -> ScriptedEnv:
        return ScriptedEnv(log=log)

    taken: list[Any] = []
    # One episode at a time, on a thread because of the timeouts.
    groups = collect([1, 2, 3, 4], make_env, policy, timeouts=Timeouts(episode=3600))
    with pytest.raises(kind) as caught:
        taken.extend(groups)
    assert caught.value is interrupt
    ended = [*taken, *TrajectoryGroup.all_from_exception(interrupt)]
    assert [group.item for group in ended] == [1, 2]
    assert [group.num_failed for group in ended] == [0, 0]  # an interrupt is no failure
    assert log.opened == log.closed == 3
