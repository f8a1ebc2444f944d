"""Grading whole groups, for rewards that compare their episodes."""

from __future__ import annotations

import functools
import math
import threading
from collections.abc import Awaitable, Iterator, Sequence
from typing import Any

import anyio
import anyio.lowlevel
import numpy as np
import pytest

from core.rollouts.scripted import AsyncScriptedEnv, ScriptedEnv, apolicy, policy
from rolloutlib import TrajectoryGroup, acollect, arollout_group, collect, rollout_group
from rolloutlib.rollouts import BatchedPolicy, Retry, StalledError
from rolloutlib.scores import Score

pytestmark = pytest.mark.anyio

Group = TrajectoryGroup[Any, Any, Any]
SOON = Retry(initial_delay=0)


def rank(group: Group) -> list[float]:
    """Score members by their number, the last the best."""
    return [float(trajectory.member or 0) for trajectory in group.trajectories]


async def arank(group: Group) -> list[float]:
    await anyio.lowlevel.checkpoint()
    return rank(group)


class Ranker:
    """A callable object that keeps what it was given."""

    def __init__(self) -> None:
        self.groups: list[Group] = []

    def __call__(self, group: Group) -> list[float]:
        self.groups.append(group)
        return rank(group)


class Later:
    """A function that returns an awaitable, though its definition does not show that."""

    def __call__(self, group: Group) -> Awaitable[list[float]]:
        return arank(group)


def failing(members: Sequence[int]) -> Any:
    """Make environments of which those of some members fail."""
    count = iter(range(10**9))
    return lambda item: ScriptedEnv(faults={"step 1": KeyError()} if next(count) in members else {})


async def in_every_way(grade: Any, members: Sequence[int] = (), **arguments: Any) -> list[Group]:
    arguments = {"num_rollouts": 3, "grade_group": grade, **arguments}
    batched = BatchedPolicy[Any, Any](lambda observations: [policy(one) for one in observations])
    groups = [
        rollout_group("item", failing(members), policy, **arguments),
        rollout_group("item", failing(members), batched, **arguments),
        await arollout_group("item", failing(members), apolicy, **arguments),
        *collect(["item"], failing(members), policy, **arguments),
    ]
    async with acollect(["item"], failing(members), apolicy, concurrency=1, **arguments) as taken:
        groups += [group async for group in taken]
    assert all(group.num_requested == 3 for group in groups)
    return groups


async def test_its_scores_take_the_place_of_the_episodes_own() -> None:
    for group in await in_every_way(rank):
        assert group.rewards == (0.0, 1.0, 2.0)
        assert [trajectory.total_reward for trajectory in group.trajectories] == [3.0] * 3
        assert group.errors == ()


class Both:
    """A grader with an asynchronous form."""

    def __call__(self, group: Group) -> list[float]:
        raise AssertionError

    async def ascore(self, group: Group) -> list[float]:
        return await arank(group)


@pytest.mark.parametrize("grade", [arank, Ranker(), functools.partial(arank), Later(), Both()])
async def test_it_may_be_asynchronous_or_an_object(grade: Any) -> None:
    group = await arollout_group(
        "item", lambda _: AsyncScriptedEnv(), apolicy, num_rollouts=3, grade_group=grade
    )
    assert group.rewards == (0.0, 1.0, 2.0)


@pytest.mark.parametrize(
    "scores",
    [
        [0, 1, 2],
        (0.0, 1.0, 2.0),
        np.arange(3.0),
        [Score(0.0), 1.0, np.float32(2)],
        {0.0: "worst", 1.0: "", 2.0: "best"}.keys(),
    ],
)
async def test_scores_may_have_any_form_that_a_score_has(scores: Any) -> None:
    group = rollout_group(
        "item", lambda _: ScriptedEnv(), policy, num_rollouts=3, grade_group=lambda _: scores
    )
    assert group.rewards == (0.0, 1.0, 2.0)


async def test_scores_may_be_generated() -> None:
    def generate(group: Group) -> Iterator[float]:
        yield from rank(group)

    for group in await in_every_way(generate):
        assert group.rewards == (0.0, 1.0, 2.0)


async def test_scores_keep_their_parts() -> None:
    def grade(group: Group) -> list[Score]:
        return [Score(0.5, {"style": 1.0}, feedback="fine")] * 3

    for group in await in_every_way(grade):
        assert group.scores[2] == Score(0.5, {"style": 1.0}, feedback="fine")


