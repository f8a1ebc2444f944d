"""The commands in `benchmarks`: that they work, not how fast anything is."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"


def run(script: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(BENCHMARKS / script), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_rows_are_measured_printed_and_kept(tmp_path: Path) -> None:
    earlier = {"quick": False, "rows": {"chat": {"ratio": 123.0}}}
    (tmp_path / "2000-01-01.json").write_text(json.dumps(earlier))
    process = run(
        "run.py", "chat", "rollout-1", "graders", "--quick", "--rounds=1", "--results", tmp_path
    )
    assert process.stderr == ""
    assert process.returncode == 0
    lines = [line.split() for line in process.stdout.splitlines()]
    [chat] = [line for line in lines if line[:1] == ["chat"]]
    assert "x123" in chat
    assert {"rollout-1", "composite"} <= {line[0] for line in lines if line}

    _, kept = sorted(tmp_path.glob("*.json"))
    content = json.loads(kept.read_text())
    assert content["quick"]
    assert set(content["rows"]) == {"chat", "rollout-1", "composite"}
    for result in content["rows"].values():
        assert result["rounds"] == {"ours": [result["ours"]], "hand": [result["hand"]]}
        assert result["ratio"] == result["ours"] / result["hand"]


def test_a_row_that_does_not_exist_is_refused(tmp_path: Path) -> None:
    process = run("run.py", "chta", "--results", tmp_path)
    assert process.returncode == 2
    assert "no area or row chta" in process.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_row_is_profiled() -> None:
    process = run("profile_row.py", "rollout-1", "--quick", "--sort", "cumulative")
    assert process.stderr == ""
    assert "(rollout)" in process.stdout


def test_the_grading_of_answers_is_measured(tmp_path: Path) -> None:
    process = run("grading.py", "--quick", "--data", tmp_path / "absent")
    assert process.returncode == 0
    assert "hostile answers" in process.stdout
    assert "only hostile answers are graded" in process.stderr
