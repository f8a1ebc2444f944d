"""Calls that are past their time, though nothing could cancel them or much came of it."""

from __future__ import annotations

import dataclasses
import time
from typing import Any

import anyio
import pytest
import trio

from core.rollouts.scripted import AsyncScriptedEnv, Log, ScriptedEnv, apolicy, policy
from rolloutlib.rollouts import Retry, Timeouts, TrajectoryGroup, arollout_group

pytestmark = pytest.mark.anyio

LIMIT = 0.02


async def hang_in_nursery() -> None:
    """Hang in trio's own nursery, which puts several cancellations into a group."""
    async with trio.open_nursery() as nursery:
        nursery.start_soon(trio.sleep_forever)
        nursery.start_soon(trio.sleep_forever)
        await trio.sleep_forever()


class HangingEnv(AsyncScriptedEnv):
    def __init__(self, event: str, log: Log) -> None:
        super().__init__(log=log)
        self.event = event

    async def reset(self, **arguments: Any) -> tuple[str, dict[str, Any]]:
        if self.event == "reset":
            await hang_in_nursery()
        return await super().reset(**arguments)

    async def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        if self.event == "step":
            await hang_in_nursery()
        return await super().step(action)

    async def close(self) -> None:
        await super().close()
        if self.event == "close":
            await hang_in_nursery()


@pytest.mark.parametrize("anyio_backend", ["trio"])
@pytest.mark.parametrize("event", ["reset", "policy", "step"])
async def test_what_hangs_in_a_nursery_fails_at_its_limit(event: str) -> None:
    log = Log()
    calls = 0

    async def choose(observation: str) -> Any:
        nonlocal calls
        calls += 1
        if event == "policy":
            await hang_in_nursery()
        return await apolicy(observation)

    group = await arollout_group(
        "item",
        lambda _: HangingEnv(event, log),
        choose,
        num_rollouts=2,
        timeouts=Timeouts(**{event: LIMIT}),
        retry=Retry(attempts=2, initial_delay=0),
    )
    errors = [*group.errors, *group.retried]
    assert [(error.phase, error.error_type) for error in errors] == [(event, "TimeoutError")] * 4
    assert log.opened == log.closed == 4


@pytest.mark.parametrize("anyio_backend", ["trio"])
async def test_an_episode_whose_environment_hangs_in_a_nursery_is_truncated() -> None:
    log = Log()
    group = await arollout_group(
        "item", lambda _: HangingEnv("step", log), apolicy, timeouts=Timeouts(episode=LIMIT)
    )
    assert (group.num_truncated, group.num_failed) == (1, 0)
    assert log.opened == log.closed == 1


@pytest.mark.parametrize("anyio_backend", ["trio"])
async def test_a_close_that_hangs_in_a_nursery_loses_no_episode() -> None:
    log = Log()
    group = await arollout_group(
        "item", lambda _: HangingEnv("close", log), apolicy, timeouts=Timeouts(close=LIMIT)
    )
    [trajectory] = group.trajectories
    assert "took longer" in trajectory.metadata["close_error"]


@pytest.mark.parametrize("anyio_backend", ["trio"])
@pytest.mark.parametrize("event", ["policy", "step"])
async def test_what_hangs_in_a_nursery_is_cancelled_and_not_recorded(event: str) -> None:
    log = Log()
    began = anyio.Event()

    async def choose(observation: str) -> Any:
        began.set()
        if event == "policy":
            await hang_in_nursery()
        return await apolicy(observation)

    with anyio.CancelScope() as scope:
        async with anyio.create_task_group() as tasks:

            async def cancel() -> None:
                await began.wait()
                scope.cancel()

            tasks.start_soon(cancel)
            try:
                await arollout_group("item", lambda _: HangingEnv(event, log), choose)
            except BaseException as error:
                group = TrajectoryGroup.from_exception(error)
                assert group is not None
                assert group.num_requested == 0
                raise
    assert scope.cancelled_caught
    assert log.opened == log.closed == 1


