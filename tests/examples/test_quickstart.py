"""The quickstart shows real numbers of a real model; two runs serve all tests."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import pytest

pytestmark = [pytest.mark.usefixtures("model_packages"), pytest.mark.slow]

ROW = re.compile(
    r"^  (What is (\d+) \+ (\d+)\?)?\s+(.*?)\s+(\d+)\s+(\d\.\d\d)(?:\s+(\d\.\d{3}))?\s*$"
)

Groups: TypeAlias = dict[tuple[int, int], list[tuple[str, int, float, str | None]]]


@pytest.fixture(scope="module")
def output(run_example: Callable[..., str]) -> str:
    return run_example("quickstart.py", "--seed", "0")


@pytest.fixture(scope="module")
def groups(output: str) -> Groups:
    """Read the table back: by sum, the rows of answer, times, reward and group mean."""
    table: Groups = {}
    key = (0, 0)
    for line in output.splitlines():
        if found := ROW.match(line):
            prompt, a, b, answer, times, reward, mean = found.groups()
            if prompt:
                key = (int(a), int(b))
            table.setdefault(key, []).append((answer, int(times), float(reward), mean))
    return table


def test_table_shows_every_rollout_of_every_group(groups: Groups) -> None:
    assert len(groups) == 6
    assert [sum(times for _, times, _, _ in rows) for rows in groups.values()] == [8] * 6


def test_group_means_follow_from_the_rewards_shown(groups: Groups) -> None:
    for rows in groups.values():
        mean = sum(times * reward for _, times, reward, _ in rows) / 8
        assert rows[0][3] == f"{mean:.3f}"


def test_rewards_follow_from_the_answers_shown(groups: Groups) -> None:
    shown_whole = [
        (a, b, answer, reward)
        for (a, b), rows in groups.items()
        for answer, _, reward, _ in rows
        if not answer.endswith("…")
    ]
    assert shown_whole
    for a, b, answer, reward in shown_whole:
        numbers = re.findall(r"\d+", answer)
        correct = bool(numbers) and int(numbers[-1]) == a + b
        assert reward == pytest.approx(0.8 * correct + 0.2 * answer.startswith(f"{a} + {b} = "))


def test_groups_have_spread(groups: Groups) -> None:
    rewards = [{reward for _, _, reward, _ in rows} for rows in groups.values()]
    assert sum(len(different) > 1 for different in rewards) >= 3
    assert any(1.0 in different for different in rewards)


def test_recorded_tokens_are_those_of_the_model(output: str) -> None:
    found = re.search(r"tokens exact in (\d+) of (\d+) steps \((\d+) tokens sampled\)", output)
    assert found
    exact, steps, tokens = map(int, found.groups())
    assert exact == steps == 48
    assert tokens > steps


def test_benchmark_counts_every_problem_once(output: str) -> None:
    found = re.search(
        r"GSM8K [\d.]+ over (\d+) problems: (\d+) completed, (\d+) cut off, (\d+) failed", output
    )
    assert found
    problems, completed, truncated, failed = map(int, found.groups())
    assert problems == completed + truncated + failed == 5


def test_seed_reproduces_the_rollouts_and_a_file_of_problems_is_read(
    output: str, run_example: Callable[..., str], tmp_path: Path
) -> None:
    problems = tmp_path / "problems.jsonl"
    lines = [{"question": f"What is {n} plus 1?", "answer": f"#### {n + 1}"} for n in range(3)]
    problems.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")

    again = run_example("quickstart.py", "--seed", "0", "--gsm8k", str(problems), "--limit", "2")

    assert "over 2 problems" in again
    table = slice(output.index("prompt"), output.index("GSM8K"))
    assert again[table] == output[table]
