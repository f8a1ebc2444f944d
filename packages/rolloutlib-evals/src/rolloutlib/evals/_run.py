"""Running benchmarks: a fresh environment an item, one record an item."""

from __future__ import annotations

import inspect
import time
from collections.abc import Iterable
from numbers import Integral
from typing import Any, TypeVar, cast

from rolloutlib.evals._benchmark import Benchmark
from rolloutlib.evals._item import EvaluationCallback, evaluate_item
from rolloutlib.evals._results import (
    BenchmarkResult,
    EvaluationRecord,
    attach_results,
    summarize,
)

__all__ = ["run_benchmark", "run_benchmarks"]

ItemT = TypeVar("ItemT")


def run_benchmark(
    benchmark: Benchmark[ItemT],
    evaluate: EvaluationCallback[Any],
    *,
    limit: int | None = None,
    fail_fast: bool = False,
) -> BenchmarkResult:
    """Evaluate every item of a benchmark in turn, each in a fresh environment.

    An item whose id, environment or evaluation fails gets a record of the error and counts 0 in the
    score. Whatever else stops the run, such as Ctrl-C, is raised with the finished records on it:
    `BenchmarkResult.from_exception` returns them.

    Args:
        benchmark: The items and how to make an environment of one.
        evaluate: Plays one episode in the environment; need not close it.
        limit: Evaluate only so many items, the first ones.
        fail_fast: Raise the first error, with the finished records and that of the failed item on it,
            rather than go on.

    Raises:
        TypeError: An argument has the wrong type, or is asynchronous; nothing was run.
        ValueError: The limit is negative; nothing was run.
    """
    _check(benchmark, evaluate, limit)
    items = benchmark.items[:limit]
    records: list[EvaluationRecord] = []
    start = time.perf_counter()

    def result() -> BenchmarkResult:
        return summarize(
            benchmark.name,
            records,
            elapsed_seconds=time.perf_counter() - start,
            metadata=benchmark.metadata,
            num_remaining=len(items) - len(records),
        )

    try:
        for index, item in enumerate(items):
            evaluate_item(benchmark, evaluate, index, item, records, fail_fast=fail_fast)
        return result()
    except BaseException as error:
        attach_results(error, {benchmark.name: result()})
        raise


def run_benchmarks(
    benchmarks: Iterable[Benchmark[Any]],
    evaluate: EvaluationCallback[Any],
    *,
    limit: int | None = None,
    fail_fast: bool = False,
) -> dict[str, BenchmarkResult]:
    """Run several benchmarks one after the other.

    Args:
        benchmarks: Benchmarks of different names.
        evaluate: As for `run_benchmark`.
        limit: How many items to evaluate of each.
        fail_fast: As for `run_benchmark`.

    Returns:
        The results by name, in the order of the benchmarks. What is raised instead carries those
        that were finished: `BenchmarkResult.all_from_exception` returns them.

    Raises:
        TypeError: An argument has the wrong type, or is asynchronous; nothing was run.
        ValueError: Two benchmarks have one name, or the limit is negative; nothing was run.
    """
    benchmarks = tuple(benchmarks)
    names: set[str] = set()
    for benchmark in benchmarks:
        _check(benchmark, evaluate, limit)
        if benchmark.name in names:
            msg = f"two benchmarks have the name {benchmark.name!r}, by which results are returned"
            raise ValueError(msg)
        names.add(benchmark.name)
    results: dict[str, BenchmarkResult] = {}
    for benchmark in benchmarks:
        try:
            results[benchmark.name] = run_benchmark(
                benchmark, evaluate, limit=limit, fail_fast=fail_fast
            )
        except BaseException as error:
            attach_results(error, {**results, **BenchmarkResult.all_from_exception(error)})
            raise
    return results


def _check(benchmark: object, evaluate: object, limit: object) -> None:
    if not isinstance(benchmark, Benchmark):
        msg = f"expected a Benchmark, got {benchmark!r}"
        raise TypeError(msg)
    if not callable(evaluate):
        msg = f"evaluate must be callable, got {evaluate!r}"
        raise TypeError(msg)
    make_env = cast("Benchmark[Any]", benchmark).make_env
    for name, function in (("evaluate", evaluate), ("make_env", make_env)):
        if inspect.iscoroutinefunction(function):
            msg = f"{name} must be synchronous for benchmark {benchmark.name!r}, got {function!r}"
            raise TypeError(msg)
    if limit is None:
        return
    if isinstance(limit, bool) or not isinstance(limit, Integral):
        msg = f"limit must be an integer or None, got {limit!r}"
        raise TypeError(msg)
    if int(limit) < 0:
        msg = f"limit must not be negative, got {limit!r}"
        raise ValueError(msg)
