"""Running benchmarks with a callback: a fresh environment an item, one item after another."""

from __future__ import annotations

import contextlib
import functools
import inspect
import time
from collections.abc import Generator
from typing import Any

import anyio
import anyio.to_thread

from rolloutlib._calls import is_async
from rolloutlib.evals._benchmark import Benchmark
from rolloutlib.evals._item import (
    AsyncEvaluationCallback,
    EvaluationCallback,
    aevaluate_item,
    evaluate_item,
)
from rolloutlib.evals._records import EvaluationRecord
from rolloutlib.evals._results import BenchmarkResult, attach_results

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
    evaluation = aevaluate_item if is_async(callback) else _evaluate_on_thread
    run = _Evaluations(benchmark, limit)
    with run.attaching():
        for index, item in enumerate(run.items):
            await evaluation(benchmark, callback, index, item, run.records, fail_fast=fail_fast)
        return run.result()


class _Evaluations:
    """The records of a run."""

    def __init__(self, benchmark: Benchmark[Any], limit: int | None) -> None:
        self.items = benchmark.items[:limit]
        self.records: list[EvaluationRecord] = []
        self._benchmark = benchmark
        self._since = time.perf_counter()

    def result(self) -> BenchmarkResult:
        """Return the figures so far."""
        return BenchmarkResult.from_records(
            self._benchmark.name,
            self.records,
            elapsed_seconds=time.perf_counter() - self._since,
            metadata=self._benchmark.metadata,
            num_remaining=len(self.items) - len(self.records),
        )

    @contextlib.contextmanager
    def attaching(self) -> Generator[None]:
        """Let an exception that stops the run carry what was finished."""
        try:
            yield
        except BaseException as error:
            attach_results(error, {self._benchmark.name: self.result()})
            raise


async def _evaluate_on_thread(*args: Any, fail_fast: bool) -> None:
    """Evaluate an item on a worker thread, from its environment's making to its closing."""
    evaluate = functools.partial(evaluate_item, *args, fail_fast=fail_fast)
    await anyio.to_thread.run_sync(evaluate, limiter=anyio.CapacityLimiter(1))


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
