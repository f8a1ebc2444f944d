from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rolloutlib import GradingWrapper, SingleTurnEnv, spaces
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
    Score,
)

pytestmark = pytest.mark.anyio

SCHEMA = json.dumps({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]})

# A grader, its reference, a right answer and a wrong one.
Case = tuple[Any, str, str, str]
CASES: dict[str, Case] = {
    "exact": (ExactMatch(), "Paris", "The answer is **Paris**.", "The answer is Rome."),
    "numeric": (NumericMatch(), "1234.5", r"\boxed{1,234.50}", r"\boxed{1}"),
    "choice": (ChoiceMatch(4), "C", "Answer: (c)", "Answer: A"),
    "regex": (RegexMatch(), r"\d{3}-\d{4}", "Answer: 555-1234", "Answer: 5555-1234"),
    "schema": (SchemaMatch(), SCHEMA, '```json\n{"n": 1}\n```', '```json\n{"n": "1"}\n```'),
    "math": (MathMatch(), r"\frac{x}{2}", r"\boxed{0.5x}", r"\boxed{x}"),
    "execution": (
        ExecutionGrader(lambda code, tests: "return" in code and "assert" in tests[0]),
        "assert f() == 1",
        "```python\ndef f():\n    return 1\n```",
        "```python\npass\n```",
    ),
}
every_grader = pytest.mark.parametrize("name", CASES)


@every_grader
def test_right_and_wrong_answers_score_1_and_0_and_say_where_they_stand(name: str) -> None:
    grader, reference, right, wrong = CASES[name]
    for text, value in ((right, 1.0), (wrong, 0.0)):
        score = grader(text, reference)
        assert isinstance(score, Score)
        assert score.value == value
        assert score.metadata["status"] == "found"
        start, end = score.metadata["span"]
        assert text[start:end]
        assert score.metadata["rule"] in {"box", "marker", "block"}
        assert Score.from_dict(json.loads(json.dumps(score.to_dict()))) == score


@every_grader
def test_thinking_is_no_answer(name: str) -> None:
    grader, reference, right, wrong = CASES[name]
    assert grader(f"<think>{right}</think>\n{wrong}", reference).value == 0.0
    assert grader(f"<think>{wrong}</think>\n{right}", reference).value == 1.0
    unfinished = grader(f"<think>{right}", reference)
    assert unfinished.value == 0.0
    assert unfinished.metadata["status"] == "truncated"


@every_grader
def test_an_empty_text_has_no_answer(name: str) -> None:
    grader, reference, _, _ = CASES[name]
    for text in ("", " \n\t "):
        score = grader(text, reference)
        assert score.value == 0.0
        assert score.metadata["status"] == "none"
        assert score.metadata["reason"]


@every_grader
def test_a_reference_may_be_a_criterion_a_text_or_texts(name: str) -> None:
    grader, reference, right, _ = CASES[name]
    criterion = Criterion(id="answer", description="It is right.", references=(reference,))
    assert grader(right, criterion) == grader(right, reference) == grader(right, [reference])


@every_grader
@pytest.mark.parametrize(
    ("reference", "error", "words"),
    [
        ("", ValueError, "must not be empty, got ''"),
        (" \n", ValueError, "must not be empty"),
        ([], ValueError, "must not be empty"),
        (["42", ""], ValueError, "must not be empty"),
        (Criterion(id="c", description="d"), ValueError, "criterion 'c' has no references"),
        (42, TypeError, "must be text, several texts or a Criterion, got 42"),
        ([42], TypeError, "must be text"),
        (Rubric(criteria=(Criterion(id="c", description="d"),)), TypeError, "CompositeGrader"),
    ],
)
def test_a_bad_reference_is_refused_whatever_the_text(
    name: str, reference: Any, error: type[Exception], words: str
) -> None:
    grader, _, right, _ = CASES[name]
    for text in (right, "", "<think>"):
        with pytest.raises(error, match=words):
            grader(text, reference)


@every_grader
def test_what_is_no_text_is_refused(name: str) -> None:
    grader, reference, _, _ = CASES[name]
    with pytest.raises(TypeError, match="an answer must be text, got 42"):
        grader(42, reference)


