"""What a type checker infers for users' code; running the module shows that the calls are right."""

from __future__ import annotations

from array import array
from collections.abc import AsyncIterator, Awaitable, Generator, Sequence
from dataclasses import dataclass
from typing import Any, assert_type

import gymnasium as gym
import numpy as np
import pytest

from rolloutlib import AsyncEnv, Env, PolicyOutput, as_async
from rolloutlib.datasets import RLDataset
from rolloutlib.rollouts import (
    AsyncBatchedPolicy,
    AsyncCollector,
    BatchedPolicy,
    Retry,
    RolloutEvent,
    Step,
    Timeouts,
    Trajectory,
    TrajectoryGroup,
    acollect,
    arollout_group,
    collect,
    rollout_group,
)
from rolloutlib.scores import Score

pytestmark = pytest.mark.anyio


@dataclass(frozen=True)
class Item:
    text: str


class LengthEnv(Env[str, int]):
    """Shows a text, and asks for its length."""

    observation_space = gym.spaces.Text(99)

    def __init__(self, item: Item) -> None:
        self.text = item.text

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[str, dict[str, Any]]:
        super().reset(seed=seed)
        return self.text, {}

    def step(self, action: int) -> tuple[str, float, bool, bool, dict[str, Any]]:
        return "", float(action == len(self.text)), True, False, {}


class AsyncLengthEnv(AsyncEnv[str, int]):
    """The same, asynchronous."""

    def __init__(self, item: Item) -> None:
        self.text = item.text

    async def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[str, dict[str, Any]]:
        return self.text, {}

    async def step(self, action: int) -> tuple[str, float, bool, bool, dict[str, Any]]:
        return "", float(action == len(self.text)), True, False, {}


def make_env(item: Item) -> LengthEnv:
    return LengthEnv(item)


async def amake_env(item: Item) -> AsyncLengthEnv:
    return AsyncLengthEnv(item)


def make_either(item: Item) -> LengthEnv | AsyncLengthEnv:
    return LengthEnv(item) if len(item.text) % 2 else AsyncLengthEnv(item)


async def amake_either(item: Item) -> LengthEnv | AsyncLengthEnv:
    return make_either(item)


def policy(observation: str) -> int:
    return len(observation)


def seeded(observation: str, *, seed: int = 0, step: int = 0) -> int | PolicyOutput[int]:
    return PolicyOutput(len(observation))


async def apolicy(observation: str) -> PolicyOutput[int]:
    return PolicyOutput(len(observation))


async def apolicy_of_both(observation: str) -> int | PolicyOutput[int]:
    return len(observation)


def batch(observations: Sequence[str]) -> list[int]:
    return [len(observation) for observation in observations]


async def abatch(observations: list[str]) -> list[PolicyOutput[int]]:
    return [PolicyOutput(len(observation)) for observation in observations]


def grade(group: TrajectoryGroup[Item, str, int]) -> list[float]:
    return [1.0 for _ in group.trajectories]


async def agrade(group: TrajectoryGroup[Item, str, int]) -> list[Score]:
    return [Score(1.0) for _ in group.trajectories]


def on_event(event: RolloutEvent) -> None: ...


ITEMS = [Item("a"), Item("ab")]
DATASET = RLDataset(ITEMS, make_env=make_env)
Groups = Generator[TrajectoryGroup[Item, str, int]]
Group = TrajectoryGroup[Item, str, int]
Collector = AsyncCollector[Item, str, int]


def rewards(groups: Groups) -> list[float]:
    return [reward for group in groups for reward in group.rewards]


async def arewards(groups: Collector) -> list[float]:
    return [reward async for group in groups for reward in group.rewards]


def test_collect_takes_its_types_from_items_factory_and_policy() -> None:
    for groups in (
        assert_type(collect(ITEMS, LengthEnv, policy), Groups),
        assert_type(collect(ITEMS, make_env, seeded), Groups),
        assert_type(collect(ITEMS, lambda item: LengthEnv(item=item), policy), Groups),
        assert_type(collect(iter(ITEMS), LengthEnv, lambda text: len(text) + 0), Groups),
        assert_type(collect(DATASET, DATASET.make_env, policy), Groups),
        assert_type(collect(DATASET, DATASET.make_env, BatchedPolicy(batch)), Groups),
        assert_type(
            collect(
                ITEMS,
                LengthEnv,
                policy,
                grade_group=grade,
                on_event=on_event,
                retry=Retry(transient=(OSError, LookupError)),
                timeouts=Timeouts(policy=60),
            ),
            Groups,
        ),
        assert_type(
            collect(
                ITEMS,
                LengthEnv,
                policy,
                grade_group=lambda group: [len(one.steps) for one in group.trajectories],
                on_event=lambda event: event.progress.running,
                retry=Retry(transient=lambda error: "busy" in str(error)),
            ),
            Groups,
        ),
    ):
        assert rewards(groups) == [1.0, 1.0]


