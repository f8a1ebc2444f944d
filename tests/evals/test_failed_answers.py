"""Samples whose step failed after the policy had answered: the answer is in the log, and is graded."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import gymnasium as gym
import pytest

from evals.sums import Failing, Sum, SumEnv, aadd, add, sums, timeless
from rolloutlib import Env, PolicyOutput, Score, as_async
from rolloutlib.envs import AsyncGradingWrapper, GradingWrapper
from rolloutlib.evals import (
    Benchmark,
    BenchmarkResult,
    EvaluationRecord,
    arun_benchmark,
    read_log,
    regrade_log,
    run_benchmark,
)
from rolloutlib.rollouts import Trajectory
from rolloutlib.storage import read_groups, read_parquet, write_parquet

pytestmark = pytest.mark.anyio


class Judge:
    """Is down for some items."""

    def __init__(self, *down: int) -> None:
        self.down = down

    def __call__(self, input: tuple[Sum, str], rubric: None) -> Score:
        item, action = input
        if item.a in self.down:
            msg = f"no judge for {item.a}"
            raise ConnectionError(msg)
        return Score(float(action == str(item.a + item.b)), feedback=f"about {action}")

    def make_env(self, item: Sum) -> Any:
        return GradingWrapper(
            SumEnv(item), rubric=None, grader=self, make_input=lambda env, action: (item, action)
        )

    def make_async_env(self, item: Sum) -> Any:
        return AsyncGradingWrapper(
            as_async(SumEnv(item)),
            rubric=None,
            grader=self,
            make_input=lambda env, action: (item, action),
        )


def judged(*down: int) -> Benchmark[Sum]:
    return sums(make_env=Judge(*down).make_env)


async def in_every_way(path: Path, *down: int) -> dict[str, BenchmarkResult]:
    ajudged = sums(make_env=Judge(*down).make_async_env)
    sync, threads, concurrent = [path / f"{name}.jsonl" for name in ("sync", "threads", "async")]
    return {
        sync.name: run_benchmark(judged(*down), policy=add, epochs=2, log=sync),
        threads.name: run_benchmark(
            judged(*down), policy=add, epochs=2, log=threads, concurrency=4
        ),
        concurrent.name: await arun_benchmark(
            ajudged, policy=aadd, epochs=2, log=concurrent, concurrency=4
        ),
    }


def in_order(result: BenchmarkResult) -> BenchmarkResult:
    result = timeless(result)
    records = sorted(result.records, key=lambda record: (record.epoch, record.index))
    return dataclasses.replace(result, records=tuple(records))


async def test_a_log_is_graded_as_if_the_judge_had_never_been_down(tmp_path: Path) -> None:
    expected = in_order(run_benchmark(judged(), policy=add, epochs=2))
    for name, result in (await in_every_way(tmp_path, 1, 4)).items():
        assert result.num_errors == 4
        log = tmp_path / name
        assert timeless(read_log(log).result()) == timeless(result)
        new = log.with_name(f"new {name}")
        # Where a sample stands in the run is known of its log alone.
        regraded = in_order(regrade_log(log, judged(), to=new))
        records = [dataclasses.replace(record, position=None) for record in regraded.records]
        wanted = [dataclasses.replace(record, position=None) for record in expected.records]
        assert records == wanted, name
        assert (regraded.score, regraded.num_errors) == (expected.score, 0)
        assert in_order(read_log(new).result()) == regraded


async def test_records_and_tables_show_the_answer(tmp_path: Path) -> None:
    for name in await in_every_way(tmp_path, 4):
        log = read_log(tmp_path / name)
        failed = [record for record in log if record.outcome == "failed"]
        assert [(record.response, record.metadata["phase"]) for record in failed] == [
            ("6", "step")
        ] * 2
        for record in failed:
            assert record.seed is not None
            assert record.output == add("4 + 1 = ?", seed=record.seed)
            assert record.trajectory is not None
            assert not record.trajectory.steps
        rows = [row for row in log.rows() if row["error"]]
        for row in rows:
            assert (row["response"], row["tokens"], row["num_steps"]) == ("6", 2, 0)
            assert (row["stop_reason"], row["prompt_tokens"]) == ("stop", None)
            assert (row["score"], row["error"]) == (None, "no judge for 4")


def test_the_answer_goes_through_parquet(tmp_path: Path) -> None:
    log, parquet = tmp_path / "log.jsonl", tmp_path / "log.parquet"
    run_benchmark(judged(4), policy=add, log=log)
    write_parquet(read_groups(log), parquet)
    records = [EvaluationRecord.from_group(group) for group in read_parquet(parquet)]
    assert records == list(read_log(log))
    assert records[4].response == "6"


def test_a_judge_that_is_still_down_loses_nothing(tmp_path: Path) -> None:
    log, new = tmp_path / "log.jsonl", tmp_path / "new.jsonl"
    run_benchmark(judged(2, 3), policy=add, log=log)
    result = regrade_log(log, judged(3), to=new)
    [failed] = [record for record in result.records if record.score is None]
    [before] = [record for record in read_log(log) if record.index == 3]
    assert failed.output == before.output
    assert (failed.error, failed.metadata["phase"]) == ("no judge for 3", "step")
    assert failed.trajectory == before.trajectory
    good = run_benchmark(judged(), policy=add, log=tmp_path / "good.jsonl")
    assert timeless(regrade_log(new, judged())) == timeless(good)


def test_a_function_is_given_the_answer_and_the_sample_counts_as_cut_short(tmp_path: Path) -> None:
    log, new = tmp_path / "log.jsonl", tmp_path / "new.jsonl"
    run_benchmark(judged(2, 4), policy=add, log=log)

    def grade(record: EvaluationRecord) -> float:
        assert record.trajectory is not None
        assert record.trajectory.actions[-1] == record.response
        if record.error is not None:
            assert (record.error, record.score) == (f"no judge for {record.item['a']}", None)
        return float(record.response == str(record.item["a"] + 1))

    result = regrade_log(log, grade=grade, to=new)
    assert timeless(read_log(new).result()) == timeless(result)
    assert (result.num_errors, result.num_truncated, result.score) == (0, 2, 4 / 6)
    [graded] = [record for record in read_log(new) if record.index == 4]
    assert graded.score == Score(0.0)
    assert graded.trajectory is not None
    [step] = graded.trajectory.steps
    assert (step.action, step.policy_stop_reason, step.truncated) == ("6", "stop", True)
    assert list(step.policy_tokens or ()) == [graded.seed, 4]
    assert graded.metadata["truncated_by"].endswith("ConnectionError: no judge for 4")


def test_what_a_function_cannot_grade_can_be_graded_later(tmp_path: Path) -> None:
    log, new = tmp_path / "log.jsonl", tmp_path / "new.jsonl"
    run_benchmark(judged(2), policy=add, log=log)

    def refuse(record: EvaluationRecord) -> float:
        if record.error is not None:
            msg = "for the judge to say"
            raise LookupError(msg)
        return 1.0

    result = regrade_log(log, grade=refuse, to=new)
    assert [record.error for record in result.records if record.error] == ["for the judge to say"]
    good = run_benchmark(judged(), policy=add, log=tmp_path / "good.jsonl")
    assert timeless(regrade_log(new, judged())) == timeless(good)


def test_a_policy_that_failed_has_no_answer_and_is_not_graded(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    run_benchmark(judged(), policy=Failing({1: ValueError("gone")}), log=log)
    [failed] = [record for record in read_log(log) if record.score is None]
    assert (failed.response, failed.output) == (None, None)
    assert regrade_log(log, judged()).num_errors == 1
    assert regrade_log(log, grade=lambda record: 1.0).num_errors == 1


class Countdown(Env[Any, Any]):
    """Counts down from the item, and may fail on the way."""

    observation_space = gym.spaces.Discrete(100)
    action_space = gym.spaces.Discrete(3)
    down_at: int | None = None

    def __init__(self, item: int) -> None:
        self.left = item

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[int, dict[str, Any]]:
        super().reset(seed=seed)
        return self.left, {}

    def step(self, action: int) -> tuple[int, float, bool, bool, dict[str, Any]]:
        self.left -= action
        if self.left == self.down_at:
            msg = f"down at {self.left}"
            raise ConnectionError(msg)
        return self.left, float(action), self.left == 0, False, {"left": self.left}


def count(left: int) -> PolicyOutput[int]:
    return PolicyOutput(1, {"left": left}, tokens=[left], logprobs=[-1.0], prompt_tokens=[0])


@pytest.mark.parametrize("down_at", [0, 1, 2])
def test_an_episode_of_several_steps_is_finished_by_its_last_answer_alone(
    tmp_path: Path, down_at: int
) -> None:
    class Down(Countdown):
        pass

    Down.down_at = down_at
    log = tmp_path / "log.jsonl"
    run_benchmark(Benchmark("countdown", [3], Down), policy=count, log=log)
    [before] = read_log(log)
    good = run_benchmark(Benchmark("countdown", [3], Countdown), policy=count)
    assert before.output == count(down_at + 1)
    regraded = regrade_log(log, Benchmark("countdown", [3], Countdown))
    if down_at == 0:
        assert regraded.records[0].trajectory == good.records[0].trajectory
        assert regraded.score == good.score == 3.0
    else:  # only the policy could go on
        assert regraded.records == (before,)


def test_an_answer_that_a_limit_on_steps_makes_the_last_ends_its_episode(tmp_path: Path) -> None:
    class Down(Countdown):
        down_at = 3

    def run(kind: type[Countdown], log: Path | None) -> Trajectory[Any, Any] | None:
        benchmark = Benchmark("countdown", [5], kind)
        return run_benchmark(benchmark, policy=count, max_steps=2, log=log).records[0].trajectory

    log = tmp_path / "log.jsonl"
    run(Down, log)
    regraded = regrade_log(log, Benchmark("countdown", [5], Countdown))
    assert regraded.num_truncated == 1
    assert regraded.records[0].trajectory == run(Countdown, None)