async def test_it_sees_the_whole_group_and_the_failures_in_it() -> None:
    ranker = Ranker()
    groups = await in_every_way(ranker, members=[1])
    for group, seen in zip(groups, ranker.groups, strict=True):
        assert seen.trajectories == group.trajectories
        assert seen.errors == group.errors
        assert (seen.item, seen.seed, seen.item_id) == (group.item, group.seed, group.item_id)
        assert group.rewards == (0.0, 2.0)  # one a trajectory, not one a member
        assert [error.phase for error in group.errors] == ["step"]


async def test_a_group_in_which_nothing_ended_is_not_graded() -> None:
    ranker = Ranker()
    for group in await in_every_way(ranker, members=[0, 1, 2]):
        assert group.num_failed == 3
        assert group.scores == ()
    assert ranker.groups == []


def fail(group: Group) -> list[float]:
    msg = "the judge is overloaded"
    raise ConnectionError(msg)


def one_short(group: Group) -> list[float]:
    return [1.0] * (len(group.trajectories) - 1)


@pytest.mark.parametrize(
    ("grade", "kind", "message"),
    [
        (fail, ConnectionError, "the judge is overloaded"),
        (one_short, ValueError, "must return one score a trajectory: it gave 1 for the 2"),
        (lambda group: [1.0] * 9, ValueError, "must return one score a trajectory: it gave 9"),
        (lambda group: [], ValueError, "it gave 0 for the 2"),
        (lambda group: [1.0, math.nan], ValueError, "trajectory 1: score must be finite, got nan"),
        (lambda group: ["good"] * 2, TypeError, "trajectory 0: score must be a real number"),
        (lambda group: None, TypeError, "in their order, got None"),
        (lambda group: 0.5, TypeError, "in their order, got 0.5"),
        (lambda group: "12", TypeError, "in their order, got '12'"),
        (lambda group: {0: 0.5, 1: 0.7}, TypeError, "in their order, got {0: 0.5, 1: 0.7}"),
        (lambda group: {0.5, 0.7}, TypeError, "in their order, got {0."),
    ],
)
async def test_grading_that_fails_fails_the_episodes_whose_records_stay(
    grade: Any, kind: type[Exception], message: str
) -> None:
    for group in await in_every_way(grade, members=[1]):
        assert group.trajectories == group.scores == ()
        assert [error.index for error in group.errors] == [0, 1, 2]
        assert [error.phase for error in group.errors] == ["grade", "step", "grade"]
        for error in (group.errors[0], group.errors[2]):
            assert error.error_type == kind.__name__
            assert message in error.error_message
            assert error.trajectory is not None
            assert error.trajectory.terminated
            assert (error.trajectory.member, error.trajectory.seed) == (error.index, error.seed)
    for run in (rollout_group, collect):
        items: Any = "item" if run is rollout_group else ["item"]
        arguments: dict[str, Any] = {"grade_group": grade, "on_error": "raise"}
        with pytest.raises(kind, match=message.split(maxsplit=1)[0]) as caught:
            list(run(items, failing([]), policy, num_rollouts=2, **arguments))  # pyright: ignore[reportArgumentType]
        partial = TrajectoryGroup.from_exception(caught.value)
        assert partial is not None
        assert partial.num_completed == 2  # what was paid for is not lost
    with pytest.raises(kind) as caught:
        await arollout_group("item", failing([]), apolicy, num_rollouts=2, **arguments)
    partial = TrajectoryGroup.from_exception(caught.value)
    assert partial is not None
    assert partial.num_completed == 2


async def test_synchronous_groups_refuse_an_asynchronous_grader() -> None:
    wrong: Any = arank
    with pytest.raises(TypeError, match="grade_group is a coroutine function"):
        rollout_group("item", lambda _: ScriptedEnv(), policy, grade_group=wrong)
    wrong = Later()
    group = rollout_group("item", lambda _: ScriptedEnv(), policy, grade_group=wrong)
    [error] = group.errors
    assert error.phase == "grade"
    assert "use arollout_group" in error.error_message


@pytest.mark.parametrize("grade", [3, "rank", []])
async def test_it_must_be_a_function(grade: Any) -> None:
    with pytest.raises(TypeError, match="grade_group must be a function"):
        rollout_group("item", lambda _: ScriptedEnv(), policy, grade_group=grade)
    with pytest.raises(TypeError, match="grade_group must be a function"):
        await arollout_group("item", lambda _: ScriptedEnv(), policy, grade_group=grade)


