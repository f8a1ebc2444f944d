"""Runs that stop when their score is sure enough."""

from __future__ import annotations

import dataclasses
import io
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console

from evals.coins import ARGUMENTS, RULE, coins, toss
from evals.sums import sums, timeless
from rolloutlib import Score
from rolloutlib.evals import (
    EvaluationRecord,
    ProgressDisplay,
    StopWhen,
    arun_benchmark,
    read_log,
    regrade_log,
    run_benchmark,
    run_benchmarks,
)
from rolloutlib.evals._stopping import Stopping
from rolloutlib.evals.statistics import ConfidenceSequence
from rolloutlib.storage import GroupWriter, read_groups

pytestmark = pytest.mark.anyio


def flaky(observation: str, *, seed: int = 0) -> str:
    if int(observation) % 20 == 3:
        raise ConnectionError
    return toss(observation)


def test_a_run_stops_at_the_first_item_at_which_its_interval_is_narrow() -> None:
    whole = run_benchmark(coins(), policy=toss, shuffle=True)
    assert (whole.interval, whole.stopped_early) == (None, False)
    asked: list[str] = []

    def policy(observation: str) -> str:
        asked.append(observation)
        return toss(observation)

    result = run_benchmark(coins(), policy=policy, **ARGUMENTS)
    sequence = ConfidenceSequence(0.3)
    for item in asked:
        assert not sequence.is_narrow
        sequence.update(float(toss(item)))
    assert sequence.is_narrow
    assert result.interval == sequence.interval
    assert sequence.interval.low < 0.7 < sequence.interval.high
    assert result.stopped_early
    assert result.num_examples == len(asked) < 200
    assert (result.num_expected, result.num_remaining) == (400, 400 - len(asked))
    assert {record.item_id for record in result.records} == set(asked)
    assert result.score == sequence.mean


def test_a_run_whose_interval_stays_wide_plays_all_items() -> None:
    def policy(observation: str) -> str:
        return observation[-1] if observation[-1] in "01" else "0"

    result = run_benchmark(coins(20), policy=policy, **ARGUMENTS)
    assert (result.num_examples, result.num_remaining, result.stopped_early) == (20, 0, False)
    assert result.interval is not None
    assert result.interval.width > 0.3


@pytest.mark.parametrize("seed", range(3))
async def test_samples_that_end_out_of_order_change_nothing(tmp_path: Path, seed: int) -> None:
    generator = np.random.default_rng(seed)

    async def policy(observation: str) -> str:
        slow = 40 if toss(observation) == "0" else 0  # what fails takes longer
        for _ in range(generator.integers(20) + slow):
            await anyio.lowlevel.checkpoint()
        return toss(observation)

    path = tmp_path / "log.jsonl"
    result = await arun_benchmark(coins(), policy=policy, concurrency=16, log=path, **ARGUMENTS)
    assert timeless(result) == timeless(run_benchmark(coins(), policy=toss, **ARGUMENTS))
    log = read_log(path)
    assert timeless(log.result()) == timeless(result)
    assert len(list(log)) > result.num_examples  # what was in play beyond is kept, and not counted
    wanted = {"width": 0.3, "confidence": 0.95, "low": 0.0, "high": 1.0}
    assert log.header["stop_when"] == wanted


