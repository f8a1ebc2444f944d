"""Logs whose failed samples are played again."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from evals.coins import ARGUMENTS, coins, toss
from evals.sums import Failing, add, sums, timeless
from rolloutlib.evals import (
    BenchmarkResult,
    arun_benchmark,
    read_log,
    run_benchmark,
    run_benchmarks,
)

pytestmark = pytest.mark.anyio

ERRORS: dict[int, BaseException] = {1: ConnectionError("down"), 4: ConnectionError("down")}


async def test_failed_samples_are_played_again_and_no_others(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    policy = Failing(ERRORS, times=2)
    arguments: dict[str, Any] = {"policy": policy, "log": path, "epochs": 2, "model": "m"}
    first = await arun_benchmark(sums(), concurrency=3, **arguments)
    assert first.num_errors == 4
    before = Counter(policy.calls)
    result = await arun_benchmark(sums(), concurrency=3, retry_failed=True, **arguments)
    assert Counter(policy.calls) - before == {"1 + 1 = ?": 2, "4 + 1 = ?": 2}
    assert timeless(result) == timeless(run_benchmark(sums(), policy=add, epochs=2))
    assert timeless(read_log(path).result()) == timeless(result)
    assert len(list(read_log(path))) == 12


def test_a_sample_that_fails_again_has_its_new_failure(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    run_benchmark(sums(), policy=Failing(ERRORS), log=path, model="m")
    policy = Failing({1: ValueError("worse")})
    result = run_benchmark(sums(), policy=policy, log=path, model="m", retry_failed=True)
    assert [record.error for record in result.records if record.error] == ["worse"]
    assert timeless(read_log(path).result()) == timeless(result)


def test_failures_stay_unless_one_asks(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    run_benchmark(sums(), policy=Failing(ERRORS), log=path, model="m")
    data = path.read_bytes()
    assert run_benchmark(sums(), policy=add, log=path, model="m").num_errors == 2
    assert path.read_bytes() == data


def test_nothing_is_lost_where_the_log_is_of_another_run(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    run_benchmark(sums(), policy=Failing(ERRORS), log=path, model="m")
    data = path.read_bytes()
    with pytest.raises(ValueError, match="seed was 0 and is 1"):
        run_benchmark(sums(), policy=add, log=path, model="m", seed=1, retry_failed=True)
    assert path.read_bytes() == data


def test_a_new_log_has_nothing_to_play_again(tmp_path: Path) -> None:
    results = run_benchmarks([sums()], policy=add, log=tmp_path, retry_failed=True)
    assert timeless(results["sums"]) == timeless(run_benchmark(sums(), policy=add))


def test_without_a_log_there_is_nothing_to_play_again() -> None:
    with pytest.raises(ValueError, match="without a `log`"):
        run_benchmark(sums(), policy=add, retry_failed=True)


def test_what_is_stopped_again_keeps_what_was_finished(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    run_benchmark(sums(), policy=Failing(ERRORS), log=path, model="m")
    arguments: dict[str, Any] = {"log": path, "model": "m", "retry_failed": True}
    with pytest.raises(KeyboardInterrupt) as caught:
        run_benchmark(sums(), policy=Failing({4: KeyboardInterrupt()}), **arguments)
    result = BenchmarkResult.from_exception(caught.value)
    assert result is not None
    assert (result.num_errors, result.num_remaining) == (0, 1)
    assert timeless(read_log(path).result()) == timeless(result)
    assert {record.item_id for record in read_log(path)} == {f"sum-{i}" for i in (0, 1, 2, 3, 5)}
    assert timeless(run_benchmark(sums(), policy=add, **arguments)) == timeless(
        run_benchmark(sums(), policy=add)
    )


@pytest.mark.parametrize("number", [1, 33, 36])
def test_a_run_that_is_killed_meanwhile_loses_no_finished_sample(
    tmp_path: Path, number: int
) -> None:
    path = tmp_path / "log.jsonl"

    def down(observation: str, *, seed: int = 0) -> str:
        if int(observation) % 5 == 0:
            raise ConnectionError
        return toss(observation)

    first = run_benchmark(coins(40), policy=down, log=path, model="m")
    finished = {record.item_id for record in first.records if not record.error}
    assert len(finished) == 32
    process = subprocess.run(
        [
            sys.executable,
            str(Path(__file__).with_name("killed_coins.py")),
            str(path),
            "retry",
            str(number),
        ],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])},
        check=False,
    )
    assert process.returncode == -signal.SIGKILL
    assert finished <= {record.item_id for record in read_log(path)}
    again = run_benchmark(coins(40), policy=toss, log=path, model="m", retry_failed=True)
    assert timeless(again) == timeless(run_benchmark(coins(40), policy=toss))


def test_a_run_that_stopped_early_stops_as_if_nothing_had_failed(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"

    def down(observation: str, *, seed: int = 0) -> str:
        if int(observation) % 20 == 3:
            raise ConnectionError
        return toss(observation)

    first = run_benchmark(coins(), policy=down, log=path, **ARGUMENTS)
    assert first.num_errors > 0
    expected = run_benchmark(coins(), policy=toss, **ARGUMENTS)
    assert expected.num_examples < first.num_examples
    finished = {record.item_id for record in first.records if not record.error}
    asked: list[str] = []

    def policy(observation: str, *, seed: int = 0) -> str:
        asked.append(observation)
        return toss(observation)

    again = run_benchmark(
        coins(), policy=policy, log=path, concurrency=4, retry_failed=True, **ARGUMENTS
    )
    assert timeless(again) == timeless(expected)
    assert timeless(read_log(path).result()) == timeless(expected)
    assert finished <= {record.item_id for record in read_log(path)}  # nothing that ended is lost
    assert asked
    assert not finished.intersection(asked)