class BlockingEnv(ScriptedEnv):
    """Holds up the event loop in each call, if it is called there."""

    def __init__(self, event: str, log: Log) -> None:
        super().__init__(100, log=log)
        self._event = event

    def _do(self, event: str) -> None:
        super()._do(event)
        if event.startswith(self._event):
            time.sleep(2 * LIMIT)


@pytest.mark.parametrize("event", ["reset", "policy", "step"])
async def test_a_call_that_holds_up_the_loop_past_its_limit_has_failed(event: str) -> None:
    log = Log()

    def choose(observation: str) -> Any:
        if event == "policy":
            time.sleep(2 * LIMIT)
        return policy(observation)

    group = await arollout_group(
        "item",
        lambda _: BlockingEnv(event, log),
        choose,
        timeouts=Timeouts(**{event: LIMIT}),
        inline=True,
    )
    [error] = group.errors
    assert (error.phase, error.error_type) == (event, "TimeoutError")
    assert log.opened == log.closed == 1


async def test_an_episode_that_holds_up_the_loop_past_its_limit_is_truncated() -> None:
    log = Log()
    group = await arollout_group(
        "item",
        lambda _: BlockingEnv("step", log),
        policy,
        timeouts=Timeouts(episode=5 * LIMIT),
        inline=True,
    )
    [trajectory] = group.trajectories
    assert trajectory.truncated
    assert len(trajectory.steps) <= 2


async def test_the_limit_of_a_call_that_failed_does_not_hold_for_closing() -> None:
    """A limit that has passed would leave the environment unclosed."""
    log = Log()

    class Failing(AsyncScriptedEnv):
        async def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
            msg = "the server is gone"
            raise ConnectionError(msg)

        async def close(self) -> None:
            await anyio.sleep(4 * LIMIT)
            await super().close()

    group = await arollout_group(
        "item",
        lambda _: Failing(log=log),
        apolicy,
        timeouts=Timeouts(step=2 * LIMIT, close=None),
    )
    assert group.errors[0].error_message == "the server is gone"
    assert "closing" not in group.errors[0].traceback
    assert log.opened == log.closed == 1


@pytest.mark.parametrize("anyio_backend", ["trio"])
async def test_a_grader_that_hangs_in_a_nursery_fails_at_its_limit() -> None:
    async def grade(group: TrajectoryGroup[Any, Any, Any]) -> list[float]:
        await hang_in_nursery()
        return [0.0]

    group = await arollout_group(
        "item",
        lambda _: AsyncScriptedEnv(),
        apolicy,
        grade_group=grade,
        timeouts=Timeouts(grade=LIMIT),
    )
    [error] = group.errors
    assert (error.phase, error.error_type) == ("grade", "TimeoutError")


async def test_a_grader_that_holds_up_the_loop_past_its_limit_has_failed() -> None:
    def grade(group: TrajectoryGroup[Any, Any, Any]) -> list[float]:
        time.sleep(2 * LIMIT)
        return [0.0]

    group = await arollout_group(
        "item",
        lambda _: ScriptedEnv(),
        policy,
        grade_group=grade,
        timeouts=Timeouts(grade=LIMIT),
        inline=True,
    )
    [error] = group.errors
    assert (error.phase, error.error_type) == ("grade", "TimeoutError")


@dataclasses.dataclass(frozen=True)
class FrozenError(Exception):
    code: int


async def test_a_grader_may_raise_what_takes_no_attributes() -> None:
    """The context managers of contextlib cannot let such an exception through."""

    async def grade(group: TrajectoryGroup[Any, Any, Any]) -> list[float]:
        raise FrozenError(7)

    with pytest.raises(FrozenError):
        await arollout_group(
            "item", lambda _: ScriptedEnv(), policy, grade_group=grade, on_error="raise"
        )
