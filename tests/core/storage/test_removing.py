"""Groups that are taken out of a file, to be played again."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from core.rollouts.scripted import policy
from core.storage.runs import make_env
from rolloutlib import collect
from rolloutlib.storage import GroupStore, GroupWriter, read_groups


class Flaky:
    """A policy that fails in each second episode."""

    def __init__(self) -> None:
        self.seeds: list[int] = []

    def __call__(self, observation: str, *, seed: int) -> Any:
        if seed not in self.seeds:
            self.seeds.append(seed)
        if self.seeds.index(seed) % 2:
            raise ConnectionError
        return policy(observation)


def play(path: Path, policy: Any) -> list[Any]:
    return list(collect([*"abcd"], make_env, policy, seed=7, store=GroupStore(path)))


def has_errors(group: Any) -> bool:
    return bool(group.errors)


def test_groups_that_were_taken_out_are_played_again_with_their_seeds(tmp_path: Path) -> None:
    path, whole = tmp_path / "run.jsonl", tmp_path / "whole.jsonl"
    first = play(path, Flaky())
    assert [group.num_failed for group in first] == [0, 1, 0, 1]
    assert GroupStore(path).remove(has_errors) == 2
    assert list(read_groups(path)) == [first[0], first[2]]
    assert play(path, policy) == play(whole, policy)


def test_nothing_is_written_where_nothing_is_taken_out(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    assert GroupStore(path).remove(has_errors) == 0
    assert not path.exists()
    play(path, policy)
    before = path.stat()
    assert GroupStore(path).remove(has_errors) == 0
    assert path.stat() == before


def test_a_store_goes_on_after_groups_were_taken_out(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    groups = play(path, Flaky())
    store = GroupStore(path)
    assert store.remove(has_errors) == 2
    assert [store.load(position) is None for position in range(4)] == [False, True, False, True]
    store.save(1, groups[1])
    store.close()
    assert [group.item for group in read_groups(path)] == ["a", "c", "b"]


def test_a_link_stays_one_and_the_file_keeps_its_mode(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    target, link = tmp_path / "there" / "run.jsonl", tmp_path / "link.jsonl"
    play(target, Flaky())
    target.chmod(0o640)
    link.symlink_to(target)
    assert GroupStore(link).remove(has_errors) == 2
    assert link.is_symlink()
    assert (target.stat().st_mode & 0o777, len(list(read_groups(target)))) == (0o640, 2)


def test_nothing_is_taken_out_of_a_file_that_is_being_written(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    play(path, Flaky())
    with GroupWriter(path), pytest.raises(BlockingIOError, match="another writer"):
        GroupStore(path).remove(has_errors)
    assert len(list(read_groups(path))) == 4


def test_what_cannot_be_read_loses_nothing(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    play(path, Flaky())
    data = path.read_bytes().replace(b'"errors"', b'"mirrors"', 1)
    path.write_bytes(data)
    with pytest.raises(ValueError, match="damaged in line 2"):
        GroupStore(path).remove(has_errors)
    assert path.read_bytes() == data
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_process_that_is_killed_anywhere_leaves_the_old_file_or_the_new(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    play(path, Flaky())
    process = subprocess.run(
        [sys.executable, str(Path(__file__).with_name("killed_remove.py")), str(path)],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
        capture_output=True,
        text=True,
        check=False,
    )
    assert process.stderr == ""
    assert int(process.stdout) > 20