class Flaky(Ranker):
    """Fails so many times."""

    def __init__(self, failures: int, error: Exception) -> None:
        super().__init__()
        self.failures, self.error = failures, error

    def __call__(self, group: Group) -> list[float]:
        scores = super().__call__(group)
        if len(self.groups) <= self.failures:
            raise self.error
        return scores


async def test_grading_is_tried_again_without_playing_again() -> None:
    for number in range(5):
        flaky = Flaky(2, ConnectionError())
        group = (await in_every_way(flaky, retry=SOON))[number]
        assert group.rewards == (0.0, 1.0, 2.0)
        assert [trajectory.attempt for trajectory in group.trajectories] == [0, 0, 0]
        flaky = Flaky(99, ConnectionError())
        group = (await in_every_way(flaky, retry=SOON))[number]
        assert [error.phase for error in group.errors] == ["grade"] * 3
        assert len(flaky.groups) == 5 * 3
        flaky = Flaky(1, KeyError())
        group = (await in_every_way(flaky, retry=SOON))[0]
        assert group.num_failed == 3


async def test_a_function_that_cannot_tell_makes_a_failed_grading_final() -> None:
    def tell(error: Exception) -> bool:
        raise AttributeError

    for group in await in_every_way(fail, retry=Retry(initial_delay=0, transient=tell)):
        assert [error.error_type for error in group.errors] == ["ConnectionError"] * 3
        assert "asking if it may pass failed too" in group.errors[0].traceback


async def test_a_run_whose_groups_cannot_be_graded_is_given_up() -> None:
    calls = 0

    def refuse(group: Group) -> list[float]:
        nonlocal calls
        calls += 1
        msg = "401: the key has expired"
        raise PermissionError(msg)

    arguments: dict[str, Any] = {"num_rollouts": 2, "max_failures": 10, "grade_group": refuse}
    with pytest.raises(StalledError, match="10 episodes in a row failed") as caught:
        list(collect(range(10**6), lambda _: ScriptedEnv(), policy, **arguments))
    assert isinstance(caught.value.__cause__, PermissionError)
    assert calls == 5
    with pytest.raises(StalledError, match="PermissionError") as caught:
        [
            None
            async for _ in acollect(
                range(10**6), lambda _: AsyncScriptedEnv(), apolicy, concurrency=4, **arguments
            )
        ]
    assert TrajectoryGroup.all_from_exception(caught.value)


async def test_failures_to_grade_among_others_do_not_end_a_run() -> None:
    def grade(group: Group) -> list[float]:
        return fail(group) if group.item % 5 else rank(group)

    groups = list(
        collect(range(50), lambda _: ScriptedEnv(), policy, grade_group=grade, max_failures=5)
    )
    assert len(groups) == 50


async def test_groups_are_graded_side_by_side_off_the_event_loop() -> None:
    meeting = threading.Barrier(4)
    threads: set[int] = set()

    def meet(group: Group) -> list[float]:
        threads.add(threading.get_ident())
        meeting.wait(60)
        return rank(group)

    async with acollect(
        range(8), lambda _: AsyncScriptedEnv(), apolicy, concurrency=4, grade_group=meet
    ) as groups:
        assert len([group async for group in groups]) == 8
    assert threading.get_ident() not in threads


async def test_inline_it_is_called_on_the_event_loop() -> None:
    threads: set[int] = set()

    def note(group: Group) -> list[float]:
        threads.add(threading.get_ident())
        return rank(group)

    await arollout_group("item", failing([]), policy, grade_group=note, inline=True)
    assert threads == {threading.get_ident()}


async def test_a_cancelled_grading_loses_no_episode() -> None:
    grading = anyio.Event()

    async def hang(group: Group) -> list[float]:
        grading.set()
        await anyio.sleep_forever()
        return []

    async with (
        acollect(["a"], failing([]), apolicy, num_rollouts=2, grade_group=hang) as groups,
        anyio.create_task_group() as tasks,
    ):
        tasks.start_soon(_take, groups)
        await grading.wait()
        tasks.cancel_scope.cancel()
    [group] = groups.unclaimed
    assert group.num_completed == 2


async def _take(groups: Any) -> None:
    await anext(groups)
