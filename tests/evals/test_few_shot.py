"""Worked examples and system prompts in the chats of the built-in benchmarks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import datasets
import pytest

from rolloutlib.evals import read_log, run_benchmark
from rolloutlib.evals.benchmarks import AIME_PROMPT_SUFFIX, aime, gsm8k, reasoning_gym

PROBLEMS = [{"question": "What is 6 times 7?", "answer": "#### 42"}]
SHOTS = [
    {"question": "What is 3 times 4?", "answer": "It is 3*4=<<3*4=12>>12.\n#### 12"},
    {"question": "What is 1 plus 1?", "answer": "#### 2"},
]


def chat(benchmark: Any) -> list[tuple[str, str]]:
    messages, _ = benchmark.make_env(benchmark.items[-1]).reset()
    return [(message["role"], message["content"]) for message in messages]


def test_worked_examples_are_earlier_turns_of_the_chat() -> None:
    benchmark = gsm8k(PROBLEMS, few_shot=SHOTS, system_prompt="Be brief.")
    assert chat(benchmark) == [
        ("system", "Be brief."),
        ("user", "What is 3 times 4?"),
        ("assistant", "It is 3*4=12.\n#### 12"),
        ("user", "What is 1 plus 1?"),
        ("assistant", "#### 2"),
        ("user", "What is 6 times 7?"),
    ]
    assert len(benchmark.metadata["few_shot"]) == 2
    assert run_benchmark(benchmark, policy=lambda _: "#### 42").score == 1.0


def test_worked_examples_of_reasoning_gym_answer_in_tags() -> None:
    pytest.importorskip("reasoning_gym")
    shots = [
        {"question": "1 + 1 = ?", "answer": 2},
        {"question": "1 + 2 = ?", "answer": "Easy. <answer>3</answer>"},
    ]
    settings: dict[str, Any] = {"size": 2, "system_prompt": None}
    benchmark = reasoning_gym("chain_sum", **settings, few_shot=shots)
    assert chat(benchmark)[:-1] == [
        ("user", "1 + 1 = ?"),
        ("assistant", "<answer>2</answer>"),
        ("user", "1 + 2 = ?"),
        ("assistant", "Easy. <answer>3</answer>"),
    ]
    assert chat(benchmark)[-1:] == chat(reasoning_gym("chain_sum", **settings))
    with pytest.raises(ValueError, match="is one of the problems"):
        reasoning_gym("chain_sum", **settings, few_shot=[benchmark.items[0]])


def test_worked_examples_come_from_the_training_split(tmp_path: Path) -> None:
    pytest.importorskip("datasets")
    train = datasets.Dataset.from_list(SHOTS)
    train.to_parquet(tmp_path / "train.parquet")
    datasets.Dataset.from_list(PROBLEMS).to_parquet(tmp_path / "test.parquet")
    benchmark = gsm8k(dataset=str(tmp_path), few_shot=1)
    assert [content for _, content in chat(benchmark)] == [
        "What is 3 times 4?",
        "It is 3*4=12.\n#### 12",
        "What is 6 times 7?",
    ]


def test_too_few_worked_examples_are_told(tmp_path: Path) -> None:
    for split, rows in (("train", SHOTS), ("test", PROBLEMS)):
        lines = [json.dumps(row) + "\n" for row in rows]
        (tmp_path / f"{split}.jsonl").write_text("".join(lines), encoding="utf-8")
    assert len(gsm8k(dataset=tmp_path, few_shot=2).metadata["few_shot"]) == 2
    with pytest.raises(ValueError, match=r"few_shot is 3, but the training split of .* has 2"):
        gsm8k(dataset=tmp_path, few_shot=3)


def test_a_worked_example_that_is_a_problem_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"few-shot example 'gsm8k:.*' is one of the problems"):
        gsm8k(PROBLEMS, few_shot=PROBLEMS)
    path = tmp_path / "test.jsonl"
    path.write_text('{"question": "What is 6 times 7?", "answer": "42"}\n', "utf-8")
    with pytest.raises(ValueError, match="is one of the problems"):
        gsm8k(dataset=str(path), few_shot=1)
    with pytest.raises(ValueError, match="few_shot must be at least 1, got -1"):
        gsm8k(PROBLEMS, few_shot=-1)


def test_aime_takes_worked_examples_with_or_without_solutions() -> None:
    shots = [
        {"problem": "One?", "answer": 73, "solution": "Easy: \\boxed{073}."},
        {"problem": "Two?", "answer": 5},
    ]
    benchmark = aime([{"problem": "Three?", "answer": 8}], few_shot=shots)
    assert chat(benchmark) == [
        ("user", "One?" + AIME_PROMPT_SUFFIX),
        ("assistant", "Easy: \\boxed{073}."),
        ("user", "Two?" + AIME_PROMPT_SUFFIX),
        ("assistant", "\\boxed{5}"),
        ("user", "Three?" + AIME_PROMPT_SUFFIX),
    ]


def test_a_log_is_refused_when_the_prompt_has_changed(tmp_path: Path) -> None:
    arguments: dict[str, Any] = {"policy": lambda _: "42", "log": tmp_path / "log.jsonl"}
    run_benchmark(gsm8k(PROBLEMS), **arguments)
    assert "few_shot" not in read_log(arguments["log"]).header["benchmark_metadata"]
    for changed in (
        gsm8k(PROBLEMS, few_shot=SHOTS),
        gsm8k(PROBLEMS, system_prompt="Be brief."),
    ):
        with pytest.raises(ValueError, match=r"make_env was .* and is "):
            run_benchmark(changed, **arguments)
