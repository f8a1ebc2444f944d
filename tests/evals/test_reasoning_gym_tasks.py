"""Every task of reasoning-gym: it can be logged, is the same in every process, and runs no answer."""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from rolloutlib.evals import Benchmark, read_log, run_benchmark
from rolloutlib.evals.benchmarks import (
    MathExample,
    reasoning_gym,
    reasoning_gym_tasks,
)
from rolloutlib.scores import Score

pytestmark = [
    pytest.mark.skipif(
        importlib.util.find_spec("reasoning_gym") is None, reason="needs the extra reasoning-gym"
    ),
    # It leaves a file that it read to the garbage collector.
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]

# Tasks whose problems have many answers and give none, and where an example of one stands.
WITHOUT_ANSWER = {
    "boxnet": None,
    "graph_color": "possible_answer",
    "propositional_logic": "example_answer",
    "rubiks_cube": "example_correct_answer",
    "rush_hour": None,
}


def tagged(answer: str) -> str:
    return f"<think>Or <answer>no</answer>?</think>Well.\n<answer>\n{answer}\n</answer>"


def graded(benchmark: Benchmark[MathExample], example: MathExample, reply: str) -> Score:
    environment = benchmark.make_env(example)
    environment.reset()
    score = Score.from_info(environment.step(reply)[4])
    assert score is not None
    return score


def example_answer(example: MathExample, task: str) -> str | None:
    if task not in WITHOUT_ANSWER:
        return example.answer
    assert example.answer == ""
    key = WITHOUT_ANSWER[task]
    answer = None if key is None else example.metadata[key]
    return answer if isinstance(answer, str | None) else json.dumps(answer)


@pytest.fixture(scope="module")
def benchmarks() -> dict[str, Benchmark[MathExample]]:
    return {task: reasoning_gym(task, size=3, seed=5) for task in reasoning_gym_tasks()}


@pytest.mark.slow
def test_every_task_has_problems_that_can_be_logged_and_answers_that_score_1(
    benchmarks: dict[str, Benchmark[MathExample]], tmp_path: Path
) -> None:
    assert len(benchmarks) >= 100
    for task, benchmark in benchmarks.items():
        answers = {item.question: example_answer(item, task) or "?" for item in benchmark.items}

        def policy(chat: Any, answers: dict[str, str] = answers) -> str:
            return tagged(answers[chat[-1]["content"]])

        path = tmp_path / f"{task}.jsonl"
        result = run_benchmark(benchmark, policy=policy, log=path)
        assert [record.item_id for record in read_log(path)] == [f"{task}-5-{i}" for i in range(3)]
        assert result.num_errors == 0, task
        if task not in WITHOUT_ANSWER or WITHOUT_ANSWER[task]:
            assert result.score == 1.0, task


@pytest.mark.slow
def test_no_task_runs_what_a_model_wrote(
    benchmarks: dict[str, Benchmark[MathExample]], tmp_path: Path
) -> None:
    mark = tmp_path / "ran"
    code = f"__import__('pathlib').Path({str(mark)!r}).touch()"
    texts = [
        code,
        f"[{code}]",
        f"[{code} for _ in [1]]",
        f"1 + {code}",
        f"S('x').__class__({code})",
    ]
    for task, benchmark in benchmarks.items():
        for text in texts:
            graded(benchmark, benchmark.items[0], tagged(text))
            assert not mark.exists(), task


def digest(benchmark: Benchmark[MathExample]) -> str:
    return hashlib.sha256(
        repr([item.model_dump_json() for item in benchmark.items]).encode()
    ).hexdigest()


ELSEWHERE = """
import hashlib, sys, warnings
warnings.simplefilter("ignore")
from rolloutlib.evals.benchmarks import reasoning_gym
for task in sys.argv[1:]:
    items = [item.model_dump_json() for item in reasoning_gym(task, size=3, seed=5).items]
    print("digest", task, hashlib.sha256(repr(items).encode()).hexdigest())
"""
# Made as two others are, each in a process of its own, which takes seconds.
ALIKE = {
    "isomorphic_strings",
    "knight_swap",
    "polynomial_multiplication",
    "pool_matrix",
    "word_ladder",
}


@pytest.mark.slow
def test_the_problems_of_every_task_are_the_same_in_every_process(
    benchmarks: dict[str, Benchmark[MathExample]],
) -> None:
    tasks = sorted(benchmarks.keys() - ALIKE)
    done = subprocess.run(
        [sys.executable, "-c", ELSEWHERE, *tasks],
        env={**os.environ, "PYTHONHASHSEED": "2"},
        capture_output=True,
        check=True,
        text=True,
    )
    lines = [line.split()[-2:] for line in done.stdout.splitlines() if "digest" in line]
    assert dict(lines) == {task: digest(benchmarks[task]) for task in tasks}
