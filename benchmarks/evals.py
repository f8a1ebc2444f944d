"""Evaluations of GSM8K, against a loop over the same environments that keeps a record a sample.

The problems are read from `../shared/data` beside the repository; without them the rows are left out.
The policy gives a fixed text, without tokens: those would cost both sides the same. inspect-ai runs
in an environment of its own; without that its row is left out.
"""

from __future__ import annotations

import asyncio
import json
import math
import subprocess
import tempfile
import time
from collections.abc import Awaitable, Callable
from contextlib import nullcontext
from pathlib import Path
from typing import IO, Any, TypeAlias

import orjson

from measuring import Effort, Measure, Row, Sides, timed, timed_async
from rolloutlib.evals import Benchmark, Evaluation, arun_benchmark, run_benchmark
from rolloutlib.evals.benchmarks import gsm8k
from rolloutlib.scores import Score

DATA = Path(__file__).parents[2] / "shared" / "data" / "gsm8k_test.jsonl"
INSPECT = Path(__file__).parents[1] / ".cache" / "inspect-ai" / "bin" / "python"
ANSWER = "She sells 16 - 3 - 4 = 9 eggs a day, for 9 * 2 = 18 dollars.\n#### 18"
ITEMS = 1_319
CONCURRENCY = 64
SECONDS = 0.05

Record: TypeAlias = dict[str, Any]
AsyncPolicy: TypeAlias = Callable[[Any], Awaitable[str]]


def answer(observation: object) -> str:
    """Answer at once."""
    return ANSWER


async def answer_later(observation: object) -> str:
    """Let others go first, as one that waits for a model does."""
    await asyncio.sleep(0)
    return ANSWER


async def answer_slowly(observation: object) -> str:
    """Answer after as long as a fast model takes."""
    await asyncio.sleep(SECONDS)
    return ANSWER


def play(environment: Any) -> Evaluation:
    """Play an episode, as a callback of `run_benchmark` does."""
    observation, _ = environment.reset(seed=0)
    *_, info = environment.step(answer(observation))
    return Evaluation(Score.from_info(info, default=Score(0.0)))


def load(effort: Effort) -> Benchmark[Any]:
    """Make the benchmark, or one of a few items when quick."""
    with DATA.open(encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    return gsm8k(rows[: effort.count(ITEMS)])


class ByHand:
    """Plays the items, and keeps a record of each; with a log it also writes and flushes a line."""

    def __init__(self, benchmark: Benchmark[Any], log: IO[bytes] | None) -> None:
        self.benchmark = benchmark
        self.log = log
        self.records: list[Record] = []

    def run(self) -> float:
        """Play one item after another; return the mean score."""
        for index, item in enumerate(self.benchmark.items):
            started, start = time.time(), time.perf_counter()
            environment = self.benchmark.make_env(item)
            try:
                observation, _ = environment.reset(seed=index)
                action = answer(observation)
                step = environment.step(action)
            finally:
                environment.close()
            self.keep(index, item, observation, action, step, started, start)
        return self.mean()

    async def arun(self, policy: AsyncPolicy) -> float:
        """Play all items, one task each behind a semaphore; return the mean score."""
        limit = asyncio.Semaphore(CONCURRENCY)

        async def run_one(index: int, item: Any) -> None:
            async with limit:
                started, start = time.time(), time.perf_counter()
                environment = self.benchmark.make_env(item)
                try:
                    observation, _ = environment.reset(seed=index)
                    action = await policy(observation)
                    step = environment.step(action)
                finally:
                    environment.close()
                self.keep(index, item, observation, action, step, started, start)

        items = self.benchmark.items
        await asyncio.gather(*(run_one(index, item) for index, item in enumerate(items)))
        return self.mean()

    def keep(
        self,
        index: int,
        item: Any,
        observation: Any,
        action: str,
        step: tuple[Any, ...],
        started: float,
        start: float,
    ) -> None:
        """Keep the record of a sample."""
        after, reward, terminated, truncated, info = step
        record = {
            "index": index,
            "item_id": item.example_id,
            "item": dict(item),
            "seed": index,
            "observation": observation,
            "action": action,
            "next_observation": after,
            "reward": reward,
            "terminated": terminated,
            "truncated": truncated,
            "score": info["score"],
            "started": started,
            "seconds": time.perf_counter() - start,
        }
        self.records.append(record)
        if self.log is not None:
            self.log.write(orjson.dumps(record))
            self.log.write(b"\n")
            self.log.flush()

    def mean(self) -> float:
        """Return the mean score."""
        return math.fsum(record["score"]["value"] for record in self.records) / len(self.records)


def sync(*, log: bool) -> Callable[[Effort], Sides]:
    """Evaluate one item after another."""

    def prepare(effort: Effort) -> Sides:
        benchmark = load(effort)

        def ours() -> None:
            with tempfile.TemporaryDirectory() as folder:
                run_benchmark(
                    benchmark, policy=answer, log=Path(folder) / "log.jsonl" if log else None
                )

        def hand() -> None:
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder) / "log.jsonl"
                with path.open("wb") if log else nullcontext() as file:
                    ByHand(benchmark, file).run()

        per = len(benchmark.items)
        return Sides(timed(ours, effort, per=per), timed(hand, effort, per=per))

    return prepare


