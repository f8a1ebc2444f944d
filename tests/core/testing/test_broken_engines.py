"""Engines that break promises are found out: each is our own, with one flaw put around it."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias

import anyio
import pytest

from core.rollouts.scripted import AsyncScriptedEnv, apolicy
from rolloutlib import TrajectoryGroup, arollout_group
from rolloutlib.envs import AsyncWrapper
from rolloutlib.testing import FaultKind, check_faults
from rolloutlib.testing import _ways as ways

Engine: TypeAlias = Callable[..., Awaitable[Any]]

each_backend = pytest.mark.parametrize("backend", ["asyncio", "trio"])


def find_out(
    engine: Engine,
    monkeypatch: pytest.MonkeyPatch,
    backend: str,
    kinds: list[FaultKind],
    message: str,
) -> None:
    """Expect that an engine is found out."""
    monkeypatch.setattr(ways, "arollout_group", engine)
    with pytest.raises(AssertionError, match=message):
        check_faults(
            "item",
            lambda item: AsyncScriptedEnv(),
            apolicy,
            grade_group=lambda group: [1.0] * len(group.trajectories),
            inline=True,
            backends=[backend],
            kinds=kinds,
            patience=0.5 if "end" in message else 60,
        )


def with_environments(kind: type[AsyncWrapper[Any, Any, Any, Any]]) -> Engine:
    """Return an engine that treats environments as the wrapper does."""

    async def engine(item: Any, make_env: Any, policy: Any, **keywords: Any) -> Any:
        return await arollout_group(item, lambda item: kind(make_env(item)), policy, **keywords)

    return engine


def with_groups(change: Callable[[TrajectoryGroup[Any, Any, Any]], Any]) -> Engine:
    """Return an engine whose groups are changed."""

    async def engine(*args: Any, **keywords: Any) -> Any:
        return change(await arollout_group(*args, **keywords))

    return engine


@each_backend
class TestEnvironments:
    def test_left_open(self, backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
        class LeftOpen(AsyncWrapper[Any, Any, Any, Any]):
            ended = False

            async def step(self, action: Any) -> Any:
                result = await super().step(action)
                self.ended = result[2]
                return result

            async def close(self) -> None:
                if self.ended:
                    await super().close()

        message = (
            r"^a hang before reset of rollout [01] \(arollout_group under .*\): "
            "2 environments opened, 1 closed$"
        )
        find_out(with_environments(LeftOpen), monkeypatch, backend, ["hang"], message)

    def test_closed_twice(self, backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
        class ClosedTwice(AsyncWrapper[Any, Any, Any, Any]):
            async def close(self) -> None:
                await super().close()
                await super().close()

        message = "2 environments opened, 2 closed, 2 more than once"
        find_out(with_environments(ClosedTwice), monkeypatch, backend, ["exception"], message)

    def test_used_after_they_were_closed(
        self, backend: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        class Used(AsyncWrapper[Any, Any, Any, Any]):
            async def close(self) -> None:
                await super().close()
                await self.env.step("a")

        message = "step 2 of rollout . was called on a closed environment"
        find_out(with_environments(Used), monkeypatch, backend, ["exception"], message)

    def test_cancelled_while_they_close(
        self, backend: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        class Interrupted(AsyncWrapper[Any, Any, Any, Any]):
            async def close(self) -> None:
                with anyio.CancelScope() as scope:
                    scope.cancel()
                    await super().close()

        message = "close of rollout . was cancelled"
        find_out(with_environments(Interrupted), monkeypatch, backend, ["exception"], message)


def test_environments_that_are_used_after_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    async def engine(item: Any, make_env: Any, policy: Any, **keywords: Any) -> Any:
        made: list[Any] = []

        def make(item: Any) -> Any:
            made.append(make_env(item))
            return made[-1]

        async def go_on() -> None:
            await asyncio.sleep(0)
            await made[0].reset()

        group = await arollout_group(item, make, policy, **keywords)
        engine_tasks.append(asyncio.ensure_future(go_on()))
        return group

    engine_tasks: list[Any] = []
    find_out(engine, monkeypatch, "asyncio", ["exception"], "tasks are alive afterwards")


@each_backend
class TestOutcomes:
    def test_failures_that_are_forgotten(
        self, backend: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        engine = with_groups(lambda group: dataclasses.replace(group, errors=()))
        message = "^an exception .*: it returned before all episodes had an outcome"
        find_out(engine, monkeypatch, backend, ["exception"], message)

    def test_failures_in_another_phase(self, backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
        def change(group: TrajectoryGroup[Any, Any, Any]) -> Any:
            errors = [dataclasses.replace(error, phase="step") for error in group.errors]
            return dataclasses.replace(group, errors=errors)

        message = "^an exception before make_env 0 .*: the failure is recorded in the phase 'step'"
        find_out(with_groups(change), monkeypatch, backend, ["exception"], message)

    def test_failures_of_another_member(
        self, backend: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def change(group: TrajectoryGroup[Any, Any, Any]) -> Any:
            errors = [dataclasses.replace(error, index=1) for error in group.errors]
            return dataclasses.replace(group, errors=errors)

        message = "^an exception before reset of rollout 0 .*: rollout 1 failed instead"
        find_out(with_groups(change), monkeypatch, backend, ["exception"], message)

    def test_finished_work_that_is_lost(
        self, backend: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        async def engine(*args: Any, **keywords: Any) -> Any:
            try:
                return await arollout_group(*args, **keywords)
            except BaseException as error:
                error.__dict__.clear()
                raise

        message = "^an interrupt .*: rollout . had ended, and its trajectory is lost"
        find_out(engine, monkeypatch, backend, ["interrupt"], message)

    def test_exceptions_in_a_group(self, backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
        async def engine(*args: Any, **keywords: Any) -> Any:
            async with anyio.create_task_group():
                return await arollout_group(*args, **keywords)

        message = 'on_error="raise" .*: ExceptionGroup.* came out, and not InjectedError'
        find_out(engine, monkeypatch, backend, ["exception"], message)

    def test_a_cancellation_that_does_not_come_out(
        self, backend: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        async def engine(*args: Any, **keywords: Any) -> Any:
            try:
                return await arollout_group(*args, **keywords)
            except anyio.get_cancelled_exc_class() as error:
                return TrajectoryGroup.from_exception(error)

        message = "^a cancellation .*: it returned before all episodes had an outcome"
        find_out(engine, monkeypatch, backend, ["cancellation"], message)

    def test_time_outs_that_are_not_heeded(
        self, backend: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        async def engine(*args: Any, timeouts: Any = None, **keywords: Any) -> Any:
            return await arollout_group(*args, **keywords)

        message = "^a hang before reset of rollout . .*: it does not end"
        find_out(engine, monkeypatch, backend, ["hang"], message)
