"""Groups as Parquet files and Arrow tables, and back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.storage.made import contents, groups, is_identical
from rolloutlib import PolicyOutput, RolloutError, Score, Step, Trajectory, TrajectoryGroup
from rolloutlib.rollouts import UnstorableError
from rolloutlib.storage import from_arrow, read_parquet, to_arrow, write_parquet

pa: Any = pytest.importorskip("pyarrow")
pc: Any = pytest.importorskip("pyarrow.compute")
pq: Any = pytest.importorskip("pyarrow.parquet")

Group = TrajectoryGroup[Any, Any, Any]


def episode(*versions: Any, **fields: Any) -> Trajectory[Any, Any]:
    steps = [
        Step("o", "a", 1.0, "o", False, False, policy_version=version, policy_tokens=[index])
        for index, version in enumerate(versions)
    ]
    return Trajectory("o", steps, terminated=True, **fields)


def group(number: int, *members: Trajectory[Any, Any], **fields: Any) -> Group:
    return TrajectoryGroup(number, f"id {number}", members, **fields)


def through_arrow(*written: Group, **arguments: Any) -> list[Group]:
    return list(from_arrow(to_arrow(written), **arguments))


@given(st.lists(groups(), max_size=3))
@settings(max_examples=50)
def test_every_group_comes_back_as_it_was(tmp_path: Path, written: list[Group]) -> None:
    write_parquet(written, tmp_path / "groups.parquet")
    for read in (
        list(read_parquet(tmp_path / "groups.parquet")),
        list(from_arrow(to_arrow(written))),
    ):
        assert is_identical(contents(read), contents(written))


@pytest.mark.parametrize(
    "versions",
    [
        (3, 4),
        ("a", None),
        ("3", 3),
        ("-3",),
        ("007", 7),
        (2**63, "x"),
        (-(2**63),),
        ("", 0),
        ("²",),
    ],
)
def test_versions_stay_numbers_or_text(versions: tuple[Any, ...]) -> None:
    [read] = through_arrow(group(0, episode(*versions)))
    assert [step.policy_version for step in read.trajectories[0].steps] == list(versions)


def test_what_no_column_can_hold_is_kept_beside_them() -> None:
    wide = Step(
        "o", "a", 0.0, "o", False, False, policy_tokens=[2**40, 1], policy_stop_reason="\ud800"
    )
    written = group(0, Trajectory("o", [wide, wide], seed=2**70), seed=-(2**64))
    table = to_arrow([written])
    row = table.to_pylist()[0]
    assert row["tokens"] is row["stop_reasons"] is row["seed"] is row["group_seed"] is None
    assert is_identical(contents(list(from_arrow(table))), contents([written]))


def test_groups_without_episodes_and_failures_survive() -> None:
    partial = episode(1, member=2, seed=5)
    early = RolloutError("OSError", "no room", index=1, phase="make_env", traceback="...")
    late = RolloutError(
        "ValueError", "no", index=2, attempt=1, phase="step", seed=5, trajectory=partial
    )
    written = [
        group(0),
        group(1, errors=[early]),
        group(2, episode(1, member=0), errors=[early, late], retried=[late, early]),
        group(3, retried=[early]),
        group(4),
    ]
    table = to_arrow(written)
    assert table["outcome"].to_pylist() == [
        *("empty", "failed", "completed", "failed", "failed", "retried", "retried", "retried"),
        "empty",
    ]
    assert list(from_arrow(table)) == written


def test_nothing_is_an_empty_table(tmp_path: Path) -> None:
    assert through_arrow() == []
    write_parquet([], tmp_path / "none.parquet")
    assert list(read_parquet(tmp_path / "none.parquet")) == []


def test_an_observation_that_two_steps_share_is_shared_when_read() -> None:
    chats = [[{"role": "user", "content": str(i)}] for i in range(3)]
    moves = [Step(list(chats[i]), "a", 0.0, chats[i + 1], False, False) for i in range(2)]
    table = to_arrow([group(0, Trajectory(chats[0], moves))])
    assert table["exact"].to_pylist() == [None]
    [read] = from_arrow(table)
    steps = read.trajectories[0].steps
    assert steps == tuple(moves)
    assert steps[1].observation is steps[0].next_observation


def test_values_of_other_types_go_through_functions_of_the_user(tmp_path: Path) -> None:
    written = group(0, Trajectory(Path("a"), [Step(Path("a"), "a", 0.0, Path("b"), True, False)]))
    path = tmp_path / "groups.parquet"
    with pytest.raises(
        UnstorableError, match=r"^group 'id 0'\.trajectories\[0\]\.observations\[0\] is of type"
    ):
        write_parquet([written], path)
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(UnstorableError, match=r"^group 'id'\.item\['k'\] is of type"):
        to_arrow([TrajectoryGroup({"k": path}, "id", [])])

    failed = RolloutError("OSError", "no room", output=PolicyOutput({"x": path}, tokens=[1]))
    unplayed = TrajectoryGroup("item", "id", [], errors=[failed])
    with pytest.raises(
        UnstorableError, match=r"^group 'id'\.errors\[0\]\.output\.action\['x'\] is of type"
    ):
        to_arrow([unplayed])

    def encode(value: object) -> str:
        if isinstance(value, Path):
            return str(value)
        raise TypeError

    write_parquet([written, unplayed], path, encode=encode)
    assert list(read_parquet(path, decode=lambda name, text: Path(text))) == [written, unplayed]
    with pytest.raises(
        ValueError, match=r"row 0 of group 0 .'id 0'.: a value of type .*Path needs"
    ):
        list(read_parquet(path))


def test_records_of_other_classes_are_refused() -> None:
    class Longer(Trajectory[Any, Any]):
        pass

    with pytest.raises(UnstorableError, match=r"trajectories\[1\] is no Trajectory, but .*Longer"):
        to_arrow([group(0, episode(1), Longer("o"))])


def test_the_columns_are_typed_and_numbers_are_numbers() -> None:
    prompt, tokens, logprobs = [1, 2, 3], [7, 8], [-0.5, -0.25]
    step = Step(
        *("o", {"x": 1}, 0.5, "p", True, False),
        policy_prompt_tokens=prompt,
        policy_tokens=tokens,
        policy_logprobs=logprobs,
        policy_stop_reason="stop",
        policy_version=3,
    )
    member = Trajectory("o", [step], terminated=True, seed=9, member=0)
    table = to_arrow([TrajectoryGroup({"q": 1}, "q", [member], [Score(0.75, {"c": 1.0})], seed=4)])
    numbers = {name: table.schema.field(name).type for name in ("prompt_tokens", "tokens")}
    assert set(numbers.values()) == {pa.list_(pa.list_(pa.int32()))}
    assert table.schema.field("logprobs").type == pa.list_(pa.list_(pa.float32()))
    row = {name: value for name, value in table.to_pylist()[0].items() if value is not None}
    assert row.pop("score_details").startswith('{"value":0.75,"components":{"c"')
    assert row == {
        "group": 0,
        "row": 0,
        "item_id": "q",
        "item": '{"q":1}',
        "item_format": "json",
        "group_seed": 4,
        "outcome": "completed",
        "member": 0,
        "attempt": 0,
        "seed": 9,
        "score": 0.75,
        "reward": 0.5,
        "num_steps": 1,
        "terminated": True,
        "truncated": False,
        "observations": ["o", "p"],
        "observation_format": "text",
        "actions": ['{"x":1}'],
        "action_format": "json",
        "rewards": [0.5],
        "step_terminated": [True],
        "step_truncated": [False],
        "prompt_tokens": [prompt],
        "tokens": [tokens],
        "logprobs": [logprobs],
        "stop_reasons": ["stop"],
        "versions": ["3"],
    }


def test_tables_may_be_filtered_and_put_together() -> None:
    one, two = group(0, episode(1), episode(2, 3)), group(1, episode(4))
    table = pa.concat_tables([to_arrow([one, two]), to_arrow([one])])
    assert list(from_arrow(table)) == [one, two, one]
    assert list(from_arrow(table.slice(1, 2))) == [group(0, episode(2, 3)), two]
    longer = table.filter(pc.field("num_steps") == 2)
    assert list(from_arrow(longer)) == [group(0, episode(2, 3))] * 2


def test_what_is_no_such_table_is_refused(tmp_path: Path) -> None:
    table = to_arrow([group(0, episode(1))])
    newer = table.replace_schema_metadata({"rolloutlib.version": "2", "rolloutlib.library": "9.9"})
    with pytest.raises(ValueError, match=r"version '2' of the columns, written by rolloutlib 9.9"):
        from_arrow(newer)
    path = tmp_path / "other.parquet"
    pq.write_table(table.drop_columns(["tokens"]), path)
    with pytest.raises(
        ValueError, match=r"other.parquet' holds no .* lacks the columns \['tokens'\]"
    ):
        read_parquet(path)
    path.write_bytes(b"PAR1 and something else")
    with pytest.raises(ValueError, match=r"other.parquet' is no Parquet file"):
        read_parquet(path)
    with pytest.raises(FileNotFoundError, match="absent"):
        read_parquet(tmp_path / "absent.parquet")


@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        ("outcome", "won", "the outcome 'won' is unknown"),
        ("rewards", [1.0], "columns of steps must have one length"),
        ("rewards", [1.0, float("nan")], "reward must be finite"),
        ("logprobs", [[-0.5, -0.5], None], "step 0 has 1 tokens and 2 log probabilities"),
        ("logprobs", [[float("nan")], None], "must not be NaN"),
        ("observations", None, "row 0 of group 0"),
        ("item", None, "row 0 of group 0"),
        ("exact", "{", "row 0 of group 0"),
        ("exact", "[]", "facts are a mapping, got"),
        (
            "exact",
            '{"versions":[[[7,1],[8,2]],null]}',
            "step 0: version must .* there are 1 tokens",
        ),
        ("initial_info", "1", "facts are a mapping, got 1"),
        ("metadata", "[1]", "facts are a mapping, got"),
        ("group_metadata", "[1]", "facts are a mapping, got"),
        ("infos", ["1", None], "facts are a mapping, got 1"),
        ("policy_infos", [None, "1"], "facts are a mapping, got 1"),
    ],
)
def test_a_row_of_another_form_is_refused(column: str, value: Any, message: str) -> None:
    table = to_arrow([group(0, episode(1, 2))])
    place = table.schema.get_field_index(column)
    field = table.schema.field(column)
    changed = table.set_column(place, field, [pa.array([value], field.type)])
    with pytest.raises(ValueError, match=message):
        list(from_arrow(changed))
