"""`CachedGrader`: nothing is graded twice, and only what was asked for is found."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from rolloutlib.graders import (
    CachedGrader,
    CompositeGrader,
    Criterion,
    GradeCache,
    LLMGrader,
    Rubric,
    Score,
)

pytestmark = pytest.mark.anyio

CRITERION = Criterion(id="a", description="d")


class TroubleError(Exception):
    """A user's own error."""


class Counting:
    """A grader that counts its calls, and gives each the next of its results."""

    fingerprint = "counting"

    def __init__(self, *results: Any) -> None:
        self.results = list(results)
        self.calls = 0

    def __call__(self, input: object, rubric: object) -> Any:
        self.calls += 1
        result = self.results.pop(0) if self.results else Score(0.5, feedback=str(self.calls))
        if isinstance(result, BaseException):
            raise result
        return result


class AsyncCounting(Counting):
    async def __call__(self, input: object, rubric: object) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
        await anyio.lowlevel.checkpoint()
        return super().__call__(input, rubric)


def named_grader(input: object, rubric: object) -> float:
    return 0.5


@pytest.fixture(params=["memory", "file"])
def cache(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    with GradeCache(tmp_path / "new" / "grades.db" if request.param == "file" else None) as cache:
        yield cache


async def test_the_same_input_is_graded_once(cache: GradeCache) -> None:
    counting, awaited = Counting(), AsyncCounting()
    grader, agrader = CachedGrader(counting, cache), CachedGrader(awaited, cache)
    first = grader.score({"x": [1], "y": 2}, CRITERION)
    assert grader({"y": 2, "x": [1]}, CRITERION) == first
    assert await grader.ascore({"x": [1], "y": 2}, CRITERION) == first
    assert await agrader.ascore({"x": [1], "y": 2}, CRITERION) == first  # of the same fingerprint
    assert (counting.calls, awaited.calls) == (1, 0)
    assert (cache.hits, cache.misses, len(cache)) == (3, 1, 1)


async def test_calling_an_asynchronous_grader_gives_an_awaitable(cache: GradeCache) -> None:
    grader: Any = CachedGrader(AsyncCounting(), cache)
    assert await grader("x", CRITERION) == await grader("x", CRITERION) == Score(0.5, feedback="1")
    with pytest.raises(TypeError, match="has to be awaited: use ascore"):
        grader.score("y", CRITERION)


async def test_failures_are_not_kept(cache: GradeCache) -> None:
    for bad, error in ((TroubleError(), TroubleError), (7.0, ValueError), (True, TypeError)):
        grader = CachedGrader(Counting(bad, bad, 1.0), cache, fingerprint=repr(bad))
        with pytest.raises(error):
            grader.score("x", CRITERION)
        with pytest.raises(error):
            await grader.ascore("x", CRITERION)
        assert grader.score("x", CRITERION).value == 1.0


async def test_a_composite_score_without_the_criteria_that_failed_is_not_kept(
    cache: GradeCache,
) -> None:
    rubric = Rubric(criteria=(CRITERION, Criterion(id="b", description="d")))
    failing = Counting(TroubleError())
    inner = CompositeGrader[str]({"a": named_grader, "b": failing}, on_error="record")
    nested = CompositeGrader[str](lambda text, _: inner.score(text, rubric))
    grader = CachedGrader(nested, cache, fingerprint="nested")
    alone = Rubric(criteria=(CRITERION,))
    assert "failed_criteria" in grader.score("x", alone).components["a"].metadata
    assert len(cache) == 0
    whole = await grader.ascore("x", alone)
    assert grader.score("x", alone) == whole
    assert (len(cache), failing.calls) == (1, 2)


def test_in_a_composite_only_new_criteria_are_graded(cache: GradeCache) -> None:
    counting = Counting()
    grader = CompositeGrader(CachedGrader[str, Criterion](counting, cache))
    rubric = Rubric(criteria=(CRITERION,))
    grader.score("x", rubric)
    heavier = CRITERION.model_copy(update={"weight": 5.0})
    grader.score("x", Rubric(criteria=(heavier, Criterion(id="b", description="d"))))
    assert counting.calls == 2


async def test_a_model_judge_is_asked_once(cache: GradeCache) -> None:
    prompts: list[str] = []

    async def sample(prompt: str) -> str:
        prompts.append(prompt)
        return "1"

    judge = LLMGrader[str, Criterion, str, str](
        sample=sample, render=lambda text, _: text, parse=lambda reply, _: float(reply)
    )
    grader = CachedGrader(judge, cache, fingerprint="yes or no", version="model-1")
    composite = CompositeGrader(grader)
    rubric = Rubric(criteria=(CRITERION,))
    assert await composite.ascore("x", rubric) == await composite.ascore("x", rubric)
    assert prompts == ["x"]


def test_a_path_is_no_cache() -> None:
    wrong: Any = "grades.db"
    with pytest.raises(TypeError, match=r"cache must be a GradeCache, got 'grades.db'"):
        CachedGrader(Counting(), wrong)
