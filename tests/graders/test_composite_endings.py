"""How `CompositeGrader.ascore` ends early: by failures, cancellation and interrupts."""

from __future__ import annotations

import asyncio
import signal
import threading
from typing import Any

import anyio
import anyio.from_thread
import anyio.lowlevel
import pytest
import trio

from rolloutlib.graders import CompositeGrader, Criterion, Rubric, Score

pytestmark = pytest.mark.anyio

NAMES = tuple("abcdefgh")
RUBRIC = Rubric(id="R", criteria=tuple(Criterion(id=name, description="d") for name in NAMES))


class TroubleError(Exception):
    """A user's own error."""


async def test_when_one_criterion_fails_the_others_are_cancelled_and_waited_for() -> None:
    started, ended = set[str](), set[str]()
    all_started = anyio.Event()

    async def grade(input: object, criterion: Criterion) -> float:
        started.add(criterion.id)
        if len(started) == len(NAMES):
            all_started.set()
        try:
            await all_started.wait()
            if criterion.id == "c":
                raise TroubleError
            await anyio.sleep_forever()
        finally:
            with anyio.CancelScope(shield=True):
                await anyio.lowlevel.checkpoint()
            ended.add(criterion.id)
        return 1.0

    with anyio.fail_after(10), pytest.raises(TroubleError) as caught:
        await CompositeGrader(grade).ascore("x", RUBRIC)
    assert caught.value.__notes__ == ["while grading criterion 'c' of rubric 'R'"]
    assert started == ended == set(NAMES)


@pytest.mark.parametrize("anyio_backend", ["trio"])
async def test_a_failure_comes_out_whatever_cancelled_nurseries_make_of_it() -> None:
    waiting = anyio.Event()

    async def wait(input: object, criterion: Criterion) -> float:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(trio.sleep_forever)
            waiting.set()
            await trio.sleep_forever()
        return 1.0

    async def fail(input: object, criterion: Criterion) -> float:
        await waiting.wait()
        raise TroubleError

    with anyio.fail_after(10), pytest.raises(TroubleError):
        await CompositeGrader[object](wait, overrides={"b": fail}).ascore("x", RUBRIC)


@pytest.mark.parametrize("inline", [False, True])
async def test_after_a_failure_no_further_criterion_begins(inline: bool) -> None:
    called: list[str] = []

    def fail(input: object, criterion: Criterion) -> float:
        called.append(criterion.id)
        raise TroubleError

    with pytest.raises(TroubleError):
        await CompositeGrader(fail, concurrency=2 if inline else 1, inline=inline).ascore(
            "x", RUBRIC
        )
    assert called == ["a"]


async def test_a_blocked_synchronous_grader_does_not_hold_up_a_failure() -> None:
    release, blocked = threading.Event(), anyio.Event()

    def block(input: object, criterion: Criterion) -> float:
        anyio.from_thread.run_sync(blocked.set)
        release.wait(timeout=10)
        return 1.0

    async def fail(input: object, criterion: Criterion) -> float:
        await blocked.wait()
        raise TroubleError

    grader = CompositeGrader[object](block, overrides={"b": fail}, concurrency=2)
    try:
        with pytest.raises(TroubleError):
            await grader.ascore("x", RUBRIC)
        assert not release.is_set()
    finally:
        release.set()


async def test_the_caller_s_cancellation_propagates_and_ends_every_criterion() -> None:
    begun, ended = list[str](), list[str]()
    waiting = anyio.Event()

    async def wait(input: object, criterion: Criterion) -> float:
        try:
            begun.append(criterion.id)
            if len(begun) == len(NAMES):
                waiting.set()
            await anyio.sleep_forever()
        finally:
            ended.append(criterion.id)
        return 1.0

    scores: list[Score] = []

    async def run() -> None:
        scores.append(await CompositeGrader(wait).ascore("x", RUBRIC))

    with anyio.fail_after(10):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(run)
            await waiting.wait()
            tasks.cancel_scope.cancel()
    assert scores == []
    assert sorted(ended) == sorted(NAMES)


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_a_deadline_of_asyncio_wins_over_graders_that_fail_as_they_are_cancelled(
    anyio_backend: str,
) -> None:
    async def stubborn(input: object, criterion: Criterion) -> float:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            raise TroubleError from None
        return 1.0

    others = asyncio.all_tasks()
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.01):
            await CompositeGrader(stubborn).ascore("x", RUBRIC)
    assert asyncio.all_tasks() == others


@pytest.mark.parametrize("interrupt", [KeyboardInterrupt, SystemExit])
@pytest.mark.parametrize("asynchronous", [False, True])
def test_an_interrupt_propagates_and_comes_before_other_errors(
    anyio_backend: str, interrupt: type[BaseException], asynchronous: bool
) -> None:
    async def agrade(input: anyio.Event, criterion: Criterion) -> float:
        if criterion.id == "a":
            await input.wait()
            raise TroubleError
        try:
            input.set()
            await anyio.sleep_forever()
        finally:
            raise interrupt
        return 1.0

    def grade(input: object, criterion: Criterion) -> float:
        raise interrupt

    async def run() -> None:
        await grader.ascore(anyio.Event(), RUBRIC)

    grader = CompositeGrader[Any](agrade if asynchronous else grade)
    with pytest.raises(interrupt):
        anyio.run(run, backend=anyio_backend)
    if not asynchronous:
        with pytest.raises(interrupt):
            grader.score("x", RUBRIC)


def test_ctrl_c_comes_out_as_it_is(anyio_backend: str) -> None:
    async def grade(input: object, criterion: Criterion) -> float:
        if criterion.id == "c":
            signal.raise_signal(signal.SIGINT)
        await anyio.sleep_forever()
        return 1.0

    grader = CompositeGrader(grade)
    with pytest.raises(KeyboardInterrupt):
        anyio.run(grader.ascore, "x", RUBRIC, backend=anyio_backend)


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_a_cancellation_that_nobody_asked_for_is_an_error(anyio_backend: str) -> None:
    async def stray(input: object, criterion: Criterion) -> float:
        if criterion.id != "c":
            return 1.0
        future = asyncio.get_running_loop().create_future()
        future.cancel()
        return await future

    with pytest.raises(
        RuntimeError, match="grader of criterion 'c' ended in a cancellation"
    ) as caught:
        await CompositeGrader(stray).ascore("x", RUBRIC)
    assert isinstance(caught.value.__cause__, asyncio.CancelledError)
