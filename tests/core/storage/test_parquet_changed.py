"""Tables and files of groups that other libraries have changed, written anew or put together."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest

from rolloutlib import RolloutError, Score, Step, Trajectory, TrajectoryGroup
from rolloutlib.storage import from_arrow, read_parquet, to_arrow, write_parquet

pa: Any = pytest.importorskip("pyarrow")
pandas: Any = pytest.importorskip("pandas")

Group = TrajectoryGroup[Any, Any, Any]


def episode(member: int, seed: int | None = None) -> Trajectory[Any, Any]:
    steps = [Step("o", "a", 1.0, "o", True, False, policy_tokens=[member])]
    return Trajectory("o", steps, terminated=True, member=member, seed=seed)


def group(item: Any, *members: int, **fields: Any) -> Group:
    return TrajectoryGroup(item, str(item), [episode(member) for member in members], **fields)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (group("q", 0, 1), group("another", 0, 1)),
        (group("q", 0, 1, seed=1), group("q", 0, 1, seed=2)),
        (group("q", 0, 1, metadata={"run": 1}), group("q", 0, 1, metadata={"run": 2})),
        (group("1", 0, 1), group(1, 0, 1)),
    ],
)
def test_groups_of_several_tables_are_told_apart_by_more_than_their_numbers(
    one: Group, other: Group
) -> None:
    first = pl.DataFrame(to_arrow([one])).filter(pl.col("member") == 0)
    second = pl.DataFrame(to_arrow([other])).filter(pl.col("member") == 1)
    read = list(from_arrow(pl.concat([first, second])))
    assert [each.item for each in read] == [one.item, other.item]
    assert [each.trajectories for each in read] == [one.trajectories[:1], other.trajectories[1:]]


def test_a_score_that_was_changed_is_the_score() -> None:
    score = Score(0.5, {"format": 1.0}, feedback="good")
    frame = pl.DataFrame(to_arrow([TrajectoryGroup("q", "q", [episode(0)], [score])]))
    [read] = from_arrow(frame.with_columns(score=pl.lit(2.0)))
    assert read.scores == (Score(2.0, {"format": 1.0}, feedback="good"),)


def test_a_column_of_another_type_is_named(tmp_path: Path) -> None:
    frame = pl.DataFrame(to_arrow([group("q", 0)])).with_columns(tokens=pl.lit("none"))
    with pytest.raises(
        ValueError, match=r"the column 'tokens' of the table is of type string_view"
    ):
        from_arrow(frame)
    frame.write_parquet(tmp_path / "changed.parquet")
    with pytest.raises(ValueError, match=r"^the column 'tokens' of '.*changed.parquet' is of type"):
        list(read_parquet(tmp_path / "changed.parquet"))
    with pytest.raises(TypeError, match=r"pyarrow makes no table of an object of type 'int'"):
        from_arrow(3)


def test_categories_of_pandas_are_texts() -> None:
    frame = to_arrow([group("q", 0)]).to_pandas()
    frame["outcome"] = frame["outcome"].astype("category")
    assert list(from_arrow(frame)) == [group("q", 0)]


def test_seeds_that_pandas_has_rounded_are_refused() -> None:
    def through_pandas(seed: int, **arguments: Any) -> list[Group]:
        failed = RolloutError("OSError", "no room", index=1)  # without a seed: pandas takes floats
        written = TrajectoryGroup("q", "q", [episode(0, seed)], errors=[failed])
        return list(from_arrow(to_arrow([written]).to_pandas(**arguments)))

    [read] = through_pandas(2**53 - 1)
    assert read.trajectories[0].seed == 2**53 - 1
    with pytest.raises(ValueError, match=r"'seed' .* of more than 53 bits have lost digits"):
        through_pandas(2**53 + 1)
    [read] = through_pandas(2**53 + 1, types_mapper=pandas.ArrowDtype)
    assert read.trajectories[0].seed == 2**53 + 1


def test_a_missing_number_of_a_row_is_refused(tmp_path: Path) -> None:
    write_parquet([group("q", 0, 1)], tmp_path / "groups.parquet")
    frame = pl.read_parquet(tmp_path / "groups.parquet").with_columns(row=None)
    with pytest.raises(ValueError, match=r"row None of group 0 .'q'."):
        list(from_arrow(frame))
