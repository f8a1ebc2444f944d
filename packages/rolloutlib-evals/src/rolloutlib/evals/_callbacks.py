"""Running benchmarks with a callback: a fresh environment an item, one item after another."""

from __future__ import annotations

import contextlib
import functools
import inspect
import time
from collections.abc import Awaitable, Callable, Generator
from typing import Any

import anyio
import anyio.lowlevel

from rolloutlib._calls import RefuseStrayCancellation, is_async, task_group, uncancelled
from rolloutlib.envs._worker import Worker
from rolloutlib.evals._benchmark import Benchmark
from rolloutlib.evals._item import (
    AsyncEvaluationCallback,
    EvaluationCallback,
    aevaluate_item,
    evaluate_item,
)
from rolloutlib.evals._records import EvaluationRecord
from rolloutlib.evals._results import BenchmarkResult, attach_results
from rolloutlib.rollouts._collector import INTERRUPT_SECONDS

__all__ = ["aevaluate_items", "check_callback", "evaluate_items"]


def evaluate_items(
    benchmark: Benchmark[Any],
    evaluate: EvaluationCallback[Any] | None,
    *,
    limit: int | None,
    fail_fast: bool,
) -> BenchmarkResult:
    """Evaluate every item of a benchmark in turn."""
    callback = check_callback(benchmark, evaluate)
    run = _Evaluations(benchmark, limit)
    with run.attaching():
        for index, item in enumerate(run.items):
            evaluate_item(benchmark, callback, index, item, run.records, fail_fast=fail_fast)
        return run.result()


async def aevaluate_items(
    benchmark: Benchmark[Any],
    evaluate: EvaluationCallback[Any] | AsyncEvaluationCallback[Any] | None,
    *,
    limit: int | None,
    fail_fast: bool,
) -> BenchmarkResult:
    """The asynchronous twin of `evaluate_items`."""
    callback: Any = evaluate
    if not is_async(callback):
        callback = check_callback(benchmark, callback)
    run = _Evaluations(benchmark, limit)

    async def evaluate_on_loop() -> None:
        for index, item in enumerate(run.items):
            await anyio.lowlevel.checkpoint()  # else none need come between two items
            await aevaluate_item(benchmark, callback, index, item, run.records, fail_fast=fail_fast)

    with run.attaching():
        if is_async(callback):
            await _in_task(evaluate_on_loop)
        else:
            await _in_task(lambda: _evaluate_on_thread(run, callback, fail_fast=fail_fast))
        return run.result()


class _Evaluations:
    """The records of a run."""

    def __init__(self, benchmark: Benchmark[Any], limit: int | None) -> None:
        self.items = benchmark.items[:limit]
        self.records: list[EvaluationRecord] = []
        self.benchmark = benchmark
        self._since = time.perf_counter()

    def result(self) -> BenchmarkResult:
        """Return the figures so far."""
        return BenchmarkResult.from_records(
            self.benchmark.name,
            self.records,
            elapsed_seconds=time.perf_counter() - self._since,
            metadata=self.benchmark.metadata,
            num_remaining=len(self.items) - len(self.records),
        )

    @contextlib.contextmanager
    def attaching(self) -> Generator[None]:
        """Let an exception that stops the run carry what was finished."""
        try:
            yield
        except BaseException as error:
            attach_results(error, {self.benchmark.name: self.result()})
            raise


async def _evaluate_on_thread(run: _Evaluations, callback: Any, *, fail_fast: bool) -> None:
    """Evaluate the items on a thread. One that is in hand as the run is cancelled gets a moment."""
    worker = Worker("rolloutlib evaluation", lambda: None)
    try:
        for index, item in enumerate(run.items):
            evaluate = functools.partial(
                evaluate_item, run.benchmark, callback, index, item, run.records
            )
            await worker.run(functools.partial(evaluate, fail_fast=fail_fast))
    finally:
        with anyio.move_on_after(INTERRUPT_SECONDS, shield=True):
            await worker.close()
            await worker.wait_abandoned()


async def _in_task(function: Callable[[], Awaitable[None]]) -> None:
    """Await a function in a task of its own: Ctrl-C in asyncio breaks the shields of the main task."""
    failures: list[BaseException] = []

    async def run() -> None:
        try:
            with RefuseStrayCancellation("a run"):
                await function()
        except BaseException as error:
            if uncancelled(error) is None:
                raise
            failures.append(error)

    async with task_group() as tasks:
        tasks.start_soon(run)
    if failures:
        raise failures[0]


def check_callback(
    benchmark: Benchmark[Any], evaluate: EvaluationCallback[Any] | None
) -> EvaluationCallback[Any]:
    """Refuse a callback that cannot be called, or that would have to be awaited.

    Raises:
        TypeError: It, or the benchmark's `make_env`, is such.
    """
    if not callable(evaluate):
        msg = f"evaluate must be callable, got {evaluate!r}"
        raise TypeError(msg)
    for name, function in (("evaluate", evaluate), ("make_env", benchmark.make_env)):
        if inspect.iscoroutinefunction(function):
            msg = f"{name} must be synchronous for benchmark {benchmark.name!r}, got {function!r}"
            raise TypeError(msg)
    return evaluate
