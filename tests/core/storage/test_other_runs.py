"""Files that a run cannot go on with, and what it may change meanwhile."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from core.rollouts.scripted import ScriptedEnv, policy
from core.storage.runs import AnyGroup, begin, make_env
from rolloutlib import RLDataset, TrajectoryGroup, acollect, collect
from rolloutlib.storage import GroupStore, GroupWriter, read_groups


class OtherEnv(ScriptedEnv):
    pass


def other_grader(group: AnyGroup) -> list[float]:
    return [0.0 for _ in group.trajectories]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"seed": 2}, "seed was 1 and is 2"),
        ({"num_rollouts": 3}, "num_rollouts was 2 and is 3"),
        ({"max_steps": 1}, "max_steps was None and is 1"),
        ({"options": {"level": 2}}, r"options was None and is \{'level': 2\}"),
        ({"metadata": {"model": "b"}}, r"metadata was \{'model': 'a'\} and is \{'model': 'b'\}"),
        ({"make_env": lambda item: OtherEnv()}, "make_env was .*make_env.* and is .*OtherEnv"),
        ({"grade_group": other_grader}, "grade_group was None and is .*other_grader"),
        ({"num_rollouts": 3, "seed": 2}, "num_rollouts was 2 and is 3; seed was 1 and is 2"),
    ],
    ids=lambda value: ",".join(value) if isinstance(value, dict) else "",
)
def test_other_settings_are_refused_before_anything_is_played(
    tmp_path: Path, change: dict[str, Any], message: str
) -> None:
    store = GroupStore(tmp_path / "run.jsonl")
    arguments: dict[str, Any] = {
        "make_env": make_env,
        "policy": policy,
        "num_rollouts": 2,
        "seed": 1,
        "metadata": {"model": "a"},
        "store": store,
    }
    groups = list(collect([*"ab"], **arguments))
    for start in (collect, acollect):
        with pytest.raises(ValueError, match=f"made with other settings: {message}"):
            start([*"ab"], **{**arguments, **change})
    assert list(collect([*"ab"], **arguments)) == groups


def test_settings_may_change_until_there_is_a_group(tmp_path: Path) -> None:
    store = GroupStore(tmp_path / "run.jsonl")
    collect([*"ab"], make_env, policy, max_steps=5, store=store).close()
    assert len(list(collect([*"ab"], make_env, policy, max_steps=1, store=store))) == 2


@pytest.mark.parametrize(
    ("items", "get_item_id", "message"),
    [
        (["a", "c", "b"], str, "item 1 was 'b' and is 'c'"),
        (["b", "c"], str, "item 0 was 'a' and is 'b'"),
        (
            ["a", "x", "c"],
            {"a": "a", "x": "b", "c": "c"}.get,
            "item 1 was 'b' and is 'x', with the",
        ),
        (["a", "b"], str, "has a group of item 2, but there are only 2 items"),
    ],
)
@pytest.mark.parametrize("concurrency", [1, 2])
def test_other_items_are_refused(
    tmp_path: Path, items: list[str], get_item_id: Any, message: str, concurrency: int
) -> None:
    store = GroupStore(tmp_path / "run.jsonl")
    list(collect([*"abc"], make_env, policy, get_item_id=str, store=store))
    groups = collect(
        items, make_env, policy, get_item_id=get_item_id, store=store, concurrency=concurrency
    )
    with pytest.raises(ValueError, match=message):
        list(groups)
    assert len(list(read_groups(tmp_path / "run.jsonl"))) == 3


def test_a_dataset_shuffled_otherwise_is_refused_and_the_same_one_gone_on_with(
    tmp_path: Path,
) -> None:
    def shuffled(seed: int) -> RLDataset[int, ScriptedEnv]:
        order = np.random.default_rng(seed).permutation(10).tolist()
        return RLDataset(order, make_env=make_env)

    path = tmp_path / "run.jsonl"
    begin(path, shuffled(1), 4, make_env=make_env, policy=policy)
    with pytest.raises(ValueError, match=r"item \d was '\w+' and is '\w+'"):
        list(collect(shuffled(2), make_env, policy, store=GroupStore(path)))
    groups = list(collect(shuffled(1), make_env, policy, store=GroupStore(path)))
    assert [group.item for group in groups] == list(shuffled(1))


def test_a_folder_that_cannot_be_made_is_told_of_before_anything_is_played(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for start in (collect, acollect):
        with pytest.raises((FileExistsError, NotADirectoryError)):
            start([*"a"], make_env, policy, store=GroupStore(tmp_path / "file" / "run.jsonl"))


@pytest.mark.parametrize(
    "change", [{"items": 5}, {"items": "ab"}, {"concurrency": 0}, {"order": "x"}, {"buffer": 0}]
)
@pytest.mark.parametrize("start", [collect, acollect])
def test_no_file_is_made_for_a_run_that_is_refused(
    tmp_path: Path, start: Callable[..., Any], change: dict[str, Any]
) -> None:
    path = tmp_path / "new" / "run.jsonl"
    arguments = {"items": ["a"], "make_env": make_env, "policy": policy, "store": GroupStore(path)}
    with pytest.raises((TypeError, ValueError), match="|".join(change)):
        start(**{**arguments, **change})
    assert not path.parent.exists()


@pytest.mark.parametrize("start", [collect, acollect])
def test_a_path_in_place_of_a_store_is_refused(tmp_path: Path, start: Callable[..., Any]) -> None:
    with pytest.raises(TypeError, match=r"GroupStore\(path\), got '.*run\.jsonl'"):
        start(["a"], make_env, policy, store=str(tmp_path / "run.jsonl"))


def test_a_file_of_groups_of_no_run_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    with GroupWriter(path) as writer:
        writer.append(TrajectoryGroup("a", "a", []))
    with pytest.raises(ValueError, match="holds groups of no run"):
        collect([*"a"], make_env, policy, store=GroupStore(path))


def test_a_file_with_two_groups_of_one_item_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    list(collect([*"ab"], make_env, policy, store=GroupStore(path)))
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*lines, lines[1]]))
    with pytest.raises(ValueError, match="two groups of item 0, in the lines 2 and 4"):
        list(collect([*"ab"], make_env, policy, store=GroupStore(path)))


def test_a_second_run_on_the_same_file_is_refused_while_the_first_goes_on(tmp_path: Path) -> None:
    pytest.importorskip("fcntl")
    path = tmp_path / "run.jsonl"
    groups = collect([*"ab"], make_env, policy, store=GroupStore(path))
    next(groups)
    with pytest.raises(BlockingIOError, match="another writer has"):
        collect([*"ab"], make_env, policy, store=GroupStore(path))
    groups.close()
    assert len(list(collect([*"ab"], make_env, policy, store=GroupStore(path)))) == 2


def test_settings_may_be_numbers_of_numpy(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    three: Any = np.int64(3)
    begin(path, [*"abc"], 2, num_rollouts=three, max_steps=three, make_env=make_env, policy=policy)
    run = collect([*"abc"], make_env, policy, num_rollouts=3, max_steps=3, store=GroupStore(path))
    assert len(list(run)) == 3


def test_a_run_may_go_to_another_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    begin(Path("run.jsonl"), [*"ab"], 1, make_env=make_env, policy=policy)
    groups = collect([*"ab"], make_env, policy, store=GroupStore("run.jsonl"))
    (tmp_path / "other").mkdir()
    monkeypatch.chdir(tmp_path / "other")
    assert len(list(groups)) == len(list(read_groups(tmp_path / "run.jsonl"))) == 2


def test_a_setting_that_the_file_lacks_is_none(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    with GroupWriter(path, settings={"seed": 1}) as writer:
        writer.append(TrajectoryGroup("a", "a", []))
    GroupWriter(path, settings={"seed": 1, "new": None}).close()
    with pytest.raises(ValueError, match="settings: new was None and is 2"):
        GroupWriter(path, settings={"seed": 1, "new": 2})
