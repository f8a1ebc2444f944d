"""Reports of logs and of collected trajectories: figures, samples, comparisons."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from evals.reports.episodes import HOSTILE, write_groups
from evals.sums import Failing, Sum, SumEnv, add, sums
from rolloutlib.envs import ChatEnv
from rolloutlib.evals import (
    Benchmark,
    BenchmarkResult,
    EvaluationRecord,
    read_log,
    run_benchmark,
)
from rolloutlib.evals.reports import Report, read_report
from rolloutlib.evals.reports._conversation import length
from rolloutlib.evals.statistics import mean_score


def test_a_log_has_the_figures_of_its_run(tmp_path: Path) -> None:
    result = run_benchmark(sums(), policy=add, epochs=2, log=tmp_path / "run.jsonl", model="adder")
    report = read_report(tmp_path / "run.jsonl")
    assert report.result == read_log(tmp_path / "run.jsonl").result()
    assert report.result.records == result.records
    assert (report.title, report.settings["model"]) == ("run", "adder")
    assert report.estimate == mean_score(result.item_scores)
    assert list(report.samples)[:3] == ["sum-0#0", "sum-0#1", "sum-1#0"]


def test_the_members_of_collected_groups_are_samples(tmp_path: Path) -> None:
    report = read_report(write_groups(tmp_path / "groups.jsonl"))
    assert list(report.samples) == [
        *("product#0", "sum#0", "sum#1", "sum#2", "sum#3", "slow#0", "slow#1")
    ]
    result = report.result
    assert (result.num_examples, result.num_errors, result.num_wrong) == (7, 1, 1)
    assert result.item_scores == {
        "product": [0.75],
        "sum": [0.0, 0.5, 1.0, 0.25],
        "slow": [1, None],
    }
    failed = report.samples["slow#1"]
    assert (failed.outcome, failed.error, failed.metadata["phase"]) == (
        "failed",
        "too slow",
        "policy",
    )
    assert report.samples["sum#2"].item == {"task": "sum"}
    assert list(report.groups) == [(0, "product"), (1, "sum"), (2, "slow")]
    assert (report.length_unit, report.lengths["sum#1"]) == ("tokens", 2)
    assert report.settings == {"seed": 7}


def test_an_item_that_was_collected_twice_keeps_its_groups_apart(tmp_path: Path) -> None:
    once = write_groups(tmp_path / "groups.jsonl").read_text(encoding="utf-8")
    again = once.partition("\n")[2]
    (tmp_path / "twice.jsonl").write_text(once + again, encoding="utf-8")
    report = read_report(tmp_path / "twice.jsonl")
    assert len(report.samples) == 14
    assert report.groups[1, "sum"] == ["sum#0", "sum#1", "sum#2", "sum#3"]
    assert report.groups[4, "sum"] == ["sum#0@4", "sum#1@4", "sum#2@4", "sum#3@4"]


def test_no_name_stands_for_two_samples() -> None:
    named = [EvaluationRecord(0, "a@2"), EvaluationRecord(1, "a"), EvaluationRecord(2, "a")]
    unnamed = [EvaluationRecord(0), EvaluationRecord(0), EvaluationRecord(0)]
    for records in (named, unnamed):
        report = Report(BenchmarkResult.from_records("names", records))
        assert list(report.samples.values()) == records


def test_the_interval_is_wilsons_for_single_outcomes_alone() -> None:
    once = Report(run_benchmark(sums(), policy=add))
    assert once.interval == once.estimate.t_interval()  # a sum that is close scores a half
    right = Report(run_benchmark(sums(4), policy=add))
    assert right.interval == right.estimate.wilson_interval()
    twice = Report(run_benchmark(sums(), policy=add, epochs=2))
    assert twice.interval == twice.estimate.t_interval()


def test_the_length_of_a_message_is_that_of_what_it_says() -> None:
    words: Any = {"role": "assistant", "content": "It is 391."}
    pictured = {**words, "content": [{"type": "text", "text": "It is 391."}]}
    call = {"name": "now", "arguments": {}}
    calling = {**words, "tool_calls": [call]}
    actions = ["It is 391.", words, pictured, [words, words], calling, call, 391]
    size = len('{"name":"now","arguments":{}}')
    assert list(map(length, actions)) == [10, 10, 10, 20, 10 + size + 2, size, 3]
    chats = Benchmark("chats", ["17 times 23?"], ChatEnv)
    assert list(Report(run_benchmark(chats, policy=lambda _: words)).lengths.values()) == [10]


def test_an_empty_run_has_a_report(tmp_path: Path) -> None:
    report = Report(run_benchmark(sums(0), policy=add))
    assert (report.samples, report.lengths, report.select()) == ({}, {}, {})


def test_samples_are_selected_by_outcome_score_and_words(tmp_path: Path) -> None:
    report = read_report(write_groups(tmp_path / "groups.jsonl"))
    assert list(report.select(outcomes=["wrong", "failed"])) == ["sum#0", "slow#1"]
    assert list(report.select(min_score=0.5, max_score=0.75)) == ["product#0", "sum#1"]
    assert list(report.select(max_score=0)) == ["sum#0"]
    assert list(report.select(text="IT IS 391")) == ["product#0"]
    assert list(report.select(text="too slow")) == ["slow#1"]
    assert list(report.select(text="timeouterror")) == ["slow#1"]
    assert list(report.select(text="sum#3")) == ["sum#3"]
    assert list(report.select(text='"b": 23')) == ["product#0"]
    assert report.select(text="sum", outcomes=["failed"]) == {}
    assert report.select() == report.samples


def test_a_selection_that_cannot_be_is_refused(tmp_path: Path) -> None:
    report = read_report(write_groups(tmp_path / "groups.jsonl"))
    with pytest.raises(ValueError, match=r"outcomes must be a collection of 'credited'.*'right'"):
        report.select(outcomes=["right"])  # pyright: ignore[reportArgumentType]
    with pytest.raises(ValueError, match="needs a report with a baseline"):
        report.select(changes=["better"])


def test_a_sample_is_found_by_its_name_or_that_of_its_item(tmp_path: Path) -> None:
    report = read_report(write_groups(tmp_path / "groups.jsonl"))
    assert report.sample("product") is report.samples["product#0"]
    with pytest.raises(
        LookupError, match=r"no sample 'sum' in 'groups'; did you mean 'sum#0', 'sum#1'"
    ):
        report.sample("sum")
    with pytest.raises(LookupError, match="did you mean 'product#0'"):
        report.sample("produkt#0")


def test_two_runs_are_compared_on_the_items_that_both_have() -> None:
    baseline = Report(run_benchmark(sums(6), policy=lambda _: "3", epochs=2))
    report = Report(run_benchmark(sums(5), policy=add), baseline=baseline)
    assert report.comparison is not None
    assert (report.comparison.num_left_out, report.comparison.difference.num_items) == (1, 5)
    assert report.changes == {
        **dict.fromkeys(["sum-0", "sum-1", "sum-3", "sum-4"], "better"),
        "sum-2": "equal",
    }
    assert list(report.select(changes=["equal"])) == ["sum-2"]


def test_runs_without_a_common_item_are_refused(tmp_path: Path) -> None:
    write_groups(tmp_path / "groups.jsonl")
    run_benchmark(sums(), policy=add, log=tmp_path / "run.jsonl")
    with pytest.raises(ValueError, match="no item in common"):
        read_report(tmp_path / "run.jsonl", baseline=tmp_path / "groups.jsonl")


def test_a_failed_sample_says_why() -> None:
    report = Report(run_benchmark(sums(4), policy=Failing({1: OSError("no route to the model")})))
    assert list(report.select(outcomes=["failed"])) == ["sum-1"]
    assert list(report.select(text="no route")) == ["sum-1"]


def test_hostile_items_have_rows_in_a_table(tmp_path: Path) -> None:
    """Lone surrogates among them, for which JSON has no form."""
    items = [{"text": text} for text in HOSTILE.values()]
    benchmark = Benchmark("texts", items, lambda _: SumEnv(Sum(1, 1)))
    run_benchmark(benchmark, policy=lambda _: "2", log=tmp_path / "run.jsonl")
    assert len([row["item"] for row in read_log(tmp_path / "run.jsonl").rows()]) == len(HOSTILE)