async def test_acollect_takes_its_types_from_items_factory_and_policy() -> None:
    async def items() -> AsyncIterator[Item]:
        for item in ITEMS:
            yield item

    for groups in (
        assert_type(acollect(ITEMS, LengthEnv, policy), Collector),
        assert_type(acollect(ITEMS, LengthEnv, apolicy), Collector),
        assert_type(acollect(ITEMS, AsyncLengthEnv, apolicy_of_both), Collector),
        assert_type(acollect(ITEMS, amake_env, apolicy), Collector),
        assert_type(acollect(ITEMS, make_either, apolicy), Collector),
        assert_type(acollect(ITEMS, amake_either, apolicy), Collector),
        assert_type(acollect(ITEMS, lambda item: AsyncLengthEnv(item=item), apolicy), Collector),
        assert_type(acollect(ITEMS, lambda item: as_async(LengthEnv(item)), apolicy), Collector),
        assert_type(acollect(items(), LengthEnv, lambda text: len(text) + 0), Collector),
        assert_type(acollect(DATASET, DATASET.make_env, apolicy, grade_group=grade), Collector),
        assert_type(acollect(DATASET, DATASET.make_env, apolicy, grade_group=agrade), Collector),
        assert_type(
            acollect(
                ITEMS,
                AsyncLengthEnv,
                apolicy,
                grade_group=lambda group: [1.0] * group.num_requested,
                on_event=on_event,
            ),
            Collector,
        ),
    ):
        assert await arewards(groups) == [1.0, 1.0]


async def test_what_is_in_a_group_has_the_users_types() -> None:
    async with AsyncBatchedPolicy(abatch) as batched:
        assert_type(batched, AsyncBatchedPolicy[str, int])
        async with acollect(DATASET, DATASET.make_env, batched) as groups:
            async for group in groups:
                assert_type(group, Group)
                assert_type(group.item, Item)
                [trajectory] = group.trajectories
                assert_type(trajectory, Trajectory[str, int])
                assert_type(trajectory.observations, tuple[str, ...])
                assert_type(trajectory.actions, tuple[int, ...])
                assert_type(trajectory.steps[0], Step[str, int])
                assert_type(trajectory.steps[0].action, int)
                assert_type(trajectory.steps[:1], Sequence[Step[str, int]])
            assert_type(groups.unclaimed, tuple[Group, ...])


async def test_groups_take_their_types_from_item_factory_and_policy() -> None:
    item = Item("abc")
    assert_type(rollout_group(item, LengthEnv, policy), Group)
    assert_type(rollout_group(item, DATASET.make_env, BatchedPolicy(batch)), Group)
    assert_type(
        rollout_group(item, lambda item: LengthEnv(item=item), lambda text: len(text) + 0), Group
    )
    assert_type(rollout_group(item, LengthEnv, policy, grade_group=grade, on_event=print), Group)
    assert_type(
        rollout_group(item, LengthEnv, policy, grade_group=lambda group: list(group.scores)), Group
    )
    assert_type(await arollout_group(item, AsyncLengthEnv, apolicy, grade_group=agrade), Group)
    assert_type(await arollout_group(item, amake_either, policy, on_event=on_event), Group)


def test_batch_functions_may_take_lists_or_any_sequence() -> None:
    def of_list(observations: list[str]) -> list[int]:
        return batch(observations)

    def awaitable(observations: list[str]) -> Awaitable[list[int]]:
        raise NotImplementedError

    assert_type(BatchedPolicy(of_list), BatchedPolicy[str, int])
    assert_type(BatchedPolicy(batch), BatchedPolicy[str, int])
    assert_type(AsyncBatchedPolicy(of_list), AsyncBatchedPolicy[str, int])
    assert_type(AsyncBatchedPolicy(awaitable), AsyncBatchedPolicy[str, int])
    assert rewards(collect(ITEMS, LengthEnv, BatchedPolicy(of_list))) == [1.0, 1.0]


def test_a_policy_may_tell_of_tokens_in_arrays_of_any_kind() -> None:
    output = PolicyOutput(
        "a",
        tokens=np.array([1, 2]),
        logprobs=array("f", [-0.5, -0.25]),
        prompt_tokens=iter([3]),
        version=[(1, 1), ("b", 1)],
    )
    assert_type(output, PolicyOutput[str])
    assert_type(output.tokens, Sequence[int] | None)
    assert_type(output.logprobs, Sequence[float] | None)
    assert output.tokens == [1, 2]
    assert output.prompt_tokens == [3]
    with pytest.raises(TypeError, match="tokens must be integers"):
        PolicyOutput("a", tokens=["1"])  # pyright: ignore[reportArgumentType]
