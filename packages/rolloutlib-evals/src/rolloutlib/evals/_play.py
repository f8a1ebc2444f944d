"""Playing the samples of a benchmark with a policy, by core's collection."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias, cast

import anyio

from rolloutlib._calls import check_count, is_async
from rolloutlib._values import to_bool
from rolloutlib.evals._benchmark import Benchmark
from rolloutlib.evals._header import log_header, model_name
from rolloutlib.evals._plain import to_plain
from rolloutlib.evals._recorder import Recorder
from rolloutlib.evals._results import BenchmarkResult, attach_results
from rolloutlib.evals._samples import Samples
from rolloutlib.evals._stopping import Stopping, StopWhen
from rolloutlib.rollouts import (
    AsyncBatchedPolicy,
    AsyncCollector,
    AsyncPolicy,
    BatchedPolicy,
    Policy,
    Retry,
    Timeouts,
    TrajectoryGroup,
    acollect,
    collect,
)
from rolloutlib.rollouts._collector import INTERRUPT_SECONDS
from rolloutlib.rollouts._events import OnEvent
from rolloutlib.rollouts._portals import start_portal, try_in_loop

__all__ = ["AnyPolicy", "PolicySettings", "aplay", "play"]

AnyGroup: TypeAlias = TrajectoryGroup[Any, Any, Any]
AnyPolicy: TypeAlias = Policy[Any, Any] | AsyncPolicy[Any, Any]


_MOST_IN_BATCH = 1024


@dataclass(frozen=True, kw_only=True)
class PolicySettings:
    """What a run with a policy is asked for beside its policy, as `run_benchmark` explains it."""

    epochs: int = 1
    seed: int = 0
    shuffle: bool = False
    item_ids: Sequence[str] | None = None
    max_steps: int | None = None
    concurrency: int | anyio.CapacityLimiter = 1
    retry: Retry | None = None
    timeouts: Timeouts | None = None
    max_failures: int | None = 100
    max_errors: int | None = None
    on_event: OnEvent | None = None
    log: str | os.PathLike[str] | None = None
    model: str | None = None
    metadata: Mapping[str, Any] | None = None
    stop_when: StopWhen | None = None
    retry_failed: bool = False
    inline: bool = False


def play(
    benchmark: Benchmark[Any],
    policy: AnyPolicy,
    settings: PolicySettings,
    *,
    limit: int | None,
    fail_fast: bool,
) -> BenchmarkResult:
    """Play all samples, in this thread or in an event loop on another."""
    plan = _Plan(benchmark, policy, settings, limit=limit, fail_fast=fail_fast)
    with plan.attaching():
        if plan.is_plain:
            groups: Generator[AnyGroup] = collect(**plan.arguments)
            with contextlib.closing(groups):
                for _ in groups:  # the recorder keeps them
                    pass
        else:
            with start_portal() as portal:
                try:
                    _, error = try_in_loop(portal, plan.drive_in_loop)
                except BaseException:  # Ctrl-C, which came in this thread
                    portal.call(plan.stop)
                    raise
            if error is not None:
                raise error
        return plan.recorder.conclude()


async def aplay(
    benchmark: Benchmark[Any],
    policy: AnyPolicy,
    settings: PolicySettings,
    *,
    limit: int | None,
    fail_fast: bool,
) -> BenchmarkResult:
    """Play all samples: `play`'s asynchronous twin."""
    plan = _Plan(benchmark, policy, settings, limit=limit, fail_fast=fail_fast)
    with plan.attaching():
        await plan.drive()
        return plan.recorder.conclude()


