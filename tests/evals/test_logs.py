"""Logs of evaluations: what is in them, runs that go on with them, and tables of them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import datasets
import pandas as pd
import polars as pl
import pytest

from evals.sums import Failing, Sum, SumEnv, aadd, add, sums, timeless
from rolloutlib import AsyncEnv, as_async, collect
from rolloutlib.evals import (
    Benchmark,
    BenchmarkResult,
    EvaluationRecord,
    arun_benchmark,
    read_log,
    run_benchmark,
    run_benchmarks,
)
from rolloutlib.evals.benchmarks import gsm8k
from rolloutlib.rollouts import Timeouts, summarize
from rolloutlib.storage import GroupStore, TornLineWarning, read_groups

pytestmark = pytest.mark.anyio


def never(question: str) -> str:
    raise AssertionError(question)


def test_figures_recomputed_from_the_log_equal_the_live_ones(tmp_path: Path) -> None:
    policy = Failing({1: ValueError("gone")})
    result = run_benchmark(sums(), policy=policy, epochs=2, log=tmp_path / "new" / "log.jsonl")
    log = read_log(tmp_path / "new" / "log.jsonl")
    found = log.result()
    assert found.records == result.records
    assert timeless(found) == timeless(result)
    assert found.elapsed_seconds > 0
    assert found.num_errors == 2
    assert summarize(read_groups(log.path)).failed == 2


def test_the_header_tells_what_was_run(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    arguments: dict[str, Any] = {"model": "tiny", "metadata": {"commit": "abc", "sum": Sum(1, 2)}}
    run_benchmark(sums(), policy=add, limit=2, shuffle=True, seed=3, log=path, **arguments)
    header = dict(read_log(path).header)
    assert header.pop("dataset").startswith("sha256:")
    assert "SumEnv" in header.pop("make_env")
    assert set(header.pop("versions")) == {"python", "rolloutlib-core", "rolloutlib-evals"}
    assert header == {
        "evaluation": 1,
        "benchmark": "sums",
        "benchmark_metadata": {"kind": "sums"},
        "num_items": 6,
        "num_samples": 2,
        "model": "tiny",
        "seed": 3,
        "limit": 2,
        "item_ids": None,
        "shuffle": True,
        "epochs": 1,
        "max_steps": None,
        "metadata": {"commit": "abc", "sum": {"a": 1, "b": 2}},
        "stop_when": None,
    }


def test_a_policy_names_the_model_itself_if_it_can(tmp_path: Path) -> None:
    class Sampler:
        model = "tiny-2"

        def __call__(self, question: str) -> str:
            return "1"

    run_benchmark(sums(1), policy=Sampler(), log=tmp_path / "one")
    run_benchmark(sums(1), policy=add, log=tmp_path / "two")
    assert read_log(tmp_path / "one").header["model"] == "tiny-2"
    assert read_log(tmp_path / "two").header["model"] == "add"


def test_each_sample_is_in_the_file_before_the_next_one_begins(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    lines: list[int] = []

    def policy(question: str) -> str:
        lines.append(path.read_bytes().count(b"\n"))
        return "1"

    run_benchmark(sums(3), policy=policy, log=path)
    assert lines == [1, 2, 3]


def test_a_finished_run_is_read_and_not_played(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    first = run_benchmark(sums(), policy=add, epochs=2, log=path, model="m")
    data = path.read_bytes()
    again = run_benchmark(sums(), policy=never, epochs=2, log=path, model="m", concurrency=3)
    assert again.records == first.records
    assert path.read_bytes() == data


@pytest.mark.filterwarnings("ignore::rolloutlib.storage.TornLineWarning")
def test_a_run_whose_log_ends_anywhere_ends_as_one_that_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    arguments: dict[str, Any] = {"epochs": 2, "log": path, "shuffle": True}
    expected = run_benchmark(sums(3), policy=add, **arguments)
    data = path.read_bytes()
    for cut in range(0, len(data), 211):
        path.write_bytes(data[:cut])
        result = run_benchmark(sums(3), policy=add, **arguments)
        assert timeless(result) == timeless(expected)
        assert timeless(read_log(path).result()) == timeless(expected)


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs SIGKILL")
@pytest.mark.parametrize("kind", ["sync", "asyncio", "trio"])
def test_a_run_that_is_killed_ends_as_one_that_is_not(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "log.jsonl"
    script = str(Path(__file__).with_name("killed_run.py"))
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}
    kept = [0]
    for number in (1, 2, 7, 10):
        command = [sys.executable, "-W", "ignore", script, str(path), kind, str(number)]
        process = subprocess.run(command, env=environment, capture_output=True, check=False)
        assert (process.returncode, process.stdout) == (-signal.SIGKILL, b"")
        kept.append(path.read_bytes().count(b"\n") - 1 if path.exists() else 0)
    assert 0 < kept[-1] < 12
    result = run_benchmark(sums(), policy=add, epochs=2, log=path, model="m")
    whole = run_benchmark(sums(), policy=add, epochs=2)
    assert timeless(result) == timeless(whole)
    assert timeless(read_log(path).result()) == timeless(whole)


class Other(SumEnv):
    """Another environment."""


CHANGES: list[tuple[dict[str, Any], str]] = [
    ({"epochs": 2}, "epochs was 1 and is 2"),
    ({"seed": 1}, "seed was 0 and is 1"),
    ({"limit": 2}, "limit was None and is 2"),
    ({"shuffle": True}, "shuffle was False and is True"),
    ({"max_steps": 3}, "max_steps was None and is 3"),
    ({"model": "other"}, "model was 'm' and is 'other'"),
    ({"metadata": {"x": 1}}, r"metadata was {} and is {'x': 1}"),
    ({"benchmark": sums(5)}, "dataset was 'sha256:.*num_items was 6 and is 5"),
    ({"benchmark": sums(name="other")}, "benchmark was 'sums' and is 'other'"),
    ({"benchmark": sums(make_env=Other)}, "make_env was .*SumEnv.* and is .*Other"),
]


@pytest.mark.parametrize(("change", "message"), CHANGES)
async def test_a_log_of_another_run_is_refused_and_what_differs_is_said(
    tmp_path: Path, change: dict[str, Any], message: str
) -> None:
    path = tmp_path / "log.jsonl"
    arguments: dict[str, Any] = {"benchmark": sums(), "log": path, "model": "m"}
    run_benchmark(policy=add, **arguments)
    data = path.read_bytes()
    with pytest.raises(ValueError, match=message):
        run_benchmark(policy=never, **{**arguments, **change})
    with pytest.raises(ValueError, match=message) as caught:
        await arun_benchmark(policy=never, **{**arguments, **change})
    assert BenchmarkResult.from_exception(caught.value) is None
    assert path.read_bytes() == data


def test_contents_that_changed_under_the_same_name_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    one = Benchmark("b", [Sum(1, 2)], SumEnv, item_id=lambda _: "x")
    other = Benchmark("b", [Sum(2, 2)], SumEnv, item_id=lambda _: "x")
    run_benchmark(one, policy=add, log=path)
    with pytest.raises(ValueError, match="dataset was 'sha256:"):
        run_benchmark(other, policy=add, log=path)


def test_an_update_of_the_library_does_not_end_a_run(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    run_benchmark(sums(3), policy=add, log=path)
    header, first, *_ = path.read_text("utf-8").splitlines(keepends=True)
    header = header.replace('"rolloutlib-evals":"', '"rolloutlib-evals":"0.0.')
    path.write_text(header + first, "utf-8")
    assert run_benchmark(sums(3), policy=add, log=path).score == 1.0
    assert read_log(path).header["versions"]["rolloutlib-evals"].startswith("0.0.")


def test_an_item_that_holds_more_than_data_is_logged_without_it(tmp_path: Path) -> None:
    items: list[dict[str, Any]] = [{"a": 1, "b": 2, "lock": object()}]
    benchmark = Benchmark("odd", items, lambda item: SumEnv(Sum(item["a"], item["b"])))
    result = run_benchmark(benchmark, policy=add, log=tmp_path / "log.jsonl")
    assert result.records[0].item == {"a": 1, "b": 2, "lock": None}
    again = run_benchmark(benchmark, policy=add, log=tmp_path / "log.jsonl")
    assert again.records == result.records


def test_each_of_several_benchmarks_has_a_log(tmp_path: Path) -> None:
    benchmarks = [sums(2, name="a/b"), sums(3, name="c")]
    results = run_benchmarks(benchmarks, policy=add, log=tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a_b.jsonl", "c.jsonl"]
    assert read_log(tmp_path / "c.jsonl").result().records == results["c"].records


def test_reading_is_lazy_and_a_torn_line_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    run_benchmark(sums(), policy=add, log=path)
    path.write_bytes(path.read_bytes()[:-10])
    records = iter(read_log(path))
    assert next(records).item_id == "sum-0"
    with pytest.warns(TornLineWarning):
        assert len(list(records)) == 4
    with pytest.warns(TornLineWarning):
        result = read_log(path).result()
    assert (result.num_examples, result.num_remaining, result.num_expected) == (5, 1, 6)


def test_other_files_are_no_logs(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        read_log(tmp_path / "none")
    path = tmp_path / "log.jsonl"
    run_benchmark(sums(1), policy=add, log=path)
    path.write_text(path.read_text("utf-8").replace('"evaluation":1', '"evaluation":2'), "utf-8")
    with pytest.raises(ValueError, match=r"is a log of version 2, written by .*, reads version 1$"):
        read_log(path)
    list(collect([1], lambda a: SumEnv(Sum(a, 1)), add, store=GroupStore(tmp_path / "run.jsonl")))
    with pytest.raises(ValueError, match="is no log of an evaluation, but of another run"):
        read_log(tmp_path / "run.jsonl")


def test_a_group_of_another_run_is_no_record() -> None:
    [group] = collect([Sum(1, 2)], SumEnv, add)
    with pytest.raises(ValueError, match="is no sample of an evaluation"):
        EvaluationRecord.from_group(group)


def test_a_log_is_a_table_in_one_line(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    policy = Failing({1: ValueError("gone")})
    result = run_benchmark(sums(), policy=policy, epochs=2, log=path)
    log = read_log(path)
    frame: Any = pd.DataFrame(log.rows())
    assert frame["score"].fillna(0).mean() == result.score
    assert frame["component_exact"].mean() == result.components["exact"]
    assert frame["component_even"].count() == result.component_counts["even"]
    first = frame.iloc[0].to_dict()
    assert (first["item_id"], first["epoch"], first["prompt"]) == ("sum-0", 0, "0 + 1 = ?")
    assert (first["response"], first["expected"], first["status"]) == ("1", "1", "found")
    assert (first["tokens"], first["stop_reason"], first["num_steps"]) == (2, "stop", 1)
    assert json.loads(first["item"]) == {"a": 0, "b": 1}
    failed = frame.iloc[1].to_dict()
    assert (failed["outcome"], failed["error"], failed["phase"]) == ("failed", "gone", "policy")

    table = pl.DataFrame(list(log.rows()), infer_schema_length=None)
    assert table["outcome"].to_list() == frame["outcome"].to_list()
    dataset = datasets.Dataset.from_list(list(log.rows()))
    assert dataset["item_id"] == frame["item_id"].to_list()
    assert dataset.column_names == list(frame.columns)


def test_a_log_of_gsm8k_tells_what_was_extracted(tmp_path: Path) -> None:
    examples = [{"question": f"What is {n} + 1?", "answer": f"#### {n + 1}"} for n in range(3)]
    replies = {"0": "So \\boxed{1}.", "1": "<think>2?", "2": "2 or 3, so the answer is 2 or 3."}

    def policy(chat: Any) -> str:
        return replies[chat[-1]["content"].split()[2]]

    run_benchmark(gsm8k(examples), policy=policy, log=tmp_path / "log.jsonl")
    rows = list(read_log(tmp_path / "log.jsonl").rows())
    assert [row["outcome"] for row in rows] == ["credited", "truncated", "no_answer"]
    assert [row["status"] for row in rows] == ["found", "truncated", "ambiguous"]
    assert [row["extracted"] for row in rows] == ["1", None, None]
    assert json.loads(rows[0]["prompt"]) == [{"role": "user", "content": "What is 0 + 1?"}]


async def test_asynchronous_runs_go_on_with_logs_too(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    made: list[int] = []

    def make_env(item: Sum) -> AsyncEnv[str, str]:
        made.append(item.a)
        return as_async(SumEnv(item))

    arguments: dict[str, Any] = {"log": path, "model": "m", "timeouts": Timeouts(episode=600)}
    first = await arun_benchmark(sums(make_env=make_env), policy=aadd, concurrency=2, **arguments)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:4]))
    made.clear()
    again = await arun_benchmark(sums(make_env=make_env), policy=aadd, concurrency=3, **arguments)
    assert timeless(again) == timeless(first)
    assert len(made) == 3
