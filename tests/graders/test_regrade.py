"""`regrade` and `aregrade`: new scores for episodes that were kept, which stay as they are."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rolloutlib import RolloutError, Step, Trajectory, TrajectoryGroup
from rolloutlib.graders import (
    CachedGrader,
    CompositeGrader,
    Criterion,
    GradeCache,
    Rubric,
    Score,
    aregrade,
    regrade,
)
from rolloutlib.rollouts import summarize
from rolloutlib.storage import GroupWriter, read_groups

pytestmark = pytest.mark.anyio

Group = TrajectoryGroup[str, str, str]
Take = Callable[..., Any]

RUBRIC = Rubric(id="R", criteria=(Criterion(id="right", description="d"),))


class TroubleError(Exception):
    """A user's own error."""


def make_trajectory(action: str, member: int | None) -> Trajectory[str, str]:
    step = Step(
        "question",
        action,
        0.0,
        "end",
        terminated=True,
        truncated=False,
        info=Score(0.0).as_info(),
        policy_tokens=(1, 2, 3),
        policy_logprobs=(-0.5, 0.0, -1.0),
    )
    return Trajectory("question", (step,), terminated=True, seed=7, member=member)


def make_group(item: str, *actions: str, **fields: Any) -> Group:
    trajectories = [make_trajectory(action, index) for index, action in enumerate(actions)]
    return TrajectoryGroup(item, f"id of {item}", trajectories, **fields)


def last_action(item: str, trajectory: Trajectory[str, str]) -> tuple[str, str]:
    return item, trajectory.actions[-1]


def is_right(pair: tuple[str, str], rubric: object) -> float:
    item, action = pair
    if action == "fail":
        msg = f"cannot grade {item}"
        raise TroubleError(msg)
    return float(item == action)


async def ais_right(pair: tuple[str, str], rubric: object) -> float:
    await anyio.lowlevel.checkpoint()
    return is_right(pair, rubric)


async def take(groups: Iterable[Group], grader: Any, **options: Any) -> list[Group]:
    """Grade anew in every way there is, and return what all of them give."""
    groups = list(groups)
    options = {"make_input": last_action, "rubric": "r", **options}
    taken = list(regrade(groups, grader, **options))
    for concurrency, inline, each in (
        (1, False, grader),
        (3, True, grader),
        (64, False, ais_right),
    ):
        if each is ais_right and grader is not is_right:
            continue
        found = aregrade(groups, each, concurrency=concurrency, inline=inline, **options)
        async with found as regraded:
            assert [without_traces(group) async for group in regraded] == [
                without_traces(group) for group in taken
            ]
    return taken


def without_traces(group: Group) -> dict[str, Any]:
    form = group.to_dict()
    for error in form["errors"]:
        error["traceback"] = ""
    return form


async def test_scores_are_new_and_trajectories_stay_as_they_are() -> None:
    groups = [make_group("a", "a", "b"), make_group("b", "a", "b", "b")]
    taken = await take(groups, is_right)
    assert [group.rewards for group in taken] == [(1.0, 0.0), (0.0, 1.0, 1.0)]
    for old, new in zip(groups, taken, strict=True):
        assert new.trajectories == old.trajectories
        assert (new.item, new.item_id, new.seed) == (old.item, old.item_id, old.seed)
        assert old.rewards == (0.0,) * len(old.trajectories)
    assert summarize(taken).mean_reward == 0.6


async def test_episodes_that_failed_stay_so() -> None:
    failed = RolloutError("E", "m", index=1, phase="step", trajectory=make_trajectory("a", 1))
    retried = RolloutError("E", "m", index=0, phase="reset")
    group = make_group("a", "a", errors=(failed,), retried=(retried,), metadata={"k": 1})
    [taken] = await take([group], is_right)
    assert taken.errors == (failed,)
    assert taken.retried == (retried,)
    assert taken.metadata == {"k": 1}
    assert taken.rewards == (1.0,)


async def test_a_failure_to_grade_is_recorded_and_counted_and_never_a_score() -> None:
    [taken] = await take([make_group("a", "a", "fail", "b")], is_right)
    assert taken.rewards == (1.0, 0.0)
    [error] = taken.errors
    assert error.error_type.endswith("TroubleError")
    assert (error.error_message, error.phase, error.index) == ("cannot grade a", "grade", 1)
    assert error.seed == 7
    assert error.trajectory == make_trajectory("fail", 1)
    summary = summarize([taken])
    assert (summary.requested, summary.completed, summary.failed) == (3, 2, 1)


@pytest.mark.parametrize("value", ["1", True, None, float("nan"), 7.0])
async def test_what_is_no_score_is_a_failure(value: Any) -> None:
    criterion = RUBRIC.criteria[0]
    [taken] = await take([make_group("a", "a")], lambda *_: value, rubric=criterion)
    [error] = taken.errors
    assert error.error_message.startswith("the score of trajectory 0 of item 'id of a' must be")
    assert taken.rewards == ()


async def test_what_could_not_be_graded_is_graded_again() -> None:
    first = await take([make_group("a", "fail", "a", "fail", "b")], is_right)
    second = await take(first, lambda pair, _: float(pair[1] != "b"))
    assert [group.rewards for group in second] == [(1.0, 1.0, 1.0, 0.0)]
    assert second[0].errors == ()
    assert [each.member for each in second[0].trajectories] == [0, 1, 2, 3]


