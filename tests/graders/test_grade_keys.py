"""What is told apart where grades are kept: inputs, what they are judged by, and graders."""

from __future__ import annotations

import dataclasses
import enum
import functools
from pathlib import Path
from typing import Any

import numpy as np
import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rolloutlib import Step, Trajectory
from rolloutlib.graders import (
    CachedGrader,
    CompositeGrader,
    Criterion,
    Gate,
    GradeCache,
    Rubric,
    Score,
)
from rolloutlib.rollouts import UnstorableError

pytestmark = pytest.mark.anyio

CRITERION = Criterion(id="a", description="d")


class Counting:
    """A grader that counts its calls, and never gives the same score."""

    fingerprint = "counting"

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, input: object, rubric: object) -> Score:
        self.calls += 1
        return Score(0.5, feedback=str(self.calls))


def named_grader(input: object, rubric: object) -> float:
    return 0.5


def decorated(value: float) -> Any:
    @functools.wraps(named_grader)
    def grade(input: object, rubric: object) -> float:
        return value

    return grade


class Right(pydantic.BaseModel):
    value: int


class Wrong(pydantic.BaseModel):
    value: int


class Answer(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(extra="allow")

    content: Any
    hidden: str = pydantic.Field(default="", exclude=True)


@pytest.fixture(params=["memory", "file"])
def cache(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    with GradeCache(tmp_path / "new" / "grades.db" if request.param == "file" else None) as cache:
        yield cache


def variants() -> list[Any]:
    class Level(enum.Enum):
        ONE = 1
        TWO = 2

    @dataclasses.dataclass
    class Point:
        x: object

    def trajectory(reward: float, **info: Any) -> Trajectory[str, str]:
        step = Step("o", "a", reward, "p", terminated=True, truncated=False, info=info)
        return Trajectory("o", (step,), terminated=True)

    return [
        "1",
        1,
        1.0,
        True,
        None,
        b"1",
        ("1",),
        ["1"],
        {"1": "1"},
        {1: "1"},
        np.array([1, 2]),
        np.array([1, 2], np.float32),
        np.float32(1),
        Level.ONE,
        Level.TWO,
        Point(1),
        Point(Level.ONE),
        Point(Point(1)),
        CRITERION,
        Rubric(criteria=(CRITERION,)),
        trajectory(0.0),
        trajectory(1.0),
        trajectory(1.0, point=Point(2)),
        (trajectory(0.0), "question"),
        Answer(content=Right(value=1)),
        Answer(content=Wrong(value=1)),
        Answer(content=[Right(value=1)], hidden="a"),
        Answer(content=[Right(value=1)], hidden="b"),
        Answer.model_validate({"content": 1, "more": 2}),
        ("an answer", CRITERION),
        ("an answer", CRITERION.model_copy(update={"weight": 2.0})),
    ]


def test_different_inputs_are_told_apart_and_equal_ones_are_not(cache: GradeCache) -> None:
    counting = Counting()
    grader = CachedGrader[object, Criterion](counting, cache)
    scores = [grader.score(value, CRITERION) for value in variants()]
    assert counting.calls == len(scores) == len(cache)
    assert [grader.score(value, CRITERION) for value in variants()] == scores
    assert counting.calls == len(scores)


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
        max_leaves=5,
    )
)
def test_any_plain_input_is_found_again(value: Any) -> None:
    with GradeCache() as cache:
        counting = Counting()
        grader = CachedGrader[Any, Any](counting, cache)
        assert grader.score(value, value) == grader.score(value, value)
        assert counting.calls == 1


def test_another_rubric_or_criterion_is_graded_anew_but_for_its_weight_and_gate() -> None:
    with GradeCache() as cache:
        counting = Counting()
        grader = CachedGrader[str, object](counting, cache)
        for fields in ({}, {"weight": 2.0}, {"gate": Gate(threshold=0.5)}):
            grader.score("x", CRITERION.model_copy(update=fields))
        assert counting.calls == 1
        others = (
            CRITERION.model_copy(update={"description": "e"}),
            CRITERION.model_copy(update={"references": ("1",)}),
            Rubric(criteria=(CRITERION,)),
            Rubric(criteria=(CRITERION.model_copy(update={"weight": 2.0}),)),
            "a text",
        )
        for rubric in others:
            grader.score("x", rubric)
        assert counting.calls == 1 + len(others)


def test_graders_are_told_apart_by_fingerprint_and_version(cache: GradeCache) -> None:
    counting = Counting()
    graders = [
        CachedGrader(counting, cache),
        CachedGrader(counting, cache, version="2"),
        CachedGrader(counting, cache, fingerprint="other"),
        CachedGrader(named_grader, cache, version="1"),
        CachedGrader(named_grader, cache, version="2"),
    ]
    for grader in graders:
        grader.score("x", CRITERION)
    assert len(cache) == len({grader.fingerprint for grader in graders}) == len(graders)
    assert graders[3].fingerprint == f"{named_grader.__module__}.named_grader/1"


@pytest.mark.parametrize(
    ("grader", "options", "message"),
    [
        (named_grader, {}, "needs a `version`"),
        (lambda *_: 1.0, {"version": "1"}, "needs a `fingerprint`"),
        (decorated(0.1), {"version": "1"}, "needs a `fingerprint`"),
        (CompositeGrader(named_grader), {"version": "1"}, "needs a `fingerprint`"),
        (Counting(), {"version": ""}, "version must be a text, got ''"),
        (Counting(), {"fingerprint": 1}, "fingerprint must be a text, got 1"),
        (1, {"fingerprint": "x"}, "grader must be callable, got 1"),
    ],
)
def test_a_grader_that_cannot_be_told_from_others_is_refused(
    grader: Any, options: dict[str, Any], message: str
) -> None:
    with GradeCache() as cache, pytest.raises(TypeError, match=message):
        CachedGrader(grader, cache, **options)


class Client:
    """A value that has no contents."""


async def test_an_input_that_cannot_be_told_from_others_is_refused_by_name(
    cache: GradeCache,
) -> None:
    counting = Counting()
    grader = CachedGrader[Any, Any](counting, cache)
    with pytest.raises(UnstorableError, match=r"input\['client'\] is of type .*Client"):
        grader.score({"client": Client()}, CRITERION)
    with pytest.raises(UnstorableError, match=r"rubric\[1\] is of type .*Client"):
        await grader.ascore("x", [1, Client()])
    assert counting.calls == 0

    def encode(value: object) -> str:
        if isinstance(value, Client):
            return "client"
        raise TypeError

    grader = CachedGrader[Any, Any](counting, cache, encode=encode)
    assert grader.score([Client(), CRITERION], 1) == grader.score([Client(), CRITERION], 1)
