"""The memory of records: bytes a token, in a trajectory that holds token ids and logprobs."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Callable

import numpy as np

from episodes import Count, Sampled, hand_rollout_tokens
from measuring import Effort, Measure, Row, Sides
from rolloutlib import PolicyOutput, rollout


def allocated(work: Callable[[], object], *, per: int) -> Measure:
    """Measure the bytes that the result of a call keeps, divided by the number of things in it."""

    def measure() -> float:
        work()  # once before, so that what is made only once is not counted
        gc.collect()
        tracemalloc.start()
        try:
            result = work()
            gc.collect()
            size, _ = tracemalloc.get_traced_memory()
            del result
            return size / per
        finally:
            tracemalloc.stop()

    return measure


def token_memory(steps: int, tokens: int) -> Callable[[Effort], Sides]:
    """Keep a trajectory whose policy gives fresh lists; by hand, arrays of 4 bytes a number."""

    def sample() -> tuple[list[int], list[float]]:
        generator = np.random.default_rng(0)
        ids, logprobs = generator.integers(1_000, 128_000, tokens), -generator.random(tokens)
        return ids.tolist(), logprobs.tolist()

    def policy(observation: int) -> PolicyOutput[int]:
        ids, logprobs = sample()
        return PolicyOutput(1, tokens=ids, logprobs=logprobs)

    def hand_policy(observation: int) -> Sampled:
        ids, logprobs = sample()
        return 1, np.array(ids, np.int32), np.array(logprobs, np.float32)

    def prepare(effort: Effort) -> Sides:
        env = Count(steps)
        return Sides(
            allocated(lambda: rollout(env, policy), per=steps * tokens),
            allocated(lambda: hand_rollout_tokens(env, hand_policy), per=steps * tokens),
        )

    return prepare


ROWS = [
    Row(
        "token-bytes",
        "a trajectory of 8 steps, 1,000 tokens and logprobs each",
        "bytes/token",
        token_memory(8, 1_000),
        9,
        gated="ours",
    ),
    Row(
        "token-bytes-short",
        "the same with 100 steps of 64 tokens",
        "bytes/token",
        token_memory(100, 64),
    ),
]
