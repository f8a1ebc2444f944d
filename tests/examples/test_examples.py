"""Each example runs, and what it prints is what it is there to show."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from rolloutlib.rollouts import summarize
from rolloutlib.storage import read_groups

RunExample = Callable[..., str]


def test_single_turn(run_example: RunExample) -> None:
    output = run_example("single_turn.py")
    careful, hasty = output.split("hasty_policy", maxsplit=1)
    assert careful.count("reward 1.00") == 3
    assert "feedback" not in careful
    assert hasty.count("reward 0.67") == 3
    assert hasty.count("feedback: ") == 3
    words = re.findall(r"seed \d: (\w+) -> (\w+)", careful)
    assert all(answer == word[::-1] for word, answer in words)
    assert words[0] != words[1]
    assert "equal trajectories: True" in output


def test_tool_calls(run_example: RunExample) -> None:
    shopper, browser = run_example("tool_calls.py").split("browser")
    assert (
        "buy({})\n    -> error: there is no tool 'buy'; the tools are: 'price', 'submit'" in shopper
    )
    assert 'submit({"total": 180})\n    -> right' in shopper
    assert "terminated with reward 1.0; {'num_turns': 5, 'num_mistakes': 2}" in shopper
    assert browser.count('price({"item": "plum"})\n    -> 20') == 6
    assert "truncated with reward 0.0" in browser


def test_sync_env_async_rollouts(run_example: RunExample) -> None:
    output = run_example("sync_env_async_rollouts.py")
    assert "8 episodes, rewards [1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0]" in output
    assert "met in every step: 8" in output
    assert "threads that called any one environment: 1\n" in output
    assert "environments left open: 0" in output


def test_collect(
    run_process: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path
) -> None:
    path = tmp_path / "groups.jsonl"
    result = run_process("collect.py", str(path))
    groups = list(read_groups(path))
    assert sorted(group.item for group in groups) == list(range(1, 100, 5))
    assert {group.num_requested for group in groups} == {8}
    assert {reward for group in groups for reward in group.rewards} == {0.0, 1.0}
    assert result.stdout.endswith(f"{summarize(groups)}\n")
    progress = result.stderr.splitlines()[-1]
    assert "160 of 160 episodes" in progress
    assert "160 started, 0 running" in progress
    assert not re.search(r"\b0 retried", progress)
    again = run_process("collect.py", str(path))
    assert sorted(again.stdout.splitlines()) == sorted(result.stdout.splitlines())
    assert list(read_groups(path)) == groups


def test_own_benchmark(run_example: RunExample) -> None:
    output = run_example("own_benchmark.py")
    assert "capitals: score 0.500 over 4 items" in output
    assert "3 completed, 1 failed" in output
    assert "from 0.500 if those that failed score 0 to 0.750 if they score 1" in output
    assert "Chad: failed, ConnectionError: the model server is gone" in output
    assert "mean of brief: 1.000 over 3 items" in output
    assert "France: credited, 1.0, 'The capital of France is Paris.'" in output
    assert "Nauru: wrong, 0.0, 'I do not know.'" in output


@pytest.mark.slow
@pytest.mark.usefixtures("model_packages")
def test_model_judge(run_example: RunExample) -> None:
    output = run_example("model_judge.py")
    rows = re.findall(r"\((right|wrong)\): (\d) yes, (\d) no, (\d) unusable", output)
    assert len(rows) == 6
    counts = [(truth, int(yes), int(no), int(unusable)) for truth, yes, no, unusable in rows]
    assert all(yes + no + unusable == 5 for _, yes, no, unusable in counts)
    usable = sum(yes + no for _, yes, no, _ in counts)
    true = sum(yes if truth == "right" else no for truth, yes, no, _ in counts)
    assert f"{usable} verdicts on 6 cases" in output
    assert re.search(rf"failed +0\.\d+  {30 - usable} of 30: {30 - usable} VerdictError\n", output)
    assert re.search(rf"agreement +0\.\d+  {true} of {usable}\n", output)
    assert re.search(r"calls +\d+  \d+ retries; \d+ \+ \d+ tokens\n", output)
    assert "a forged verdict: " in output