class _Plan:
    """What a run is going to do."""

    def __init__(
        self,
        benchmark: Benchmark[Any],
        policy: AnyPolicy,
        settings: PolicySettings,
        *,
        limit: int | None,
        fail_fast: bool,
    ) -> None:
        if not callable(cast("object", policy)):
            msg = f"policy must be callable, got {policy!r}"
            raise TypeError(msg)
        if settings.max_errors is not None:
            check_count("max_errors", settings.max_errors, least=0)
        if settings.model is not None and not isinstance(cast("object", settings.model), str):
            msg = f"model must be a name or None, got {settings.model!r}"
            raise TypeError(msg)
        if not isinstance(cast("object", settings.metadata), Mapping | None):
            msg = f"metadata must be a mapping or None, got {settings.metadata!r}"
            raise TypeError(msg)
        if to_bool(settings.retry_failed, "retry_failed") and settings.log is None:
            msg = "retry_failed: without a `log` there are no failed samples to play again"
            raise ValueError(msg)
        stopping = _stopping(settings)
        samples = Samples(
            benchmark,
            limit=limit,
            item_ids=settings.item_ids,
            shuffle=to_bool(settings.shuffle, "shuffle"),
            epochs=settings.epochs,
            seed=settings.seed,
            by_item=stopping is not None,
        )
        path = None if settings.log is None else Path(settings.log).absolute()
        self.benchmark = benchmark
        self.recorder = Recorder(
            samples,
            path=path,
            header={} if path is None else _header(samples, policy, settings, limit, stopping),
            max_errors=settings.max_errors,
            stopping=stopping,
            retry_failed=settings.retry_failed,
        )
        self.is_plain = not (
            settings.concurrency != 1
            or settings.timeouts is not None
            or is_async(policy)
            or is_async(benchmark.make_env)
        )
        self.arguments: dict[str, Any] = {
            "items": self.recorder.samples,
            "make_env": self.recorder.make_env,
            "policy": policy,
            "get_item_id": samples.item_id,
            "get_seed": samples.seed_of,
            "seed": samples.seed,
            "max_steps": settings.max_steps,
            "on_error": "raise" if fail_fast else "record",
            "max_failures": settings.max_failures,
            "retry": settings.retry,
            "timeouts": settings.timeouts,
            "on_event": settings.on_event,
            "store": self.recorder,
        }
        self._run: AsyncCollector[Any, Any, Any] | None = None
        self._batched: Any = policy if isinstance(policy, AsyncBatchedPolicy) else None
        self._gathered: AsyncBatchedPolicy[Any, Any] | None = None
        if isinstance(policy, BatchedPolicy):  # whose lock step is that of a group, here of one
            self._gathered = AsyncBatchedPolicy(
                policy.batch,
                max_size=_most_at_once(policy, settings.concurrency),
                inline=settings.inline,
            )
        self._loop_arguments: dict[str, Any] = {
            **self.arguments,
            "make_env": self.recorder.amake_env,
            "policy": self._gathered or policy,
            "concurrency": settings.concurrency,
            "buffer": max(1, len(samples.samples)),  # none is to wait until another is handed out
            "inline": settings.inline,
        }

    async def drive(self) -> None:
        """Play all samples in the present event loop."""
        async with contextlib.AsyncExitStack() as stack:
            if self._gathered is not None:
                await stack.enter_async_context(self._gathered)
            self._run = acollect(**self._loop_arguments)
            async for _ in await stack.enter_async_context(self._run):  # the recorder keeps them
                pass

    async def stop(self) -> None:
        """End the run, and give environments that are in a call on a thread a moment."""
        if self._run is not None:
            with anyio.move_on_after(INTERRUPT_SECONDS):
                await self._run.aclose()

    async def drive_in_loop(self) -> None:
        """Play all samples in an event loop that is there for nothing else."""
        async with contextlib.AsyncExitStack() as stack:
            if self._batched is not None:  # nobody else can enter it
                await stack.enter_async_context(self._batched)
            await self.drive()

    @contextlib.contextmanager
    def attaching(self) -> Generator[None]:
        """Let an exception that stops the run carry what was finished."""
        try:
            yield
        except BaseException as error:
            if self.recorder.prepared:
                self.recorder.rescue(error)
                attach_results(error, {self.benchmark.name: self.recorder.result()})
            raise


def _header(
    samples: Samples[Any],
    policy: AnyPolicy,
    settings: PolicySettings,
    limit: int | None,
    stopping: Stopping | None,
) -> dict[str, Any]:
    return log_header(
        samples,
        model=model_name(policy) if settings.model is None else settings.model,
        settings={
            "limit": None if limit is None else int(limit),
            "item_ids": samples.item_ids,
            "shuffle": bool(settings.shuffle),
            "epochs": int(settings.epochs),
            "max_steps": None if settings.max_steps is None else int(settings.max_steps),
            "metadata": to_plain(settings.metadata or {}),
            "stop_when": None if stopping is None else stopping.settings,
        },
    )


def _stopping(settings: PolicySettings) -> Stopping | None:
    """Return what tells when the run may stop early.

    Raises:
        TypeError: `stop_when` is no such rule.
        ValueError: The order of the items may depend on their scores.
    """
    rule = settings.stop_when
    if rule is None:
        return None
    if not isinstance(cast("object", rule), StopWhen):
        msg = f"stop_when must be a StopWhen or None, got {rule!r}"
        raise TypeError(msg)
    if not settings.shuffle:
        msg = (
            "stop_when needs shuffle=True: the first items of a benchmark may be its easiest, and "
            "the interval holds for items in an order that does not depend on their scores"
        )
        raise ValueError(msg)
    check_count("epochs", settings.epochs)
    return Stopping(rule, int(settings.epochs))


def _most_at_once(policy: BatchedPolicy[Any, Any], concurrency: int | anyio.CapacityLimiter) -> int:
    """Return for how many episodes a policy may be asked at once."""
    if isinstance(concurrency, anyio.CapacityLimiter):
        most = max(concurrency.total_tokens, 1)  # it may get some later
    else:
        check_count("concurrency", concurrency)
        most = concurrency
    return int(min(most, policy.max_size or _MOST_IN_BATCH))
