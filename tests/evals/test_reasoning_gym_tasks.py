"""Every task of reasoning-gym: it can be logged, is the same in every process, and runs no answer."""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import json
import os
import pickle
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rolloutlib.evals import Benchmark, read_log, run_benchmark
from rolloutlib.evals.benchmarks import MathExample, reasoning_gym_tasks
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


def example_answer(example: MathExample) -> str | None:
    task = example.metadata["source_dataset"]
    if task not in WITHOUT_ANSWER:
        return example.answer
    assert example.answer == ""
    key = WITHOUT_ANSWER[task]
    answer = None if key is None else example.metadata[key]
    return answer if isinstance(answer, str | None) else json.dumps(answer)


# Tasks that are made in a process of their own, which takes seconds: here all in one.
APART = [
    "codeio",
    "isomorphic_strings",
    "knight_swap",
    "list_functions",
    "polynomial_multiplication",
    "pool_matrix",
    "ransom_note",
    "word_ladder",
]
MAKE = f"""
from rolloutlib.evals.benchmarks import reasoning_gym, reasoning_gym_tasks

APART = {APART!r}
benchmarks = {{
    task: reasoning_gym(task, size=3, seed=5) for task in reasoning_gym_tasks() if task not in APART
}}
parts = [{{"name": task}} for task in APART]
benchmarks["composite"] = reasoning_gym("composite", size=16, seed=5, datasets=parts)
"""
DIGESTS = """
import hashlib, sys, warnings
warnings.simplefilter("ignore")
exec(sys.argv[1])
for task, benchmark in benchmarks.items():
    items = [item.model_dump_json() for item in benchmark.items]
    print("digest", task, hashlib.sha256(repr(items).encode()).hexdigest())
"""


@pytest.fixture(scope="module")
def elsewhere() -> Iterator[subprocess.Popen[str]]:
    """Make all problems in another process, while this one makes them too."""
    with subprocess.Popen(
        [sys.executable, "-c", DIGESTS, MAKE],
        env={**os.environ, "PYTHONHASHSEED": "2"},
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        yield process


@pytest.fixture(scope="module")
def benchmarks(elsewhere: subprocess.Popen[str]) -> dict[str, Benchmark[MathExample]]:
    names: dict[str, Any] = {}
    exec(MAKE, names)  # noqa: S102 - our own
    return names["benchmarks"]


@pytest.mark.slow
def test_every_task_has_problems_that_can_be_logged_and_answers_that_score_1(
    benchmarks: dict[str, Benchmark[MathExample]], tmp_path: Path
) -> None:
    examples = [item for benchmark in benchmarks.values() for item in benchmark.items]
    tasks = {item.metadata["source_dataset"] for item in examples}
    assert tasks == set(reasoning_gym_tasks())
    assert len(tasks) >= 100
    for task, benchmark in benchmarks.items():
        answers = {item.question: example_answer(item) or "?" for item in benchmark.items}

        def policy(chat: Any, answers: dict[str, str] = answers) -> str:
            return tagged(answers[chat[-1]["content"]])

        path = tmp_path / f"{task}.jsonl"
        result = run_benchmark(benchmark, policy=policy, log=path)
        ids = [record.item_id for record in read_log(path)]
        assert ids == [f"{task}-5-{index}" for index in range(len(benchmark.items))]
        assert result.num_errors == 0, task
        if task not in WITHOUT_ANSWER or WITHOUT_ANSWER[task]:
            assert result.score == result.components["correct"] == 1.0, task


@pytest.mark.slow
def test_what_is_no_answer_has_no_full_score_and_fails_no_sample(
    benchmarks: dict[str, Benchmark[MathExample]],
) -> None:
    junk = [
        "?",
        "-1",
        "nan",
        "[[]]",
        '{"a": {"b": [1]}}',
        "9" * 5000,
        "(" * 500,
        "[" * 3000,
        "\x00",
    ]
    full: set[str] = set()
    for task, benchmark in benchmarks.items():
        for text in junk:
            if graded(benchmark, benchmark.items[0], tagged(text)).value == 1:
                full.add(task)
    # Its scorer takes any text for the truth; in complex_arithmetic "nan" is near to all numbers.
    assert full == {"complex_arithmetic", "game_of_life_halting"}


@pytest.mark.slow
def test_a_benchmark_grades_alike_when_it_was_pickled(
    benchmarks: dict[str, Benchmark[MathExample]],
) -> None:
    for task in ("arc_1d", "chain_sum", "composite", "graph_color", "string_manipulation"):
        benchmark = benchmarks[task]
        copy: Benchmark[MathExample] = pickle.loads(pickle.dumps(benchmark))  # noqa: S301 - our own
        assert copy.items == benchmark.items
        example = copy.items[0]
        for text in (example_answer(example) or "?", "?"):
            score = graded(copy, example, tagged(text))
            assert score == graded(benchmark, example, tagged(text)), task


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


@pytest.mark.slow
def test_the_problems_of_every_task_are_the_same_in_every_process(
    benchmarks: dict[str, Benchmark[MathExample]], elsewhere: subprocess.Popen[str]
) -> None:
    written, _ = elsewhere.communicate()
    assert elsewhere.returncode == 0
    lines = [line.split()[-2:] for line in written.splitlines() if "digest" in line]
    assert dict(lines) == {
        task: hashlib.sha256(
            repr([item.model_dump_json() for item in benchmark.items]).encode()
        ).hexdigest()
        for task, benchmark in benchmarks.items()
    }
