"""`run_benchmark` and `arun_benchmark` with a policy in place of a callback."""

from __future__ import annotations

import dataclasses
import math
import threading
from collections.abc import Sequence
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evals.sums import Failing, Sum, SumEnv, aadd, add, amake_env, sums, timeless
from rolloutlib import AsyncEnv, PolicyOutput
from rolloutlib.evals import (
    Benchmark,
    BenchmarkResult,
    EvaluationRecord,
    ProgressDisplay,
    arun_benchmark,
    arun_benchmarks,
    run_benchmark,
    run_benchmarks,
)
from rolloutlib.evals.benchmarks import aime, gsm8k
from rolloutlib.evals.statistics import mean_score
from rolloutlib.rollouts import (
    AsyncBatchedPolicy,
    BatchedPolicy,
    Retry,
    Timeouts,
    derive_seed,
    rollout,
)
from rolloutlib.scores import Score

pytestmark = pytest.mark.anyio


def seeds(result: BenchmarkResult) -> dict[tuple[str | None, int], int | None]:
    return {(record.item_id, record.epoch): record.seed for record in result.records}


def batch(questions: Sequence[str], *, seeds: Sequence[int | None] = ()) -> list[Any]:
    return [add(question, seed=seed or 0) for question, seed in zip(questions, seeds, strict=True)]


def test_a_policy_takes_the_place_of_a_callback() -> None:
    result = run_benchmark(sums(), policy=add)
    assert [record.outcome for record in result.records] == ["credited"] * 5 + ["no_answer"]
    assert [record.item_id for record in result.records] == [f"sum-{n}" for n in range(6)]
    assert result.score == 4.5 / 6
    assert result.components == {"exact": 4.5 / 5, "even": 1.0}
    assert result.component_counts == {"exact": 5, "even": 2}
    first = result.records[0]
    assert first.trajectory is not None
    assert first.trajectory.actions == ("1",)
    assert first.item == {"a": 0, "b": 1}
    assert (first.attempts, first.error, result.metadata) == (1, None, {"kind": "sums"})
    assert first.seconds is not None
    assert first.seconds > 0
    assert first.started is not None
    assert first.started.endswith("+00:00")


async def test_every_way_to_play_gives_the_same_result() -> None:
    expected = timeless(run_benchmark(sums(), policy=add, epochs=2))
    many: dict[str, Any] = {"epochs": 2}

    def synchronous() -> list[BenchmarkResult]:
        return [
            run_benchmark(sums(), policy=add, concurrency=4, **many),
            run_benchmark(sums(), policy=aadd, **many),
            run_benchmark(sums(make_env=amake_env), policy=aadd, concurrency=3, **many),
            run_benchmark(sums(), policy=add, timeouts=Timeouts(step=600), **many),
            run_benchmark(sums(), policy=BatchedPolicy(batch), **many),
            run_benchmark(sums(), policy=AsyncBatchedPolicy(batch), concurrency=4, **many),
        ]

    results = synchronous()
    results.append(await arun_benchmark(sums(), policy=aadd, **many))
    results.append(await arun_benchmark(sums(), policy=add, inline=True, **many))
    limiter = anyio.CapacityLimiter(2)
    results.append(await arun_benchmark(sums(), policy=add, concurrency=limiter, **many))
    async with AsyncBatchedPolicy(batch) as batched:
        results.append(await arun_benchmark(sums(make_env=amake_env), policy=batched, **many))
    for result in results:
        found = timeless(result)
        assert [record.item_id for record in found.records] == [
            record.item_id for record in expected.records
        ]
        environment_names = {"make_env", "records"}
        assert {
            name: value for name, value in vars(found).items() if name not in environment_names
        } == {
            name: value for name, value in vars(expected).items() if name not in environment_names
        }
        assert found.records == expected.records


def test_the_figures_of_all_samples_add_up() -> None:
    policy = Failing({0: ValueError("gone")})
    result = run_benchmark(sums(), policy=policy, max_steps=None)
    assert (result.num_expected, result.num_examples, result.num_scored) == (6, 6, 5)
    assert (result.num_credited, result.num_wrong, result.num_no_answer) == (4, 0, 1)
    assert (result.num_truncated, result.num_errors, result.num_remaining) == (0, 1, 0)
    assert result.score == 3.5 / 6
    assert result.score_bounds == (3.5 / 6, 4.5 / 6)
    failed = result.records[0]
    assert (failed.score, failed.error, failed.outcome) == (None, "gone", "failed")
    assert (failed.metadata["error_type"], failed.metadata["phase"]) == ("ValueError", "policy")
    assert "raise self.errors[a]" in failed.metadata["traceback"]
    assert failed.trajectory is not None
    assert failed.trajectory.initial_observation == "0 + 1 = ?"


