"""Trivial environments and policies, and the loops over them as one would write them by hand."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, TypeAlias, cast

import gymnasium as gym

from rolloutlib import AsyncEnv, Env

Info: TypeAlias = dict[str, Any]
AsyncPolicy: TypeAlias = Callable[[int], Awaitable[int]]
Sampled: TypeAlias = tuple[int, Any, Any]
"""An action, its token ids and their log probabilities."""

SPACE = cast("gym.Space[Any]", gym.spaces.Discrete(1_000))


class Count(Env[int, int]):
    """Counts its steps, and ends after so many of them."""

    action_space = SPACE
    observation_space = SPACE

    def __init__(self, length: int) -> None:
        """Set the number of steps."""
        self.length = length
        self.count = 0

    def reset(self, *, seed: int | None = None, options: Info | None = None) -> tuple[int, Info]:
        """Begin at zero."""
        self.count = 0
        return 0, {}

    def step(self, action: int) -> tuple[int, float, bool, bool, Info]:
        """Count."""
        self.count += 1
        return self.count, 1.0, self.count == self.length, False, {}


class AsyncCount(AsyncEnv[int, int]):
    """Counts its steps, and ends after so many of them.

    Attributes:
        open: How many of these environments are open.
        most_open: How many were open at once.
    """

    action_space = SPACE
    observation_space = SPACE
    open = 0
    most_open = 0

    def __init__(self, length: int) -> None:
        """Set the number of steps."""
        super().__init__()
        self.length = length
        self.count = 0
        AsyncCount.open += 1
        AsyncCount.most_open = max(AsyncCount.open, AsyncCount.most_open)

    async def reset(
        self, *, seed: int | None = None, options: Info | None = None
    ) -> tuple[int, Info]:
        """Begin at zero."""
        self.count = 0
        return 0, {}

    async def step(self, action: int) -> tuple[int, float, bool, bool, Info]:
        """Count."""
        self.count += 1
        return self.count, 1.0, self.count == self.length, False, {}

    async def close(self) -> None:
        """Count the environment as closed."""
        AsyncCount.open -= 1


def act(observation: int) -> int:
    """Act at once."""
    return 1


async def act_later(observation: int) -> int:
    """Let others act first, as a policy that waits for a model does."""
    await asyncio.sleep(0)
    return 1


async def act_now(observation: int) -> int:
    """Act without ever suspending."""
    return 1


@dataclass(slots=True)
class HandStep:
    """What a hand-written loop keeps of a step; it copies and checks nothing."""

    observation: int
    action: int
    reward: float
    next_observation: int
    terminated: bool
    truncated: bool
    info: Info
    tokens: Any = None
    logprobs: Any = None


def hand_rollout(env: Count, policy: Callable[[int], int]) -> list[HandStep]:
    """Run one episode."""
    observation, _ = env.reset()
    steps: list[HandStep] = []
    ended = False
    while not ended:
        action = policy(observation)
        after, reward, terminated, truncated, info = env.step(action)
        steps.append(HandStep(observation, action, reward, after, terminated, truncated, info))
        observation, ended = after, terminated or truncated
    return steps


def hand_rollout_tuples(env: Count, policy: Callable[[int], int]) -> list[tuple[Any, ...]]:
    """Run one episode, and keep bare tuples: the least that a record can cost."""
    observation, _ = env.reset()
    steps: list[tuple[Any, ...]] = []
    ended = False
    while not ended:
        action = policy(observation)
        after, reward, terminated, truncated, info = env.step(action)
        steps.append((observation, action, reward, after, terminated, truncated, info))
        observation, ended = after, terminated or truncated
    return steps


def hand_rollout_tokens(env: Count, policy: Callable[[int], Sampled]) -> list[HandStep]:
    """Run one episode, and keep what the policy tells about its tokens."""
    observation, _ = env.reset()
    steps: list[HandStep] = []
    ended = False
    while not ended:
        action, tokens, logprobs = policy(observation)
        after, reward, terminated, truncated, info = env.step(action)
        steps.append(
            HandStep(
                observation, action, reward, after, terminated, truncated, info, tokens, logprobs
            )
        )
        observation, ended = after, terminated or truncated
    return steps


async def hand_gather(
    count: int, policy: AsyncPolicy, *, length: int, concurrency: int | None = None
) -> list[list[HandStep]]:
    """Run many episodes: one task each, all of them behind a semaphore if there is a limit."""
    limit = contextlib.nullcontext() if concurrency is None else asyncio.Semaphore(concurrency)

    async def episode(seed: int) -> list[HandStep]:
        async with limit:
            env = AsyncCount(length)
            try:
                observation, _ = await env.reset(seed=seed)
                steps: list[HandStep] = []
                ended = False
                while not ended:
                    action = await policy(observation)
                    after, reward, terminated, truncated, info = await env.step(action)
                    steps.append(
                        HandStep(observation, action, reward, after, terminated, truncated, info)
                    )
                    observation, ended = after, terminated or truncated
                return steps
            finally:
                await env.close()

    return await asyncio.gather(*(episode(index) for index in range(count)))