@pytest.mark.parametrize(
    ("grader", "reference", "words"),
    [
        (ExactMatch(ignore_punctuation=True), "?!", "leaves nothing of the reference"),
        (NumericMatch(), "forty-two", "must be one number"),
        (NumericMatch(), "41 or 42", "must be one number"),
        (ChoiceMatch(3), "D", "must be one of the options A, B, C; got 'D'"),
        (ChoiceMatch(["red", "blue"]), "green", r"A \(red\), B \(blue\); got 'green'"),
        (RegexMatch(), "(", "no regular expression"),
        (SchemaMatch(), "{", "no usable JSON Schema"),
        (SchemaMatch(), "[]", "it is no JSON object"),
        (SchemaMatch(), '{"type": "whole"}', "no usable JSON Schema"),
        (SchemaMatch(), '{"$ref": "#/$defs/absent"}', "no usable JSON Schema"),
        (SchemaMatch(), '{"$ref": "#"}', "no usable JSON Schema"),
        (SchemaMatch(), '{"$ref": "http://127.0.0.1:9/schema"}', "Unresolvable"),
        (MathMatch(), "two apples and three pears", "must be one mathematical expression"),
        (MathMatch(), "$x$ or $y$", "must be one mathematical expression"),
        (MathMatch(), r"\frac{", "cannot read the reference"),
    ],
)
def test_a_reference_that_is_unusable_is_found_before_any_text(
    grader: Any, reference: str, words: str
) -> None:
    with pytest.raises(ValueError, match=words):
        grader.check_reference(reference)
    with pytest.raises(ValueError, match=words):
        grader("", reference)


def test_the_reference_that_is_met_is_told() -> None:
    grader = NumericMatch()
    score = grader("Answer: 7", ["5", "7", "7.0"])
    assert (score.value, score.metadata["reference"]) == (1.0, 1)
    assert grader("Answer: 6", ["5", "7"]).metadata["reference"] is None


def test_long_answers_are_repeated_in_part_alone() -> None:
    score = ExactMatch()("x" * 10_000, "x")
    assert len(score.metadata["extracted"]) == 200
    assert score.metadata["span"] == [0, 10_000]


def graders_by_criterion() -> tuple[Rubric, dict[str, Any]]:
    criteria = [
        Criterion(id=name, description=name, references=(reference,))
        for name, (_, reference, _, _) in CASES.items()
    ]
    return Rubric(criteria=tuple(criteria)), {name: case[0] for name, case in CASES.items()}


async def test_they_are_graders_of_criteria() -> None:
    rubric, graders = graders_by_criterion()
    composite = CompositeGrader(graders)
    text = "The answer is 1234.5"
    score = composite.score(text, rubric)
    assert score == await composite.ascore(text, rubric)
    assert {name for name, value in score.component_values.items() if value} == {"numeric"}


def test_they_grade_the_actions_of_an_environment() -> None:
    class Ask(SingleTurnEnv[str, str]):
        observation_space = spaces.text.text()
        action_space = spaces.text.text()

        def initial_observation(self, *, options: Any = None) -> tuple[str, dict[str, Any]]:
            return "What is 6 * 7?", {}

        def evaluate(self, action: str) -> float:
            return 0.0

        def terminal_observation(self, action: str) -> str:
            return ""

    env = GradingWrapper(
        Ask(), rubric="42", grader=NumericMatch(), make_input=lambda env, action: action
    )
    env.reset()
    _, reward, _, _, info = env.step("The answer is 42.")
    assert reward == 1.0
    assert Score.from_info(info, default=Score(0.0)).metadata["extracted"] == "42"


SIGNS = r"\{}()[]$`*#<>/|&^_~.,:;!?'-+=%° 0159aAbBIxé²½" + "\n\t\r\x00\ud800\u2028\uff11"
WORDS = (
    *("\\boxed{", "\\frac", "\\text{", "\\(", "\\]", "$$", "```json\n", "\n```\n", '{"n": 1}'),
    *("<think>", "</think>", "<answer>", "</answer>", "The answer is ", "Answer: ", "####"),
    *(" or ", "NaN", "1e999"),
)
PIECES = st.sampled_from([*SIGNS, *WORDS])
TEXTS = st.one_of(st.text(), st.lists(PIECES, max_size=40).map("".join))


@every_grader
@settings(max_examples=150)
@given(text=TEXTS)
def test_no_text_makes_grading_raise(name: str, text: str) -> None:
    grader, reference, _, _ = CASES[name]
    score = grader(text, reference)
    assert score.value in {0.0, 1.0}
    assert score == grader(text, reference)


HOSTILE = (
    "\\text{",
    "[",
    "(",
    "{",
    "1 ",
    "9",
    "a",
    " ",
    "\n",
    "```\n",
    "**",
    "$",
    "\\boxed{",
    "A, ",
    "x^",
)


@every_grader
@pytest.mark.parametrize("piece", HOSTILE)
def test_huge_texts_are_graded(name: str, piece: str) -> None:
    grader, reference, _, _ = CASES[name]
    assert grader(piece * (100_000 // len(piece)), reference).value == 0.0


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: NumericMatch(relative=0.01, last_number=True), "NumericMatch(relative="),
        (lambda: ChoiceMatch(3), "ChoiceMatch(choices=3)"),
        (lambda: RegexMatch(search=True), "RegexMatch(on='answer', search=True, time_limit=1.0)"),
    ],
)
def test_a_grader_shows_its_options(make: Callable[[], object], text: str) -> None:
    assert repr(make()).startswith(text)