def test_wrong_answers_and_missing_ones_are_told_apart() -> None:
    replies = {"0": "7", "1": "?", "2": "3"}
    result = run_benchmark(sums(3), policy=lambda question: replies[question.split()[0]])
    assert [record.outcome for record in result.records] == ["wrong", "no_answer", "credited"]
    assert (result.num_wrong, result.num_no_answer, result.num_credited) == (1, 1, 1)


@pytest.mark.parametrize(
    ("score", "outcome"),
    [
        (Score(0.01, {"correct": 0.0}), "wrong"),
        (Score(0.1, {"correct": 0.0, "brief": 1.0}, {"status": "none"}), "no_answer"),
        (Score(0.9, {"correct": 1.0, "brief": 0.0}), "credited"),
        (Score(0.0, {"correct": 1.0}), "credited"),
        (Score(0.01, {"brief": 1.0}), "credited"),
    ],
)
def test_the_component_correct_says_what_is_credited(score: Score, outcome: str) -> None:
    assert EvaluationRecord(0, score=score).outcome == outcome


def test_the_scores_of_each_item_are_what_statistics_take() -> None:
    result = run_benchmark(sums(2), policy=Failing({1: OSError("gone")}, times=1), epochs=2)
    assert result.item_scores == {"sum-0": [1.0, 1.0], "sum-1": [None, 1.0]}
    assert mean_score(result.item_scores).value == result.score


def test_an_episode_that_is_cut_short_is_truncated_whatever_it_scores() -> None:
    result = run_benchmark(sums(2), policy=add, max_steps=0)
    assert [record.outcome for record in result.records] == ["truncated"] * 2
    assert (result.num_truncated, result.score, result.score_completed) == (2, 0.0, None)


@pytest.mark.parametrize(
    ("stop_reason", "outcome"),
    [
        ("stop", "credited"),
        ("tool_calls", "credited"),
        (None, "credited"),
        ("length", "truncated"),
        ("max_tokens", "truncated"),
        ("abort", "truncated"),
        ("timeout", "truncated"),
    ],
)
def test_a_reply_that_is_cut_short_is_truncated_whatever_it_scores(
    stop_reason: str | None, outcome: str
) -> None:
    result = run_benchmark(sums(1), policy=lambda _: PolicyOutput("1", stop_reason=stop_reason))
    assert [record.outcome for record in result.records] == [outcome]
    assert result.score == 1.0


@pytest.mark.parametrize("arguments", [{"limit": 0}, {"item_ids": []}])
def test_a_run_without_samples_has_no_score(arguments: dict[str, Any]) -> None:
    result = run_benchmark(sums(), policy=add, **arguments)
    assert math.isnan(result.score)
    assert all(math.isnan(bound) for bound in result.score_bounds)
    assert (result.num_expected, result.score_completed) == (0, None)


@given(
    limit=st.none() | st.integers(0, 6),
    shuffle=st.booleans(),
    epochs=st.integers(1, 3),
    item_ids=st.none() | st.sets(st.integers(0, 5)),
    concurrency=st.sampled_from([1, 1, 1, 4]),
)
@settings(max_examples=30)
def test_the_seed_of_a_sample_depends_on_no_other_sample(
    limit: int | None,
    shuffle: bool,
    epochs: int,
    item_ids: set[int] | None,
    concurrency: int,
) -> None:
    result = run_benchmark(
        sums(),
        policy=add,
        seed=5,
        limit=limit,
        shuffle=shuffle,
        epochs=epochs,
        item_ids=None if item_ids is None else [f"sum-{number}" for number in item_ids],
        concurrency=concurrency,
    )
    items = 6 if item_ids is None else len(item_ids)
    assert len(result.records) == epochs * min(items, 6 if limit is None else limit)
    assert seeds(result) == {
        (item_id, epoch): derive_seed(derive_seed(5, item_id or "", epoch), item_id or "", 0)
        for item_id, epoch in seeds(result)
    }
    assert [(record.index, record.epoch) for record in result.records] == sorted(
        (record.index, record.epoch) for record in result.records
    )


def test_epochs_and_seeds_give_other_seeds() -> None:
    found = seeds(run_benchmark(sums(), policy=add, epochs=3))
    assert len(set(found.values())) == 18
    assert not set(found.values()) & set(seeds(run_benchmark(sums(), policy=add, seed=1)).values())


def test_a_sample_can_be_played_alone() -> None:
    record = run_benchmark(sums(), policy=add, epochs=2).records[3]
    alone = rollout(SumEnv(Sum(1, 1)), add, seed=record.seed)
    assert record.trajectory is not None
    assert alone.steps == record.trajectory.steps


def test_all_items_are_played_once_before_any_is_again() -> None:
    asked: list[str] = []

    def policy(question: str) -> str:
        asked.append(question)
        return "1"

    run_benchmark(sums(3), policy=policy, epochs=2)
    assert asked[:3] == asked[3:] == ["0 + 1 = ?", "1 + 1 = ?", "2 + 1 = ?"]


