"""Records do not change when what they were made of does."""

from __future__ import annotations

import copy
import threading
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from rolloutlib import Env, PolicyOutput, arollout, as_async, rollout, rollout_group

pytestmark = pytest.mark.anyio


class Reusing(Env[Any, Any]):
    """Hands out the same growing conversation, array and info in every call."""

    action_space = observation_space = gym.spaces.Discrete(2)

    def __init__(self, item: Any = None) -> None:
        self.item = item
        self.observation: dict[str, Any] = {
            "messages": [{"role": "user", "content": "0"}],
            "image": np.zeros(2),
        }
        self.info: dict[str, Any] = {"count": [0], "lock": threading.Lock()}

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        if options:
            options["seen"].append(1)
        return self.observation, self.info

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        count = self.info["count"][0] + 1
        self.info["count"][0] = count
        self.observation["image"] += 1
        self.observation["messages"][0]["content"] += str(count)
        self.observation["messages"].append({"role": "assistant", "content": str(action[0])})
        action[0] = "changed by the environment"
        if isinstance(self.item, dict):
            self.item["turns"].append(count)
        return self.observation, 1.0, count == 2, False, self.info


class Meddler:
    """Reuses its action, and changes what it is shown."""

    def __init__(self) -> None:
        self.action = [0]
        self.tokens = [0]
        self.facts = {"n": [0]}

    def __call__(self, observation: Any) -> PolicyOutput[Any]:
        self.action[0] = 5
        self.tokens[0] += 1
        self.facts["n"][0] += 1
        observation["messages"].append({"role": "system", "content": "meddled"})
        return PolicyOutput(self.action, self.facts, tokens=self.tokens)


async def test_a_record_holds_what_was_returned_when_it_was_returned() -> None:
    for trajectory in (
        rollout(Reusing(), Meddler()),
        await arollout(as_async(Reusing(), inline=True), Meddler()),
    ):
        first, second = trajectory.steps
        assert trajectory.initial_observation["messages"] == [{"role": "user", "content": "0"}]
        assert list(trajectory.initial_observation["image"]) == [0, 0]
        assert trajectory.initial_info["count"] == [0]
        assert first.observation["messages"] == trajectory.initial_observation["messages"]
        assert [message["content"] for message in first.next_observation["messages"]] == [
            "01",
            "meddled",
            "5",
        ]
        assert list(first.next_observation["image"]) == [1, 1]
        assert list(second.next_observation["image"]) == [2, 2]
        assert first.info["count"] == [1]
        assert second.info["count"] == [2]
        assert first.action == second.action == [5]
        assert first.policy_info == {"n": [1]}
        assert second.policy_info == {"n": [2]}
        assert first.policy_tokens == (1,)
        assert second.policy_tokens == (2,)


def test_what_cannot_be_copied_is_referred_to() -> None:
    env = Reusing()
    trajectory = rollout(env, Meddler())
    assert trajectory.initial_info["lock"] is env.info["lock"]


def test_a_numpy_scalar_is_copied_if_its_fields_can_be_set() -> None:
    env = Reusing()
    env.info["point"] = np.zeros(1, [("x", np.int64)])[0]
    env.info["number"] = np.float32(1.0)
    kept = rollout(env, Meddler()).initial_info
    env.info["point"]["x"] = 5
    assert kept["point"]["x"] == 0
    assert kept["number"] is env.info["number"]


def test_a_value_that_holds_itself_is_copied() -> None:
    env = Reusing()
    cycle: list[Any] = [1]
    cycle.append(cycle)
    env.info["cycle"] = cycle
    del env.info["lock"]
    kept = rollout(env, Meddler()).initial_info["cycle"]
    assert kept is not cycle
    assert kept[1] is kept


def test_without_snapshots_the_objects_themselves_are_kept() -> None:
    env = Reusing()
    trajectory = rollout(env, Meddler(), snapshots=False)
    assert trajectory.initial_observation is env.observation
    assert trajectory.steps[0].info is env.info
    seen: list[Any] = []
    item = {"turns": []}
    rollout_group(item, lambda given: seen.append(given) or Reusing(), Meddler(), snapshots=False)  # pyright: ignore[reportReturnType]
    assert seen == [item]
    assert seen[0] is item


def test_each_member_has_an_item_and_options_of_its_own() -> None:
    item, options = {"turns": [], "nested": {"a": [1]}}, {"seen": []}
    before = copy.deepcopy((item, options))
    environments: list[Reusing] = []

    def make_env(given: Any) -> Reusing:
        environments.append(Reusing(given))
        return environments[-1]

    group = rollout_group(item, make_env, Meddler(), num_rollouts=3, options=options)
    assert (item, options) == before
    assert group.item is item
    assert [env.item["turns"] for env in environments] == [[1, 2]] * 3


def test_metadata_is_copied() -> None:
    metadata = {"tags": ["a"]}
    trajectory = rollout(Reusing(), Meddler(), metadata=metadata)
    group = rollout_group("item", Reusing, Meddler(), metadata=metadata)
    metadata["tags"].append("b")
    assert trajectory.metadata == group.metadata == {"tags": ["a"]}
