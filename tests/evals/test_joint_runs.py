"""`run_benchmarks` with a policy: one run over the samples of several benchmarks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from evals.sums import Failing, SumEnv, aadd, add, sums, timeless
from rolloutlib import as_async
from rolloutlib.evals import (
    BenchmarkResult,
    ErrorBudgetError,
    ProgressDisplay,
    StopWhen,
    arun_benchmarks,
    read_log,
    run_benchmark,
    run_benchmarks,
)
from rolloutlib.rollouts import AsyncBatchedPolicy

pytestmark = pytest.mark.anyio

WAYS: list[dict[str, Any]] = [{}, {"concurrency": 3}]


def three() -> list[Any]:
    return [sums(4, name="a"), sums(2, name="b"), sums(5, name="c")]


def inline(item: Any) -> Any:
    return as_async(SumEnv(item), inline=True)


async def test_the_next_benchmark_begins_while_the_last_sample_of_another_is_played() -> None:
    both = anyio.Event()
    playing: list[str] = []

    async def policy(question: str) -> str:
        playing.append(question)
        if len(playing) == 2:
            both.set()
        await both.wait()
        return "1"

    with anyio.fail_after(30):
        results = await arun_benchmarks(
            [sums(1, name="a"), sums(1, name="b")], policy=policy, concurrency=2
        )
    assert [result.score for result in results.values()] == [1.0, 1.0]


async def test_one_limit_holds_for_all_benchmarks_together() -> None:
    playing: set[object] = set()
    most = 0

    async def policy(question: str) -> str:
        nonlocal most
        mark = object()
        playing.add(mark)
        most = max(most, len(playing))
        for _ in range(5):
            await anyio.lowlevel.checkpoint()
        playing.remove(mark)
        return "1"

    await arun_benchmarks(
        [sums(3, make_env=inline, name=name) for name in "abc"], policy=policy, concurrency=4
    )
    assert most == 4


@pytest.mark.parametrize("way", WAYS)
def test_each_benchmark_gives_what_it_gives_alone(way: dict[str, Any], tmp_path: Path) -> None:
    shared: dict[str, Any] = {"policy": add, "epochs": 2, "shuffle": True, "limit": 3, "model": "m"}
    results = run_benchmarks(three(), log=tmp_path / "joint", **shared, **way)
    assert list(results) == ["a", "b", "c"]
    for benchmark in three():
        path = tmp_path / f"{benchmark.name}.jsonl"
        alone = run_benchmark(benchmark, log=path, **shared)
        assert timeless(results[benchmark.name]) == timeless(alone)
        joint = read_log(tmp_path / "joint" / path.name)
        assert joint.header == read_log(path).header
        assert timeless(joint.result()) == timeless(alone)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("number", [1, 4, 5, 6, 11])
def test_a_run_goes_on_wherever_it_was_stopped(
    number: int, way: dict[str, Any], tmp_path: Path
) -> None:
    calls = 0

    def mortal(question: str, *, seed: int = 0) -> Any:
        nonlocal calls
        calls += 1
        if calls == number:
            raise KeyboardInterrupt
        return add(question, seed=seed)

    arguments: dict[str, Any] = {"log": tmp_path, "model": "m", **way}
    with pytest.raises(KeyboardInterrupt) as caught:
        run_benchmarks(three(), policy=mortal, **arguments)
    partial = BenchmarkResult.all_from_exception(caught.value)
    for name, result in partial.items():
        assert timeless(result) == timeless(read_log(tmp_path / f"{name}.jsonl").result())
    stopped = [result.num_remaining > 0 for result in partial.values()]
    assert stopped == sorted(stopped)
    assert stopped[-1]
    played = sum(result.num_examples for result in partial.values())
    assert played >= number - 3
    calls = 100
    results = run_benchmarks(three(), policy=mortal, **arguments)
    assert calls - 100 == 11 - played
    expected = run_benchmarks(three(), policy=add)
    assert [timeless(result) for result in results.values()] == [
        timeless(result) for result in expected.values()
    ]


def test_benchmarks_that_were_not_begun_have_no_result() -> None:
    policy = Failing({3: ValueError("gone")})
    with pytest.raises(ValueError, match="gone") as caught:
        run_benchmarks(three(), policy=policy, fail_fast=True)
    assert list(BenchmarkResult.all_from_exception(caught.value)) == ["a"]


async def test_all_logs_are_checked_before_anything_is_spent(tmp_path: Path) -> None:
    run_benchmark(sums(2, name="b"), policy=add, seed=1, log=tmp_path / "b.jsonl")
    policy = Failing({})
    with pytest.raises(ValueError, match="seed was 1 and is 0"):
        run_benchmarks(three(), policy=policy, log=tmp_path, model="add")
    with pytest.raises(ValueError, match="seed was 1 and is 0"):
        await arun_benchmarks(three(), policy=policy, log=tmp_path, model="add")
    assert not policy.calls


async def test_arguments_are_refused_before_anything_is_spent() -> None:
    wrong: Any = {"colour": "red"}
    with pytest.raises(TypeError, match="take no argument 'colour'"):
        run_benchmarks(three(), policy=add, **wrong)
    wrong = {"item_ids": []}
    with pytest.raises(TypeError, match="take no argument 'item_ids'"):
        await arun_benchmarks(three(), policy=add, **wrong)
    alone: Any = sums()
    with pytest.raises(TypeError, match="several, got 'sums' alone: use run_benchmark"):
        run_benchmarks(alone, policy=add)
    with pytest.raises(TypeError, match="'sums' alone"):
        await arun_benchmarks(alone, policy=add)
    assert run_benchmarks([], policy=add) == {}
    assert await arun_benchmarks([], policy=aadd) == {}


@pytest.mark.parametrize("way", WAYS)
def test_each_benchmark_has_a_budget_of_errors_of_its_own(way: dict[str, Any]) -> None:
    policy = Failing({0: OSError("down")})
    assert [
        result.num_errors
        for result in run_benchmarks(three(), policy=policy, max_errors=1, **way).values()
    ] == [1, 1, 1]
    policy = Failing({4: OSError("down")})
    with pytest.raises(ErrorBudgetError, match="of benchmark 'c': 1, more than max_errors=0"):
        run_benchmarks(three(), policy=policy, max_errors=0, **way)


@pytest.mark.parametrize("way", WAYS)
def test_each_benchmark_stops_when_it_is_sure_enough(way: dict[str, Any], tmp_path: Path) -> None:
    arguments: dict[str, Any] = {
        "policy": lambda question: "1",
        "shuffle": True,
        "stop_when": StopWhen(0.5),
        "model": "m",
    }
    benchmarks = [sums(60, name="a"), sums(3, name="b"), sums(60, name="c")]
    results = run_benchmarks(benchmarks, log=tmp_path, **arguments, **way)
    assert [result.stopped_early for result in results.values()] == [True, False, True]
    for benchmark in benchmarks:
        alone = run_benchmark(benchmark, **arguments)
        assert timeless(results[benchmark.name]) == timeless(alone)
        assert timeless(read_log(tmp_path / f"{benchmark.name}.jsonl").result()) == timeless(alone)


async def test_progress_counts_the_samples_of_all_benchmarks() -> None:
    with ProgressDisplay(total=11, interval=1000) as display:
        await arun_benchmarks(three(), policy=aadd, on_event=display)
    assert "11 of 11 episodes" in str(display)


async def test_a_batched_policy_serves_all_benchmarks() -> None:
    batches: list[int] = []

    async def batch(questions: list[str]) -> list[str]:
        await anyio.lowlevel.checkpoint()
        batches.append(len(questions))
        return ["1"] * len(questions)

    policy = AsyncBatchedPolicy(batch, max_wait=30, max_size=11)
    benchmarks = [sums(count, make_env=inline, name=f"{count}") for count in (4, 2, 5)]
    results = run_benchmarks(benchmarks, policy=policy, concurrency=11)
    assert batches == [11]
    async with policy:
        assert [timeless(result) for result in results.values()] == [
            timeless(result)
            for result in (await arun_benchmarks(benchmarks, policy=policy)).values()
        ]
    with pytest.raises(RuntimeError, match="takes calls only inside `async with`"):
        await arun_benchmarks(benchmarks, policy=policy)
