"""Parquet files of groups: whole or not there, larger than memory, and without pyarrow."""

from __future__ import annotations

import signal
import subprocess
import sys
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

from rolloutlib import RolloutError, Score, Step, Trajectory, TrajectoryGroup
from rolloutlib.rollouts import UnstorableError
from rolloutlib.storage import read_parquet, to_arrow, write_parquet

pa: Any = pytest.importorskip("pyarrow")
pq: Any = pytest.importorskip("pyarrow.parquet")

Group = TrajectoryGroup[Any, Any, Any]


def episode(version: int) -> Trajectory[Any, Any]:
    return Trajectory("o", [Step("o", "a", 1.0, "o", True, False, policy_version=version)])


def group(number: int, *members: Trajectory[Any, Any]) -> Group:
    return TrajectoryGroup(number, f"id {number}", members)


def test_writing_that_is_interrupted_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "groups.parquet"
    write_parquet([group(0)], path)

    def interrupted() -> Iterator[Group]:
        for number in range(10_000):  # more than one row group
            yield group(number, episode(1))
        assert len(list(tmp_path.iterdir())) == 2
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_parquet(interrupted(), path)
    assert list(tmp_path.iterdir()) == [path]
    assert list(read_parquet(path)) == [group(0)]
    write_parquet([group(1)], str(path))
    assert list(read_parquet(str(path))) == [group(1)]


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGKILL")
def test_writing_that_is_killed_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "groups.parquet"
    write_parquet([group(0)], path)
    script = """
import os, signal, sys
from rolloutlib import Trajectory, TrajectoryGroup
from rolloutlib.storage import write_parquet

def killed():
    for number in range(10_000):
        yield TrajectoryGroup(number, "id", [Trajectory("o")])
    os.kill(os.getpid(), signal.SIGKILL)

write_parquet(killed(), sys.argv[1])
"""
    process = subprocess.run([sys.executable, "-c", script, str(path)], check=False)
    assert process.returncode == -signal.SIGKILL
    assert list(read_parquet(path)) == [group(0)]


def test_a_link_to_a_file_stays_one(tmp_path: Path) -> None:
    link = tmp_path / "latest.parquet"
    link.symlink_to("new folder/groups.parquet")
    write_parquet([group(0)], link)
    assert link.is_symlink()
    assert list(read_parquet(tmp_path / "new folder" / "groups.parquet")) == [group(0)]


def test_a_group_may_be_larger_than_a_row_group(tmp_path: Path) -> None:
    path = tmp_path / "groups.parquet"
    written = [group(0, *[episode(1)] * 5_000), group(1, *[episode(2)] * 5_000)]
    write_parquet(written, path)
    assert pq.ParquetFile(path).num_row_groups == 2
    assert list(read_parquet(path)) == written


@pytest.mark.slow
def test_memory_does_not_grow_with_the_file(tmp_path: Path) -> None:
    size, count = 500_000, 100  # 200 MB
    path = tmp_path / "groups.parquet"

    def made() -> Iterator[Group]:
        tokens = np.arange(size, dtype=np.int32)
        for number in range(count):
            ids: Any = tokens + number
            step = Step("o", "a", 1.0, "o", True, False, policy_tokens=ids)
            yield group(number, Trajectory("o", [step]))

    tracemalloc.start()
    before = pa.default_memory_pool().max_memory()
    try:
        write_parquet(made(), path)
        read = read_parquet(path)
        assert [read_group.item for read_group in read] == list(range(count))
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert most < 60e6
    assert pa.default_memory_pool().max_memory() < max(before, 150e6)


LARGE = {"large": "x" * 1_000_000}
WIDE: Any = np.arange(2**40, 2**40 + 100_000)


def step(**fields: Any) -> Step[Any, Any]:
    return Step("o", "a", 1.0, "o", True, False, **fields)


