"""Runs of our own environments keep all promises, whatever fails in them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import anyio.lowlevel
import pytest

from core.rollouts.scripted import AsyncScriptedEnv, ScriptedEnv, apolicy, policy
from rolloutlib import PolicyOutput, TrajectoryGroup
from rolloutlib.rollouts import AsyncBatchedPolicy, BatchedPolicy, RolloutEvent
from rolloutlib.testing import FaultReport, check_faults

Group = TrajectoryGroup[Any, Any, Any]


def make_env(item: object) -> ScriptedEnv:
    return ScriptedEnv()


def amake_env(item: object) -> AsyncScriptedEnv:
    return AsyncScriptedEnv()


async def amake_env_slowly(item: object) -> AsyncScriptedEnv:
    await anyio.lowlevel.checkpoint()
    return AsyncScriptedEnv()


def grade(group: Group) -> list[float]:
    return [1.0] * len(group.trajectories)


async def agrade(group: Group) -> list[float]:
    await anyio.lowlevel.checkpoint()
    return grade(group)


def listen(event: RolloutEvent) -> None:
    pass


def is_transient(error: Exception) -> bool:
    return True


def batch(observations: Sequence[str]) -> list[PolicyOutput[str]]:
    return [policy(observation) for observation in observations]


async def abatch(observations: Sequence[str]) -> list[PolicyOutput[str]]:
    await anyio.lowlevel.checkpoint()
    return batch(observations)


each_backend = pytest.mark.parametrize("backend", ["asyncio", "trio"])


@each_backend
def test_asynchronous_runs_keep_their_promises(backend: str) -> None:
    report = check_faults(
        "item",
        amake_env_slowly,
        apolicy,
        grade_group=agrade,
        on_event=listen,
        transient=is_transient,
        backends=[backend],
    )
    assert report.faults.keys() == {"exception", "interrupt", "cancellation", "early close", "hang"}
    assert report.num_runs > sum(report.faults.values()) > 5 * report.num_places


@each_backend
def test_runs_on_threads_keep_their_promises(backend: str) -> None:
    report = check_faults(
        "item", make_env, policy, max_steps=1, grade_group=grade, backends=[backend]
    )
    assert report.faults["hang"]


@pytest.mark.slow
@each_backend
def test_inline_runs_keep_their_promises(backend: str) -> None:
    report = check_faults(
        "item", make_env, policy, max_steps=1, grade_group=grade, inline=True, backends=[backend]
    )
    assert "hang" not in report.faults  # nothing else could go on


@pytest.mark.slow
@each_backend
def test_mixed_runs_keep_their_promises(backend: str) -> None:
    check_faults("item", make_env, apolicy, max_steps=1, backends=[backend])
    check_faults("item", amake_env, policy, max_steps=1, backends=[backend])


@each_backend
def test_runs_with_a_policy_that_gathers_calls_keep_their_promises(backend: str) -> None:
    gathered = AsyncBatchedPolicy(abatch, max_wait=0)
    check_faults("item", amake_env, gathered, max_steps=1, backends=[backend])


@pytest.mark.parametrize("choose", [policy, BatchedPolicy(batch)], ids=["alone", "in lock step"])
def test_synchronous_runs_keep_their_promises(choose: Any) -> None:
    report = check_faults("item", make_env, choose, grade_group=grade, on_event=listen, backends=[])
    assert report.faults.keys() == {"exception", "interrupt"}


def test_only_the_faults_that_are_asked_for_are_tried() -> None:
    report = check_faults(
        "item", make_env, policy, num_rollouts=1, backends=["trio"], kinds=["hang"]
    )
    assert report.faults.keys() == {"hang"}
    assert isinstance(report, FaultReport)


def test_bad_arguments_are_refused() -> None:
    kinds: Any = ["boredom"]
    with pytest.raises(ValueError, match=r"kinds must be some of .*, got 'boredom'"):
        check_faults("item", make_env, policy, kinds=kinds)
    with pytest.raises(ValueError, match=r"backends must be some of .*, got 'curio'"):
        check_faults("item", make_env, policy, backends=["curio"])
    with pytest.raises(ValueError, match="num_rollouts must be at least 1"):
        check_faults("item", make_env, policy, num_rollouts=0)
