"""Conformance checks for environments."""

from __future__ import annotations

import warnings
from collections.abc import Generator
from typing import Any, cast

import gymnasium as gym
import numpy as np
from gymnasium.utils.env_checker import data_equivalence

from rolloutlib._values import snapshot, to_float
from rolloutlib.envs._core import AsyncEnv

__all__ = ["check_async_env", "check_env"]

_STEPS = 3


def check_env(env: gym.Env[Any, Any], *, seed: int = 0, action: Any | None = None) -> None:
    """Check what rollouts need of a synchronous environment, beyond Gymnasium's `check_env`.

    Runs two short episodes of at most three steps from the same seed, and does not close the
    environment. Checks that observations lie in their space, infos are dictionaries, rewards are
    finite numbers and flags are bools.

    Args:
        env: The environment.
        seed: The seed of both episodes.
        action: The action to take; by default actions are sampled from the action space.

    Raises:
        AssertionError: The environment breaks the contract; the message says where.
        TypeError: `env` is not a `gymnasium.Env`.

    Warns:
        UserWarning: The environment later changes an observation or info that it has returned, or
            the two episodes differ.
    """
    if not isinstance(cast("object", env), gym.Env):
        msg = f"check_env checks a gymnasium.Env, got {env!r}; see check_async_env for an AsyncEnv"
        raise TypeError(msg)
    checks = _checks(env, seed, action)
    try:
        result = next(checks)
        while True:
            result = checks.send(result)
    except StopIteration:
        return


async def check_async_env(
    env: AsyncEnv[Any, Any], *, seed: int = 0, action: Any | None = None
) -> None:
    """Check that an asynchronous environment keeps the contract: `check_env`'s asynchronous twin.

    Args:
        env: The environment.
        seed: The seed of both episodes.
        action: The action to take; by default actions are sampled from the action space.

    Raises:
        AssertionError: The environment breaks the contract; the message says where.
        TypeError: `env` is not an `AsyncEnv`.

    Warns:
        UserWarning: The environment later changes an observation or info that it has returned, or
            the two episodes differ.
    """
    if not isinstance(cast("object", env), AsyncEnv):
        msg = f"check_async_env checks an AsyncEnv, got {env!r}; see check_env for a gymnasium.Env"
        raise TypeError(msg)
    checks = _checks(env, seed, action)
    try:
        awaitable = next(checks)
        while True:
            awaitable = checks.send(await awaitable)
    except StopIteration:
        return


def _checks(env: Any, seed: int, action: Any | None) -> Generator[Any, Any, None]:
    """Run two episodes, handing out each call's result for the caller to await or to return."""
    for name in ("action_space", "observation_space"):
        space = getattr(env, name, None)
        _require(isinstance(space, gym.Space), f"{env}: {name} must be a Space, got {space!r}")
    if action is not None:
        inside = env.action_space.contains(action)
        _require(inside, f"{env}: check action {action!r} is outside action_space")
    episodes: list[list[Any]] = []
    for _ in range(2):
        returned: list[tuple[str, Any, Any]] = []
        env.action_space.seed(seed)
        result = yield env.reset(seed=seed)
        returned.append(("reset()", result, snapshot(_check_reset(env, result))))
        for index in range(_STEPS):
            result = yield env.step(env.action_space.sample() if action is None else action)
            returned.append((f"step() {index}", result, snapshot(_check_step(env, index, result))))
            if result[2] or result[3]:
                break
        for place, value, before in returned:
            if not data_equivalence(tuple(value), before):
                _warn(f"{env}: what {place} returned was changed later; return new objects")
        episodes.append([before for _, _, before in returned])
    if not data_equivalence(episodes[0], episodes[1]):
        _warn(f"{env}: two episodes from seed {seed} differ; seed all randomness in reset()")


def _check_reset(env: Any, result: Any) -> tuple[Any, Any]:
    _require(
        isinstance(result, tuple) and len(cast("tuple[Any, ...]", result)) == 2,
        f"{env}: reset() must return (observation, info), got {result!r}",
    )
    observation, info = cast("tuple[Any, Any]", result)
    _check_common(env, "reset()", observation, info)
    return observation, info


def _check_step(env: Any, index: int, result: Any) -> tuple[Any, ...]:
    place = f"step() {index}"
    _require(
        isinstance(result, tuple) and len(cast("tuple[Any, ...]", result)) == 5,
        f"{env}: {place} must return (observation, reward, terminated, truncated, info), "
        f"got {result!r}",
    )
    observation, reward, terminated, truncated, info = cast("tuple[Any, ...]", result)
    _check_common(env, place, observation, info)
    try:
        to_float(reward, f"{env}: reward of {place}")
    except (TypeError, ValueError) as error:
        raise AssertionError(str(error)) from error
    for name, flag in (("terminated", terminated), ("truncated", truncated)):
        _require(
            isinstance(flag, (bool, np.bool_)),
            f"{env}: {name} of {place} must be a bool, got {flag!r}",
        )
    return observation, reward, terminated, truncated, info


def _check_common(env: Any, place: str, observation: Any, info: Any) -> None:
    _require(
        env.observation_space.contains(observation),
        f"{env}: observation of {place} is outside observation_space: {observation!r}",
    )
    _require(isinstance(info, dict), f"{env}: info of {place} must be a dict, got {info!r}")


def _require(condition: bool, message: str) -> None:
    if not condition:
        raise AssertionError(message)


def _warn(message: str) -> None:
    warnings.warn(message, UserWarning, stacklevel=4)
