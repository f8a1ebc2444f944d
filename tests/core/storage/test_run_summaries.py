"""What came of a run, told by its groups, its file and its events."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from core.rollouts.scripted import ScriptedEnv, policy
from core.storage.runs import AnyGroup, make_env
from rolloutlib import collect
from rolloutlib.rollouts import (
    Progress,
    Retry,
    RolloutEvent,
    summarize,
)
from rolloutlib.storage import GroupStore, read_groups


def test_metrics_of_the_file_are_those_of_the_run(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    progress: list[Progress] = []

    def make(item: int) -> ScriptedEnv:
        faults: dict[str, BaseException] = {"step 1": ConnectionError()} if item % 3 == 0 else {}
        return ScriptedEnv(faults=faults, ends="truncated" if item % 4 == 1 else "terminated")

    def record(event: RolloutEvent) -> None:
        progress.append(event.progress)

    arguments: dict[str, Any] = {"num_rollouts": 3, "retry": Retry(attempts=2, initial_delay=0)}
    groups = list(
        collect(range(8), make, policy, on_event=record, store=GroupStore(path), **arguments)
    )
    summary = summarize(groups)
    live = progress[-1]
    assert summary == summarize(read_groups(path)) == summarize(reversed(groups))
    assert (summary.groups, summary.requested) == (8, live.started)
    for name in ("completed", "truncated", "failed", "retried", "steps", "tokens"):
        assert getattr(summary, name) == getattr(live, name) > 0
    assert summary.mean_reward == pytest.approx(
        np.mean([reward for group in groups for reward in group.rewards])
    )

    # What is taken from the file counts among the outcomes, not among the steps of this run.
    progress.clear()
    list(collect(range(8), make, policy, on_event=record, store=GroupStore(path), **arguments))
    for name in ("started", "completed", "truncated", "failed", "retried"):
        assert getattr(progress[-1], name) == getattr(live, name)
    assert (progress[-1].running, progress[-1].steps, progress[-1].tokens) == (0, 0, 0)


def test_a_group_that_could_not_be_graded_counts_as_failed_again(tmp_path: Path) -> None:
    def grade(group: AnyGroup) -> list[float]:
        raise KeyError(group.item)

    progress: list[Progress] = []
    for _ in range(2):
        [group] = collect(
            [*"a"],
            make_env,
            policy,
            num_rollouts=2,
            grade_group=grade,
            store=GroupStore(tmp_path / "run.jsonl"),
            on_event=lambda event: progress.append(event.progress),
        )
        assert group.num_failed == 2
        assert (progress[-1].started, progress[-1].completed, progress[-1].failed) == (2, 0, 2)


def test_no_metrics_have_no_mean() -> None:
    assert summarize([]).mean_reward is None
    assert summarize([]).requested == 0
