"""What items, records and headers may hold, and what of it logs and their tables have."""

from __future__ import annotations

import dataclasses
import enum
import functools
import json
import sys
from pathlib import Path, PurePosixPath
from typing import Any

import datasets
import gymnasium as gym
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel

from evals.sums import Failing, Sum, SumEnv, add, sums, timeless
from rolloutlib import PolicyOutput, Score, SingleTurnEnv
from rolloutlib.evals import Benchmark, BenchmarkResult, StopWhen, read_log, run_benchmark


class Level(enum.Enum):
    """How hard a problem is."""

    EASY = "easy"
    HARD = "hard"


class Name(str):
    """A kind of text."""

    __slots__ = ()


class Problem(BaseModel):
    """A problem with more to it than JSON has."""

    level: Level
    file: PurePosixPath = PurePosixPath("a/b")


@dataclasses.dataclass(frozen=True, slots=True)
class Move:
    """An action of a type of one's own."""

    number: int


class Shown(BaseModel):
    """An observation of a type of one's own."""

    number: int


class MoveEnv(SingleTurnEnv[Any, Any]):
    """Takes a number, shown and given in types of one's own."""

    observation_space: Any = gym.Space()
    action_space: Any = gym.Space()

    def __init__(self, item: int) -> None:
        super().__init__()
        self.item = item

    def initial_observation(
        self, *, options: dict[str, Any] | None = None
    ) -> tuple[Shown, dict[str, Any]]:
        return Shown(number=self.item), {}

    def evaluate(self, action: Move) -> Score:
        return Score(float(action.number == self.item))

    def terminal_observation(self, action: Move) -> Shown:
        return Shown(number=action.number)


def benchmark_of(item: Any) -> Benchmark[Any]:
    return Benchmark("odd", [item], lambda _: SumEnv(Sum(1, 2)))


def in_itself() -> list[Any]:
    item: list[Any] = [1]
    item.append(item)
    return item


def nested(levels: int) -> list[Any]:
    item: list[Any] = []
    for _ in range(levels):
        item = [item]
    return item


@pytest.mark.parametrize(
    ("item", "plain"),
    [
        (Level.HARD, "hard"),
        (Name("x"), "x"),
        (Problem(level=Level.EASY), {"level": "easy", "file": "a/b"}),
        ({Level.HARD: 1, Move(2): 3}, {"hard": 1, "Move(number=2)": 3}),
        (in_itself(), [1, None]),
        ([object(), (Name("x"),)], [None, ("x",)]),
    ],
)
def test_items_of_many_kinds_are_kept_as_plain_data(tmp_path: Path, item: Any, plain: Any) -> None:
    result = run_benchmark(benchmark_of(item), policy=add, log=tmp_path / "log.jsonl")
    assert result.records[0].item == plain
    assert read_log(tmp_path / "log.jsonl").result().records == result.records
    assert run_benchmark(benchmark_of(item), policy=add).records[0].item == plain


def test_an_item_may_be_nested_however_deep(tmp_path: Path) -> None:
    result = run_benchmark(benchmark_of(nested(500)), policy=add, log=tmp_path / "log.jsonl")
    assert read_log(tmp_path / "log.jsonl").result().records == result.records


