"""Parquet files of groups in the hands of other libraries, without rolloutlib."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import polars as pl
import pytest

from rolloutlib import RolloutError, Step, Trajectory, TrajectoryGroup
from rolloutlib.storage import from_arrow, read_parquet, to_arrow, write_parquet

pq: Any = pytest.importorskip("pyarrow.parquet")
pandas: Any = pytest.importorskip("pandas")
datasets: Any = pytest.importorskip("datasets")

sql: Any = duckdb.sql

Group = TrajectoryGroup[Any, Any, Any]

TOKENS = [[[1, 2], None], [[3], [4, 5, 6]]]
LOGPROBS = [[[-0.5, -0.1], None], [[-0.25], [-1e-7, -2.0, -3.0]]]
CHAT = [{"role": "user", "content": "caf\xe9 \u2028 \0"}]


def member(index: int) -> Trajectory[Any, Any]:
    steps = [
        Step(
            *(CHAT, f"action {step}", float(index), CHAT, step == 1, False),
            policy_tokens=TOKENS[index][step],
            policy_logprobs=LOGPROBS[index][step],
        )
        for step in range(2)
    ]
    return Trajectory(CHAT, steps, terminated=True, member=index, seed=index)


GROUPS: Sequence[Group] = [
    TrajectoryGroup(
        {"question": "q"},
        "q",
        [member(0), member(1)],
        errors=[RolloutError("OSError", "no room", index=2, phase="reset")],
        metadata={"run": 1},
    ),
    TrajectoryGroup("plain", "empty", []),
]


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> str:
    file = tmp_path_factory.mktemp("parquet") / "groups.parquet"
    write_parquet(GROUPS, file)
    return str(file)


def test_pyarrow_reads_the_columns_and_the_version(path: str) -> None:
    table = pq.read_table(path)
    assert table.schema.metadata[b"rolloutlib.format"] == b"rolloutlib.trajectories"
    assert table.schema.metadata[b"rolloutlib.version"] == b"1"
    assert table["tokens"].to_pylist() == [*TOKENS, None, None]
    assert table["outcome"].to_pylist() == ["completed", "completed", "failed", "empty"]


def test_pandas_reads_the_columns(path: str) -> None:
    frame = pandas.read_parquet(path)
    assert frame.groupby("item_id")["score"].mean()["q"] == 1.0
    first = frame.iloc[0]
    assert [None if ids is None else ids.tolist() for ids in first["tokens"]] == TOKENS[0]
    assert first["logprobs"][0].dtype == np.float32
    assert json.loads(first["observations"][0]) == CHAT
    assert list(from_arrow(frame)) == GROUPS


def test_polars_reads_the_columns(path: str) -> None:
    frame = pl.read_parquet(path)
    assert frame.schema["tokens"] == pl.List(pl.List(pl.Int32))
    assert frame.schema["logprobs"] == pl.List(pl.List(pl.Float32))
    assert frame["tokens"].to_list() == [*TOKENS, None, None]
    lengths = frame.select(pl.col("tokens").list.eval(pl.element().list.len()).list.sum())
    assert lengths["tokens"].to_list() == [2, 4, None, None]
    assert list(from_arrow(frame)) == GROUPS


def test_a_file_that_polars_wrote_holds_the_groups(path: str, tmp_path: Path) -> None:
    frame = pl.scan_parquet(path).filter(pl.col("outcome") != "empty").collect()
    frame.write_parquet(tmp_path / "filtered.parquet")
    assert list(read_parquet(tmp_path / "filtered.parquet")) == GROUPS[:1]


def test_duckdb_queries_the_columns(path: str) -> None:
    rows = sql(
        f"SELECT item_id, count(*) FILTER (outcome = 'failed'), avg(score), "  # noqa: S608
        f"sum(len(flatten(tokens))) FROM '{path}' WHERE outcome <> 'empty' GROUP BY item_id"
    ).fetchall()
    assert rows == [("q", 1, 1.0, 6)]
    [[content]] = sql(
        f"SELECT observations[1]->>'$[0].content' FROM '{path}' WHERE member = 0"  # noqa: S608
    ).fetchall()
    assert content == CHAT[0]["content"]
    assert sql(f"SELECT tokens FROM '{path}'").fetchall() == [  # noqa: S608
        *[(each,) for each in (*TOKENS, None, None)],
    ]


def test_a_relation_of_duckdb_holds_the_groups(path: str) -> None:
    relation = sql(f"SELECT * FROM '{path}' WHERE outcome <> 'empty' ORDER BY row")  # noqa: S608
    assert list(from_arrow(relation)) == GROUPS[:1]


def test_datasets_loads_the_columns(path: str, tmp_path: Path) -> None:
    loaded = datasets.Dataset.from_parquet(path, cache_dir=str(tmp_path))
    assert loaded["tokens"] == [*TOKENS, None, None]
    assert loaded[1]["actions"] == ["action 0", "action 1"]
    assert loaded.with_format("numpy")[0]["score"] == 0.0
    assert list(from_arrow(loaded.data.table)) == GROUPS


def test_the_documented_columns_are_those_of_the_file() -> None:
    docs = Path(__file__).parents[3] / "docs" / "storage.md"
    rows = re.findall(r"^\| (`\w+`(?:, `\w+`)*) \| ([\w<> ]+) \|", docs.read_text(), re.MULTILINE)
    documented = {name.strip("`"): kind for names, kind in rows for name in names.split(", ")}
    kinds = {"string": "text", "int64": "int64", "double": "float64"}
    schema = to_arrow([]).schema
    actual = {
        name: re.sub(r"element: |item: ", "", str(schema.field(name).type)) for name in schema.names
    }
    assert {name: kind for name, kind in documented.items() if name in actual} == {
        name: re.sub(r"string|int64|double", lambda found: kinds[found[0]], kind)
        for name, kind in actual.items()
    }
