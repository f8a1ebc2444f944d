"""Files that somebody has changed by hand, or that are none."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from core.rollouts.scripted import policy
from core.storage.runs import make_env
from rolloutlib import collect
from rolloutlib.storage import GroupStore, GroupWriter, read_groups, read_settings


def go_on(path: Path) -> None:
    list(collect([*"abc"], make_env, policy, store=GroupStore(path)))


def write(path: Path) -> None:
    GroupWriter(path, settings={"a": 1}).close()


def changed(path: Path, line: int, change: Callable[[dict[str, Any]], object]) -> None:
    """Play three groups, and change a line of their file."""
    go_on(path)
    lines = path.read_text(encoding="utf-8").splitlines()
    content = json.loads(lines[line])
    change(content)
    lines[line] = json.dumps(content, separators=(",", ":"))
    path.write_text("\n".join([*lines, ""]), encoding="utf-8")


@pytest.mark.parametrize("settings", [1, "x", [], [1], True])
@pytest.mark.parametrize("use", [read_groups, read_settings, write, go_on])
def test_settings_that_are_no_mapping_are_told_by_their_line(
    tmp_path: Path, use: Callable[[Path], object], settings: Any
) -> None:
    path = tmp_path / "run.jsonl"
    changed(path, 0, lambda header: header.update(settings=settings))
    with pytest.raises(ValueError, match=r"run\.jsonl' is damaged in line 1: settings are"):
        use(path)


@pytest.mark.parametrize("form", [{"$": "tuple", "items": []}, {"$": "zzz"}, {"$": "tuple"}])
@pytest.mark.parametrize("use", [read_groups, read_settings, go_on])
def test_settings_of_another_form_are_told_by_their_line(
    tmp_path: Path, use: Callable[[Path], object], form: Any
) -> None:
    path = tmp_path / "run.jsonl"
    changed(path, 0, lambda header: header.update(settings=form))
    with pytest.raises(ValueError, match=r"run\.jsonl' is damaged in line 1: "):
        use(path)


@pytest.mark.parametrize("seed", ["x", -1, [1], 0.5, True])
def test_a_seed_that_is_none_is_told_by_its_line(tmp_path: Path, seed: Any) -> None:
    path = tmp_path / "run.jsonl"
    changed(path, 0, lambda header: header["settings"].update(seed=seed))
    with pytest.raises(ValueError, match=r"run\.jsonl' is damaged in line 1: the seed is .* got"):
        go_on(path)


@pytest.mark.parametrize("position", ["1", -1, [1], {}, 0.5, True])
def test_a_position_that_is_none_is_told_by_its_line(tmp_path: Path, position: Any) -> None:
    path = tmp_path / "run.jsonl"
    changed(path, 2, lambda line: line.update(position=position))
    with pytest.raises(ValueError, match=r"run\.jsonl' is damaged in line 3: position is .* got"):
        go_on(path)


def test_numbers_beyond_all_bounds_are_told_by_their_line(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    huge = {"lengths": [10**40], "dtype": "<i4", "base64": "AQAAAA=="}
    changed(path, 2, lambda line: line["group"]["trajectories"][0]["steps"].update(tokens=huge))
    for use in (lambda path: list(read_groups(path)), go_on):
        with pytest.raises(ValueError, match=r"run\.jsonl' is damaged in line 3: "):
            use(path)


@pytest.mark.skipif(not Path("/dev/zero").is_char_device(), reason="needs /dev/zero")
@pytest.mark.parametrize("use", [read_groups, read_settings, write, go_on])
def test_what_has_no_end_is_not_read(use: Callable[[Path], object]) -> None:
    with pytest.raises(ValueError, match="'/dev/zero' is no regular file"):
        use(Path("/dev/zero"))


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
@pytest.mark.parametrize("use", [read_groups, write, go_on])
def test_a_pipe_is_not_waited_for(tmp_path: Path, use: Callable[[Path], object]) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    with pytest.raises(ValueError, match="pipe' is no regular file"):
        use(path)
