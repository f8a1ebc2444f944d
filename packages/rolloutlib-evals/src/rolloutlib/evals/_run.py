"""Running benchmarks: with a policy, which core's collection plays, or with a callback."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import anyio

from rolloutlib._values import to_bool
from rolloutlib.evals._benchmark import Benchmark
from rolloutlib.evals._callbacks import aevaluate_items, evaluate_items
from rolloutlib.evals._item import AsyncEvaluationCallback, EvaluationCallback
from rolloutlib.evals._play import aplay, play
from rolloutlib.evals._results import BenchmarkResult
from rolloutlib.evals._samples import check_limit
from rolloutlib.evals._settings import AnyPolicy, PolicySettings
from rolloutlib.evals._stopping import StopWhen
from rolloutlib.rollouts import Retry, Timeouts
from rolloutlib.rollouts._events import OnEvent

__all__ = ["arun_benchmark", "check_arguments", "run_benchmark"]

ItemT = TypeVar("ItemT")


def run_benchmark(
    benchmark: Benchmark[ItemT],
    evaluate: EvaluationCallback[Any] | None = None,
    *,
    limit: int | None = None,
    fail_fast: bool = False,
    policy: AnyPolicy | None = None,
    epochs: int = 1,
    seed: int = 0,
    shuffle: bool = False,
    item_ids: Sequence[str] | None = None,
    max_steps: int | None = None,
    concurrency: int = 1,
    retry: Retry | None = None,
    timeouts: Timeouts | None = None,
    max_failures: int | None = 100,
    max_errors: int | None = None,
    on_event: OnEvent | None = None,
    log: str | os.PathLike[str] | None = None,
    model: str | None = None,
    metadata: Mapping[str, Any] | None = None,
    stop_when: StopWhen | None = None,
    retry_failed: bool = False,
) -> BenchmarkResult:
    """Evaluate a policy, or whatever a callback does, on the items of a benchmark.

    A sample is an item in an epoch, and has a fresh environment. One that fails gets a record of the
    error and counts 0 in the score. Whatever stops the run, such as Ctrl-C, is raised with the
    finished records on it: `BenchmarkResult.from_exception` returns them.

    Args:
        benchmark: The items and how to make an environment of one.
        evaluate: Plays one episode in the environment; need not close it. The items are evaluated one
            after another. All arguments but `limit` and `fail_fast` are for policies.
        limit: Evaluate only so many items, the first ones.
        fail_fast: Raise the first error, with the finished records and that of the failed sample on
            it, rather than go on.
        policy: Chooses an action for each observation, in place of `evaluate`. One that is
            asynchronous is called in an event loop on another thread, which enters an
            `AsyncBatchedPolicy` too. A `BatchedPolicy` is asked for as many episodes at once as
            `concurrency` has open.
        epochs: How often each item is played. All items are played once before any is again, unless
            there is a `stop_when`.
        seed: Fixes the seed of each sample, `derive_seed(derive_seed(seed, item_id, epoch), item_id,
            0)`: it does not depend on the other samples.
        shuffle: Play the items in an order that the seed fixes. With `limit`, those that come first in
            it are a random sample of the items.
        item_ids: Evaluate only the items of these names.
        max_steps: After that many steps an episode is cut short.
        concurrency: How many episodes may be open at once. By default one, and a synchronous policy is
            called in the caller's thread; with more, or with `timeouts`, on other threads.
        retry: Which failures are followed by another attempt, with a seed of its own.
        timeouts: Limits on the time of calls and episodes.
        max_failures: After so many failed samples in a row the run is given up; None lets it go on.
        max_errors: The run is given up when more samples than these have failed.
        on_event: Is told what happens, as it happens; a `ProgressDisplay`, say.
        log: A file that keeps each sample when it ends. A run goes on with what the file has, and ends
            as one that was never interrupted, whatever interrupted it.
        model: Names what is evaluated, in the log; by default the policy's attribute `model`, else the
            name of its function or class.
        metadata: Further facts for the log.
        stop_when: End the run as soon as the interval of its score is narrow enough. The result has
            the samples up to there, and the interval; what else was in play is in the log alone. Needs
            `shuffle`, and plays all epochs of an item before the next item.
        retry_failed: Play the samples again that failed in earlier runs with the log, with the seeds
            that they had; the log loses their failures before the run begins, and nothing else. With
            `stop_when` the result is that of a run in which they had not failed, which may have fewer
            samples than the log.

    Raises:
        TypeError: An argument has the wrong type, or none of `evaluate` and `policy` is given, or
            both, or the callback is asynchronous; nothing was run.
        ValueError: An argument has no usable value, or the log is of another run; the message says
            what differs. Nothing was run.
        UnstorableError: The log cannot hold what an episode is made of.
        StalledError: Too many samples in a row failed.
        ErrorBudgetError: More samples failed than `max_errors`.
    """
    settings = PolicySettings(
        epochs=epochs,
        seed=seed,
        shuffle=shuffle,
        item_ids=item_ids,
        max_steps=max_steps,
        concurrency=concurrency,
        retry=retry,
        timeouts=timeouts,
        max_failures=max_failures,
        max_errors=max_errors,
        on_event=on_event,
        log=log,
        model=model,
        metadata=metadata,
        stop_when=stop_when,
        retry_failed=retry_failed,
    )
    check_arguments(
        benchmark, evaluate, policy, settings, PolicySettings(), limit=limit, fail_fast=fail_fast
    )
    if policy is not None:
        results = play([benchmark], policy, [settings], limit=limit, fail_fast=fail_fast)
        return results[benchmark.name]
    return evaluate_items(benchmark, evaluate, limit=limit, fail_fast=fail_fast)


async def arun_benchmark(
    benchmark: Benchmark[ItemT],
    evaluate: EvaluationCallback[Any] | AsyncEvaluationCallback[Any] | None = None,
    *,
    limit: int | None = None,
    fail_fast: bool = False,
    policy: AnyPolicy | None = None,
    epochs: int = 1,
    seed: int = 0,
    shuffle: bool = False,
    item_ids: Sequence[str] | None = None,
    max_steps: int | None = None,
    concurrency: int | anyio.CapacityLimiter = 64,
    retry: Retry | None = None,
    timeouts: Timeouts | None = None,
    max_failures: int | None = 100,
    max_errors: int | None = None,
    on_event: OnEvent | None = None,
    log: str | os.PathLike[str] | None = None,
    model: str | None = None,
    metadata: Mapping[str, Any] | None = None,
    stop_when: StopWhen | None = None,
    retry_failed: bool = False,
    inline: bool = False,
) -> BenchmarkResult:
    """Evaluate a policy on a benchmark, many samples at once: `run_benchmark`'s asynchronous twin.

    The arguments are those of `run_benchmark`, with these differences.

    Args:
        benchmark: Its `make_env` may return an environment of any kind, at once or when awaited.
        evaluate: A coroutine function is awaited on the event loop. Any other may block, so it is
            called on a worker thread, on which its environment is made and closed as well.
        limit: As for `run_benchmark`, as all that is not told here.
        fail_fast: Cancel the others at the first error, and raise it.
        policy: One that is not a coroutine function may block, so it is called on a worker thread, by
            several episodes at once.
        epochs: See `run_benchmark`.
        seed: See `run_benchmark`.
        shuffle: See `run_benchmark`.
        item_ids: See `run_benchmark`.
        max_steps: See `run_benchmark`.
        concurrency: How many episodes may be open at once. A `CapacityLimiter` may be shared with
            other calls, and bounds them all together.
        retry: See `run_benchmark`.
        timeouts: See `run_benchmark`.
        max_failures: See `run_benchmark`.
        max_errors: See `run_benchmark`.
        on_event: Is called on the event loop.
        log: See `run_benchmark`.
        model: See `run_benchmark`.
        metadata: See `run_benchmark`.
        stop_when: See `run_benchmark`.
        retry_failed: See `run_benchmark`.
        inline: Call a synchronous policy and synchronous environments on the event loop, for those
            that never block.

    Raises:
        TypeError: As `run_benchmark`, but a callback may be asynchronous.
        ValueError: As `run_benchmark`, and so on.
    """
    settings = PolicySettings(
        epochs=epochs,
        seed=seed,
        shuffle=shuffle,
        item_ids=item_ids,
        max_steps=max_steps,
        concurrency=concurrency,
        retry=retry,
        timeouts=timeouts,
        max_failures=max_failures,
        max_errors=max_errors,
        on_event=on_event,
        log=log,
        model=model,
        metadata=metadata,
        stop_when=stop_when,
        retry_failed=retry_failed,
        inline=inline,
    )
    defaults = PolicySettings(concurrency=64)
    check_arguments(
        benchmark, evaluate, policy, settings, defaults, limit=limit, fail_fast=fail_fast
    )
    if policy is not None:
        results = await aplay([benchmark], policy, [settings], limit=limit, fail_fast=fail_fast)
        return results[benchmark.name]
    return await aevaluate_items(benchmark, evaluate, limit=limit, fail_fast=fail_fast)


def check_arguments(
    benchmark: object,
    evaluate: object,
    policy: object,
    settings: PolicySettings,
    defaults: PolicySettings,
    *,
    limit: object,
    fail_fast: object,
) -> None:
    """Refuse arguments that do not fit together.

    Raises:
        TypeError: An argument has the wrong type, or they do not.
        ValueError: The limit is negative.
    """
    if not isinstance(benchmark, Benchmark):
        msg = f"expected a Benchmark, got {benchmark!r}"
        raise TypeError(msg)
    check_limit(limit)
    to_bool(fail_fast, "fail_fast")
    if (evaluate is None) == (policy is None):
        msg = "either `evaluate` is needed, a callback, or `policy`; not both"
        raise TypeError(msg)
    if policy is None and settings != defaults:
        names = [
            field.name
            for field in dataclasses.fields(settings)
            if getattr(settings, field.name) != getattr(defaults, field.name)
        ]
        msg = f"{', '.join(names)}: for runs with `policy`; a callback plays its episodes itself"
        raise TypeError(msg)
