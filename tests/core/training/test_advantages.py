"""Advantages: the formulas, their defined values, and how they reach the tokens."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from core.training.turns import Group, episode, group, groups, sampled
from rolloutlib import RolloutError, TrajectoryGroup
from rolloutlib.training import (
    Estimator,
    TokenSequence,
    assemble_rows,
    group_mean,
    group_normalized,
    leave_one_out,
)

ESTIMATORS: list[Estimator] = [group_mean, group_normalized, leave_one_out]
every_estimator = pytest.mark.parametrize("estimator", ESTIMATORS)
rewards_lists = st.lists(st.floats(-1e6, 1e6), max_size=9)


def by_member(rows: list[TokenSequence]) -> dict[int, set[float]]:
    """The advantages of the trained tokens of each member."""
    found: dict[int, set[float]] = {}
    for row in rows:
        assert row.advantages is not None
        found.setdefault(row.spans[0].member, set()).update(row.advantages[row.loss_mask].tolist())
    return found


def one_turn_each(rewards: Sequence[float], **others: Any) -> Group:
    return group(*[episode(sampled([1], [2])) for _ in rewards], rewards=rewards, **others)


def test_the_mean_of_the_group_is_taken_away() -> None:
    assert group_mean([1, 0, 0, 1]).tolist() == [0.5, -0.5, -0.5, 0.5]


def test_the_deviation_is_that_of_a_sample() -> None:
    rewards = [1.0, 0.0, 0.5, 4.0]
    found = group_normalized(rewards, epsilon=0)
    mean, deviation = statistics.fmean(rewards), statistics.stdev(rewards)
    assert found == pytest.approx([(reward - mean) / deviation for reward in rewards])
    damped = partial(group_normalized, epsilon=1.0)(rewards)
    assert damped == pytest.approx([(reward - mean) / (deviation + 1) for reward in rewards])


@pytest.mark.parametrize("scale", [3e38, 1e-170, 5e-324])
def test_the_deviation_of_very_large_and_small_rewards_is_not_lost(scale: float) -> None:
    found = group_normalized([scale, -scale], epsilon=0)
    assert found == pytest.approx([math.sqrt(0.5), -math.sqrt(0.5)])
    assert np.isfinite(group_normalized([scale, -scale])).all()


@pytest.mark.parametrize("epsilon", [-1e-4, math.nan, math.inf])
def test_an_epsilon_that_is_no_small_number_is_refused(epsilon: float) -> None:
    with pytest.raises(ValueError, match="epsilon must "):
        group_normalized([1.0, 0.0], epsilon=epsilon)


def test_the_mean_of_the_others_is_taken_away() -> None:
    assert leave_one_out([1, 0, 0.5]).tolist() == [0.75, -0.75, 0.0]


@every_estimator
@pytest.mark.parametrize("size", [0, 1, 2, 7])
@pytest.mark.parametrize("reward", [0.0, 0.1, 1 / 3, -1e30])
def test_equal_rewards_and_a_group_of_one_give_exactly_zero(
    estimator: Estimator, size: int, reward: float
) -> None:
    assert list(estimator([reward] * size)) == [0.0] * size


@every_estimator
@given(rewards=rewards_lists, seed=st.randoms(use_true_random=False))
def test_the_order_of_the_rewards_changes_no_value(
    estimator: Estimator, rewards: list[float], seed: Any
) -> None:
    order = list(range(len(rewards)))
    seed.shuffle(order)
    found = list(estimator(rewards))
    assert list(estimator([rewards[place] for place in order])) == [found[place] for place in order]


@every_estimator
@given(rewards=rewards_lists)
def test_advantages_are_finite_and_balanced(estimator: Estimator, rewards: list[float]) -> None:
    found = [float(value) for value in estimator(rewards)]
    assert all(map(math.isfinite, found))
    assert math.fsum(found) == pytest.approx(0, abs=1e-6 * (1 + sum(map(abs, found))))


@every_estimator
@pytest.mark.parametrize(
    ("reward", "error"),
    [(math.nan, ValueError), (math.inf, ValueError), (1e308, ValueError), (None, TypeError)],
)
def test_a_reward_that_is_no_finite_number_is_refused(
    estimator: Estimator, reward: Any, error: type[Exception]
) -> None:
    with pytest.raises(error, match="reward 1 must "):
        estimator([0.0, reward])


@every_estimator
@given(one=groups(min_size=1), data=st.data())
def test_an_advantage_reaches_every_trained_token_of_every_step(
    estimator: Estimator, one: Group, data: st.DataObject
) -> None:
    size = len(one.trajectories)
    rewards = data.draw(st.lists(st.floats(-10, 10), min_size=size, max_size=size))
    one = group(*one.trajectories, rewards=rewards)
    rows, _ = assemble_rows(one, advantages=estimator, missing="skip")
    expected = np.asarray(estimator(rewards), np.float32)
    for member, found in by_member(rows).items():
        assert found == {expected[member]}
    for row in rows:
        assert row.advantages is not None
        assert not row.advantages[~row.loss_mask].any()


def test_groups_of_different_sizes_are_compared_each_within_itself() -> None:
    several = [one_turn_each([1, 0], item_id="a"), one_turn_each([5, 5, 8], item_id="b")]
    rows, _ = assemble_rows(several, advantages=group_mean)
    assert [row.advantages is not None and row.advantages[-1] for row in rows] == [
        0.5,
        -0.5,
        -1,
        -1,
        2,
    ]


def test_a_failed_member_leaves_the_others_to_be_compared() -> None:
    errors = [RolloutError("E", "m", index=2)]
    rows, report = assemble_rows(one_turn_each([1, 0], errors=errors), advantages=group_mean)
    assert by_member(rows) == {0: {0.5}, 1: {-0.5}}
    assert report.num_failed == 1


def test_an_episode_without_a_reward_is_left_out_and_counted() -> None:
    one = one_turn_each([1, 0, 0.5])
    unscored = one.trajectories[1]

    def reward(trajectory: Any) -> float | None:
        return None if trajectory is unscored else trajectory.score.value + 1

    rows, report = assemble_rows(one, advantages=group_mean, rewards=reward)
    assert by_member(rows) == {0: {0.0}, 2: {0.0}}
    assert report.num_unscored == 1
    assert report.num_episodes == 3


def test_the_default_reward_is_the_groups_and_another_may_be_chosen() -> None:
    score = {"score": {"value": 0.25}}
    turns = [sampled([1], [2], reward=1.0), sampled([1, 2], [3], reward=0.5, info=score)]
    # The score of the last step, the sum of the rewards, and what graded the group, all differ.
    graded = group(episode(*turns), episode(sampled([1], [2])), rewards=[4.0, 0.0])
    ungraded = TrajectoryGroup(0, "i", graded.trajectories)

    def first(source: Any, **others: Any) -> float:
        rows, _ = assemble_rows(source, advantages=lambda rewards: rewards, **others)
        assert rows[0].advantages is not None
        return float(rows[0].advantages[-1])

    assert first(graded) == 4.0
    assert first(ungraded) == 0.25
    assert first(graded, rewards=lambda trajectory: trajectory.total_reward) == 1.5
    assert first(graded.trajectories[0]) == 0.25


def test_a_callable_object_of_any_kind_may_estimate() -> None:
    class Scaled:
        def __call__(self, rewards: Sequence[float]) -> list[float]:
            return [2 * reward for reward in rewards]

    rows, _ = assemble_rows(one_turn_each([1, 0]), advantages=Scaled())
    assert by_member(rows) == {0: {2.0}, 1: {0.0}}


@pytest.mark.parametrize(
    ("advantages", "message"),
    [
        ([1.0], "item 'i': .* must give one advantage a reward: got 1 for 2"),
        ([1.0, math.nan], "item 'i': advantage .* must be finite, got nan"),
        ([1.0, 1e300], "item 'i': advantage .* must fit into a float32, got 1e[+]300"),
    ],
)
def test_advantages_that_do_not_fit_are_refused(advantages: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        assemble_rows(one_turn_each([1, 0]), advantages=lambda rewards: advantages)


@pytest.mark.parametrize("result", [None, 1.0, np.array(1.0)])
def test_what_is_no_sequence_of_advantages_is_refused(result: Any) -> None:
    with pytest.raises(TypeError, match=r"item 'i': .* must return a sequence of advantages, got"):
        assemble_rows(one_turn_each([1, 0]), advantages=lambda rewards: result)


def test_a_group_without_rewards_is_not_compared() -> None:
    failed = group(errors=[RolloutError("ValueError", "no", index=0)])
    rows, report = assemble_rows(failed, advantages=lambda rewards: [1 / len(rewards)])
    assert (rows, report.num_failed) == ([], 1)
    unscored = one_turn_each([1.0])
    rows, report = assemble_rows(
        unscored, advantages=lambda rewards: [1 / len(rewards)], rewards=lambda _: None
    )
    assert (rows, report.num_unscored) == ([], 1)


def test_what_is_no_function_is_refused_before_any_group_is_read() -> None:
    values: Any = [0.5, -0.5]
    groups = iter([one_turn_each([0.0, 1.0])])
    with pytest.raises(TypeError, match=r"advantages must be a function, got \[0.5, -0.5\]"):
        assemble_rows(groups, advantages=values)
    with pytest.raises(TypeError, match="rewards must be a function"):
        assemble_rows(groups, advantages=group_mean, rewards=values)
    assert next(groups)


def test_a_reward_that_is_not_finite_names_the_item() -> None:
    with pytest.raises(ValueError, match="item 'i': reward 0 must be finite, got nan"):
        assemble_rows(one_turn_each([1]), advantages=group_mean, rewards=lambda _: math.nan)


@given(one=groups(min_size=1), seed=st.randoms(use_true_random=False))
def test_the_order_of_the_members_changes_no_row(one: Group, seed: Any) -> None:
    shuffled = list(one.trajectories)
    seed.shuffle(shuffled)
    assume(shuffled != list(one.trajectories))
    rows, _ = assemble_rows(one, advantages=group_normalized, missing="skip")
    other, _ = assemble_rows(group(*shuffled), advantages=group_normalized, missing="skip")

    def key(row: TokenSequence) -> tuple[int, int]:
        return row.spans[0].member, row.spans[0].step

    assert sorted(other, key=key) == sorted(rows, key=key)
