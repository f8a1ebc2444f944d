"""Samples of a log that are graded anew, without the policy."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import gymnasium as gym
import pytest

from evals.sums import Failing, Sum, SumEnv, amake_env, sums, timeless
from rolloutlib import Env, Score, as_async
from rolloutlib.evals import Benchmark, EvaluationRecord, read_log, regrade_log, run_benchmark
from rolloutlib.evals.benchmarks import gsm8k
from rolloutlib.graders import regrade
from rolloutlib.storage import read_groups


class Lenient(SumEnv):
    """Any number is right."""

    def evaluate(self, action: str) -> Score:
        return Score(float(action.isdigit()))


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "log.jsonl"
    run_benchmark(sums(), policy=Failing({1: ValueError("gone")}), epochs=2, log=path)
    return path


@pytest.mark.parametrize("make_env", [SumEnv, lambda item: as_async(SumEnv(item))])
def test_the_same_environments_give_the_same_scores(log: Path, make_env: Any) -> None:
    assert regrade_log(log, sums(make_env=make_env)) == read_log(log).result()


def test_other_environments_give_others_and_failures_stay(log: Path) -> None:
    result = regrade_log(log, sums(make_env=Lenient))
    assert (result.num_credited, result.num_wrong, result.num_errors) == (8, 2, 2)
    assert result.score == 8 / 12


def test_a_function_of_a_record_gives_the_scores(log: Path) -> None:
    def grade(record: EvaluationRecord) -> float:
        assert record.trajectory is not None
        assert record.score is not None
        return record.item["a"] / 10

    result = regrade_log(log, grade=grade)
    assert result.records[0].score == Score(0.0)
    assert result.records[-1].score == Score(0.5)
    assert result.num_errors == 2


def test_the_new_log_has_the_new_scores_and_the_old_trajectories(log: Path) -> None:
    new = log.with_name("new.jsonl")
    result = regrade_log(log, sums(make_env=Lenient), to=new)
    assert timeless(read_log(new).result()) == timeless(result)
    header = dict(read_log(new).header)
    regraded = header.pop("regraded")
    assert "Lenient" in regraded["make_env"]
    assert regraded["dataset"] == header["dataset"]
    assert header == read_log(log).header
    old = {(record.index, record.epoch): record.trajectory for record in read_log(log)}
    assert {(record.index, record.epoch): record.trajectory for record in read_log(new)} == old
    with pytest.raises(FileExistsError, match="there is a file"):
        regrade_log(log, sums(), to=new)
    with pytest.raises(ValueError, match=r"regraded was .* and is None"):
        run_benchmark(sums(), policy=Failing({}), epochs=2, log=new)


def test_a_log_that_was_graded_anew_can_be_graded_again(log: Path) -> None:
    new = log.with_name("new.jsonl")
    regrade_log(log, grade=lambda record: record.item["a"] / 10, to=new)

    def double(record: EvaluationRecord) -> float:
        assert record.score is not None
        return 2 * record.score.value

    assert "test_a_log_that_was_graded_anew" in read_log(new).header["regraded"]["grade"]
    assert regrade_log(new, grade=double).records[-1].score == Score(1.0)


def test_what_cannot_be_graded_has_failed_and_can_be_graded_later(log: Path) -> None:
    new, newer = log.with_name("new.jsonl"), log.with_name("newer.jsonl")

    def grade(record: EvaluationRecord) -> float:
        if record.item["a"] == 2:
            raise LookupError("no rubric")
        return 1.0

    result = regrade_log(log, grade=grade, to=new)
    failed = [record for record in result.records if record.item["a"] == 2]
    assert [record.error for record in failed] == ["no rubric"] * 2
    assert [record.metadata["phase"] for record in failed] == ["grade"] * 2
    assert result.num_errors == 4
    assert timeless(regrade_log(new, sums(), to=newer)) == timeless(read_log(log).result())


def test_a_benchmark_without_the_items_or_with_other_prompts_is_refused(log: Path) -> None:
    with pytest.raises(ValueError, match="benchmark 'sums' has no item 'sum-5'"):
        regrade_log(log, sums(5))
    items = [Sum(number, 7) for number in range(6)]
    other = dataclasses.replace(sums(), items=items)
    with pytest.raises(ValueError, match=r"begins with '0 \+ 7 = \?', and that of the log with"):
        regrade_log(log, other)
    with pytest.raises(TypeError, match="either `benchmark` is needed"):
        regrade_log(log)
    with pytest.raises(TypeError, match="either `benchmark` is needed"):
        regrade_log(log, sums(), grade=lambda _: 1.0)
    with pytest.raises(TypeError, match="expected a Benchmark, got 'sums'"):
        regrade_log(log, "sums")  # pyright: ignore[reportArgumentType]
    with pytest.raises(TypeError, match="make_env must be synchronous to grade a log anew"):
        regrade_log(log, sums(make_env=amake_env))


async def agrade(record: EvaluationRecord) -> float:
    raise AssertionError(record)


@pytest.mark.parametrize("grade", [agrade, 1.0])
def test_what_is_no_plain_function_does_not_grade(log: Path, grade: Any) -> None:
    with pytest.raises(TypeError, match="grade must be a function that is not asynchronous"):
        regrade_log(log, grade=grade)


def test_a_log_that_is_not_whole_is_not_kept(log: Path) -> None:
    new = log.with_name("new.jsonl")
    with pytest.raises(ValueError, match="benchmark 'sums' has no item 'sum-5'"):
        regrade_log(log, sums(5), to=new)
    assert list(log.parent.iterdir()) == [log]
    assert regrade_log(log, sums(), to=new).num_examples == 12
    assert sorted(log.parent.iterdir()) == [log, new]


def test_episodes_of_several_steps_are_replayed(tmp_path: Path) -> None:
    class Countdown(Env[Any, Any]):
        observation_space = gym.spaces.Discrete(100)
        action_space = gym.spaces.Discrete(3)

        def __init__(self, item: int) -> None:
            self.left = item

        def reset(
            self, *, seed: int | None = None, options: dict[str, Any] | None = None
        ) -> tuple[int, dict[str, Any]]:
            super().reset(seed=seed)
            self.left += int(self.np_random.integers(3))
            return self.left, {}

        def step(self, action: int) -> tuple[int, float, bool, bool, dict[str, Any]]:
            self.left -= action
            return self.left, float(action), self.left <= 0, False, {}

    benchmark = Benchmark("countdown", [1, 2, 9], Countdown)
    path = tmp_path / "log.jsonl"
    result = run_benchmark(benchmark, policy=lambda left: 1 + left % 2, max_steps=3, log=path)
    assert 0 < result.num_truncated < 3
    assert regrade_log(path, benchmark).records == result.records


def test_graders_work_on_logs_too(log: Path) -> None:
    groups = regrade(
        read_groups(log),
        lambda answer, rubric: float(answer == rubric),
        make_input=lambda item, trajectory: trajectory.actions[-1],
        make_rubric=lambda sample: str(sample["item"]["a"] + 1),
    )
    result = read_log(log).result(map(EvaluationRecord.from_group, groups))
    assert (result.num_credited, result.num_wrong, result.num_errors) == (6, 4, 2)


def test_gold_answers_may_be_corrected(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    question = "What is 6 times 7?"
    run_benchmark(
        gsm8k([{"question": question, "answer": "41"}]), policy=lambda _: "#### 42", log=path
    )
    assert read_log(path).result().score == 0.0
    corrected = gsm8k([{"question": question, "answer": "42"}])
    assert regrade_log(path, corrected).score == 1.0