def test_items_that_differ_in_a_member_of_an_enumeration_are_told_apart(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    run_benchmark(benchmark_of(Problem(level=Level.EASY)), policy=add, log=path)
    with pytest.raises(ValueError, match="dataset was"):
        run_benchmark(benchmark_of(Problem(level=Level.HARD)), policy=add, log=path)


def test_a_run_that_goes_on_has_values_of_the_same_types(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    benchmark = Benchmark("moves", [1, 2, 3], MoveEnv)

    def policy(shown: Shown, *, left: list[int]) -> Move:
        if not left:
            raise KeyboardInterrupt
        left.pop()
        return Move(shown.number)

    with pytest.raises(KeyboardInterrupt):
        run_benchmark(benchmark, policy=functools.partial(policy, left=[1, 2]), log=path)
    result = run_benchmark(benchmark, policy=functools.partial(policy, left=[3]), log=path)
    whole = run_benchmark(benchmark, policy=functools.partial(policy, left=[1, 2, 3]))
    assert timeless(result) == timeless(whole)
    trajectory = result.records[0].trajectory
    assert trajectory is not None
    assert (trajectory.initial_observation, trajectory.actions) == (Shown(number=1), (Move(1),))


def test_a_class_that_has_changed_leaves_a_dictionary(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    @dataclasses.dataclass
    class Changed:
        number: int
        speed: float

    path = tmp_path / "log.jsonl"
    benchmark = Benchmark("moves", [1], MoveEnv)
    run_benchmark(benchmark, policy=lambda _: Move(1), log=path, model="m")
    monkeypatch.setattr(sys.modules[__name__], "Move", Changed)
    [record] = run_benchmark(benchmark, policy=add, log=path, model="m").records
    assert record.trajectory is not None
    assert record.trajectory.actions == ({"number": 1},)


def test_a_class_that_is_gone_leaves_a_dictionary(tmp_path: Path) -> None:
    @dataclasses.dataclass
    class Local:
        number: int

    path = tmp_path / "log.jsonl"
    benchmark = Benchmark("moves", [1], MoveEnv)
    run_benchmark(benchmark, policy=lambda _: Local(1), log=path, model="m")
    [record] = run_benchmark(benchmark, policy=add, log=path, model="m").records
    assert record.trajectory is not None
    assert record.trajectory.actions == ({"number": 1},)


ODD = "lone \ud800, \x00 and \u2028, é"


def test_tables_have_what_libraries_take(tmp_path: Path) -> None:
    item = {"bytes": b"\xff", "text": ODD, "pair": (1, 2), "nan": float("nan"), 3: {4}}
    path = tmp_path / "log.jsonl"

    def policy(_: str) -> PolicyOutput[str]:
        return PolicyOutput(ODD, stop_reason=ODD)

    result = run_benchmark(benchmark_of(item), policy=policy, log=path)
    assert result.records[0].trajectory is not None
    assert result.records[0].trajectory.actions == (ODD,)
    assert read_log(path).result().records[0].trajectory == result.records[0].trajectory
    [row] = read_log(path).rows()
    shown = "lone \\ud800, \x00 and \u2028, é"
    assert (row["response"], row["stop_reason"]) == (shown, shown)
    form = json.loads(row["item"])
    assert form["values"][0] == {"$": "bytes", "base64": "/w=="}
    assert form["values"][2] == {"$": "tuple", "items": [1, 2]}
    frame: Any = pd.DataFrame([row])
    assert frame["response"][0] == shown
    assert pl.DataFrame([row])["response"][0] == shown
    assert datasets.Dataset.from_list([row])["response"][0] == shown


def test_what_comes_first_far_down_in_a_log_is_in_its_table(tmp_path: Path) -> None:
    policy = Failing({130: ValueError("gone")})
    run_benchmark(sums(140), policy=policy, log=tmp_path / "log.jsonl")
    rows = list(read_log(tmp_path / "log.jsonl").rows())
    table = pl.DataFrame(rows, infer_schema_length=None)
    assert table["error"].drop_nulls().to_list() == ["gone"]
    assert table.schema["tokens"] == pl.Int64
    assert datasets.Dataset.from_list(rows)["error"][130] == "gone"
    frame: Any = pd.DataFrame(rows)
    assert frame["error"].count() == 1


def test_metadata_of_a_benchmark_may_hold_more_than_data(tmp_path: Path) -> None:
    metadata = {"source": Sum(1, 2), "lock": object()}
    benchmark = dataclasses.replace(sums(1), metadata=metadata)
    run_benchmark(benchmark, policy=add, log=tmp_path / "log.jsonl")
    header = read_log(tmp_path / "log.jsonl").header
    assert header["benchmark_metadata"] == {"source": {"a": 1, "b": 2}, "lock": None}


def test_the_order_in_which_items_are_asked_for_makes_no_other_run(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    first = run_benchmark(sums(), policy=add, log=path, item_ids=["sum-3", "sum-1", "sum-3"])
    again = run_benchmark(sums(), policy=add, log=path, item_ids=["sum-1", "sum-3"])
    assert again.records == first.records
    assert read_log(path).header["item_ids"] == ["sum-1", "sum-3"]


def sample(question: str, temperature: float, **settings: Any) -> PolicyOutput[str]:
    return add(question)


def test_a_policy_with_other_settings_is_another(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    policy = functools.partial(sample, temperature=0.7, model="tiny", api_key="sk-1")
    run_benchmark(sums(1), policy=policy, log=path)
    assert read_log(path).header["model"] == "sample(model='tiny', temperature=0.7)"
    assert b"sk-1" not in path.read_bytes()
    with pytest.raises(ValueError, match=r"model was .*=0\.7\)\" and is .*=1\.0\)\""):
        run_benchmark(sums(1), policy=functools.partial(policy, temperature=1.0), log=path)


@given(
    scores=st.lists(
        st.lists(st.none() | st.floats(0, 1), min_size=2, max_size=2), min_size=1, max_size=8
    ),
    stop_when=st.none() | st.builds(StopWhen, st.floats(0.5, 0.99)),
)
@settings(max_examples=30)
def test_figures_of_the_log_equal_the_live_ones_to_the_bit(
    tmp_path: Path, scores: list[list[float | None]], stop_when: StopWhen | None
) -> None:
    calls: dict[int, int] = {}

    class Scored(SumEnv):
        def evaluate(self, action: str) -> Score:
            calls[self.item.a] = calls.get(self.item.a, -1) + 1
            value = scores[self.item.a][calls[self.item.a]]
            if value is None:
                raise ValueError(action)
            return Score(value, {f"part {value > 0.5}": value / 3})

    path = tmp_path / "log.jsonl"
    path.unlink(missing_ok=True)
    arguments: dict[str, Any] = {"epochs": 2, "shuffle": True, "stop_when": stop_when}
    benchmark = sums(len(scores), make_env=Scored)
    result = run_benchmark(benchmark, policy=add, log=path, **arguments)
    found = read_log(path).result()
    assert repr(figures(found)) == repr(figures(result))
    assert found.records == result.records
    again = run_benchmark(benchmark, policy=Failing({}), model="add", log=path, **arguments)
    assert repr(figures(again)) == repr(figures(result))


def figures(result: BenchmarkResult) -> dict[str, Any]:
    """All of a result but for its time and its records."""
    return {**vars(timeless(result)), "records": None, "bounds": result.score_bounds}
