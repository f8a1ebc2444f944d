"""The asynchronous environment itself."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from rolloutlib import AsyncEnv, Env

pytestmark = pytest.mark.anyio


class Dice(AsyncEnv[Any, Any]):
    action_space = gym.spaces.Discrete(2)
    observation_space = gym.spaces.Discrete(6)

    closed = 0

    async def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        await super().reset(seed=seed, options=options)
        return self.np_random.integers(6), {}

    async def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        return self.np_random.integers(6), 1.0, False, False, {}

    async def close(self) -> None:
        self.closed += 1


def test_env_is_gymnasiums() -> None:
    assert Env is gym.Env


async def test_a_seeded_reset_fixes_the_generator() -> None:
    first, second = Dice(), Dice()
    rolls: list[list[Any]] = []
    for env in (first, second):
        observation, _ = await env.reset(seed=7)
        rolls.append([observation, *[(await env.step(0))[0] for _ in range(20)]])
    assert rolls[0] == rolls[1]
    assert first.np_random_seed == 7


async def test_a_reset_without_a_seed_goes_on_with_the_generator() -> None:
    env = Dice()
    await env.reset(seed=7)
    generator = env.np_random
    await env.reset()
    assert env.np_random is generator
    assert env.np_random_seed == 7


def test_the_generator_is_seeded_at_random_and_can_be_set() -> None:
    env = Dice()
    assert env.np_random_seed >= 0
    assert Dice().np_random_seed >= 0
    generator = np.random.default_rng(3)
    env.np_random = generator
    assert env.np_random is generator
    assert env.np_random_seed == -1


async def test_a_context_manager_closes_also_after_an_error() -> None:
    env = Dice()

    async def fail() -> None:
        async with env as entered:
            assert entered is env
            raise KeyError

    with pytest.raises(KeyError):
        await fail()
    assert env.closed == 1


async def test_rendering_is_the_environments_business() -> None:
    with pytest.raises(NotImplementedError, match=r"<Dice instance> does not implement render"):
        await Dice().render()


def test_reset_and_step_must_be_implemented() -> None:
    class Nothing(AsyncEnv[Any, Any]):
        pass

    with pytest.raises(TypeError, match="abstract"):
        Nothing()  # pyright: ignore[reportAbstractUsage]


def test_attributes_are_found_and_set_by_name() -> None:
    env = Dice()
    assert env.has_wrapper_attr("closed")
    assert not env.has_wrapper_attr("speed")
    assert env.get_wrapper_attr("closed") == 0
    assert env.set_wrapper_attr("closed", 5)
    assert env.closed == 5
    assert not env.set_wrapper_attr("speed", 1, force=False)
    assert env.set_wrapper_attr("speed", 1)
    assert env.get_wrapper_attr("speed") == 1
    with pytest.raises(AttributeError):
        env.get_wrapper_attr("colour")


def test_it_names_itself_and_is_its_own_core() -> None:
    env = Dice()
    assert str(env) == "<Dice instance>"
    assert env.unwrapped is env
    env.spec = gym.spec("CartPole-v1")
    assert str(env) == "<Dice<CartPole-v1>>"
    assert Dice.spec is None
