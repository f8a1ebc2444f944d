"""Grading beside many ways to write, hedge, take back and fake an answer.

The folder `answer_cases` has a file for each kind of answer. A row says what is extracted for GSM8K and
for AIME; where a verdict could be argued about, it says nothing. What is not plainly one value is null.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from rolloutlib.evals.benchmarks import (
    extract_aime_answer,
    extract_gsm8k_answer,
    grade_aime,
    grade_gsm8k,
)

CASES = Path(__file__).parent / "answer_cases"


def rows(path: Path) -> Iterator[dict[str, Any]]:
    with path.open(encoding="utf-8") as file:
        yield from map(json.loads, file)


@pytest.mark.parametrize("path", sorted(CASES.glob("*.jsonl")), ids=lambda path: path.stem)
def test_answers_of_each_kind_are_read_as_people_read_them(path: Path) -> None:
    extract = {"gsm8k": extract_gsm8k_answer, "aime": extract_aime_answer}
    wrong = [
        (row["response"], name, found, row[name])
        for row in rows(path)
        for name in extract.keys() & row
        if (found := extract[name](row["response"])) != row[name]
    ]
    assert wrong == []


def test_kinds_and_cases_are_many() -> None:
    counts = [sum(1 for _ in rows(path)) for path in CASES.glob("*.jsonl")]
    assert len(counts) >= 10
    assert sum(counts) >= 600


# `{}` stands for the number.
WRAPPINGS = (
    "{}", "{}.", "${}$", "\\({}\\)", "\\[{}\\]", "$${}$$", "**{}**", "# {}", "`{}`",
    "#### {}", "#### {}.", "####{}", "#### **{}**", "#### ${}$", "#### {}\n", "work\n#### {}  \n\n",
    "\\boxed{{{}}}", "$\\boxed{{{}}}$", "\\(\\boxed{{{}}}\\)", "\\[\n\\boxed{{{}}}\n\\]", "$$\\boxed{{{}}}$$",
    "**\\boxed{{{}}}**", "\\boxed{{ {} }}", "\\boxed{{\\text{{{}}}}}", "\\boxed{{\\mathrm{{{}}}}}",
    "\\boxed{{\\mathbf{{{}}}}}", "\\boxed{{x = {}}}", "\\fbox{{{}}}",
    "\\framebox{{{}}}", "\\boxed{{{}}}.", "So the total is \\boxed{{{}}}!", "\\boxed{{\\large {}}}",
    "<answer>{}</answer>", "<answer> {} </answer>", "<answer>\\boxed{{{}}}</answer>", "<answer>The answer is {}.</answer>",
    "The answer is {}.", "The answer is: {}", "The answer is **{}**.", "The answer is ${}$.", "the final answer is {}",
    "The answer is \\({}\\).", "The answer is\n\n\\[{}\\]", "Answer: {}", "**Answer:** {}", "**Answer: {}**", "ANSWER: {}",
    "Final Answer: {}", "### Final Answer\n\n{}", "### Answer\n{}", "**Final Answer**\n\n**{}**", "A: {}", "Answer = {}",
    "<think>\\boxed{{1}} or #### 2</think>\n#### {}", "it is 1, no, 2</think>\nThe answer is {}.", "<think></think>{}",
    "答案\uff1a{}", "答案是{}。", "Respuesta: {}", "La réponse est {}.", "Die Antwort ist {}.", "Ответ: {}", "答えは{}です。", "정답: {}",
    "#### {}\n\nQuestion: And 5 more?\n#### 5", "The answer is {}.<|im_end|>\nThe answer is 5.",
    "#### {}\nI hope this helps!",
)  # fmt: skip
FULL_WIDTH = {ord("0") + digit: 0xFF10 + digit for digit in range(10)}
ARABIC = {ord("0") + digit: 0x0660 + digit for digit in range(10)}


def spellings(number: str) -> list[str]:
    """Ways to write a number of decimal digits, possibly with a sign or a decimal point."""
    written = [number, number.translate(FULL_WIDTH), number.translate(ARABIC), f"{number} dollars"]
    if "." not in number:
        written += [f"{number}.0", f"{number}.00", f"{int(number):,}", f"{number}\u00a0eggs"]
        written += [f"{int(number):,}".replace(",", sep) for sep in ("{,}", "\\,", "\u202f", "'")]
    if number[0] != "-":
        written += [f"${number}", f"\\${number}", f"€{number}", f"{number}€", f"${number} per day"]
        written += [f"{number}%", f"{number}\\%", f"{number} \\text{{ km}}", f"+{number}"]
    else:
        written += [f"\u2212{number[1:]}", f"\u2013{number[1:]}", f"-${number[1:]}"]
    return written


def test_every_gsm8k_answer_is_accepted_in_every_usual_spelling(shared_data: Path) -> None:
    golds = {row["final"]: row["answer"] for row in rows(shared_data / "gsm8k_test.jsonl")}
    assert len(golds) > 300
    refused: list[str] = []
    for index, (final, worked) in enumerate(sorted(golds.items())):
        number = final.replace(",", "")
        ways = spellings(number)
        answers = [wrapping.format(number) for wrapping in WRAPPINGS]
        answers += [WRAPPINGS[index % len(WRAPPINGS)].format(way) for way in ways]
        answers += [f"#### {way}" for way in ways]
        refused += [answer for answer in answers if grade_gsm8k(answer, worked).value != 1.0]
    assert refused == []


def test_every_aime_answer_is_accepted_in_every_usual_spelling(shared_data: Path) -> None:
    names = ("aime_1983_2023", "aime_2024", "aime_2025")
    golds = {row["answer"] for name in names for row in rows(shared_data / f"{name}.jsonl")}
    assert len(golds) > 400
    refused: list[str] = []
    for gold in sorted(golds):
        number = str(int(gold))
        answers = [wrapping.format(number) for wrapping in WRAPPINGS]
        ways = (
            f"{int(gold):03}",
            f"{number}.0",
            f"{number}^\\circ",
            f"m+n={number}",
            f"1+2={number}",
        )
        answers += [f"\\boxed{{{way}}}" for way in ways]
        answers += [
            f"\\boxed{{\\textbf{{({gold})}}}}",
            f"The answer is {int(gold):03}.",
            f"**Final Answer:** $ {int(gold):03} $",
        ]
        refused += [answer for answer in answers if grade_aime(answer, gold).value != 1.0]
    assert refused == []


NUMBERS = st.integers(0, 999)
EXPLICIT = st.sampled_from(["#### {}", "\\boxed{{{}}}", "The answer is {}.", "<answer>{}</answer>"])
ANOTHER = EXPLICIT | st.sampled_from(
    ["\n{}", "\n**{}**", "Wait, it is {}.", "No, {}.", "or {}", "and {}"]
)
BEFORE = st.sampled_from(
    [
        "",
        "\n",
        "  ",
        "<think>maybe 5</think>",
        "5 or 6</think>\n",
        "First, 2 + 3 = 5.\n",
        "**Work**\n\n",
    ]
)
AFTER = st.sampled_from(
    [
        "",
        "\n",
        " \t\n",
        "\n\nI hope this helps!",
        "\nI hope it is correct.",
        "\n\nLet me double-check: 2 + 2 = 4.",
        "\n\n**Note:** 3 of 7 were given.",
        "<|im_end|>",
        "\n\nQuestion: 5?",
        "\n\nHuman: 5?\n\nAssistant: The answer is 5.",
    ]
)
AROUND = st.sampled_from(
    ["{}", " {} ", "**{}**", "${}$", "\\${}", "{}.00", "{} apples", "\u200b{}\u200f"]
)


@given(NUMBERS, EXPLICIT, BEFORE, AFTER, AROUND)
def test_what_stands_around_an_answer_changes_nothing(
    number: int, explicit: str, before: str, after: str, around: str
) -> None:
    answer = before + explicit.format(around.format(number)) + after
    assert extract_gsm8k_answer(answer) == str(number)
    assert extract_aime_answer(answer) == str(number)


@given(NUMBERS, NUMBERS, EXPLICIT, ANOTHER, st.sampled_from(["\n", " ", "\n\n", ". "]))
def test_another_answer_behind_it_changes_the_result(
    number: int, other: int, explicit: str, another: str, between: str
) -> None:
    assume(number != other)
    answer = explicit.format(number) + between + another.format(other)
    for extract in (extract_gsm8k_answer, extract_aime_answer):
        assert extract(answer) != str(number)


PIECES = st.sampled_from(
    ["\\boxed{", "\\frac{1}{2}", "\\frac", "\\text{", "{", "}", "<think>", "</think>", "<answer>", "</answer>",
     "#### ", "A:", "The answer is ", "1,234", "3", "\u00bd", "-", "$", "%", "**", "= ", "\u00b2", "e9", "\\", "[", "]",
     "(", ")", "'", '"', "```", "~~", "<!--", "-->", "\u7b54\u6848", "\u0663", "\u200b", "\ud800", "\u202e", "\x00",
     "Question:", "or ", "not ", "1e30", "!", "?", "\n", "\r", " "]
)  # fmt: skip


@given(st.lists(PIECES | st.text(st.characters(), max_size=5), max_size=30).map("".join))
def test_no_text_makes_grading_raise(response: str) -> None:
    for extract in (extract_gsm8k_answer, extract_aime_answer):
        answer = extract(response)
        assert answer is None or Fraction(answer) is not None
    for score in (grade_gsm8k(response, "1"), grade_aime(response, "1")):
        assert score.value in (0.0, 1.0)
        span = score.metadata["span"]
        assert span is None or 0 <= span[0] <= span[1] <= len(response)
        assert (score.metadata["status"] == "found") == (score.metadata["reason"] is None)
