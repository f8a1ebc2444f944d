"""A benchmark of sums, and policies for it."""

from __future__ import annotations

import dataclasses
import math
from collections import Counter
from typing import Any

import anyio.lowlevel

from rolloutlib import AsyncEnv, PolicyOutput, Score, SingleTurnEnv, as_async, spaces
from rolloutlib.evals import Benchmark, BenchmarkResult


@dataclasses.dataclass(frozen=True)
class Sum:
    """A problem; not a type that a log knows."""

    a: int
    b: int


class SumEnv(SingleTurnEnv[str, str]):
    """Asks for a sum; an answer that is close is worth a half."""

    observation_space = spaces.text.text(min_length=1)
    action_space = spaces.text.text()

    def __init__(self, item: Sum) -> None:
        super().__init__()
        self.item = item

    def initial_observation(
        self, *, options: dict[str, Any] | None = None
    ) -> tuple[str, dict[str, Any]]:
        return f"{self.item.a} + {self.item.b} = ?", {}

    def evaluate(self, action: str) -> Score:
        wanted = self.item.a + self.item.b
        if not action.isdigit():
            return Score(0.0, metadata={"status": "none", "extracted": None})
        value = {0: 1.0, 1: 0.5}.get(abs(wanted - int(action)), 0.0)
        parts = {"exact": float(value == 1.0), "even": 1.0} if wanted % 2 == 0 else {"exact": value}
        found = {"status": "found", "extracted": action, "expected": str(wanted)}
        return Score(value, parts, found)

    def terminal_observation(self, action: str) -> str:
        return action


def sums(count: int = 6, make_env: Any = SumEnv, name: str = "sums") -> Benchmark[Sum]:
    """Sums of which the first is 0 + 1."""
    items = [Sum(number, 1) for number in range(count)]
    return Benchmark(name, items, make_env, {"kind": "sums"}, lambda item: f"sum-{item.a}")


async def amake_env(item: Sum) -> AsyncEnv[str, str]:
    """The asynchronous twin of the environment."""
    await anyio.lowlevel.checkpoint()
    return as_async(SumEnv(item))


def add(question: str, *, seed: int = 0) -> PolicyOutput[str]:
    """Right for small sums, close for 4, silent for 5; with the seed as its tokens."""
    a, b = [int(word) for word in question.split() if word.isdigit()]
    text = {4: str(a + b + 1), 5: "no idea"}.get(a, str(a + b))
    return PolicyOutput(text, tokens=[seed, a], logprobs=[-1.0, -2.0], stop_reason="stop")


async def aadd(question: str, *, seed: int = 0) -> PolicyOutput[str]:
    """The asynchronous twin of `add`."""
    await anyio.lowlevel.checkpoint()
    return add(question, seed=seed)


class Failing:
    """A policy that raises for some items, the first so many times."""

    def __init__(self, errors: dict[int, BaseException], times: int = 1_000_000) -> None:
        self.calls: Counter[str] = Counter()
        self.errors = errors
        self.times = times

    def __call__(self, question: str, *, seed: int = 0) -> PolicyOutput[str]:
        a = int(question.split(maxsplit=1)[0])
        self.calls[question] += 1
        if a in self.errors and self.calls[question] <= self.times:
            raise self.errors[a]
        return add(question, seed=seed)


def timeless(result: BenchmarkResult | None) -> BenchmarkResult:
    """A result without the times in it, and without NaN, which equals nothing on Python 3.13."""
    assert result is not None
    records = [dataclasses.replace(record, started=None, seconds=None) for record in result.records]
    score = -1.0 if math.isnan(result.score) else result.score
    return dataclasses.replace(result, score=score, elapsed_seconds=0.0, records=tuple(records))
