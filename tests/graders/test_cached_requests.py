"""Requests to a `CachedGrader` at the same time: graded once, by whoever comes first."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest

from rolloutlib.graders import CachedGrader, Criterion, GradeCache, Score

pytestmark = pytest.mark.anyio

CRITERION = Criterion(id="a", description="d")


class TroubleError(Exception):
    """A user's own error."""


def grade_by_half(input: object, rubric: object) -> float:
    return 0.5


@pytest.fixture(params=["memory", "file"])
def cache(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[GradeCache]:
    with GradeCache(tmp_path / "grades.db" if request.param == "file" else None) as cache:
        yield cache


NUMBER = 20


async def test_requests_at_the_same_time_are_graded_once(cache: GradeCache) -> None:
    begun, release = anyio.Event(), anyio.Event()
    calls = 0

    async def grade(input: object, rubric: object) -> float:
        nonlocal calls
        calls += 1
        begun.set()
        await release.wait()
        return 1.0

    grader = CachedGrader(grade, cache, fingerprint="f")
    scores: list[Score] = []

    async def run() -> None:
        scores.append(await grader.ascore("x", CRITERION))

    with anyio.fail_after(20):
        async with anyio.create_task_group() as tasks:
            for _ in range(NUMBER):
                tasks.start_soon(run)
            await begun.wait()
            await anyio.wait_all_tasks_blocked()
            release.set()
    assert (calls, len(scores)) == (1, NUMBER)


async def test_when_the_one_that_grades_fails_or_is_cancelled_the_next_tries() -> None:
    async def grade(input: object, rubric: object) -> float:
        calls.append(len(calls))
        if len(calls) == 1:
            await anyio.sleep_forever()
        if len(calls) == 2:
            raise TroubleError
        return 1.0

    calls: list[int] = []
    outcomes: list[object] = []
    cache = GradeCache()
    grader = CachedGrader(grade, cache, fingerprint="f")

    async def run(scope: anyio.CancelScope) -> None:
        with scope:
            try:
                outcomes.append(await grader.ascore("x", CRITERION))
            except TroubleError as error:
                outcomes.append(error)

    scopes = [anyio.CancelScope() for _ in range(4)]
    with anyio.fail_after(20), cache:
        async with anyio.create_task_group() as tasks:
            for scope in scopes:
                tasks.start_soon(run, scope)
                await anyio.wait_all_tasks_blocked()
            scopes[0].cancel()
    assert len(calls) == 3
    assert isinstance(outcomes[0], TroubleError)
    assert outcomes[1:] == [Score(1.0)] * 2


def test_threads_and_event_loops_wait_for_each_other(cache: GradeCache, anyio_backend: str) -> None:
    waiting = threading.Semaphore(0)
    begun, release = threading.Event(), threading.Event()
    calls: list[int] = []

    def grade(input: object, rubric: object) -> float:
        calls.append(1)
        begun.set()
        assert release.wait(timeout=20)
        return 1.0

    grader = CachedGrader(grade, cache, fingerprint="f")
    scores: list[Score] = []

    def score() -> None:
        waiting.release()
        scores.append(grader.score("x", CRITERION))

    def score_in_loop() -> None:
        waiting.release()
        scores.append(anyio.run(grader.ascore, "x", CRITERION, backend=anyio_backend))

    threads = [threading.Thread(target=run) for run in (score, score_in_loop) for _ in range(4)]
    for thread in threads:
        thread.start()
    for _ in threads:
        assert waiting.acquire(timeout=20)
    assert begun.wait(timeout=20)
    release.set()
    for thread in threads:
        thread.join(timeout=20)
    assert scores == [Score(1.0)] * len(threads)
    assert len(calls) == 1


async def test_a_synchronous_request_does_not_wait_for_its_own_event_loop() -> None:
    cache = GradeCache()
    outcomes: list[float] = []

    async def agrade(input: object, rubric: object) -> float:
        outcomes.append(CachedGrader(grade_by_half, cache, fingerprint="f").score("x", None).value)
        return 1.0

    with cache, anyio.fail_after(20):
        score = await CachedGrader[str, None](agrade, cache, fingerprint="f").ascore("x", None)
    assert outcomes == [0.5]
    assert score.value == 0.5  # what was kept first


async def test_a_grader_that_asks_for_its_own_grade_does_not_wait_for_itself(
    cache: GradeCache,
) -> None:
    inner = CachedGrader[int, None](grade_by_half, cache, fingerprint="f")

    def ask(number: int, rubric: None) -> Score:
        return inner.score(number, rubric)

    async def aask(number: int, rubric: None) -> Score:
        return await inner.ascore(number, rubric)

    with anyio.fail_after(20):
        for number, grader in enumerate((inner, ask, aask)):
            outer = CachedGrader[int, None](grader, cache, fingerprint="f")
            assert (await outer.ascore(number, None)).value == 0.5
    assert len(cache) == 3
