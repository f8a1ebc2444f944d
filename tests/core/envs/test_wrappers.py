"""Wrappers of asynchronous environments."""

from __future__ import annotations

import copy
from typing import Any

import gymnasium as gym
import pytest

from rolloutlib import AsyncEnv, as_async
from rolloutlib.envs import (
    AsyncActionWrapper,
    AsyncObservationWrapper,
    AsyncRewardWrapper,
    AsyncWrapper,
)

pytestmark = pytest.mark.anyio


class Counter(AsyncEnv[int, int]):
    action_space: gym.Space[Any] = gym.spaces.Discrete(10)
    observation_space: gym.Space[Any] = gym.spaces.Discrete(10)
    render_mode = "ansi"

    def __init__(self) -> None:
        self.total = 0
        self.closed = 0

    async def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[int, dict[str, Any]]:
        await super().reset(seed=seed)
        self.total = 0
        return 0, {"options": options}

    async def step(self, action: int) -> tuple[int, float, bool, bool, dict[str, Any]]:
        self.total += action
        return self.total, float(action), self.total > 5, False, {}

    async def render(self) -> str:
        return f"total {self.total}"

    async def close(self) -> None:
        self.closed += 1


class Text(AsyncObservationWrapper[str, int, int]):
    def observation(self, observation: int) -> str:
        return f"<{observation}>"


class Spoken(AsyncActionWrapper[str, str, int]):
    def action(self, action: str) -> int:
        return len(action)


class Halved(AsyncRewardWrapper[str, str]):
    def reward(self, reward: float) -> float:
        return reward / 2


async def test_wrappers_change_what_passes_through_them() -> None:
    env = Halved(Spoken(Text(Counter())))
    assert await env.reset(options={"a": 1}) == ("<0>", {"options": {"a": 1}})
    assert await env.step("abc") == ("<3>", 1.5, False, False, {})
    assert await env.step("abc") == ("<6>", 1.5, True, False, {})


class LaterText(AsyncObservationWrapper[str, int, int]):
    async def observation(self, observation: int) -> str:
        return f"<{observation}>"


class LaterSpoken(AsyncActionWrapper[str, str, int]):
    async def action(self, action: str) -> int:
        return len(action)


class LaterHalved(AsyncRewardWrapper[str, str]):
    async def reward(self, reward: float) -> float:
        return reward / 2


async def test_what_a_wrapper_changes_it_may_change_in_coroutines() -> None:
    env = LaterHalved(LaterSpoken(LaterText(Counter())))
    assert (await env.reset())[0] == "<0>"
    assert await env.step("abc") == ("<3>", 1.5, False, False, {})


async def test_a_plain_wrapper_is_the_environment() -> None:
    counter = Counter()
    async with AsyncWrapper[int, int, int, int](counter) as env:
        assert await env.reset(seed=4) == (0, {"options": None})
        assert (await env.step(2))[0] == 2
        assert await env.render() == "total 2"
        assert env.unwrapped is counter
        assert env.np_random is counter.np_random
        assert env.np_random_seed == 4
        assert env.render_mode == "ansi"
        assert env.spec is None
        assert env.action_space is counter.action_space
        assert str(env) == repr(env) == "<AsyncWrapper<Counter instance>>"
    assert counter.closed == 1


def test_what_is_set_on_a_wrapper_stays_there() -> None:
    counter = Counter()
    before = copy.deepcopy(Counter.metadata)
    env = AsyncWrapper[Any, Any, Any, Any](counter)
    space: gym.Space[Any] = gym.spaces.Discrete(3)
    env.action_space = space
    env.metadata = {"render_modes": [], "mine": True}
    env.render_mode = None
    assert env.action_space is space
    assert counter.action_space is Counter.action_space
    assert counter.render_mode == "ansi"
    assert Counter.metadata == before == counter.metadata
    assert AsyncEnv.metadata == {"render_modes": []}


def test_the_generator_is_set_on_the_environment() -> None:
    counter = Counter()
    env = AsyncWrapper[int, int, int, int](AsyncWrapper[int, int, int, int](counter))
    generator = Counter().np_random
    env.np_random = generator
    assert counter.np_random is generator
    assert env.np_random_seed == -1


def test_attributes_are_found_and_set_through_layers() -> None:
    counter = Counter()
    inner = AsyncWrapper[int, int, int, int](counter)
    outer = AsyncWrapper[int, int, int, int](inner)
    assert outer.has_wrapper_attr("total")
    assert outer.get_wrapper_attr("total") == 0
    assert outer.set_wrapper_attr("total", 3)
    assert counter.total == 3
    assert not hasattr(outer, "total")
    assert not outer.set_wrapper_attr("speed", 1, force=False)
    assert outer.set_wrapper_attr("speed", 1)
    assert outer.get_wrapper_attr("speed") == 1
    assert not counter.has_wrapper_attr("speed")
    with pytest.raises(AttributeError, match=r"<AsyncWrapper<AsyncWrapper<Counter.*'colour'"):
        outer.get_wrapper_attr("colour")


async def test_attributes_are_found_through_an_adapter() -> None:
    env = gym.make("CartPole-v1")
    outer = AsyncWrapper[Any, Any, Any, Any](as_async(env))
    assert outer.spec == env.spec
    assert outer.get_wrapper_attr("gravity") == 9.8
    assert outer.set_wrapper_attr("gravity", 1.6)
    assert env.get_wrapper_attr("gravity") == 1.6
    await outer.reset(seed=1)
    assert outer.np_random is env.np_random
    await outer.close()


def test_a_synchronous_environment_is_refused_with_the_remedy() -> None:
    with pytest.raises(TypeError, match=r"AsyncWrapper wraps an AsyncEnv.*as_async\(\)"):
        AsyncWrapper(gym.make("CartPole-v1"))  # pyright: ignore[reportArgumentType]
