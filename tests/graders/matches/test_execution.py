from __future__ import annotations

import functools
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from rolloutlib.graders import (
    CompositeGrader,
    Criterion,
    ExecutionGrader,
    ExecutionTimeoutError,
    Rubric,
    Score,
)

pytestmark = pytest.mark.anyio

ANSWER = "Here:\n```python\ndef f():\n    return 1\n```\nDone."
PROGRAM = "def f():\n    return 1\n"


class Sandbox:
    """Notes what it is asked to run, and gives what it was told to."""

    def __init__(self, outcome: Any) -> None:
        self.outcome = outcome
        self.jobs: list[tuple[str, tuple[str, ...]]] = []

    def run(self, code: str, tests: tuple[str, ...]) -> Any:
        self.jobs.append((code, tests))
        if isinstance(self.outcome, BaseException):
            raise self.outcome
        return self.outcome

    async def arun(self, code: str, tests: tuple[str, ...]) -> Any:
        await anyio.lowlevel.checkpoint()
        return self.run(code, tests)


async def grade_all(sandbox: Sandbox, text: str) -> list[Score]:
    """Grade in every way that there is."""
    plain = ExecutionGrader(sandbox.run)
    awaited = ExecutionGrader(sandbox.arun)
    later = ExecutionGrader(functools.partial(Sandbox.arun, sandbox), inline=True)
    scores = [plain(text, "test"), plain.score(text, "test"), await plain.ascore(text, "test")]
    scores += [await awaited.ascore(text, "test"), await later.ascore(text, "test")]
    for grader in (awaited, later):
        result: Any = grader(text, "test")
        scores.append(result if isinstance(result, Score) else await result)
    return [score for score in scores if isinstance(score, Score)]


async def test_the_program_and_the_tests_go_to_the_sandbox() -> None:
    sandbox = Sandbox(0.5)
    scores = await grade_all(sandbox, ANSWER)
    assert sandbox.jobs == [(PROGRAM, ("test",))] * 7
    assert {score.value for score in scores} == {0.5}
    assert scores[0].metadata == {
        "extracted": PROGRAM,
        "status": "found",
        "rule": "block",
        "span": [ANSWER.index("def"), ANSWER.index("```\nDone")],
        "reason": None,
        "reference": None,
    }
    assert len(set(map(repr, scores))) == 1


async def test_a_score_of_the_sandbox_keeps_its_parts() -> None:
    own = Score(0.5, {"passed": 0.5}, {"stderr": "boom", "status": "failed"}, feedback="Almost.")
    [score, *_] = await grade_all(Sandbox(own), ANSWER)
    assert (score.value, score.component_values, score.feedback) == (
        0.5,
        {"passed": 0.5},
        "Almost.",
    )
    assert (score.metadata["stderr"], score.metadata["status"]) == ("boom", "failed")
    assert score.metadata["extracted"] == PROGRAM


async def test_a_program_that_does_not_end_scores_0() -> None:
    for score in await grade_all(Sandbox(ExecutionTimeoutError("after 10 s")), ANSWER):
        assert (score.value, score.metadata["status"]) == (0.0, "timeout")
        assert score.metadata["reason"] == "after 10 s"


@pytest.mark.parametrize(
    "error", [TimeoutError("connect"), ConnectionError("gone"), ValueError("?")]
)
async def test_a_broken_sandbox_is_no_score(error: Exception) -> None:
    sandbox = Sandbox(error)
    for grade in (ExecutionGrader(sandbox.run), ExecutionGrader(sandbox.run).score):
        with pytest.raises(type(error)) as caught:
            grade(ANSWER, "test")
        assert caught.value.__notes__[-1] == "while running the program of an answer"
    with pytest.raises(type(error)):
        await ExecutionGrader(sandbox.arun).ascore(ANSWER, "test")


@pytest.mark.parametrize("outcome", ["1", None, float("nan")])
async def test_what_is_no_score_is_an_error(outcome: Any) -> None:
    with pytest.raises((TypeError, ValueError), match="score must be"):
        ExecutionGrader(Sandbox(outcome).run)(ANSWER, "test")


async def test_a_score_beside_the_scale_is_an_error() -> None:
    for outcome in (7.0, -0.5, Score(7.0)):
        with pytest.raises(ValueError, match=r"the result of run must be from 0.0 to 1.0"):
            await grade_all(Sandbox(outcome), ANSWER)
    points = Criterion(id="code", description="d", references=("test",), scale=(0, 10))
    assert ExecutionGrader(Sandbox(7.0).run)(ANSWER, points) == Score(
        7.0, metadata=ExecutionGrader(Sandbox(1.0).run).score(ANSWER, "test").metadata
    )


@pytest.mark.parametrize(
    ("text", "status"),
    [
        ("def f(): return 1", "none"),
        ("```rust\nfn f() {}\n```", "none"),
        ("```python\ndef f(): return 1", "truncated"),
        ("<think>```python\nx\n```", "truncated"),
        ("", "none"),
    ],
)
async def test_without_a_program_nothing_runs(text: str, status: str) -> None:
    sandbox = Sandbox(1.0)
    for score in await grade_all(sandbox, text):
        assert (score.value, score.metadata["status"]) == (0.0, status)
    assert sandbox.jobs == []


def test_the_last_block_of_the_language_is_the_program() -> None:
    sandbox = Sandbox(True)
    text = "```py\nfirst\n```\n````python\nx = '''\n```\n'''\n````\n```text\nout\n```"
    assert ExecutionGrader(sandbox.run)(text, ["a", "b"]) == ExecutionGrader(sandbox.run).score(
        text, ["a", "b"]
    )
    assert sandbox.jobs[0] == ("x = '''\n```\n'''\n", ("a", "b"))
    ExecutionGrader(sandbox.run, languages=("text",))(text, "t")
    assert sandbox.jobs[-1] == ("out\n", ("t",))


@pytest.mark.parametrize(
    ("text", "program"),
    [
        ("```python\nx = 1\n```\nIt prints:\n```\n1\n```", "x = 1\n"),
        ("```python\nx = 1\n```\nIt prints:\n```\n1", "x = 1\n"),
        ("```\nx = 1\n```\n```\nx = 2\n```", "x = 2\n"),
        ("```Python3\nx = 1\n```", "x = 1\n"),
        ("```python\nx = 1\n# Example: 2\ny = '<!--'\n```", "x = 1\n# Example: 2\ny = '<!--'\n"),
    ],
)
def test_a_block_that_names_its_language_comes_first(text: str, program: str) -> None:
    sandbox = Sandbox(True)
    ExecutionGrader(sandbox.run)(text, "t")
    assert [code for code, _ in sandbox.jobs] == [program]


def test_a_whole_answer_may_be_the_program() -> None:
    sandbox = Sandbox(1.0)
    ExecutionGrader(sandbox.run, bare=True)("<think>hm</think>\nx = 1\n", "t")
    assert sandbox.jobs == [("x = 1", ("t",))]


async def test_an_asynchronous_sandbox_grades_a_criterion() -> None:
    rubric = Rubric(criteria=(Criterion(id="code", description="It works.", references=("test",)),))
    grader = CompositeGrader({"code": ExecutionGrader(Sandbox(1.0).arun)})
    assert (await grader.ascore(ANSWER, rubric)).value == 1.0
    with pytest.raises(TypeError, match="use ascore"):
        ExecutionGrader(Sandbox(1.0).arun).score(ANSWER, "test")
    with pytest.raises(TypeError, match="run must be callable, got 5"):
        ExecutionGrader(5)  # pyright: ignore[reportArgumentType]
