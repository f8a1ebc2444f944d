from __future__ import annotations

import json
from typing import Any

import anyio.lowlevel
import pytest

from rolloutlib.graders import (
    ChoiceMatch,
    CompositeGrader,
    Criterion,
    ExactMatch,
    ExecutionGrader,
    MathMatch,
    NumericMatch,
    RegexMatch,
    Rubric,
    SchemaMatch,
)
from rolloutlib.testing import check_grader

SUM = ("What is 6 * 7? Give a number.", "42", "6 * 7 makes 42.\nThe answer is 42.")
CITY = ("What is the capital of France?", "Paris", r"\boxed{\text{Paris}}")
CHOICE = ("Which is a capital?\nA. Lyon\nB. Nice\nC. Paris", "C", "The answer is (C).")
ROOT = ("Solve $x^2 = 2$ for $x > 0$.", r"\sqrt{2}", r"\boxed{\sqrt{2}}")
DATE = ("When was it? Write YYYY-MM-DD.", r"\d{4}-\d\d-\d\d", "The answer is 1969-07-20")
PERSON = (
    "Who? Reply in JSON.",
    json.dumps({"type": "object", "required": ["name"], "properties": {"name": {}}}),
    '```json\n{"name": "Ada"}\n```',
)
PROGRAM = ("Write f.", "assert f() == 1", "```python\ndef f():\n    return 1\n```")


async def arun(code: str, tests: tuple[str, ...]) -> float:
    await anyio.lowlevel.checkpoint()
    return float("return 1" in code)


@pytest.mark.parametrize(
    ("grader", "cases"),
    [
        (ExactMatch(), [CITY, SUM]),
        (ExactMatch(ignore_case=True, ignore_punctuation=True, ignore_articles=True), [CITY]),
        (ExactMatch(ignore_case=True), [(CITY[0], "paris", "Paris")]),
        (NumericMatch(), [SUM, ("What is 1 - 1?", "0", "#### 0")]),
        (NumericMatch(relative=0.01, last_number=True), [SUM]),
        (NumericMatch(), [("What is 3 / 4?", "0.75", "#### 0.75"), ("And 4 / 3?", "4/3", "4/3")]),
        (ChoiceMatch(3), [CHOICE]),
        (ChoiceMatch(["Lyon", "Nice", "Paris"]), [CHOICE, (CHOICE[0], "Paris", "Paris")]),
        (RegexMatch(), [DATE]),
        (SchemaMatch(), [PERSON]),
        (MathMatch(), [ROOT, SUM]),
        (MathMatch(), [("Add 1 to $x$.", "x+1", r"\boxed{1 + x}")]),
        (ExecutionGrader(lambda code, tests: "return 1" in code), [PROGRAM]),
        (ExecutionGrader(arun), [PROGRAM]),
    ],
    ids=lambda value: type(value).__name__,
)
def test_graders_of_answers_are_fit_to_grade(grader: Any, cases: Any) -> None:
    report = check_grader(grader, cases)
    assert {"total", "gold", "hostile", "order"} <= set(report.properties)


def test_a_composite_of_them_is_fit_too() -> None:
    rubric = Rubric(
        criteria=(
            Criterion(id="number", description="It is right.", references=("42",)),
            Criterion(id="form", description="It is short.", references=(r"\d{1,3}",)),
        )
    )
    grader = CompositeGrader({"number": NumericMatch(), "form": RegexMatch()})
    report = check_grader(
        grader, [("What is 6 * 7?", rubric, "The answer is 42")], attacks=["empty answer"]
    )
    assert "async" in report.properties