def test_all_epochs_of_an_item_count_as_one_score(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    asked: list[int] = []

    def policy(observation: str, *, seed: int = 0) -> str:
        asked.append(int(observation))
        return str(seed % 2)

    result = run_benchmark(coins(), policy=policy, epochs=4, log=path, **ARGUMENTS)
    assert asked[::4] == asked[3::4] != sorted(asked[::4])
    sequence = ConfidenceSequence(0.3)
    scores = result.item_scores
    for item in asked[::4]:
        sequence.update(sum(score or 0 for score in scores[str(item)]) / 4)
    assert result.interval == sequence.interval
    assert sequence.num_items == len(scores) == result.num_examples / 4
    assert timeless(read_log(path).result()) == timeless(result)


def test_failed_samples_widen_the_interval_to_both_sides(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    arguments: dict[str, Any] = {**ARGUMENTS, "stop_when": StopWhen(width=0.4)}
    result = run_benchmark(coins(), policy=flaky, log=path, **arguments)
    assert result.num_errors > 0
    lowest, highest = ConfidenceSequence(0.4), ConfidenceSequence(0.4)
    for record in sorted(result.records, key=lambda record: record.position or 0):
        lowest.update(record.score.value if record.score else 0)
        highest.update(record.score.value if record.score else 1)
    interval = result.interval
    assert interval is not None
    assert (interval.low, interval.high) == (lowest.interval.low, highest.interval.high)
    assert interval.width <= 0.4 < interval.width + 0.02
    assert timeless(read_log(path).result()) == timeless(result)
    whole = run_benchmark(coins(), policy=toss, **arguments)
    assert whole.num_examples < result.num_examples


@pytest.mark.filterwarnings("ignore::rolloutlib.storage.TornLineWarning")
def test_a_run_whose_log_ends_anywhere_stops_as_one_that_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    expected = run_benchmark(coins(), policy=flaky, log=path, **ARGUMENTS)
    data = path.read_bytes()
    for cut in range(0, len(data), len(data) // 40):
        path.write_bytes(data[:cut])
        result = run_benchmark(coins(), policy=flaky, log=path, **ARGUMENTS)
        assert timeless(result) == timeless(expected)
        assert timeless(read_log(path).result()) == timeless(expected)


def test_what_was_in_play_beyond_the_last_sample_stays_in_the_log_and_does_not_count(
    tmp_path: Path,
) -> None:
    path, whole = tmp_path / "log.jsonl", tmp_path / "whole.jsonl"
    expected = run_benchmark(coins(), policy=toss, log=path, **ARGUMENTS)
    run_benchmark(coins(), policy=toss, log=whole, shuffle=True, model="m")
    with GroupWriter(path) as writer:  # as if others had been in play
        for position, group in enumerate(read_groups(whole)):
            if expected.num_examples < position < expected.num_examples + 10:
                writer.append(group, position=position)
    data = path.read_bytes()
    assert timeless(read_log(path).result()) == timeless(expected)
    again = run_benchmark(coins(), policy=toss, log=path, **ARGUMENTS)
    assert timeless(again) == timeless(expected)
    assert path.read_bytes() == data
    regraded = regrade_log(path, grade=lambda record: float(toss(record.item_id or "")))
    assert regraded.item_scores == expected.item_scores
    assert regraded.interval == expected.interval
    to = tmp_path / "regraded.jsonl"
    regrade_log(path, grade=lambda record: 1.0, to=to)
    assert len(list(read_log(to))) == read_log(to).result().num_examples == expected.num_examples


@pytest.mark.parametrize("number", [1, 40, 90, 130])
def test_a_run_that_is_killed_stops_as_one_that_is_not(tmp_path: Path, number: int) -> None:
    path = tmp_path / "log.jsonl"
    script = Path(__file__).with_name("killed_coins.py")
    process = subprocess.run(
        [sys.executable, str(script), str(path), "stop", str(number)],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])},
        check=False,
    )
    expected = run_benchmark(coins(), policy=toss, **ARGUMENTS)
    assert process.returncode == (-signal.SIGKILL if number <= expected.num_examples else 0)
    result = run_benchmark(coins(), policy=toss, concurrency=8, log=path, **ARGUMENTS)
    assert timeless(result) == timeless(expected)
    assert timeless(read_log(path).result()) == timeless(expected)


def test_an_interrupted_run_has_the_interval_of_the_samples_before_its_first_gap(
    tmp_path: Path,
) -> None:
    path = tmp_path / "log.jsonl"
    run_benchmark(coins(20), policy=toss, log=path, **ARGUMENTS)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*lines[:6], *lines[8:12]]))
    result = read_log(path).result()
    sequence = ConfidenceSequence(0.3)
    for group in list(read_groups(path))[:5]:
        sequence.update(float(toss(str(group.item["item"]))))
    assert result.interval == sequence.interval
    assert (result.num_examples, result.stopped_early) == (9, False)


