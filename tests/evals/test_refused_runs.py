"""Runs that are refused before anything is spent on them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from evals.sums import Sum, SumEnv, add, sums
from rolloutlib.evals import (
    Benchmark,
    BenchmarkResult,
    arun_benchmark,
    arun_benchmarks,
    read_log,
    run_benchmark,
    run_benchmarks,
)

pytestmark = pytest.mark.anyio

WRONG: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({}, TypeError, "either `evaluate` is needed"),
    ({"policy": add, "evaluate": add}, TypeError, "either `evaluate` is needed"),
    ({"evaluate": add, "epochs": 2, "log": "x"}, TypeError, "epochs, log: for runs with `policy`"),
    ({"policy": 3}, TypeError, "policy must be callable, got 3"),
    ({"policy": add, "epochs": 0}, ValueError, "epochs must be at least 1, got 0"),
    ({"policy": add, "seed": -1}, ValueError, "seed must be at least 0, got -1"),
    ({"policy": add, "limit": -1}, ValueError, "limit must not be negative, got -1"),
    ({"policy": add, "item_ids": "sum-1"}, TypeError, "item_ids must be a sequence of names"),
    ({"policy": add, "item_ids": ["x"]}, ValueError, r"'sums' has no items \['x'\]"),
    ({"policy": add, "item_ids": 5}, TypeError, "item_ids must be a sequence of names, got 5"),
    ({"policy": add, "item_ids": [7, "x"]}, ValueError, r"'sums' has no items \[7, 'x'\]"),
    ({"policy": add, "fail_fast": "no"}, TypeError, "fail_fast must be a bool, got 'no'"),
    ({"policy": add, "log": 3}, TypeError, "log must be a path or None, got 3"),
    ({"policy": add, "max_errors": -1}, ValueError, "max_errors must be at least 0"),
    ({"policy": add, "model": 3}, TypeError, "model must be a name or None, got 3"),
    ({"policy": add, "concurrency": 0}, ValueError, "concurrency must be at least 1"),
    ({"policy": add, "retry": 3}, TypeError, "retry must be a Retry"),
    ({"policy": add, "metadata": 5}, TypeError, "metadata must be a mapping or None, got 5"),
    ({"policy": add, "shuffle": "no"}, TypeError, "shuffle must be a bool, got 'no'"),
    ({"policy": add, "retry_failed": "no"}, TypeError, "retry_failed must be a bool, got 'no'"),
]


@pytest.mark.parametrize(("arguments", "error", "message"), WRONG)
async def test_bad_arguments_are_refused_before_anything_runs(
    arguments: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message) as caught:
        run_benchmark(sums(), **arguments)
    assert BenchmarkResult.from_exception(caught.value) is None
    with pytest.raises(error, match=message) as caught:
        await arun_benchmark(sums(), **arguments)
    assert BenchmarkResult.from_exception(caught.value) is None


def test_two_items_of_one_name_are_refused() -> None:
    benchmark = Benchmark("same", [Sum(1, 1), Sum(2, 1)], SumEnv, item_id=lambda _: "x")
    with pytest.raises(ValueError, match="items 0 and 1 of benchmark 'same' have one name, 'x'"):
        run_benchmark(benchmark, policy=add)


async def test_two_benchmarks_with_one_log_are_refused(tmp_path: Path) -> None:
    benchmarks = [sums(name="a/b"), sums(name="a_b")]
    with pytest.raises(ValueError, match=r"'a/b' and 'a_b' have one log, .*a_b\.jsonl"):
        run_benchmarks(benchmarks, policy=add, log=tmp_path)
    with pytest.raises(ValueError, match=r"'a/b' and 'a_b' have one log, .*a_b\.jsonl"):
        await arun_benchmarks(benchmarks, policy=add, log=tmp_path)
    with pytest.raises(FileNotFoundError):
        read_log(tmp_path / "a_b.jsonl")


def test_names_that_can_be_read_once_stand_in_the_header(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    names: Any = (name for name in ("sum-3", "sum-1"))
    result = run_benchmark(sums(), policy=add, item_ids=names, log=path)
    assert read_log(path).header["item_ids"] == ["sum-1", "sum-3"]
    assert [record.item_id for record in result.records] == ["sum-1", "sum-3"]
    with pytest.raises(ValueError, match="item_ids was"):
        run_benchmark(sums(), policy=add, item_ids=[], log=path)
