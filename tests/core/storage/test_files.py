"""Files of groups: written as groups are finished, read one at a time."""

from __future__ import annotations

import base64
import errno
import json
import threading
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

from core.storage.made import groups
from rolloutlib import Step, Trajectory, TrajectoryGroup, __version__
from rolloutlib.rollouts import UnstorableError
from rolloutlib.storage import GroupWriter, TornLineWarning, read_groups, read_settings


def made_group(number: int, size: int = 3) -> TrajectoryGroup[int, str, str]:
    step = Step("o", "a", 1.0, "n", True, False, policy_tokens=range(size), policy_version=number)
    return TrajectoryGroup(number, f"id {number}", [Trajectory("o", [step], terminated=True)])


def write(path: Path, *numbers: int, **arguments: Any) -> None:
    with GroupWriter(path, **arguments) as writer:
        for number in numbers:
            writer.append(made_group(number))


def items(path: Path) -> list[Any]:
    return [group.item for group in read_groups(path)]


def test_groups_come_back_in_the_order_in_which_they_were_written(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    write(path, 1, 2)
    write(path, 3, fsync=True)
    assert list(read_groups(path)) == [made_group(1), made_group(2), made_group(3)]
    assert list(read_groups(str(path))) == list(read_groups(path))


@given(groups())
@settings(max_examples=50)
def test_every_group_is_one_line_for_every_reader(
    tmp_path: Path, group: TrajectoryGroup[Any, Any, Any]
) -> None:
    path = tmp_path / "run.jsonl"
    path.unlink(missing_ok=True)
    with GroupWriter(path) as writer:
        writer.append(group)
        writer.append(group)
    assert len(path.read_text(encoding="utf-8").splitlines()) == 3
    for read in read_groups(path):
        assert json.dumps(read.to_dict()) == json.dumps(group.to_dict())


def test_a_file_is_read_with_json_and_numpy_alone(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    write(path, 1)
    with path.open(encoding="utf-8") as file:
        header, line = map(json.loads, file)
    assert header == {
        "format": "rolloutlib.groups",
        "version": 1,
        "library": __version__,
        "settings": None,
    }
    assert line["position"] is None
    column = line["group"]["trajectories"][0]["steps"]["tokens"]
    tokens = np.frombuffer(base64.b64decode(column["base64"]), column["dtype"])
    assert tokens.tolist() == [0, 1, 2]
    assert column["lengths"] == [3]


def test_each_group_is_in_the_file_when_append_returns(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    with GroupWriter(path) as writer:
        assert items(path) == []
        for number in range(3):
            writer.append(made_group(number))
            assert items(path) == list(range(number + 1))


def test_the_folder_is_made(tmp_path: Path) -> None:
    path = tmp_path / "a" / "b" / "run.jsonl"
    write(path, 1)
    assert items(path) == [1]


def test_a_torn_last_line_is_left_out_and_cut_off_before_more_is_written(tmp_path: Path) -> None:
    whole, path = tmp_path / "whole.jsonl", tmp_path / "torn.jsonl"
    write(whole, 1, 2)
    data = whole.read_bytes()
    start = data.rindex(b"\n", 0, -1) + 1
    for cut in (start + 1, start + 100, len(data) - 2):
        path.write_bytes(data[:cut])
        with pytest.warns(TornLineWarning, match=rf"'.*torn\.jsonl' .* {cut - start} bytes from"):
            assert items(path) == [1]
        with pytest.warns(TornLineWarning, match=f"from byte {start} on"):
            write(path, 3)
        assert items(path) == [1, 3]
    # Without its line feed alone, it is whole.
    path.write_bytes(data[:-1])
    assert items(path) == [1, 2]
    write(path, 3)
    assert items(path) == [1, 2, 3]


def test_a_torn_header_holds_nothing(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    write(path)
    data = path.read_bytes()
    for cut in (0, 1, 10, 40, len(data) - 1):
        path.write_bytes(data[:cut])
        write(path, 1)
        assert items(path) == [1]


def test_a_damaged_line_is_told_by_its_number(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    write(path, 1, 2, 3)
    lines = path.read_bytes().splitlines(keepends=True)
    for damaged in (
        b"\0" * 10 + b"\n",
        b'{"position":1}\n',
        b"[]\n",
        lines[2][:100] + b"\n",
        b"\n",
    ):
        path.write_bytes(b"".join([*lines[:2], damaged, lines[3]]))
        read = read_groups(path)
        assert next(read).item == 1
        with pytest.raises(ValueError, match=r"run\.jsonl'.* line 3"):
            next(read)


@pytest.mark.parametrize(
    "content", [b"hello", b"hello\n", b'{"format":"other"}\n', b'{"a": 1}\n{"b": 2}\n', b"\x89PNG"]
)
def test_another_file_is_neither_read_nor_overwritten(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "notes.txt"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"notes\.txt' is no file of groups: its first line is"):
        read_groups(path)
    with pytest.raises(ValueError, match=r"notes\.txt' is no file of groups"):
        GroupWriter(path)
    assert path.read_bytes() == content


def test_a_file_of_another_version_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    write(path, 1)
    path.write_bytes(path.read_bytes().replace(b'"version":1', b'"version":2', 1))
    for use in (read_groups, GroupWriter):
        with pytest.raises(ValueError, match=r"is of version 2, written by .* reads version 1"):
            use(path)


def test_a_missing_file_is_told_of_at_once(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        read_groups(tmp_path / "none.jsonl")


def test_settings_are_kept_and_other_settings_refused(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    first = {"model": "m", "temperature": 0.5, "stop": ("a", None), "step": 1}
    write(path, settings=first)
    assert read_settings(path) == first
    write(path, 1, settings={**first, "step": 2})  # which has no groups yet
    assert read_settings(path) == {**first, "step": 2}
    write(path, 2, settings={**first, "step": 2})
    write(path, 3)
    with pytest.raises(
        ValueError, match=r"settings: extra was None and is 1; step was 2 and is 3\."
    ):
        GroupWriter(path, settings={**first, "step": 3, "extra": 1})
    assert items(path) == [1, 2, 3]


def test_of_long_settings_the_message_has_what_differs(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    prompts = [f"{number} " + "word " * 1_000 for number in range(3)]
    write(path, 1, settings={"prompts": (*prompts, "Be brief."), "seeds": (1, 2)})
    with pytest.raises(ValueError, match=r"'Be brief\.'\) and is \.\.\..*'Be long\.'\)") as caught:
        GroupWriter(path, settings={"prompts": (*prompts, "Be long."), "seeds": (1, 3)})
    assert "seeds was (1, 2) and is (1, 3)" in str(caught.value)
    assert len(str(caught.value)) < 600
    with pytest.raises(ValueError, match=r"prompts was \('0 word .*\.\.\. and is None\. Use"):
        GroupWriter(path, settings={"seeds": (1, 2)})


def test_settings_that_cannot_be_stored_are_refused_before_there_is_a_file(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    with pytest.raises(UnstorableError, match=r"^settings\['a'\] is of type"):
        GroupWriter(path, settings={"a": object()})
    assert not path.exists()


def test_a_group_that_cannot_be_stored_leaves_no_trace(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    with GroupWriter(path) as writer:
        writer.append(made_group(1))
        with pytest.raises(UnstorableError, match=r"^item is of type"):
            writer.append(TrajectoryGroup(object(), "id", []))
        writer.append(made_group(2))
    assert items(path) == [1, 2]


def test_types_of_ones_own_are_written_and_read(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    with GroupWriter(path, encode=lambda value: [value.real, value.imag]) as writer:
        writer.append(TrajectoryGroup(_Point(1, 2), "id", []))
    [group] = read_groups(path, decode=lambda name, value: _Point(*value))
    assert (group.item.real, group.item.imag) == (1, 2)


class _Point:
    def __init__(self, real: int, imag: int) -> None:
        self.real = real
        self.imag = imag


def test_only_one_writer_has_a_file(tmp_path: Path) -> None:
    pytest.importorskip("fcntl")
    path = tmp_path / "run.jsonl"
    with GroupWriter(path) as writer:
        with pytest.raises(BlockingIOError, match=r"another writer has '.*run\.jsonl'"):
            GroupWriter(path)
        writer.append(made_group(1))
    write(path, 2)
    assert items(path) == [1, 2]


def test_a_file_that_another_takes_the_place_of_as_it_is_opened_is_not_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fcntl = pytest.importorskip("fcntl")
    path, other = tmp_path / "run.jsonl", tmp_path / "other.jsonl"
    write(path, 1)
    write(other, 2)
    lock = fcntl.flock

    def lock_late(file: Any, how: int) -> None:
        if other.exists():
            other.replace(path)  # as another process does that takes groups out of the file
        lock(file, how)

    monkeypatch.setattr(fcntl, "flock", lock_late)
    write(path, 3)
    assert items(path) == [2, 3]


def test_a_full_disk_leaves_whole_lines(tmp_path: Path) -> None:
    resource = pytest.importorskip("resource")
    signal = pytest.importorskip("signal")
    path = tmp_path / "run.jsonl"
    before, limits = signal.getsignal(signal.SIGXFSZ), resource.getrlimit(resource.RLIMIT_FSIZE)
    with GroupWriter(path) as writer:
        writer.append(made_group(1))
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        try:
            size = path.stat().st_size
            resource.setrlimit(resource.RLIMIT_FSIZE, (size + 200, limits[1]))
            with pytest.raises(OSError, match="large") as caught:
                writer.append(made_group(2, 1_000))
            assert (caught.value.errno, caught.value.filename) == (errno.EFBIG, str(path))
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
            signal.signal(signal.SIGXFSZ, before)
        writer.append(made_group(3))
    assert items(path) == [1, 3]


def test_threads_may_append_to_one_writer(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    with GroupWriter(path) as writer:
        threads = [
            threading.Thread(target=writer.append, args=(made_group(number, 5_000),))
            for number in range(8)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert sorted(items(path)) == list(range(8))


def test_reading_holds_one_group_at_a_time(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    with GroupWriter(path) as writer:
        for number in range(50):
            writer.append(made_group(number, 100_000))
    assert path.stat().st_size > 25_000_000
    tracemalloc.start()
    try:
        count = sum(1 for _ in read_groups(path))
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert count == 50
    assert most < 8_000_000