def test_a_log_that_is_graded_anew_keeps_its_samples(tmp_path: Path) -> None:
    path, to = tmp_path / "log.jsonl", tmp_path / "new.jsonl"
    first = run_benchmark(coins(), policy=toss, log=path, **ARGUMENTS)
    result = regrade_log(path, grade=lambda record: 1.0, to=to)
    assert (result.num_examples, result.score) == (first.num_examples, 1.0)
    assert result.interval is not None
    assert result.interval.high == 1.0
    assert not result.stopped_early  # by these scores
    assert timeless(read_log(to).result()) == timeless(result)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"shuffle": False}, "stop_when needs shuffle=True"),
        ({"stop_when": 0.1}, "stop_when must be a StopWhen or None, got 0.1"),
    ],
)
def test_a_rule_that_would_mislead_is_refused(arguments: Any, message: str, tmp_path: Path) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        run_benchmark(sums(), policy=toss, log=tmp_path / "log.jsonl", **{**ARGUMENTS, **arguments})
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("arguments", [{"width": 0}, {"width": 2}, {"width": 0.1, "confidence": 1}])
def test_a_rule_that_makes_no_sense_is_refused(arguments: Any) -> None:
    with pytest.raises(ValueError, match=r"width|confidence"):
        StopWhen(**arguments)


def test_a_score_beyond_the_range_ends_the_run_with_what_is_done() -> None:
    def policy(observation: str) -> str:
        return "2" if observation == "7" else "1"

    with pytest.raises(ValueError, match=r"item '7' scored 2.0 .* from 0.0 to 1.0"):
        run_benchmark(coins(20), policy=policy, **ARGUMENTS)
    rule = StopWhen(width=0.3, low=0, high=3)
    result = run_benchmark(coins(20), policy=policy, shuffle=True, stop_when=rule)
    assert result.num_examples == 20


def test_a_display_shows_the_interval_by_which_the_run_stops() -> None:
    display = ProgressDisplay(console=Console(file=io.StringIO()))
    result = run_benchmark(coins(), policy=flaky, on_event=display, **ARGUMENTS)
    interval = result.interval
    assert interval is not None
    assert f"95% interval {interval.low:.3f} to {interval.high:.3f} by the first " in str(display)
    assert f"by the first {result.num_examples} items, stops at width 0.3" in str(display)
    joint = ProgressDisplay(console=Console(file=io.StringIO()))
    benchmarks = [dataclasses.replace(coins(20), name=name) for name in "ab"]
    run_benchmarks(benchmarks, policy=toss, on_event=joint, **ARGUMENTS)
    assert "score 1.000 over 20 items" in str(joint)
    assert "interval" not in str(joint)  # there are two


def test_a_callback_takes_no_rule() -> None:
    callback: Callable[..., Any] = lambda environment: 1.0  # noqa: E731
    with pytest.raises(TypeError, match="stop_when: for runs with `policy`"):
        run_benchmark(coins(), callback, stop_when=RULE)


def record(position: int, score: float | None) -> EvaluationRecord:
    value = None if score is None else Score(score)
    return EvaluationRecord(position, str(position), value, position=position)


@settings(max_examples=30)
@given(
    scores=st.lists(st.sampled_from([0.0, 1.0, 1.0, None]), min_size=1, max_size=80),
    epochs=st.integers(1, 3),
    seed=st.integers(0, 1000),
)
def test_the_order_in_which_samples_end_does_not_matter(
    scores: list[float | None], epochs: int, seed: int
) -> None:
    records = [record(position, score) for position, score in enumerate(scores)]
    first, second = Stopping(StopWhen(0.6), epochs), Stopping(StopWhen(0.6), epochs)
    for one in records:
        first.add(one)
    for position in np.random.default_rng(seed).permutation(len(records)):
        second.add(records[position])
    assert (first.num_samples, first.is_over) == (second.num_samples, second.is_over)
    assert first.interval == second.interval


@pytest.mark.parametrize("chance", [0.5, 0.9, 0.98])
def test_intervals_at_the_stop_cover_the_chance_as_often_as_they_say(chance: float) -> None:
    generator = np.random.default_rng(0)
    covered, runs = 0, 150
    for _ in range(runs):
        stopping = Stopping(StopWhen(width=0.25, confidence=0.9), 1)
        for position in range(2000):
            success = float(generator.random() < chance)
            # One of thirty fails, more often so if it would not have succeeded.
            failed = generator.random() < (0.02 if success else 0.1)
            stopping.add(record(position, None if failed else success))
            if stopping.is_over:
                break
        covered += stopping.interval.low <= chance <= stopping.interval.high
    assert covered >= 0.9 * runs - 2 * (0.09 * runs) ** 0.5
