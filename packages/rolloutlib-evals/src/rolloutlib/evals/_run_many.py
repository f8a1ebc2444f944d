"""Running several benchmarks, one after the other."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypedDict

import anyio
from typing_extensions import Unpack

from rolloutlib.evals._benchmark import Benchmark
from rolloutlib.evals._callbacks import check_callback
from rolloutlib.evals._item import AsyncEvaluationCallback, EvaluationCallback
from rolloutlib.evals._play import AnyPolicy
from rolloutlib.evals._results import BenchmarkResult, attach_results
from rolloutlib.evals._run import arun_benchmark, run_benchmark
from rolloutlib.evals._samples import check_limit
from rolloutlib.evals._stopping import StopWhen
from rolloutlib.rollouts import Retry, Timeouts
from rolloutlib.rollouts._events import OnEvent

__all__ = ["arun_benchmarks", "run_benchmarks"]


class _Settings(TypedDict, total=False):
    policy: AnyPolicy | None
    epochs: int
    seed: int
    shuffle: bool
    max_steps: int | None
    retry: Retry | None
    timeouts: Timeouts | None
    max_failures: int | None
    max_errors: int | None
    on_event: OnEvent | None
    model: str | None
    metadata: Mapping[str, Any] | None
    stop_when: StopWhen | None
    retry_failed: bool


class _SyncSettings(_Settings, total=False):
    concurrency: int


class _AsyncSettings(_Settings, total=False):
    concurrency: int | anyio.CapacityLimiter
    inline: bool


def run_benchmarks(
    benchmarks: Iterable[Benchmark[Any]],
    evaluate: EvaluationCallback[Any] | None = None,
    *,
    limit: int | None = None,
    fail_fast: bool = False,
    log: str | os.PathLike[str] | None = None,
    **settings: Unpack[_SyncSettings],
) -> dict[str, BenchmarkResult]:
    """Run several benchmarks one after the other.

    Args:
        benchmarks: Benchmarks of different names.
        evaluate: As for `run_benchmark`.
        limit: How many items to evaluate of each.
        fail_fast: As for `run_benchmark`.
        log: A folder, in which each benchmark has the log `<name>.jsonl`.
        **settings: `policy` and what else `run_benchmark` takes, but for `item_ids`.

    Returns:
        The results by name, in the order of the benchmarks. What is raised instead carries those
        that were finished: `BenchmarkResult.all_from_exception` returns them.

    Raises:
        TypeError: An argument has the wrong type, or is asynchronous; nothing was run.
        ValueError: Two benchmarks have one name or log, or the limit is negative; nothing was run.
        BaseException: What `run_benchmark` raises.
    """
    benchmarks = _check(benchmarks, limit, log)
    if evaluate is not None:
        for benchmark in benchmarks:
            check_callback(benchmark, evaluate)
    results: dict[str, BenchmarkResult] = {}
    for benchmark in benchmarks:
        try:
            results[benchmark.name] = run_benchmark(
                benchmark,
                evaluate,
                limit=limit,
                fail_fast=fail_fast,
                log=_log(log, benchmark.name),
                **settings,
            )
        except BaseException as error:
            _attach(error, results)
            raise
    return results


async def arun_benchmarks(
    benchmarks: Iterable[Benchmark[Any]],
    evaluate: EvaluationCallback[Any] | AsyncEvaluationCallback[Any] | None = None,
    *,
    limit: int | None = None,
    fail_fast: bool = False,
    log: str | os.PathLike[str] | None = None,
    **settings: Unpack[_AsyncSettings],
) -> dict[str, BenchmarkResult]:
    """Run several benchmarks one after the other: `run_benchmarks`' asynchronous twin.

    Args:
        benchmarks: Benchmarks of different names.
        evaluate: As for `arun_benchmark`.
        limit: How many items to evaluate of each.
        fail_fast: As for `arun_benchmark`.
        log: A folder, in which each benchmark has the log `<name>.jsonl`.
        **settings: `policy` and what else `arun_benchmark` takes, but for `item_ids`.

    Returns:
        As `run_benchmarks`.

    Raises:
        TypeError: An argument has the wrong type; nothing was run.
        ValueError: Two benchmarks have one name or log, or the limit is negative; nothing was run.
        BaseException: What `arun_benchmark` raises.
    """
    benchmarks = _check(benchmarks, limit, log)
    results: dict[str, BenchmarkResult] = {}
    for benchmark in benchmarks:
        try:
            results[benchmark.name] = await arun_benchmark(
                benchmark,
                evaluate,
                limit=limit,
                fail_fast=fail_fast,
                log=_log(log, benchmark.name),
                **settings,
            )
        except BaseException as error:
            _attach(error, results)
            raise
    return results


def _check(
    benchmarks: Iterable[object], limit: object, folder: str | os.PathLike[str] | None
) -> Sequence[Benchmark[Any]]:
    check_limit(limit)
    checked: dict[str, Benchmark[Any]] = {}
    logs: dict[Path | None, str] = {}
    for benchmark in benchmarks:
        if not isinstance(benchmark, Benchmark):
            msg = f"expected a Benchmark, got {benchmark!r}"
            raise TypeError(msg)
        if benchmark.name in checked:
            msg = f"two benchmarks have the name {benchmark.name!r}, by which results are returned"
            raise ValueError(msg)
        checked[benchmark.name] = benchmark
        log = _log(folder, benchmark.name)
        if log is not None and logs.setdefault(log, benchmark.name) != benchmark.name:
            msg = f"the benchmarks {logs[log]!r} and {benchmark.name!r} have one log, {str(log)!r}"
            raise ValueError(msg)
    return tuple(checked.values())


def _log(folder: str | os.PathLike[str] | None, name: str) -> Path | None:
    """Return the log of a benchmark, whose name may be that of no file."""
    if folder is None:
        return None
    name = "".join(c if c.isalnum() or c in "-_. " else "_" for c in name)
    return Path(folder) / f"{name}.jsonl"


def _attach(error: BaseException, results: Mapping[str, BenchmarkResult]) -> None:
    """Let an exception carry the results of the earlier benchmarks too."""
    attach_results(error, {**results, **BenchmarkResult.all_from_exception(error)})