def callback(effort: Effort) -> Sides:
    """Evaluate with a callback that plays the episodes."""
    benchmark = load(effort)
    per = len(benchmark.items)
    return Sides(
        timed(lambda: run_benchmark(benchmark, play), effort, per=per),
        timed(lambda: ByHand(benchmark, None).run(), effort, per=per),
    )


def asynchronous(policy: AsyncPolicy, *, log: bool) -> Callable[[Effort], Sides]:
    """Evaluate many items at once."""

    def prepare(effort: Effort) -> Sides:
        benchmark = load(effort)

        async def hand() -> None:
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder) / "log.jsonl"
                with path.open("wb") if log else nullcontext() as file:
                    await ByHand(benchmark, file).arun(policy)

        per = len(benchmark.items)
        return Sides(
            ours_async(benchmark, policy, effort, log=log), timed_async(hand, effort, per=per)
        )

    return prepare


def ours_async(
    benchmark: Benchmark[Any], policy: AsyncPolicy, effort: Effort, *, log: bool
) -> Measure:
    """Measure our side of an asynchronous row."""

    async def ours() -> None:
        with tempfile.TemporaryDirectory() as folder:
            await arun_benchmark(
                benchmark,
                policy=policy,
                concurrency=CONCURRENCY,
                log=Path(folder) / "log.jsonl" if log else None,
            )

    return timed_async(ours, effort, per=len(benchmark.items))


def against_ideal(effort: Effort) -> Sides:
    """Evaluate against a slow policy; ideally nothing takes time but its calls."""
    benchmark = load(effort)
    count = len(benchmark.items)
    ideal = math.ceil(count / CONCURRENCY) * SECONDS / count * 1e6
    return Sides(ours_async(benchmark, answer_slowly, effort, log=True), lambda: ideal)


def against_inspect(effort: Effort) -> Sides:
    """Evaluate in inspect-ai, whose time is measured in a process of its own."""
    benchmark = load(effort)
    count = len(benchmark.items)

    def theirs() -> float:
        side = Path(__file__).with_name("evals_inspect.py")
        command = [INSPECT, side, DATA, str(count), ANSWER]
        process = subprocess.run(command, capture_output=True, text=True, check=True)
        return float(process.stdout) / count * 1e6

    ours = ours_async(benchmark, answer_later, effort, log=True)
    ours()  # as inspect-ai has a run before the one that counts
    return Sides(ours, theirs)


_NO_DATA = "" if DATA.is_file() else "there is no ../shared/data/gsm8k_test.jsonl"
_NO_INSPECT = "" if INSPECT.is_file() else "there is no .cache/inspect-ai; the README tells how"

ROWS = [
    Row(
        "evals-sync",
        f"{ITEMS:,} items of GSM8K, one after another",
        "us/sample",
        sync(log=False),
        3,
        in_old=False,
        missing=_NO_DATA,
    ),
    Row(
        "evals-sync-log",
        "the same with a log, each sample flushed",
        "us/sample",
        sync(log=True),
        3,
        in_old=False,
        missing=_NO_DATA,
    ),
    Row(
        "evals-callback",
        "the items played by a callback",
        "us/sample",
        callback,
        3,
        in_old=False,
        missing=_NO_DATA,
    ),
    Row(
        "evals-async",
        f"the items at concurrency {CONCURRENCY}",
        "us/sample",
        asynchronous(answer_later, log=False),
        3,
        in_old=False,
        missing=_NO_DATA,
    ),
    Row(
        "evals-async-log",
        "the same with a log",
        "us/sample",
        asynchronous(answer_later, log=True),
        3,
        in_old=False,
        missing=_NO_DATA,
    ),
    Row(
        "evals-50ms",
        f"the same with {SECONDS * 1e3:.0f} ms a call, against the ideal: the calls alone",
        "us/sample",
        against_ideal,
        1.05,
        in_old=False,
        missing=_NO_DATA,
    ),
    Row(
        "evals-50ms-hand",
        "the same, against a loop written by hand",
        "us/sample",
        asynchronous(answer_slowly, log=True),
        in_old=False,
        missing=_NO_DATA,
    ),
    Row(
        "evals-inspect",
        "the items with a log, against inspect-ai and its mock model",
        "us/sample",
        against_inspect,
        in_old=False,
        most_rounds=1,
        missing=_NO_DATA or _NO_INSPECT,
    ),
]