async def test_the_rubric_may_be_made_from_the_item() -> None:
    groups = [make_group("a", "a"), make_group("b", "a")]
    taken = await take(
        groups,
        lambda action, answer: float(action == answer),
        make_input=lambda item, trajectory: trajectory.actions[0],
        rubric=None,
        make_rubric=lambda item: item,
    )
    assert [group.rewards for group in taken] == [(1.0,), (0.0,)]


async def test_scores_name_their_rubric() -> None:
    composite = CompositeGrader(is_right)
    for grader in (composite, lambda pair, rubric: Score(1.0, metadata={"k": 1})):
        [taken] = await take([make_group("a", "a")], grader, rubric=RUBRIC)
        [score] = taken.scores
        assert score.metadata["rubric_id"] == "R"
        assert score.metadata["rubric_fingerprint"] == RUBRIC.fingerprint


async def test_trajectories_without_a_member_keep_their_order() -> None:
    group = TrajectoryGroup("a", "a", [make_trajectory(name, None) for name in "bab"])
    [taken] = await take([group], is_right)
    assert taken.rewards == (0.0, 1.0, 0.0)


async def test_groups_without_anything_to_grade_are_handed_out_too() -> None:
    groups = [make_group("a"), make_group("b", "b"), make_group("c"), make_group("d")]
    assert await take(groups, is_right) == [
        groups[0],
        *await take(groups[1:2], is_right),
        *groups[2:],
    ]
    assert await take([], is_right) == []


@given(
    st.lists(st.lists(st.sampled_from(["a", "b", "fail"]), max_size=4), max_size=6),
    st.integers(1, 5),
)
def test_every_episode_has_one_outcome_and_the_twins_agree(
    actions: list[list[str]], concurrency: int
) -> None:
    groups = [make_group("a", *each) for each in actions]

    async def run() -> list[Group]:
        options: Any = {"make_input": last_action, "rubric": "r", "concurrency": concurrency}
        async with aregrade(groups, ais_right, **options) as regraded:
            return [group async for group in regraded]

    taken = anyio.run(run)
    for names, group in zip(actions, taken, strict=True):
        assert group.num_requested == len(names)
        assert group.num_failed == names.count("fail")
        assert group.rewards == tuple(float(name == "a") for name in names if name != "fail")
    again = list(regrade(groups, is_right, make_input=last_action, rubric="r"))
    assert [without_traces(group) for group in again] == [without_traces(group) for group in taken]


async def test_a_file_of_records_is_graded_anew_for_nothing_the_second_time(tmp_path: Path) -> None:
    groups = [make_group(item, "a", "b", "c") for item in "abc"]
    with GroupWriter(tmp_path / "groups.jsonl") as writer:
        for group in groups:
            writer.append(group)
    calls: list[object] = []

    def grade(pair: tuple[str, str], rubric: object) -> float:
        calls.append(pair)
        return is_right(pair, rubric)

    for name in ("one", "two"):
        with GradeCache(tmp_path / "grades.db") as cache, GroupWriter(tmp_path / name) as writer:
            grader = CachedGrader(grade, cache, fingerprint="f")
            options: Any = {"make_input": last_action, "rubric": RUBRIC}
            groups_read = read_groups(tmp_path / "groups.jsonl")
            async with aregrade(groups_read, grader, **options) as regraded:
                async for group in regraded:
                    writer.append(group)
        assert len(calls) == 9
    one, two = list(read_groups(tmp_path / "one")), list(read_groups(tmp_path / "two"))
    assert one == two == list(regrade(groups, is_right, make_input=last_action, rubric=RUBRIC))


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"grader": 1}, TypeError, "grader must be callable, got 1"),
        ({"make_input": None}, TypeError, "make_input must be callable, got None"),
        ({"rubric": None}, TypeError, "either `rubric` is needed, or `make_rubric`"),
        ({"make_rubric": lambda item: item}, TypeError, "not both"),
        ({"on_error": "ignore"}, ValueError, "on_error must be one of"),
        ({"max_failures": 0}, ValueError, "max_failures must be at least 1"),
        ({"groups": 1}, TypeError, "groups must be an iterable"),
        ({"groups": "run.jsonl"}, TypeError, r"read_groups\(path\).*got 'run.jsonl'"),
        ({"groups": Path("run.jsonl")}, TypeError, r"read_groups\(path\)"),
    ],
)
def test_unusable_arguments_are_refused_at_once(
    options: dict[str, Any], error: type[Exception], message: str
) -> None:
    functions: tuple[Any, ...] = (regrade, aregrade)
    arguments: dict[str, Any] = {
        "groups": [],
        "grader": is_right,
        "make_input": last_action,
        "rubric": "r",
        **options,
    }
    for function in functions:
        with pytest.raises(error, match=message):
            function(**arguments)


async def test_what_is_no_group_is_refused() -> None:
    wrong: Any = [make_group("a", "b").trajectories[0]]
    with pytest.raises(TypeError, match="groups must be an iterable of TrajectoryGroup"):
        list(regrade(wrong, is_right, make_input=last_action, rubric="r"))
    with pytest.raises(TypeError, match="groups must be an iterable of TrajectoryGroup"):
        async with aregrade(wrong, is_right, make_input=last_action, rubric="r") as groups:
            [group async for group in groups]
