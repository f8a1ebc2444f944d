"""Conformance checks."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from rolloutlib import AsyncEnv, Env, as_async, as_sync, check_async_env, check_env
from rolloutlib.envs import AsyncWrapper

pytestmark = pytest.mark.anyio

Behaviour = Callable[[Any], Any]


class Scripted(Env[Any, Any]):
    action_space = gym.spaces.Discrete(3)
    observation_space = gym.spaces.Discrete(3)

    def __init__(self, **results: Any) -> None:
        self.results = results

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        return self.results.get("reset", (0, {}))

    def step(self, action: Any) -> Any:
        return self.results.get("step", (1, 1.0, False, False, {}))


class AsyncScripted(AsyncEnv[Any, Any]):
    action_space = Scripted.action_space
    observation_space = Scripted.observation_space

    def __init__(self, **results: Any) -> None:
        self.twin = Scripted(**results)

    async def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        return self.twin.reset(seed=seed)

    async def step(self, action: Any) -> Any:
        return self.twin.step(action)


GOOD = (1, 1.0, False, False, {})


@pytest.mark.parametrize(
    ("results", "message"),
    [
        ({"reset": 0}, r"reset\(\) must return \(observation, info\), got 0"),
        ({"reset": (7, {})}, r"observation of reset\(\) is outside observation_space: 7"),
        ({"reset": (0, None)}, r"info of reset\(\) must be a dict, got None"),
        ({"step": GOOD[:4]}, r"step\(\) 0 must return"),
        ({"step": (7, *GOOD[1:])}, r"observation of step\(\) 0 is outside observation_space: 7"),
        ({"step": (1, "x", *GOOD[2:])}, r"reward of step\(\) 0 must be a real number, got 'x'"),
        ({"step": (1, np.nan, *GOOD[2:])}, r"reward of step\(\) 0 must be finite, got nan"),
        ({"step": (1, 1.0, 1, False, {})}, r"terminated of step\(\) 0 must be a bool, got 1"),
        ({"step": (1, 1.0, False, "no", {})}, r"truncated of step\(\) 0 must be a bool, got 'no'"),
        ({"step": (1, 1.0, False, False, [])}, r"info of step\(\) 0 must be a dict, got \[\]"),
    ],
)
async def test_a_broken_promise_is_named(results: dict[str, Any], message: str) -> None:
    with pytest.raises(AssertionError, match=f"Scripted.*{message}"):
        check_env(Scripted(**results))
    with pytest.raises(AssertionError, match=f"Scripted.*{message}"):
        await check_async_env(AsyncScripted(**results))


async def test_spaces_and_the_given_action_are_checked_first() -> None:
    env = Scripted()
    with pytest.raises(AssertionError, match="check action 77 is outside action_space"):
        check_env(env, action=77)
    env.action_space = 5  # pyright: ignore[reportAttributeAccessIssue]
    with pytest.raises(AssertionError, match="action_space must be a Space, got 5"):
        check_env(env)


async def test_sound_environments_pass_silently() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(Scripted())
        check_env(Scripted(), action=2)
        check_env(gym.make("CartPole-v1"))
        async with as_async(gym.make("CartPole-v1")) as env:
            await check_async_env(env)
            await check_async_env(AsyncWrapper[Any, Any, Any, Any](env))
        with as_sync(as_async(Scripted())) as env:
            check_env(env)


async def test_changing_what_was_returned_is_warned_of() -> None:
    class Reusing(Scripted):
        observation_space = gym.spaces.Box(0, 9, (1,))
        buffer = np.zeros(1, np.float32)

        def reset(
            self, *, seed: int | None = None, options: dict[str, Any] | None = None
        ) -> tuple[Any, dict[str, Any]]:
            self.buffer[0] = 0
            return self.buffer, {}

        def step(self, action: Any) -> Any:
            self.buffer += 1
            return self.buffer, 1.0, False, False, {}

    with pytest.warns(UserWarning, match=r"returned was changed later"):
        check_env(Reusing())
    with pytest.warns(UserWarning, match=r"returned was changed later"):
        await check_async_env(as_async(Reusing(), inline=True))


async def test_randomness_that_the_seed_does_not_fix_is_warned_of() -> None:
    class Forgetful(Scripted):
        calls = 0

        def step(self, action: Any) -> Any:
            self.calls += 1
            return 1, float(self.calls), False, False, {}

    with pytest.warns(UserWarning, match="two episodes from seed 0 differ"):
        check_env(Forgetful())
    with pytest.warns(UserWarning, match="two episodes from seed 5 differ"):
        await check_async_env(as_async(Forgetful(), inline=True), seed=5)


async def test_each_check_is_for_its_own_kind() -> None:
    adapted: AsyncEnv[Any, Any] = as_async(Scripted(), inline=True)
    with pytest.raises(TypeError, match="see check_async_env"):
        check_env(adapted)  # pyright: ignore[reportArgumentType]
    with pytest.raises(TypeError, match="see check_env"):
        await check_async_env(Scripted())  # pyright: ignore[reportArgumentType]
