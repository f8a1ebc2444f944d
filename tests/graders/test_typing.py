"""What a type checker infers; running the module shows that the calls are right, too."""

from __future__ import annotations

from collections.abc import Awaitable, Mapping
from typing import assert_type

from rolloutlib.graders import (
    Aggregator,
    CompositeGrader,
    Criterion,
    Grader,
    LLMGrader,
    Rubric,
    Score,
    ScoreValue,
)


def grade_text(text: str, criterion: Criterion) -> float:
    return float(len(text))


async def agrade_text(text: str, criterion: Criterion) -> ScoreValue:
    return Score(1.0)


def render(text: str, rubric: Rubric) -> list[str]:
    return [text]


def sample(prompt: list[str]) -> bytes:
    return b"1"


async def asample(prompt: list[str]) -> bytes:
    return b"1"


def parse(reply: bytes, rubric: Rubric) -> float:
    return float(reply)


RUBRIC = Rubric(criteria=(Criterion(id="a", description="d"),))


def test_a_composite_takes_the_input_of_its_graders() -> None:
    assert_type(CompositeGrader(grade_text), CompositeGrader[str])
    assert_type(CompositeGrader(agrade_text), CompositeGrader[str])
    assert_type(CompositeGrader({"a": grade_text}), CompositeGrader[str])
    assert_type(
        CompositeGrader({"a": grade_text}, overrides={"a": agrade_text}), CompositeGrader[str]
    )
    assert_type(CompositeGrader(grade_text).score("x", RUBRIC), Score)


def test_a_judge_takes_the_types_of_its_parts() -> None:
    judge = LLMGrader(sample=sample, render=render, parse=parse)
    assert_type(judge, LLMGrader[str, Rubric, list[str], bytes])
    assert_type(judge.score("x", RUBRIC), Score)
    assert_type(judge("x", RUBRIC), Score | Awaitable[Score])
    awaiting = LLMGrader(sample=asample, render=render, parse=parse)
    assert_type(awaiting, LLMGrader[str, Rubric, list[str], bytes])


def test_graders_have_the_protocol_s_type() -> None:
    composite: Grader[str, Rubric] = CompositeGrader(grade_text)
    judge: Grader[str, Rubric] = LLMGrader[str, Rubric](sample=sample, render=render, parse=parse)
    assert composite("x", RUBRIC) == CompositeGrader(grade_text).score("x", RUBRIC)
    assert judge("x", RUBRIC) is not None


def test_an_aggregation_takes_the_rubric_and_the_scores() -> None:
    def last(rubric: Rubric, scores: Mapping[str, Score]) -> float:
        return scores[rubric.criteria[-1].id].value

    aggregate: Aggregator = last
    assert CompositeGrader(grade_text, aggregate=aggregate).score("x", RUBRIC).value == 1.0
