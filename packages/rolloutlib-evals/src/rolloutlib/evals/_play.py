"""Playing the samples of a benchmark with a policy, by core's collection."""

from __future__ import annotations

import contextlib
from collections.abc import Generator, Sequence
from typing import Any, TypeAlias, cast

import anyio

from rolloutlib._calls import check_count, is_async
from rolloutlib.evals._benchmark import Benchmark
from rolloutlib.evals._recorders import Recorders
from rolloutlib.evals._results import BenchmarkResult, attach_results
from rolloutlib.evals._settings import AnyPolicy, PolicySettings, make_recorder
from rolloutlib.evals._stopping_events import on_event_of
from rolloutlib.rollouts import (
    AsyncBatchedPolicy,
    AsyncCollector,
    BatchedPolicy,
    TrajectoryGroup,
    UnstorableError,
    acollect,
    collect,
)
from rolloutlib.rollouts._collector import INTERRUPT_SECONDS
from rolloutlib.rollouts._portals import start_portal, try_in_loop

__all__ = ["aplay", "play"]

AnyGroup: TypeAlias = TrajectoryGroup[Any, Any, Any]
_MOST_IN_BATCH = 1024


def play(
    benchmarks: Sequence[Benchmark[Any]],
    policy: AnyPolicy,
    settings: Sequence[PolicySettings],
    *,
    limit: int | None,
    fail_fast: bool,
) -> dict[str, BenchmarkResult]:
    """Play all samples of one or several benchmarks, in this thread or in an event loop on another.

    Args:
        benchmarks: The benchmarks, at least one.
        policy: Plays all of them.
        settings: The settings for each, which differ in the log alone.
        limit: How many items of each.
        fail_fast: Whether the first failure is raised.
    """
    plan = _Plan(benchmarks, policy, settings, limit=limit, fail_fast=fail_fast)
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
        return plan.recorder.results()


async def aplay(
    benchmarks: Sequence[Benchmark[Any]],
    policy: AnyPolicy,
    settings: Sequence[PolicySettings],
    *,
    limit: int | None,
    fail_fast: bool,
) -> dict[str, BenchmarkResult]:
    """Play all samples: `play`'s asynchronous twin."""
    plan = _Plan(benchmarks, policy, settings, limit=limit, fail_fast=fail_fast)
    plan.refuse_closed_policy()
    with plan.attaching():
        await plan.drive()
        return plan.recorder.results()


class _Plan:
    """What a run is going to do."""

    def __init__(
        self,
        benchmarks: Sequence[Benchmark[Any]],
        policy: AnyPolicy,
        all_settings: Sequence[PolicySettings],
        *,
        limit: int | None,
        fail_fast: bool,
    ) -> None:
        settings = all_settings[0]
        if not callable(cast("object", policy)):
            msg = f"policy must be callable, got {policy!r}"
            raise TypeError(msg)
        recorders = [
            make_recorder(benchmark, policy, settings, limit)
            for benchmark, settings in zip(benchmarks, all_settings, strict=True)
        ]
        self.recorder = recorders[0] if len(recorders) == 1 else Recorders(recorders)
        self.is_plain = not (
            settings.concurrency != 1
            or settings.timeouts is not None
            or is_async(policy)
            or any(is_async(benchmark.make_env) for benchmark in benchmarks)
        )
        self.arguments: dict[str, Any] = {
            "items": self.recorder.samples,
            "make_env": self.recorder.make_env,
            "policy": policy,
            "get_item_id": self.recorder.item_id,
            "get_seed": self.recorder.seed_of,
            "seed": int(settings.seed),
            "max_steps": settings.max_steps,
            "on_error": "raise" if fail_fast else "record",
            "max_failures": settings.max_failures,
            "retry": settings.retry,
            "timeouts": settings.timeouts,
            "on_event": on_event_of(settings.on_event, self.recorder.stoppings),
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
            "buffer": max(
                1, len(self.recorder.samples)
            ),  # none is to wait until another is handed out
            "inline": settings.inline,
        }

    def refuse_closed_policy(self) -> None:
        """Refuse a policy whose calls would all fail: its life is its owner's affair.

        Raises:
            RuntimeError: It is such.
        """
        if self._batched is not None and not self._batched.is_open:
            msg = f"{self._batched!r} takes calls only inside `async with`: run the benchmark in it"
            raise RuntimeError(msg)

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
                self._rescue(error)
                results = self.recorder.results().items()  # those that are over come first
                attach_results(error, dict(sorted(results, key=lambda pair: not pair[1].is_over)))
            raise

    def _rescue(self, error: BaseException) -> None:
        """Take the samples that have ended and were not handed out, and the rest of the log."""
        of_the_log = (OSError, ValueError, UnstorableError)  # which would hide the error
        try:
            for group in TrajectoryGroup.all_from_exception(error):
                with contextlib.suppress(*of_the_log):
                    self.recorder.rescue(group)
            with contextlib.suppress(*of_the_log):
                self.recorder.read_rest()
        finally:
            self.recorder.close()


def _most_at_once(policy: BatchedPolicy[Any, Any], concurrency: int | anyio.CapacityLimiter) -> int:
    """Return for how many episodes a policy may be asked at once."""
    if isinstance(concurrency, anyio.CapacityLimiter):
        most = max(concurrency.total_tokens, 1)  # it may get some later
    else:
        check_count("concurrency", concurrency)
        most = concurrency
    return int(min(most, policy.max_size or _MOST_IN_BATCH))
