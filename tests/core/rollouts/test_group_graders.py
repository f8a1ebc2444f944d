"""Scores that a grader gives to a whole group, in place of those of its episodes."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Any

import numpy as np
import pytest

from core.rollouts.scripted import AsyncScriptedEnv, ScriptedEnv, apolicy, policy
from rolloutlib import Score, acollect, arollout_group, collect, rollout_group
from rolloutlib.rollouts import Retry, RolloutEvent, StalledError, TrajectoryGroup

pytestmark = pytest.mark.anyio

Group = TrajectoryGroup[Any, Any, Any]


def one_by_one(group: Group) -> Iterator[float]:
    for trajectory in group.trajectories:
        yield float(trajectory.member or 0)


async def group_of(grade_group: Callable[[Group], Any], kind: str, **arguments: Any) -> Group:
    """Play a group of two, graded by a function, or by a coroutine function that calls it."""
    arguments = {"num_rollouts": 2, "item_id": "sum", **arguments}
    if kind == "sync":
        return rollout_group(
            0, lambda _: ScriptedEnv(1), policy, grade_group=grade_group, **arguments
        )

    @functools.wraps(grade_group)
    async def later(group: Group) -> Any:
        return grade_group(group)

    grader = later if kind == "coroutine" else grade_group
    return await arollout_group(
        0, lambda _: AsyncScriptedEnv(1), apolicy, grade_group=grader, **arguments
    )


EACH_KIND = pytest.mark.parametrize("kind", ["sync", "thread", "coroutine"])


@EACH_KIND
@pytest.mark.parametrize(
    "values",
    [
        [0, 1],
        (False, True),
        [Score(0.0), Score(1.0)],
        [Decimal(0), np.float32(1.0)],
        np.array([0.0, 1.0]),
        np.array([[0], [1]]),
    ],
)
async def test_scores_may_come_as_numbers_of_any_kind(values: Any, kind: str) -> None:
    group = await group_of(lambda _: values, kind)
    assert group.rewards == (0.0, 1.0)
    assert [type(score) for score in group.scores] == [Score, Score]


@EACH_KIND
async def test_scores_may_be_generated(kind: str) -> None:
    assert (await group_of(one_by_one, kind)).rewards == (0.0, 1.0)


class Later:
    def __await__(self) -> Iterator[None]:
        raise NotImplementedError


@EACH_KIND
@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([1.0, float("nan")], "item 'sum', trajectory 1: score must be finite, got nan"),
        (["1", "2"], "item 'sum', trajectory 0: score must be a real number, got '1'"),
        ([1.0], "it gave 1 for the 2 of item 'sum'"),
        ([1.0, 2.0, 3.0], "it gave 3 for the 2 of item 'sum'"),
        (None, "one score a trajectory, in their order, got None"),
        (0.5, "one score a trajectory, in their order, got 0.5"),
        ("12", "one score a trajectory, in their order, got '12'"),
        ({0: 0.5, 1: 0.75}, "one score a trajectory, in their order, got {0: 0.5, 1: 0.75}"),
        ({0.5, 0.75}, "one score a trajectory, in their order, got {0."),
    ],
)
async def test_what_is_no_score_for_each_is_a_failure_of_all(
    values: Any, message: str, kind: str
) -> None:
    group = await group_of(lambda _: values, kind)
    assert (group.trajectories, group.scores) == ((), ())
    assert [(error.index, error.phase) for error in group.errors] == [(0, "grade"), (1, "grade")]
    for error in group.errors:
        assert message in error.error_message
        assert error.trajectory is not None
        assert error.trajectory.terminated


@pytest.mark.parametrize("is_coroutine", [True, False])
def test_synchronous_code_awaits_no_scores(is_coroutine: bool) -> None:
    async def later() -> list[float]:
        raise NotImplementedError

    def grade(group: Group) -> Any:
        return later() if is_coroutine else Later()

    group = rollout_group(0, lambda _: ScriptedEnv(), policy, grade_group=grade)
    assert "returned an awaitable: use arollout_group" in group.errors[0].error_message


@EACH_KIND
async def test_grading_that_fails_is_tried_again_and_counts_add_up(kind: str) -> None:
    events, seen = list[RolloutEvent](), list[Group]()

    def fails_once(group: Group) -> list[float]:
        seen.append(group)
        if len(seen) == 1:
            raise ConnectionError
        return [3.0, 4.0]

    group = await group_of(fails_once, kind, retry=Retry(initial_delay=0), on_event=events.append)
    assert group.rewards == (3.0, 4.0)
    assert seen[0] == seen[1]
    assert events[-1].progress.completed == 2
    assert events[-1].progress.running == 0


@EACH_KIND
async def test_a_group_that_cannot_be_graded_has_failed_in_the_counts_too(kind: str) -> None:
    events = list[RolloutEvent]()

    def fail(group: Group) -> list[float]:
        raise LookupError("no judge")

    await group_of(fail, kind, on_event=events.append)
    assert [event.kind for event in events if event.kind != "step"] == [
        *["started", "finished"] * 2,
        *["failed"] * 2,
    ]
    for event in events:
        counts = event.progress
        assert counts.started == (
            counts.completed + counts.truncated + counts.failed + counts.running
        )
    assert (events[-1].progress.failed, events[-1].progress.running) == (2, 0)
    with pytest.raises(LookupError, match="no judge") as caught:
        await group_of(fail, kind, on_error="raise")
    partial = TrajectoryGroup.from_exception(caught.value)
    assert partial is not None
    assert partial.num_completed == 2


async def test_a_run_that_cannot_be_graded_any_more_stops() -> None:
    def fail(group: Group) -> list[float]:
        raise LookupError("no judge")

    arguments: dict[str, Any] = {"grade_group": fail, "max_failures": 5}
    with pytest.raises(StalledError) as caught:
        list(collect(range(99), lambda _: ScriptedEnv(), policy, **arguments))
    assert isinstance(caught.value.__cause__, LookupError)
    groups = acollect(range(99), lambda _: AsyncScriptedEnv(), apolicy, **arguments)
    with pytest.raises(StalledError):
        [group async for group in groups]
