"""Groups in lock step: one batch of decisions, then one step of each environment."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from core.rollouts.scripted import Log, ScriptedEnv
from rolloutlib.rollouts import (
    BatchedPolicy,
    EpisodeTruncated,
    Retry,
    RolloutEvent,
    TrajectoryGroup,
    collect,
    derive_seed,
    rollout_group,
)


def answer(observations: Sequence[str]) -> list[str]:
    return ["a"] * len(observations)


def numbered(log: Log, faults: dict[int, dict[str, BaseException]]) -> Callable[[Any], ScriptedEnv]:
    """Make a factory whose environments are one step longer each, and fail as they are told."""
    numbers = itertools.count()

    def make_env(item: Any) -> ScriptedEnv:
        number = next(numbers)
        return ScriptedEnv(number + 1, faults.get(number), log)

    return make_env


def test_episodes_of_any_length_are_played_side_by_side() -> None:
    log, sizes = Log(), list[int]()

    def batch(observations: Sequence[str]) -> list[str]:
        sizes.append(len(observations))
        return answer(observations)

    group = rollout_group("item", numbered(log, {}), BatchedPolicy(batch), num_rollouts=4)
    assert [len(trajectory.steps) for trajectory in group.trajectories] == [1, 2, 3, 4]
    assert sizes == [4, 3, 2, 1]
    assert log.opened == log.closed == log.most_open == 4


def test_without_steps_nothing_is_decided() -> None:
    def batch(observations: Sequence[str]) -> list[str]:
        raise AssertionError

    log = Log()
    make_env = numbered(log, {})
    group = rollout_group("item", make_env, BatchedPolicy(batch), num_rollouts=3, max_steps=0)
    assert (group.num_truncated, log.closed) == (3, 3)


@pytest.mark.parametrize("place", ["reset", "step 0", "step 1"])
def test_a_failure_is_recorded_or_raised_and_all_is_closed(place: str) -> None:
    error = LookupError("bad")
    log = Log()
    make_env = numbered(log, {2: {place: error}})
    group = rollout_group("item", make_env, BatchedPolicy(answer), num_rollouts=4)
    assert [trajectory.member for trajectory in group.trajectories] == [0, 1, 3]
    assert [(one.index, one.phase) for one in group.errors] == [(2, place.split(maxsplit=1)[0])]
    assert log.opened == log.closed == 4

    make_env = numbered(log, {2: {place: error}})
    policy = BatchedPolicy(answer)
    with pytest.raises(LookupError) as caught:
        rollout_group("item", make_env, policy, num_rollouts=4, on_error="raise")
    assert caught.value is error
    partial = TrajectoryGroup.from_exception(error)
    assert partial is not None
    assert partial.num_failed == 1
    assert log.opened == log.closed


@pytest.mark.parametrize("place", ["reset", "step 0", "close"])
def test_an_interrupt_comes_out_with_the_finished_work_and_is_no_failure(place: str) -> None:
    interrupt, log, events = KeyboardInterrupt("stop"), Log(), list[RolloutEvent]()
    with pytest.raises(KeyboardInterrupt) as caught:
        rollout_group(
            "item",
            numbered(log, {2: {place: interrupt}}),
            BatchedPolicy(answer),
            num_rollouts=4,
            retry=Retry(),
            on_event=events.append,
        )
    assert caught.value is interrupt
    group = TrajectoryGroup.from_exception(interrupt)
    assert group is not None
    assert (group.num_failed, group.retried) == (0, ())
    finished = {event.index for event in events if event.kind == "finished"}
    assert finished <= {trajectory.member for trajectory in group.trajectories}
    assert log.opened == log.closed


def test_an_interrupt_while_closing_closes_the_others_too() -> None:
    def batch(observations: Sequence[str]) -> list[str]:
        raise KeyboardInterrupt("first")

    log = Log()
    faults: dict[str, BaseException] = {"close": KeyboardInterrupt("second")}
    with pytest.raises(KeyboardInterrupt):
        rollout_group(
            "item", lambda _: ScriptedEnv(2, faults, log), BatchedPolicy(batch), num_rollouts=4
        )
    assert log.opened == log.closed == 4


def test_each_episode_that_a_batch_fails_has_the_same_traceback() -> None:
    def batch(observations: Sequence[str]) -> list[str]:
        raise LookupError("no model")

    group = rollout_group("item", lambda _: ScriptedEnv(), BatchedPolicy(batch), num_rollouts=9)
    assert {error.error_type for error in group.errors} == {"LookupError"}
    assert len({error.traceback for error in group.errors}) == 1
    assert group.errors[0].traceback.count("in batch") == 1


def test_those_to_be_tried_again_are_played_again_together() -> None:
    batches = list[tuple[int, list[Any]]]()

    def batch(observations: Sequence[str], *, seeds: Sequence[Any] = ()) -> list[Any]:
        batches.append((len(observations), list(seeds)))
        if len(batches) > 1:
            return answer(observations)
        return [ConnectionError(), "a", EpisodeTruncated("too long"), ConnectionError()]

    log = Log()
    group = rollout_group(
        "item",
        lambda _: ScriptedEnv(1, log=log),
        BatchedPolicy(batch),
        num_rollouts=4,
        item_id="item",
        seed=7,
        retry=Retry(initial_delay=0),
    )
    assert [len(trajectory.steps) for trajectory in group.trajectories] == [1, 1, 0, 1]
    assert [trajectory.attempt for trajectory in group.trajectories] == [1, 0, 0, 1]
    assert (group.num_completed, group.num_truncated, len(group.retried)) == (3, 1, 2)
    assert batches[1] == (2, [derive_seed(7, "item", member, 1) for member in (0, 3)])
    assert log.opened == log.closed == 6


def test_a_collection_that_is_closed_early_leaves_nothing_open() -> None:
    log = Log()
    groups = collect(
        itertools.count(), lambda _: ScriptedEnv(log=log), BatchedPolicy(answer), num_rollouts=3
    )
    assert next(groups).num_completed == 3
    groups.close()
    assert log.opened == log.closed == 3
