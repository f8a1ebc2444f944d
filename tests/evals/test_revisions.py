"""Data sets of the Hub are of one commit, which is recorded; years of AIME."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

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


class Hub:
    """Answers like the `datasets` library on a machine that reaches the Hub, and notes what is asked."""

    def __init__(self, rows: list[dict[str, Any]], commit: str | None) -> None:
        self.asked: list[tuple[str, str | None]] = []
        self._rows = rows
        self._commit = commit

    def get_dataset_config_names(self, dataset: str, *, revision: str | None) -> list[str]:
        self.asked.append((dataset, revision))
        return ["main"]

    def get_dataset_split_names(
        self, dataset: str, config: str | None, *, revision: str | None
    ) -> list[str]:
        self.asked.append((dataset, revision))
        return ["train", "test"]

    def load_dataset(
        self, dataset: str, config: str | None, *, split: str, revision: str | None
    ) -> Any:
        self.asked.append((dataset, revision))
        address = f"hf://datasets/{dataset}@{self._commit}/{split}.parquet"
        rows = [dict(row, question=f"{row['question']} ({split})") for row in self._rows]
        return LoadedRows(rows, {address: {"num_bytes": 1}} if self._commit else None)


class LoadedRows(list[dict[str, Any]]):
    def __init__(self, rows: list[dict[str, Any]], checksums: dict[str, Any] | None) -> None:
        super().__init__(rows)
        self.info = SimpleNamespace(download_checksums=checksums)


@pytest.mark.parametrize(
    ("name", "dataset"),
    [
        ("gsm8k", "openai/gsm8k"),
        ("aime", "MathArena/aime_2025"),
        ("aime_2024", "HuggingFaceH4/aime_2024"),
        ("aime_2025", "MathArena/aime_2025"),
    ],
)
def test_built_in_data_sets_are_of_one_commit_which_the_metadata_name(
    name: str, dataset: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub = Hub(ROWS, commit=None)
    monkeypatch.setitem(sys.modules, "datasets", hub)
    benchmark = make(name)
    revision = benchmark.metadata["revision"]
    assert re.fullmatch("[0-9a-f]{40}", revision)
    assert set(hub.asked) == {(dataset, revision)}
    assert (benchmark.name, benchmark.metadata["dataset"]) == (name, dataset)


def test_another_revision_can_be_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    hub = Hub(ROWS, commit="5" * 40)
    monkeypatch.setitem(sys.modules, "datasets", hub)
    assert gsm8k(revision="main").metadata["revision"] == "5" * 40
    assert set(hub.asked) == {("openai/gsm8k", "main")}


def test_the_commit_of_any_data_set_is_noted_and_worked_examples_are_of_it_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    hub = Hub(ROWS, commit="c0ffee" + "0" * 34)
    monkeypatch.setitem(sys.modules, "datasets", hub)
    benchmark = gsm8k(dataset="our/problems", few_shot=1)
    assert benchmark.metadata["revision"] == "c0ffee" + "0" * 34
    assert hub.asked == [("our/problems", None)] * 3 + [("our/problems", "c0ffee" + "0" * 34)] * 3


def test_a_commit_that_cannot_be_told_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "datasets", Hub(ROWS, commit=None))
    assert gsm8k(dataset="our/problems").metadata["revision"] is None


def test_local_files_have_no_revision(problems: str) -> None:
    assert gsm8k(dataset=problems).metadata["revision"] is None
    with pytest.raises(ValueError, match="is local and has no revisions, got revision='main'"):
        gsm8k(dataset=problems, revision="main")


def test_the_revision_stands_in_the_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "datasets", Hub(ROWS, commit="5" * 40))
    run_benchmark(gsm8k(), policy=lambda chat: "#### 42", log=tmp_path / "log.jsonl")
    header = read_log(tmp_path / "log.jsonl").header
    assert header["benchmark_metadata"]["revision"] == "5" * 40


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
