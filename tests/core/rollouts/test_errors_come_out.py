"""What ends a run comes out of it as it was raised, and with all that had ended."""

from __future__ import annotations

import dataclasses
import os
import signal
import threading
from collections.abc import Callable, Generator
from types import FrameType
from typing import Any, NoReturn

import pytest

from core.rollouts.scripted import Log, ScriptedEnv, policy
from rolloutlib import acollect, collect, rollout_group
from rolloutlib.rollouts import StalledError, Timeouts, TrajectoryGroup

pytestmark = pytest.mark.usefixtures("threads_end")

EACH_WAY = pytest.mark.parametrize("arguments", [{}, {"concurrency": 2}])


class StopTraining(BaseException):
    """A user's own interrupt."""


@dataclasses.dataclass(frozen=True)
class FrozenError(Exception):
    code: int


ERRORS = [
    StopTraining(),
    FrozenError(7),
    GeneratorExit(),
    SystemExit(3),
    BaseExceptionGroup("several", [StopTraining()]),
]


def raising(error: BaseException) -> Callable[[object], NoReturn]:
    def fail(_: object) -> NoReturn:
        raise error

    return fail


@EACH_WAY
@pytest.mark.parametrize("error", ERRORS)
def test_any_exception_comes_out_of_collecting(
    error: BaseException, arguments: dict[str, Any]
) -> None:
    log = Log()
    groups = collect(
        range(3), lambda _: ScriptedEnv(log=log), raising(error), on_error="raise", **arguments
    )
    with pytest.raises(type(error)) as caught:
        next(groups)
    assert caught.value is error
    assert log.opened == log.closed


@pytest.mark.parametrize("timeouts", [None, Timeouts()])
@pytest.mark.parametrize("error", ERRORS)
def test_any_exception_comes_out_of_a_group(
    error: BaseException, timeouts: Timeouts | None
) -> None:
    log = Log()
    with pytest.raises(type(error)) as caught:
        rollout_group(
            "item",
            lambda _: ScriptedEnv(log=log),
            raising(error),
            on_error="raise",
            timeouts=timeouts,
        )
    assert caught.value is error
    assert TrajectoryGroup.from_exception(error) is not None
    assert log.opened == log.closed


@pytest.mark.anyio
async def test_what_would_look_like_the_end_of_the_groups_does_not() -> None:
    """A policy may raise it that takes its answers from an iterator of its own."""
    stream = acollect(range(3), ScriptedEnv, raising(StopAsyncIteration()), on_error="raise")
    async with stream as groups:
        with pytest.raises(RuntimeError, match="StopAsyncIteration"):
            await anext(groups)
        with pytest.raises(RuntimeError, match="StopAsyncIteration"):
            await anext(groups)


@pytest.mark.parametrize("num_items", [1, 2])
def test_ctrl_c_loses_no_group_that_is_finished_at_that_moment(num_items: int) -> None:
    """It reaches the caller's thread, while the last environments are closed on others."""
    log, felt = Log(), threading.Event()
    all_closing = threading.Barrier(num_items, action=lambda: os.kill(os.getpid(), signal.SIGINT))

    class Closing(ScriptedEnv):
        def close(self) -> None:
            all_closing.wait(30)
            felt.wait(30)
            super().close()

    def interrupt(_number: int, _frame: FrameType | None) -> None:
        felt.set()
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGINT, interrupt)
    try:
        groups = collect(
            range(num_items), lambda _: Closing(log=log), policy, concurrency=2, timeouts=Timeouts()
        )
        with pytest.raises(KeyboardInterrupt) as caught:
            next(groups)
    finally:
        signal.signal(signal.SIGINT, before)
    assert log.opened == log.closed == num_items
    rest = TrajectoryGroup.all_from_exception(caught.value)
    assert sorted(group.item for group in rest) == list(range(num_items))
    assert all(group.num_completed == 1 for group in rest)


@EACH_WAY
def test_a_failure_carries_no_group_of_a_run_before(arguments: dict[str, Any]) -> None:
    """Another run that is begun where the failure of one is handled has groups of its own."""

    def items() -> Generator[int]:
        msg = "no items"
        raise OSError(msg)
        yield

    def collect_again() -> None:
        try:
            list(collect([1, 2], lambda _: ScriptedEnv(), raising(ValueError()), max_failures=2))
        except StalledError:
            list(collect(items(), lambda _: ScriptedEnv(), policy, **arguments))

    with pytest.raises(OSError, match="no items") as caught:
        collect_again()
    assert TrajectoryGroup.all_from_exception(caught.value) == ()
