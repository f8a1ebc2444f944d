"""Extracting and grading answers, on spellings that models use and on real and hostile text."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rolloutlib.evals import Evaluation, run_benchmark
from rolloutlib.evals.benchmarks import (
    GSM8KEnv,
    aime,
    extract_aime_answer,
    extract_gsm8k_answer,
    grade_aime,
    grade_gsm8k,
    gsm8k,
)
from rolloutlib.scores import Score


def rows(path: Path) -> Iterator[dict[str, Any]]:
    with path.open(encoding="utf-8") as file:
        yield from map(json.loads, file)


@pytest.mark.parametrize(
    ("response", "answer"),
    [
        ("#### 18", "18"),
        ("The answer is **$1,234.50**.", "1234.5"),
        ("Total: **42** dollars in 3 days.", "42"),
        ("So the answer is $-5$", "-5"),
        (r"\boxed{-\frac{1}{2}}", "-0.5"),
        (r"\boxed{2\frac{1}{2}}", "2.5"),
        (r"\boxed{\frac{7}{3}}", "7/3"),
        (r"\boxed{1{,}234}", "1234"),
        (r"\boxed{\$42.50}", "42.5"),
        (r"\boxed{42\text{ dollars}}", "42"),
        (r"\boxed{1.5 \times 10^3}", "1500"),
        ("The answer is 1.5 million.", "1500000"),
        ("The answer is 2½ hours.", "2.5"),
        ("The answer is:\n\n$$\n42\n$$", "42"),
        (r"\boxed{\large \underline{42}}", "42"),
        (r"\boxed{42\text{ cm}^2}", "42"),
        ("The total is 42.<|eot_id|>", "42"),
        ("**Final Answer**\n\n42", "42"),
        ("Answer:\n42", "42"),
        ("<answer>The answer is 42 apples</answer>", "42"),
        ("So he has 10 - 3 = 7 apples left", "7"),
        ("The final answer is: $\\boxed{7}$. I hope it is correct.", "7"),
        ("```output\n5\n```\n5 cars passed in 15 minutes.", "5"),
        ("20 of 50 agree, so 16 people think that horse #12 will win.", "16"),
    ],
)
def test_gsm8k_reads_the_usual_spellings(response: str, answer: str) -> None:
    assert extract_gsm8k_answer(response) == answer


@pytest.mark.parametrize(
    "response",
    [
        "",
        "I cannot solve this.",
        "The answer is three",
        "The answer is 3 or maybe 4",
        "The answer is 3-4.",
        "The answer is 3, 4 and 5",
        "The answer isn't 42.",
        "It's not 42",
        "My guess is 1, 2, 3, 3",
        "I don't think it is 42",
        "The answer is at least 42",
        "The answer is 42...43",
        "**42** or **43**",
        r"\boxed{\pm 42}",
        r"\boxed{1} \text{or} \boxed{2}",
        "The answer is 6*7",
        "#### 7 hours and 30 minutes",
        r"\boxed{12:30}",
        r"\boxed{x=5, y=3}",
        r"\boxed{(3,4)}",
        r"\boxed{3x}",
        r"\boxed{42}. The answer is 43",
        r"$\boxed{1}$ or $\boxed{2}$",
        r"It is \boxed{42}, or \boxed{",
        "1/0",
        "<think>The answer is 42",
        "<think>The answer is 42</think>",
    ],
)
def test_gsm8k_does_not_guess(response: str) -> None:
    assert extract_gsm8k_answer(response) is None


def test_the_last_explicit_answer_counts() -> None:
    assert extract_gsm8k_answer(r"\boxed{1} Wait. \boxed{2}") == "2"
    assert extract_gsm8k_answer("#### 1\nLet me check.\n#### 2") == "2"
    assert extract_gsm8k_answer("Answer: 1\nThat counts twice.\nAnswer: 2") == "2"


def test_what_was_only_thought_does_not_count() -> None:
    assert extract_gsm8k_answer(r"<think>\boxed{1}</think> The answer is 2.") == "2"
    assert extract_gsm8k_answer(r"so \boxed{1}</think> The answer is 2.") == "2"
    assert extract_aime_answer(r"The answer is 2. <think>\boxed{1}</think>") == "2"


def test_turns_that_the_model_invents_do_not_count() -> None:
    assert extract_gsm8k_answer("#### 1\n\nQuestion: How many?\nAnswer: 2\n#### 2") == "1"
    assert extract_gsm8k_answer("The answer is 1.<|im_end|>\nThe answer is 2.") == "1"
    assert extract_gsm8k_answer("I restate the 2 parts.\nQuestion: How many?\nAnswer: 3") == "3"


@pytest.mark.parametrize(
    ("response", "answer"),
    [
        (r"\boxed{073}", "73"),
        (r"\boxed{73.0}", "73"),
        (r"\boxed{\text{(073)}}", "73"),
        (r"\boxed{m+n=73}", "73"),
        (r"\boxed{1000}", "1000"),
        (r"\boxed{\frac{7}{3}}", None),
        (r"\boxed{10\sqrt{2}}", None),
        (r"\boxed{5!}", None),
        (r"\boxed{12\%}", None),
        (r"\boxed{2\pi}", None),
        (r"\boxed{(7, 3)}", None),
        ("There are 73 of them in all.", None),
    ],
)
def test_aime_takes_integers_alone(response: str, answer: str | None) -> None:
    assert extract_aime_answer(response) == answer


def test_grades_say_what_they_compared() -> None:
    assert grade_gsm8k("The answer is $1,200.", "so 12 * 100\n#### 1200") == Score(
        1.0,
        {"correct": 1.0},
        {
            "expected": "1200",
            "extracted": "1200",
            "status": "found",
            "rule": "marker",
            "span": [14, 20],
            "reason": None,
        },
    )
    score = grade_aime(r"\boxed{", "025")
    assert score.value == 0.0
    assert score.metadata == {
        "expected": "25",
        "extracted": None,
        "status": "truncated",
        "rule": "box",
        "span": [7, 7],
        "reason": "the last box does not end",
    }
    assert grade_gsm8k("#### 41.999999", "42").value == 0.0
    assert grade_gsm8k("#### 1/3", "0.333333333333").value == 0.0


def test_an_expected_answer_that_cannot_be_read_is_an_error_not_a_zero() -> None:
    with pytest.raises(ValueError, match="'forty'"):
        grade_gsm8k("#### 40", "forty")
    with pytest.raises(ValueError, match=r"'2\.5'"):
        grade_aime(r"\boxed{2}", "2.5")


@pytest.mark.parametrize("read", [extract_gsm8k_answer, extract_aime_answer])
def test_an_answer_that_is_not_text_is_named(read: Any) -> None:
    with pytest.raises(TypeError, match="must be text, got 42"):
        read(42)


def test_grading_works_in_any_thread() -> None:
    values: list[float] = []
    thread = threading.Thread(target=lambda: values.append(grade_aime(r"\boxed{73}", "73").value))
    thread.start()
    thread.join()
    assert values == [1.0]


FRAGMENTS = st.sampled_from(
    [
        "\\boxed{",
        "\\frac{1}{2}",
        "\\text{",
        "{",
        "}",
        "<think>",
        "</think>",
        "<answer>",
        "#### ",
        "A:",
        "The answer is ",
        "1,234",
        "3",
        "½",
        "-",
        "$",
        "%",
        "**",
        "= ",
        "or ",
        ". ",
        "e9",
        "\n",
        " ",
    ]
)


@given(st.lists(FRAGMENTS | st.text(max_size=5), max_size=30).map("".join))
def test_no_text_makes_grading_raise(response: str) -> None:
    for extract in (extract_gsm8k_answer, extract_aime_answer):
        answer = extract(response)
        assert answer is None or Fraction(answer) is not None
    assert grade_gsm8k(response, "1").value in (0.0, 1.0)


@given(st.integers(-(10**9), 10**9), st.integers(0, 4))
def test_a_number_is_read_as_it_is_written(digits: int, places: int) -> None:
    value = Fraction(digits, 10**places)
    written = f"{float(value):,.{places}f}"
    for response in (f"#### {written}", f"\\boxed{{{written}}}", f"The answer is {written}."):
        assert grade_gsm8k(response, f"{digits}/{10**places}").value == 1.0


@pytest.mark.parametrize(
    "unit", ["{", "}", "\\boxed{", "\\text{", "9", "1,", " ", "\n", "**", "<think>", "</think>"]
)
def test_long_hostile_text_has_an_outcome(unit: str) -> None:
    response = unit * (200_000 // len(unit))
    assert extract_gsm8k_answer(response) in (None, "1")
    assert extract_aime_answer(response) is None


def test_gsm8k_accepts_its_own_answers(shared_data: Path) -> None:
    benchmark = gsm8k(dataset=str(shared_data / "gsm8k_test.jsonl"))

    def evaluate(environment: GSM8KEnv) -> Evaluation:
        environment.reset()
        _, reward, _, truncated, info = environment.step(environment.example.answer)
        return Evaluation(Score.from_info(info, default=Score(reward)), truncated=truncated)

    result = run_benchmark(benchmark, evaluate, fail_fast=True)
    assert (result.num_completed, result.score) == (1319, 1.0)
    assert (result.components, result.component_counts) == ({"correct": 1.0}, {"correct": 1319})


def test_aime_accepts_its_own_answers(shared_data: Path) -> None:
    for name in ("aime_1983_2023", "aime_2024", "aime_2025"):
        for example in aime(dataset=str(shared_data / f"{name}.jsonl")).items:
            number = example.metadata["answer_int"]
            for response in (f"\\boxed{{{example.answer}}}", f"**Final Answer:** ${number:03}$"):
                assert grade_aime(response, example.answer).value == 1.0, example


def test_grades_of_real_answers_agree_with_their_labels(shared_data: Path) -> None:
    labelled = [
        row for row in rows(shared_data / "gsm8k_model_responses.jsonl") if row["label"] is not None
    ]
    differing = [
        row
        for row in labelled
        if (grade_gsm8k(row["response"], row["gold"]).value == 1.0) != row["label"]
    ]
    assert len(labelled) > 10_000
    assert len(differing) <= 0.0003 * len(labelled)
    assert [row["id"] for row in differing if not row["label"]] == []


def test_grades_of_a_small_model_agree_with_their_labels(shared_data: Path) -> None:
    labelled = list(rows(shared_data / "smollm2_responses.jsonl"))
    grades = [grade_gsm8k(row["response"], row["gold"]).value == 1.0 for row in labelled]
    assert grades == [row["label"] for row in labelled]


def test_short_cases_are_read_as_expected(shared_data: Path) -> None:
    for case in rows(shared_data / "extraction_cases.jsonl"):
        if case["kind"] != "answer":
            continue
        of_gsm8k = case["benchmark"] == "gsm8k"
        extract = extract_gsm8k_answer if of_gsm8k else extract_aime_answer
        grade = grade_gsm8k if of_gsm8k else grade_aime
        assert extract(case["response"]) == case["expected_extracted"], case["id"]
        correct = grade(case["response"], case["gold"]).value == 1.0
        assert correct == case["expected_correct"], case["id"]
