"""Runs that are stopped: what was finished comes with the exception, in every way to run."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest

from evals.sums import Failing, SumEnv, add, sums, timeless
from rolloutlib import PolicyOutput
from rolloutlib.evals import (
    BenchmarkResult,
    ErrorBudgetError,
    arun_benchmark,
    arun_benchmarks,
    read_log,
    run_benchmark,
    run_benchmarks,
)
from rolloutlib.rollouts import StalledError
from rolloutlib.storage import GroupStore

pytestmark = pytest.mark.anyio

WAYS: list[dict[str, Any]] = [{}, {"concurrency": 2}]


def carried(error: BaseException) -> BenchmarkResult:
    result = BenchmarkResult.from_exception(error)
    assert result is not None
    return result


def interrupting(number: int) -> Callable[[str], PolicyOutput[str]]:
    """A policy during whose call of a number Ctrl-C comes."""
    calls = 0

    def policy(question: str, *, seed: int = 0) -> PolicyOutput[str]:
        nonlocal calls
        calls += 1
        if calls == number:
            signal.raise_signal(signal.SIGINT)
        return add(question, seed=seed)

    return policy


def test_ctrl_c_is_raised_with_what_is_done_and_the_log_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    with pytest.raises(KeyboardInterrupt) as caught:
        run_benchmark(sums(), policy=interrupting(4), epochs=2, log=path, model="m")
    result = carried(caught.value)
    assert [record.item_id for record in result.records] == ["sum-0", "sum-1", "sum-2"]
    assert (result.num_expected, result.num_remaining) == (12, 9)
    assert timeless(read_log(path).result()) == timeless(result)
    resumed = run_benchmark(sums(), policy=add, epochs=2, log=path, model="m")
    assert timeless(resumed) == timeless(run_benchmark(sums(), policy=add, epochs=2))


def test_ctrl_c_in_a_run_on_other_threads_is_raised_with_what_is_done(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"

    def policy(question: str) -> str:
        if question.startswith("3"):
            main_thread = threading.main_thread().ident or 0
            signal.pthread_kill(main_thread, signal.SIGINT)
            hold.wait(30)
        return "1"

    hold = threading.Event()
    try:
        with pytest.raises(KeyboardInterrupt) as caught:
            run_benchmark(sums(), policy=policy, concurrency=2, log=path)
    finally:
        hold.set()
    result = carried(caught.value)
    done = {record.item_id for record in result.records}
    assert len(done & {"sum-0", "sum-1", "sum-2"}) >= 2  # since "sum-3" had begun
    assert timeless(read_log(path).result()) == timeless(result)


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_ctrl_c_in_an_event_loop_is_raised_with_what_is_done(tmp_path: Path, backend: str) -> None:
    path = tmp_path / "log.jsonl"

    async def policy(question: str) -> str:
        await anyio.lowlevel.checkpoint()
        if question.startswith("3"):
            signal.raise_signal(signal.SIGINT)
            await anyio.sleep_forever()
        return "1"

    async def main() -> None:
        await arun_benchmark(sums(), policy=policy, concurrency=1, log=path)

    with pytest.raises(KeyboardInterrupt) as caught:
        anyio.run(main, backend=backend)
    result = carried(caught.value)
    assert [record.item_id for record in result.records] == ["sum-0", "sum-1", "sum-2"]
    assert timeless(read_log(path).result()) == timeless(result)


async def test_a_run_that_is_cancelled_has_its_samples_in_the_log(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    with anyio.CancelScope() as scope:

        async def policy(question: str) -> str:
            if question.startswith("3"):
                scope.cancel()
                await anyio.sleep_forever()
            return "1"

        await arun_benchmark(sums(), policy=policy, concurrency=1, log=path)
    assert scope.cancelled_caught
    assert read_log(path).result().num_examples == 3


@pytest.mark.parametrize("way", WAYS)
def test_fail_fast_raises_the_first_error_with_its_record(way: dict[str, Any]) -> None:
    error = ValueError("gone")
    with pytest.raises(ValueError, match="gone") as caught:
        run_benchmark(sums(), policy=Failing({2: error}), fail_fast=True, **way)
    assert caught.value is error
    records = {record.item_id: record for record in carried(error).records}
    assert records["sum-2"].error == "gone"
    assert len({"sum-0", "sum-1"} & set(records)) >= 3 - way.get("concurrency", 1)


async def test_fail_fast_raises_in_asynchronous_runs_too() -> None:
    error = ValueError("gone")
    with pytest.raises(ValueError, match="gone") as caught:
        await arun_benchmark(sums(), policy=Failing({0: error}), fail_fast=True)
    assert caught.value is error
    assert carried(error).records[0].error == "gone"


def test_a_failure_that_was_raised_is_played_again(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    policy = Failing({2: ValueError("gone")}, times=1)
    with pytest.raises(ValueError, match="gone"):
        run_benchmark(sums(), policy=policy, fail_fast=True, log=path)
    assert run_benchmark(sums(), policy=policy, fail_fast=True, log=path).num_errors == 0


@pytest.mark.parametrize("way", WAYS)
def test_too_many_failures_in_a_row_give_the_run_up(way: dict[str, Any]) -> None:
    errors: dict[int, BaseException] = {number: OSError("down") for number in range(6)}
    with pytest.raises(StalledError) as caught:
        run_benchmark(sums(), policy=Failing(errors), max_failures=3, **way)
    assert 3 <= carried(caught.value).num_errors < 6


@pytest.mark.parametrize("way", WAYS)
def test_more_failures_than_the_budget_give_the_run_up(way: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    policy = Failing({0: OSError("down"), 2: OSError("down")})
    assert run_benchmark(sums(), policy=policy, max_errors=2, **way).num_errors == 2
    with pytest.raises(
        ErrorBudgetError, match=r"more than max_errors=1; the last with OSError"
    ) as e:
        run_benchmark(sums(), policy=policy, max_errors=1, log=path, **way)
    assert carried(e.value).num_errors == 2
    assert {"sum-0", "sum-2"} <= {record.item_id for record in read_log(path)}


async def test_the_results_of_earlier_benchmarks_come_with_the_exception() -> None:
    benchmarks = [sums(2, name="a"), sums(3, name="b"), sums(2, name="c")]
    policy = Failing({2: ValueError("gone")})
    with pytest.raises(ValueError, match="gone") as caught:
        run_benchmarks(benchmarks, policy=policy, fail_fast=True)
    results = BenchmarkResult.all_from_exception(caught.value)
    assert {name: result.num_examples for name, result in results.items()} == {"a": 2, "b": 3}
    with pytest.raises(ValueError, match="gone") as caught:
        await arun_benchmarks(benchmarks, policy=policy, fail_fast=True, concurrency=1)
    results = BenchmarkResult.all_from_exception(caught.value)
    assert {name: result.num_examples for name, result in results.items()} == {"a": 2, "b": 3}


async def test_every_environment_is_closed_when_a_run_is_stopped() -> None:
    opened: list[Any] = []
    closed: list[Any] = []

    def make_env(item: Any) -> Any:
        class Watched(SumEnv):
            def close(self) -> None:
                closed.append(self)

        opened.append(Watched(item))
        return opened[-1]

    with pytest.raises(ValueError, match="gone"):
        await arun_benchmark(
            sums(make_env=make_env),
            policy=Failing({3: ValueError("gone")}),
            fail_fast=True,
            concurrency=3,
        )
    assert len(opened) == len(closed) > 0


def test_ctrl_c_waits_a_moment_for_environments_that_are_in_a_call() -> None:
    opened: list[Any] = []
    closed: list[Any] = []
    stepping = threading.Event()

    class Watched(SumEnv):
        def __init__(self, item: Any) -> None:
            super().__init__(item)
            opened.append(self)

        def step(self, action: str) -> Any:
            stepping.set()
            assert interrupted.wait(30)
            return super().step(action)

        def close(self) -> None:
            closed.append(self)

    def policy(question: str) -> str:
        if question.startswith("1"):
            stepping.wait(30)
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
        return "1"

    def interrupt(*_: Any) -> None:
        interrupted.set()
        raise KeyboardInterrupt

    interrupted = threading.Event()
    before = signal.signal(signal.SIGINT, interrupt)
    try:
        with pytest.raises(KeyboardInterrupt):
            run_benchmark(sums(2, make_env=Watched), policy=policy, concurrency=2)
    finally:
        signal.signal(signal.SIGINT, before)
    assert len(opened) == len(closed) == 2


@pytest.mark.parametrize("way", WAYS)
def test_a_sample_whose_line_was_interrupted_is_in_the_log_all_the_same(
    way: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "log.jsonl"
    save = GroupStore.save
    saves = 0

    def interrupted(store: GroupStore, position: int, group: Any) -> None:
        nonlocal saves
        saves += 1
        if saves == 3:
            raise KeyboardInterrupt
        save(store, position, group)

    monkeypatch.setattr(GroupStore, "save", interrupted)
    with pytest.raises(KeyboardInterrupt) as caught:
        run_benchmark(sums(), policy=add, log=path, model="m", **way)
    result = carried(caught.value)
    assert result.num_examples >= 3
    assert timeless(read_log(path).result()) == timeless(result)
    policy = Failing({})
    resumed = run_benchmark(sums(), policy=policy, log=path, model="m", **way)
    assert policy.calls.total() == 6 - result.num_examples
    assert timeless(resumed) == timeless(run_benchmark(sums(), policy=add))
