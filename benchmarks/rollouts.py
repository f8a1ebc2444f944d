"""Rollouts against loops written by hand: what is paid beside the environment and the policy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from episodes import (
    AsyncCount,
    AsyncPolicy,
    Count,
    Sampled,
    act,
    act_later,
    act_now,
    hand_gather,
    hand_rollout,
    hand_rollout_tokens,
    hand_rollout_tuples,
)
from measuring import Effort, Row, Sides, timed, timed_async
from rolloutlib import PolicyOutput, rollout
from rolloutlib.rollouts import arollout_group

STEPS = 8
"""The steps of an asynchronous episode."""

TOKENS = 64
"""The tokens of a step."""


def sync(
    length: int, hand: Callable[[Count, Callable[[int], int]], object] = hand_rollout
) -> Callable[[Effort], Sides]:
    """Run an episode of trivial steps."""

    def prepare(effort: Effort) -> Sides:
        env = Count(length)
        return Sides(
            timed(lambda: rollout(env, act), effort, per=length),
            timed(lambda: hand(env, act), effort, per=length),
        )

    return prepare


def with_tokens(convert: Callable[[list[Any]], Any]) -> Callable[[Effort], Sides]:
    """Run an episode whose policy tells its tokens; the hand-written loop keeps them as they are."""

    def prepare(effort: Effort) -> Sides:
        env = Count(100)
        tokens = convert(list(range(100_000, 100_000 + TOKENS)))
        logprobs = convert([-0.001 * number for number in range(TOKENS)])

        def policy(observation: int) -> PolicyOutput[int]:
            return PolicyOutput(1, tokens=tokens, logprobs=logprobs)

        def hand_policy(observation: int) -> Sampled:
            return 1, tokens, logprobs

        return Sides(
            timed(lambda: rollout(env, policy), effort, per=100),
            timed(lambda: hand_rollout_tokens(env, hand_policy), effort, per=100),
        )

    return prepare


def asynchronous(
    number: int, concurrency: int | None, policy: AsyncPolicy
) -> Callable[[Effort], Sides]:
    """Run a group of episodes, at most so many at once."""

    def prepare(effort: Effort) -> Sides:
        count = effort.count(number)

        async def ours() -> object:
            return await arollout_group(
                "item",
                lambda item: AsyncCount(STEPS),
                policy,
                num_rollouts=count,
                concurrency=concurrency or count,
            )

        async def hand() -> object:
            return await hand_gather(count, policy, length=STEPS, concurrency=concurrency)

        return Sides(
            timed_async(ours, effort, per=count),
            timed_async(hand, effort, per=count),
        )

    return prepare


ROWS = [
    Row("rollout-100", "sync rollout, 100 trivial steps", "us/step", sync(100), 1.5),
    Row(
        "rollout-100-tuples",
        "the same, against a loop that keeps bare tuples",
        "us/step",
        sync(100, hand_rollout_tuples),
    ),
    Row("rollout-1", "sync rollout, 1 trivial step", "us/step", sync(1), 3),
    Row(
        "tokens-arrays",
        f"100 steps, {TOKENS} tokens and logprobs each, as arrays",
        "us/step",
        with_tokens(np.array),
        3,
    ),
    Row(
        "tokens-lists",
        f"100 steps, {TOKENS} tokens and logprobs each, as lists",
        "us/step",
        with_tokens(list[Any]),
        12,
    ),
    Row(
        "async-256",
        f"async, 10,000 episodes x {STEPS} steps, concurrency 256",
        "us/episode",
        asynchronous(10_000, 256, act_later),
        1.0,
    ),
    Row(
        "async-256-now",
        "the same with a policy that never suspends",
        "us/episode",
        asynchronous(10_000, 256, act_now),
    ),
    Row(
        "async-1000",
        f"async, 1,000 episodes x {STEPS} steps all at once",
        "us/episode",
        asynchronous(1_000, None, act_later),
        2.5,
    ),
    Row(
        "async-1000-now",
        "the same with a policy that never suspends",
        "us/episode",
        asynchronous(1_000, None, act_now),
    ),
]
