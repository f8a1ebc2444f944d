"""The time that the grading of a criterion may take."""

from __future__ import annotations

import math
import threading
from contextvars import ContextVar
from decimal import Decimal
from typing import Any

import anyio
import numpy as np
import pytest

from rolloutlib.graders import CompositeGrader, Criterion, Rubric, Score

pytestmark = pytest.mark.anyio

RUBRIC = Rubric(id="R", criteria=tuple(Criterion(id=name, description="d") for name in "abc"))


def grade_by_one(input: object, criterion: Criterion) -> float:
    return 1.0


async def test_a_criterion_that_takes_too_long_has_failed() -> None:
    async def grade(input: object, criterion: Criterion) -> float:
        if criterion.id == "b":
            await anyio.sleep_forever()
        return 1.0

    with pytest.raises(TimeoutError, match=r"grading took longer than 0\.1 s") as caught:
        await CompositeGrader(grade, timeout=0.1).ascore("x", RUBRIC)
    assert caught.value.__notes__ == ["while grading criterion 'b' of rubric 'R'"]
    score = await CompositeGrader(grade, timeout=0.1, on_error="record").ascore("x", RUBRIC)
    assert score.metadata["failed_criteria"]["b"]["error_type"] == "TimeoutError"


@pytest.mark.parametrize("asynchronous", [False, True])
async def test_a_grader_that_is_blocked_on_a_thread_is_left_at_its_time(asynchronous: bool) -> None:
    release, left = threading.Event(), threading.Event()

    def block(input: object, criterion: Criterion) -> float:
        if criterion.id == "b":
            release.wait(timeout=20)
            left.set()
        return 1.0

    grader = CompositeGrader(block, timeout=0.5, on_error="record")
    try:
        score = await grader.ascore("x", RUBRIC) if asynchronous else grader.score("x", RUBRIC)
        assert not left.is_set()
    finally:
        release.set()
    assert list(score.metadata["failed_criteria"]) == ["b"]
    assert left.wait(timeout=10)


async def test_a_grader_that_makes_a_score_of_its_cancellation_has_failed() -> None:
    async def stubborn(input: object, criterion: Criterion) -> float:
        if criterion.id == "b":
            try:
                await anyio.sleep_forever()
            except anyio.get_cancelled_exc_class():
                return 1.0
        return 1.0

    with anyio.fail_after(10), pytest.raises(TimeoutError):
        await CompositeGrader(stubborn, timeout=0.1).ascore("x", RUBRIC)


@pytest.mark.parametrize("seconds", [60, Decimal(60), np.array([60.0]), math.inf])
async def test_a_limit_may_be_any_real_number(seconds: Any) -> None:
    grader = CompositeGrader(grade_by_one, timeout=seconds)
    assert grader.score("x", RUBRIC) == await grader.ascore("x", RUBRIC)


async def test_a_grader_s_own_timeout_is_its_own() -> None:
    def fail(input: object, criterion: Criterion) -> float:
        msg = "the server's"
        raise TimeoutError(msg)

    grader = CompositeGrader(fail, timeout=60)
    with pytest.raises(TimeoutError, match="the server's"):
        grader.score("x", RUBRIC)
    with pytest.raises(TimeoutError, match="the server's"):
        await grader.ascore("x", RUBRIC)


async def test_time_begins_when_the_grading_of_a_criterion_begins() -> None:
    limiter = anyio.CapacityLimiter(1)
    grader = CompositeGrader(grade_by_one, timeout=0.5, concurrency=limiter, inline=True)
    scores: list[Score] = []

    async def run() -> None:
        scores.append(await grader.ascore("x", RUBRIC))

    with anyio.fail_after(10):
        async with anyio.create_task_group() as tasks, limiter:
            tasks.start_soon(run)
            await anyio.sleep(0.6)  # longer than the criteria may take
    assert [score.value for score in scores] == [1.0]


def test_within_a_time_context_variables_reach_synchronous_graders() -> None:
    variable = ContextVar("variable", default=0.0)

    def read(input: object, criterion: Criterion) -> float:
        return variable.get()

    variable.set(0.5)
    assert CompositeGrader(read, timeout=60).score("x", RUBRIC).value == 0.5