LARGE_GROUPS: dict[str, Group] = {
    "initial info": group(0, Trajectory("o", initial_info=LARGE)),
    "metadata": group(0, Trajectory("o", metadata=LARGE)),
    "score": TrajectoryGroup(0, "id", [Trajectory("o")], [Score(1.0, metadata=LARGE)]),
    "metadata of the group": TrajectoryGroup(0, "id", [Trajectory("o")], metadata=LARGE),
    "error": TrajectoryGroup(0, "id", [], errors=[RolloutError("OSError", LARGE["large"])]),
    "many steps": group(0, Trajectory("o", [step()] * 5_000)),
    "wide tokens": group(0, Trajectory("o", [step(policy_tokens=WIDE)])),
}


@pytest.mark.parametrize("what", LARGE_GROUPS)
def test_row_groups_are_small_whatever_is_large_in_a_record(tmp_path: Path, what: str) -> None:
    path = tmp_path / "groups.parquet"
    written = [LARGE_GROUPS[what]] * 20
    write_parquet(written, path)
    assert pq.ParquetFile(path).num_row_groups == 2
    assert list(read_parquet(path)) == written


@pytest.mark.slow
def test_memory_does_not_grow_with_the_row_groups_of_other_libraries(tmp_path: Path) -> None:
    path = tmp_path / "groups.parquet"
    ids: Any = np.random.default_rng(0).integers(0, 2**31, 500_000, np.int32)
    table = to_arrow([group(0, Trajectory("o", [step(policy_tokens=ids)]))])
    with pq.ParquetWriter(path, table.schema, use_dictionary=False) as writer:
        writer.write_table(pa.concat_tables([table] * 50))  # 100 MB
    assert pq.ParquetFile(path).num_row_groups == 1
    script = """
import sys
import pyarrow
from rolloutlib.storage import read_parquet

assert sum(1 for _ in read_parquet(sys.argv[1])) == 50
print(pyarrow.default_memory_pool().max_memory())
"""
    process = subprocess.run(
        [sys.executable, "-c", script, str(path)], capture_output=True, text=True, check=True
    )
    assert int(process.stdout) < 50e6


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    def never() -> Iterator[Group]:
        pytest.fail("a group was asked for")
        yield group(0)

    with pytest.raises(IsADirectoryError):
        write_parquet(never(), tmp_path)
    with pytest.raises(IsADirectoryError):
        read_parquet(tmp_path)


@pytest.mark.parametrize("name", ["file:run.parquet", "s3:/run.parquet", "caf\xe9 ?#%20.parquet"])
@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such names")
def test_a_name_that_looks_like_an_address_is_one_of_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    write_parquet([group(0)], name)
    assert (tmp_path / name).is_file()
    assert list(read_parquet(name)) == [group(0)]


def test_a_file_that_is_damaged_is_named(tmp_path: Path) -> None:
    path = tmp_path / "groups.parquet"
    write_parquet([group(0, episode(1))], path)
    content = bytearray(path.read_bytes())
    place = pq.read_metadata(path).row_group(0).column(0).data_page_offset
    content[place : place + 8] = b"\xff" * 8
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"groups.parquet' is no Parquet file, or damaged"):
        list(read_parquet(path))


def test_what_is_no_group_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UnstorableError, match=r"^group 1 is no TrajectoryGroup, but int"):
        write_parquet(cast("list[Group]", [group(0), 3]), tmp_path / "groups.parquet")
    assert list(tmp_path.iterdir()) == []


def test_without_pyarrow_the_error_names_the_extra() -> None:
    script = """
import sys
sys.modules["pyarrow"] = None
from rolloutlib.storage import from_arrow, read_parquet, to_arrow, write_parquet
for call in (
    lambda: write_parquet([], "x"), lambda: read_parquet("x"), lambda: to_arrow([]), lambda: from_arrow([])
):
    try:
        call()
    except ImportError as error:
        print(error)
"""
    process = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert process.stdout.count("pip install 'rolloutlib-core[parquet]'") == 4


def test_pyarrow_is_imported_only_when_it_is_needed() -> None:
    script = "import rolloutlib.storage, sys; print('pyarrow' in sys.modules)"
    process = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert process.stdout == "False\n"
