"""Running several benchmarks, with a policy all in one run."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypedDict

import anyio
from typing_extensions import Unpack

from rolloutlib.evals._benchmark import Benchmark
from rolloutlib.evals._callbacks import aevaluate_items, check_callback, evaluate_items
from rolloutlib.evals._item import AsyncEvaluationCallback, EvaluationCallback
from rolloutlib.evals._play import aplay, play
from rolloutlib.evals._results import BenchmarkResult, attach_results
from rolloutlib.evals._run import check_arguments
from rolloutlib.evals._settings import AnyPolicy, PolicySettings
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
    """Run several benchmarks, with a policy as one run over the samples of all of them.

    These are begun in the order of the benchmarks, and `concurrency`, `max_failures`, the budget of
    `retry` and the counts that `on_event` is told are of all together: those of the next benchmark
    begin while the last ones of another are still played. All else is as in a run of each alone.

    Args:
        benchmarks: Benchmarks of different names.
        evaluate: As for `run_benchmark`. The benchmarks are evaluated one after the other.
        limit: How many items to evaluate of each.
        fail_fast: As for `run_benchmark`.
        log: A folder, in which each benchmark has the log `<name>.jsonl`.
        **settings: `policy` and what else `run_benchmark` takes, but for `item_ids`.

    Returns:
        The results by name, in the order of the benchmarks. What is raised instead carries those of
        the benchmarks that were begun: `BenchmarkResult.all_from_exception` returns them.

    Raises:
        TypeError: An argument has the wrong type, or a callback is asynchronous; nothing was run.
        ValueError: An argument has no usable value, two benchmarks have one name or log, or a log is of
            another run; nothing was run.
        BaseException: What `run_benchmark` raises.
    """
    policy = settings.pop("policy", None)
    defaults = PolicySettings()
    benchmarks = _check(benchmarks, log)
    all_settings = _read(benchmarks, settings, defaults, log)
    for benchmark, own in zip(benchmarks, all_settings, strict=True):
        check_arguments(
            benchmark, evaluate, policy, own, defaults, limit=limit, fail_fast=fail_fast
        )
    if policy is not None and benchmarks:
        return play(benchmarks, policy, all_settings, limit=limit, fail_fast=fail_fast)
    results: dict[str, BenchmarkResult] = {}
    for benchmark in benchmarks:
        check_callback(benchmark, evaluate)
    for benchmark in benchmarks:
        try:
            results[benchmark.name] = evaluate_items(
                benchmark, evaluate, limit=limit, fail_fast=fail_fast
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
    """Run several benchmarks: `run_benchmarks`' asynchronous twin.

    Args:
        benchmarks: Benchmarks of different names.
        evaluate: As for `arun_benchmark`. The benchmarks are evaluated one after the other.
        limit: How many items to evaluate of each.
        fail_fast: As for `arun_benchmark`.
        log: A folder, in which each benchmark has the log `<name>.jsonl`.
        **settings: `policy` and what else `arun_benchmark` takes, but for `item_ids`.

    Returns:
        As `run_benchmarks`.

    Raises:
        TypeError: An argument has the wrong type; nothing was run.
        ValueError: As `run_benchmarks`.
        BaseException: What `arun_benchmark` raises.
    """
    policy = settings.pop("policy", None)
    defaults = PolicySettings(concurrency=64)
    benchmarks = _check(benchmarks, log)
    all_settings = _read(benchmarks, settings, defaults, log)
    for benchmark, own in zip(benchmarks, all_settings, strict=True):
        check_arguments(
            benchmark, evaluate, policy, own, defaults, limit=limit, fail_fast=fail_fast
        )
    if policy is not None and benchmarks:
        return await aplay(benchmarks, policy, all_settings, limit=limit, fail_fast=fail_fast)
    results: dict[str, BenchmarkResult] = {}
    for benchmark in benchmarks:
        try:
            results[benchmark.name] = await aevaluate_items(
                benchmark, evaluate, limit=limit, fail_fast=fail_fast
            )
        except BaseException as error:
            _attach(error, results)
            raise
    return results


def _read(
    benchmarks: Sequence[Benchmark[Any]],
    settings: Mapping[str, Any],
    defaults: PolicySettings,
    folder: str | os.PathLike[str] | None,
) -> list[PolicySettings]:
    """Return the settings for each benchmark, which differ in the log alone.

    Raises:
        TypeError: There is no such setting.
    """
    names = {field.name for field in dataclasses.fields(PolicySettings)} - {"item_ids", "log"}
    if unknown := sorted(settings.keys() - names):
        msg = f"runs of several benchmarks take no argument {unknown[0]!r}"
        raise TypeError(msg)
    return [
        dataclasses.replace(defaults, **settings, log=_log(folder, benchmark.name))
        for benchmark in benchmarks
    ]


def _check(
    benchmarks: Iterable[object], folder: str | os.PathLike[str] | None
) -> Sequence[Benchmark[Any]]:
    if isinstance(benchmarks, Benchmark):
        msg = f"benchmarks must be several, got {benchmarks.name!r} alone: use run_benchmark"
        raise TypeError(msg)
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