def test_a_limit_after_shuffling_takes_a_sample_that_the_seed_fixes() -> None:
    def chosen(**arguments: Any) -> set[int]:
        result = run_benchmark(sums(40), policy=add, limit=10, **arguments)
        return {record.index for record in result.records}

    assert chosen() == set(range(10))
    assert chosen(shuffle=True) == chosen(shuffle=True)
    assert len({tuple(chosen(shuffle=True, seed=seed)) for seed in range(5)}) == 5


def test_environments_do_not_change_the_items_of_the_benchmark() -> None:
    class Greedy(SumEnv):
        def __init__(self, item: Any) -> None:
            super().__init__(Sum(item.pop(), 1))

    benchmark = Benchmark("greedy", [[1], [2]], Greedy)
    assert run_benchmark(benchmark, policy=add, epochs=3).score == 1.0
    assert benchmark.items == ([1], [2])


@pytest.mark.parametrize("inline", [False, True])
async def test_environments_that_never_block_need_no_threads(inline: bool) -> None:
    threads: set[threading.Thread] = set()

    class Watched(SumEnv):
        def evaluate(self, action: str) -> Score:
            threads.add(threading.current_thread())
            return super().evaluate(action)

    benchmark = dataclasses.replace(sums(make_env=Watched), inline=inline)
    await arun_benchmark(benchmark, policy=aadd)
    assert len(threads) == (1 if inline else 6)
    assert (threading.current_thread() in threads) == inline


def test_the_environments_of_the_built_in_benchmarks_never_block() -> None:
    assert gsm8k([]).inline
    assert aime([]).inline
    assert not sums().inline


def test_failures_are_tried_again_as_told() -> None:
    policy = Failing({1: ConnectionError("gone"), 2: ConnectionError("gone")}, times=1)
    retry = Retry(attempts=2, initial_delay=0)
    result = run_benchmark(sums(4), policy=policy, retry=retry)
    assert [record.attempts for record in result.records] == [1, 2, 2, 1]
    assert result.score == 1.0


def test_events_and_progress_are_those_of_collect() -> None:
    kinds: list[str] = []
    run_benchmark(sums(2), policy=add, on_event=lambda event: kinds.append(event.kind))
    assert kinds == ["started", "step", "finished"] * 2
    with ProgressDisplay(total=2, interval=1000) as display:
        run_benchmark(sums(2), policy=add, on_event=display)
    assert "2 completed" in str(display)


def test_several_benchmarks_run_one_after_the_other() -> None:
    benchmarks = [sums(2, name="a"), sums(3, name="b")]
    results = run_benchmarks(benchmarks, policy=add, epochs=2)
    assert {name: result.num_examples for name, result in results.items()} == {"a": 4, "b": 6}


async def test_several_benchmarks_run_asynchronously() -> None:
    benchmarks = [sums(2, name="a"), sums(3, name="b")]
    results = await arun_benchmarks(benchmarks, policy=aadd, concurrency=2)
    assert {name: result.num_examples for name, result in results.items()} == {"a": 2, "b": 3}


def test_the_text_of_a_result_tells_what_the_score_is_made_of() -> None:
    result = run_benchmark(sums(), policy=Failing({0: OSError("down")}))
    assert str(result) == (
        "sums: score 0.5833 (0.75 if the failed ones scored 1); 6 of 6 samples: 4 credited, 0 wrong, "
        "1 no answer, 0 truncated, 1 failed"
    )
    assert str(run_benchmark(sums(), policy=add, limit=0)) == (
        "sums: no score; 0 of 0 samples: 0 credited, 0 wrong, 0 no answer, 0 truncated, 0 failed"
    )


@pytest.mark.parametrize("concurrency", [1, 2])
def test_a_class_of_asynchronous_environments_serves_in_synchronous_code(concurrency: int) -> None:
    closed: list[int] = []

    class Asynchronous(AsyncEnv[str, str]):
        def __init__(self, item: Sum) -> None:
            super().__init__()
            self.env = SumEnv(item)

        async def reset(self, *, seed: Any = None, options: Any = None) -> Any:
            await anyio.lowlevel.checkpoint()
            return self.env.reset(seed=seed, options=options)

        async def step(self, action: str) -> Any:
            return self.env.step(action)

        async def close(self) -> None:
            closed.append(self.env.item.a)

    result = run_benchmark(sums(3, make_env=Asynchronous), policy=add, concurrency=concurrency)
    assert timeless(result) == timeless(run_benchmark(sums(3), policy=add))
    assert sorted(closed) == [0, 1, 2]


def test_a_coroutine_in_place_of_an_environment_is_an_error_that_tells_the_remedy() -> None:
    def make_env(item: Sum) -> Any:
        return amake_env(item)

    result = run_benchmark(sums(1, make_env=make_env), policy=add)
    assert "a coroutine function" in (result.records[0].error or "")
