"""Policies that are called on worker threads."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import anyio
import anyio.to_thread
import pytest

from core.rollouts.scripted import AsyncScriptedEnv
from rolloutlib import arollout

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
