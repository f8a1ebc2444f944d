"""What a type checker infers; running the module shows that the calls are right, too."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import assert_type

from rolloutlib.graders import (
    ChoiceMatch,
    CompositeGrader,
    Criterion,
    ExactMatch,
    ExecutionGrader,
    Grader,
    NumericMatch,
    Reference,
    RegexMatch,
    Score,
)
from rolloutlib.testing import GraderReport, check_grader


def run(code: str, tests: tuple[str, ...]) -> bool:
    return True


async def arun(code: str, tests: tuple[str, ...]) -> float:
    return 1.0


CRITERION = Criterion(id="a", description="d", references=("42",))
CASES = [("What is 6 * 7?", "42", "The answer is 42")]


def test_a_match_returns_a_score() -> None:
    for reference in ("42", ["42"], ("42",), CRITERION):
        given: Reference = reference
        assert_type(NumericMatch()("42", given), Score)
        assert NumericMatch()("42", given).value == 1.0


def test_an_execution_grader_may_have_to_be_awaited() -> None:
    assert_type(ExecutionGrader(run)("", "t"), Score | Awaitable[Score])
    assert_type(ExecutionGrader(run).score("", "t"), Score)
    assert ExecutionGrader(run).score("", "t").value == 0.0


def test_they_have_the_protocol_s_type() -> None:
    of_texts: Grader[str, str] = NumericMatch()
    of_criteria: Grader[str, Criterion] = ExecutionGrader(arun)
    assert of_texts("42", "42") == NumericMatch()("42", CRITERION)
    assert of_criteria is not None


def test_a_composite_of_them_takes_texts() -> None:
    assert_type(CompositeGrader(ExactMatch()), CompositeGrader[str])
    mixed = CompositeGrader({"a": ChoiceMatch(), "b": RegexMatch(), "c": ExecutionGrader(run)})
    assert_type(mixed, CompositeGrader[str])
    assert mixed.names == ("a", "b", "c")


def test_a_check_takes_inputs_of_the_grader_s_type() -> None:
    def grade(answers: list[str], reference: str) -> Score:
        return NumericMatch()(answers[-1], reference)

    assert_type(check_grader(NumericMatch(), CASES, properties=["gold"]), GraderReport)
    report = check_grader(grade, CASES, make_input=lambda prompt, answer: [prompt, answer])
    assert_type(report, GraderReport)
