"""Data sets of the Hub are of one commit, which is recorded; years of AIME."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hub import serve
from rolloutlib.evals import read_log, run_benchmark
from rolloutlib.evals.benchmarks import aime, grade_aime, gsm8k, make

ROWS = [
    {"id": "a", "question": "What is 6 times 7?", "answer": "#### 42"},
    {"id": "b", "question": "What is 2 plus 2?", "answer": "#### 4"},
]


@pytest.fixture
def problems(tmp_path: Path) -> str:
    path = tmp_path / "problems.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in ROWS), encoding="utf-8")
    return str(path)


PINNED = {
    "HuggingFaceH4/aime_2024": "2fe88a2f1091d5048c0f36abc874fb997b3dd99a",
    "MathArena/aime_2025": "c94da77eb22bbd6439e62a323bec18493a421302",
    "openai/gsm8k": "cc7b047b6e5bb11b4f1af84efc572db110a51b3c",
}
NEWEST = "5" * 40
LOAD = """
import json, sys
import datasets
from rolloutlib.evals.benchmarks import make

datasets.disable_progress_bars()
for arguments in json.loads(sys.argv[1]):
    try:
        benchmark = make(**arguments)
    except OSError as error:
        print(json.dumps(str(error)))
        continue
    chat, _ = benchmark.make_env(benchmark.items[0]).reset()
    asked = [message["content"].partition("?")[0] for message in chat if message["role"] == "user"]
    print(json.dumps([benchmark.metadata["dataset"], benchmark.metadata["revision"], asked]))
"""


def files(commit: str) -> dict[str, bytes]:
    """Return the files of a data set whose problems name the commit and the split that they are of."""
    return {
        f"{split}.jsonl": f'{{"question": "{commit[:7]} {split}?", "answer": "1"}}\n'.encode()
        for split in ("train", "test")
    }


@pytest.mark.slow
def test_data_sets_of_the_hub_are_of_one_commit_which_the_metadata_name(tmp_path: Path) -> None:
    pytest.importorskip("datasets", reason="needs the benchmarks extra")
    old = "c0ffee" + "0" * 34
    repositories = {
        name: {commit: files(commit) for commit in (pinned, NEWEST)}
        for name, pinned in {**PINNED, "our/problems": old}.items()
    }
    ours = {"name": "gsm8k", "dataset": "our/problems"}
    asked: list[tuple[dict[str, Any], list[Any]]] = [
        ({"name": "gsm8k"}, ["openai/gsm8k", PINNED["openai/gsm8k"], ["cc7b047 test"]]),
        (
            {"name": "aime"},
            ["MathArena/aime_2025", PINNED["MathArena/aime_2025"], ["c94da77 test"]],
        ),
        (
            {"name": "aime_2024"},
            ["HuggingFaceH4/aime_2024", PINNED["HuggingFaceH4/aime_2024"], ["2fe88a2 test"]],
        ),
        (
            {"name": "gsm8k", "few_shot": 1, "split": "test[:1]"},
            ["openai/gsm8k", PINNED["openai/gsm8k"], ["cc7b047 train", "cc7b047 test"]],
        ),
        ({"name": "gsm8k", "revision": "main"}, ["openai/gsm8k", NEWEST, ["5555555 test"]]),
        ({**ours, "few_shot": 1}, ["our/problems", NEWEST, ["5555555 train", "5555555 test"]]),
        ({**ours, "revision": "v1"}, ["our/problems", old, ["c0ffee0 test"]]),
        ({**ours, "revision": NEWEST}, ["our/problems", NEWEST, ["5555555 test"]]),
    ]
    absent = [{"name": "gsm8k", "revision": "b" * 40}, {"name": "aime", "dataset": "our/absent"}]
    with serve(repositories, {"main": NEWEST, "v1": old}) as address:
        *loaded, no_commit, no_name = load(
            *(arguments for arguments, _ in asked),
            *absent,
            HF_ENDPOINT=address,
            HF_HOME=str(tmp_path),
        )
    assert loaded == [expected for _, expected in asked]
    assert "cannot load data set 'openai/gsm8k'" in no_commit
    assert "cannot load data set 'our/absent'" in no_name
    assert "pass `examples`" in no_name

    # Without a network the library gives the commit that it loaded last.
    newest, pinned = load(
        {"name": "gsm8k", "revision": "main"},
        {"name": "gsm8k"},
        HF_HUB_OFFLINE="1",
        HF_HOME=str(tmp_path),
    )
    assert newest == ["openai/gsm8k", NEWEST, ["5555555 test"]]
    assert f"commit {PINNED['openai/gsm8k']} cannot be reached, and the cache has" in pinned


def load(*arguments: dict[str, Any], **environment: str) -> list[Any]:
    done = subprocess.run(
        [sys.executable, "-c", LOAD, json.dumps(arguments)],
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        check=True,
        text=True,
    )
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_local_files_have_no_revision(problems: str) -> None:
    assert gsm8k(dataset=problems).metadata["revision"] is None
    with pytest.raises(ValueError, match="is local and has no revisions, got revision='main'"):
        gsm8k(dataset=problems, revision="main")


def test_the_revision_stands_in_the_log(problems: str, tmp_path: Path) -> None:
    benchmark = gsm8k(dataset=problems)
    benchmark = replace(benchmark, metadata={**benchmark.metadata, "revision": NEWEST})
    run_benchmark(benchmark, policy=lambda chat: "#### 42", log=tmp_path / "log.jsonl")
    header = read_log(tmp_path / "log.jsonl").header
    assert header["benchmark_metadata"]["revision"] == NEWEST


def test_aime_of_a_year_takes_its_own_name_and_any_data_set(problems: str) -> None:
    benchmark = aime(dataset=problems, year=2024)
    assert (benchmark.name, benchmark.metadata["dataset"]) == ("aime_2024", problems)
    with pytest.raises(ValueError, match=r"one of \[2024, 2025\], got 2023.*`dataset`"):
        aime(year=2023)


@pytest.mark.parametrize("year", [2024, 2025])
def test_the_problems_of_aime_load(shared_data: Path, year: int) -> None:
    benchmark = make(f"aime_{year}", dataset=str(shared_data / f"aime_{year}.jsonl"))
    assert len(benchmark.items) == 30
    assert all(grade_aime(item.answer, item.answer).value == 1.0 for item in benchmark.items)
