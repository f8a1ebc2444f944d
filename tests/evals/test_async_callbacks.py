"""`arun_benchmark` with a callback, which may be a coroutine function or not."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from evals.sums import SumEnv, aadd, add, amake_env, sums, timeless
from rolloutlib import AsyncEnv, Score, arollout, as_async, rollout
from rolloutlib.evals import (
    BenchmarkResult,
    Evaluation,
    arun_benchmark,
    arun_benchmarks,
    run_benchmark,
)

pytestmark = pytest.mark.anyio


def adapt(item: Any) -> AsyncEnv[str, str]:
    return as_async(SumEnv(item))


def evaluate(environment: Any) -> Evaluation:
    return Evaluation(rollout(environment, add, seed=0).score)


async def aevaluate(environment: Any) -> Evaluation:
    return Evaluation((await arollout(environment, aadd, seed=0)).score)


async def test_both_kinds_of_callback_give_what_the_synchronous_run_gives() -> None:
    expected = timeless(run_benchmark(sums(), evaluate))
    assert timeless(await arun_benchmark(sums(), evaluate)) == expected
    adapted = sums(make_env=adapt)
    assert timeless(await arun_benchmark(adapted, aevaluate, limit=6)) == expected
    assert timeless(await arun_benchmark(sums(make_env=amake_env), aevaluate)) == expected
    [result] = (await arun_benchmarks([adapted], aevaluate)).values()
    assert timeless(result) == expected


async def test_a_synchronous_callback_has_one_thread_for_an_item() -> None:
    threads: list[Any] = []

    class Bound(SumEnv):
        def __init__(self, item: Any) -> None:
            super().__init__(item)
            threads.append(threading.current_thread())

        def close(self) -> None:
            threads.append(threading.current_thread())

    await arun_benchmark(sums(1, make_env=Bound), evaluate)
    assert threads[0] is threads[1]
    assert threads[0] is not threading.current_thread()


async def test_environments_are_closed_and_failures_recorded() -> None:
    closed: list[int] = []

    class Closing(SumEnv):
        def close(self) -> None:
            closed.append(self.item.a)
            if self.item.a == 1:
                raise OSError("stuck")

    async def failing(environment: Any) -> Evaluation:
        await anyio.lowlevel.checkpoint()
        if environment.item.a == 2:
            raise ValueError("gone")
        return Evaluation(Score(1.0))

    result = await arun_benchmark(sums(3, make_env=Closing), failing)
    assert closed == [0, 1, 2]
    assert [record.error for record in result.records] == [None, None, "gone"]
    assert result.records[1].metadata == {"close_error": "OSError: stuck"}
    with pytest.raises(ValueError, match="gone") as caught:
        await arun_benchmark(sums(4, make_env=Closing), failing, fail_fast=True)
    partial = BenchmarkResult.from_exception(caught.value)
    assert partial is not None
    assert (partial.num_examples, partial.num_remaining) == (3, 1)


async def test_a_cancelled_run_closes_its_environment() -> None:
    closed = anyio.Event()

    class Closing(SumEnv):
        def close(self) -> None:
            closed.set()

    async def waiting(environment: Any) -> Evaluation:
        scope.cancel()
        await anyio.sleep_forever()
        raise AssertionError

    with anyio.CancelScope() as scope:
        await arun_benchmark(sums(make_env=Closing), waiting)
    assert scope.cancelled_caught
    assert closed.is_set()


async def test_a_callback_that_returns_something_else_fails() -> None:
    async def odd(environment: Any) -> Any:
        await anyio.lowlevel.checkpoint()
        return 1.0

    result = await arun_benchmark(sums(1), odd)
    assert result.records[0].error == (
        "evaluate must return an Evaluation, got 1.0; a policy is passed as `policy=`"
    )


class ClosingSlowly(AsyncEnv[str, str]):
    """Takes its time to close, as a container does."""

    def __init__(self, item: Any) -> None:
        super().__init__()
        self.env = as_async(SumEnv(item), inline=True)
        self.closing, self.go_on, self.closed = anyio.Event(), anyio.Event(), anyio.Event()

    async def reset(self, *, seed: Any = None, options: Any = None) -> Any:
        return await self.env.reset(seed=seed, options=options)

    async def step(self, action: str) -> Any:
        return await self.env.step(action)

    async def close(self) -> None:
        self.closing.set()
        await self.go_on.wait()
        self.closed.set()


async def test_a_cancellation_does_not_break_off_the_closing_of_an_environment() -> None:
    made: list[ClosingSlowly] = []

    def make_env(item: Any) -> ClosingSlowly:
        made.append(ClosingSlowly(item))
        return made[-1]

    async def run(scope: anyio.CancelScope) -> None:
        with scope:
            await arun_benchmark(sums(make_env=make_env), aevaluate)

    scope = anyio.CancelScope()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(run, scope)
        while not made:
            await anyio.lowlevel.checkpoint()
        await made[0].closing.wait()
        scope.cancel()
        await anyio.wait_all_tasks_blocked()
        made[0].go_on.set()
    assert made[0].closed.is_set()
    assert len(made) == 1


@pytest.mark.parametrize("kind", ["asynchronous", "synchronous"])
def test_ctrl_c_in_asyncio_returns_when_the_item_in_hand_is_closed(kind: str) -> None:
    entered, go_on = threading.Event(), threading.Event()
    closed: list[str] = []

    class Closing(SumEnv):
        def close(self) -> None:
            closed.append("at last")

    class AsyncClosing(ClosingSlowly):
        async def close(self) -> None:
            entered.set()
            while not go_on.is_set():
                await anyio.lowlevel.checkpoint()
            closed.append("at last")

    def blocking(environment: Any) -> Evaluation:
        entered.set()
        assert go_on.wait(30)
        return Evaluation(Score(1.0))

    async def main() -> None:
        benchmark = sums(make_env=Closing if kind == "synchronous" else AsyncClosing)
        callback: Any = blocking if kind == "synchronous" else aevaluate
        run = asyncio.create_task(arun_benchmark(benchmark, callback))
        assert await asyncio.to_thread(entered.wait, 30)
        run.cancel()  # as `asyncio.run` does it
        for _ in range(10):
            await asyncio.sleep(0)
        assert not run.done()
        go_on.set()
        with pytest.raises(asyncio.CancelledError) as caught:
            await run
        assert closed == ["at last"]
        assert BenchmarkResult.from_exception(caught.value) is not None

    asyncio.run(main())


def test_a_callback_that_ends_in_a_stray_cancellation_fails() -> None:
    async def stray(environment: Any) -> Evaluation:
        raise asyncio.CancelledError

    async def main() -> BenchmarkResult:
        return await arun_benchmark(sums(2), stray)

    result = asyncio.run(main())
    assert result.num_errors == 2
    assert "a cancellation that its caller did not ask for" in (result.records[0].error or "")
