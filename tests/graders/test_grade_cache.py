"""`GradeCache` with a file: it outlives processes, and serves several of them at once."""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from processes import output_of
from rolloutlib.graders import CachedGrader, GradeCache


def grade_by_half(input: object, rubric: object) -> float:
    return 0.5


PROGRAM = """
import sys
from rolloutlib.graders import CachedGrader, GradeCache, Score

def grade(input, rubric):
    return Score(0.5, {"part": 1.0}, {"process": sys.argv[1]}, feedback="\\u2603")

with GradeCache(sys.argv[2]) as cache:
    grader = CachedGrader(grade, cache, fingerprint="f")
    scores = [grader.score(f"x{index}", "r") for index in range(200)]
    print(cache.misses, {score.metadata["process"] for score in scores} <= {"one", "two"})
"""


def test_grades_in_a_file_outlive_the_process(tmp_path: Path) -> None:
    path = str(tmp_path / "grades.db")
    assert output_of(PROGRAM, "one", path).split() == ["200", "True"]
    assert output_of(PROGRAM, "two", path).split() == ["0", "True"]


def test_two_processes_may_use_one_file_at_the_same_time(tmp_path: Path) -> None:
    path = str(tmp_path / "grades.db")
    outputs: list[str] = []
    threads = [
        threading.Thread(target=lambda name=name: outputs.append(output_of(PROGRAM, name, path)))
        for name in ("one", "two")
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(output.split()[1] == "True" for output in outputs)
    assert len(outputs) == 2
    with GradeCache(path) as cache:
        assert len(cache) == 200


def test_of_two_grades_of_the_same_the_first_that_is_kept_counts(tmp_path: Path) -> None:
    path = tmp_path / "grades.db"
    with GradeCache(path) as one, GradeCache(path) as two:
        fast = CachedGrader[str, str](grade_by_half, two, fingerprint="f")

        def grade(text: str, rubric: str) -> float:
            return fast.score(text, rubric).value / 2

        slow = CachedGrader(grade, one, fingerprint="f")
        assert slow.score("x", "r").value == 0.5
        assert slow.score("x", "r").value == 0.5


SCRIPT = """
from rolloutlib.graders import CachedGrader, GradeCache

def grade(input, rubric):
    return 0.5

try:
    CachedGrader(grade, GradeCache(), version="1")
except TypeError as error:
    print(error)
"""


def test_the_name_of_a_function_of_a_script_is_no_fingerprint() -> None:
    assert "needs a `fingerprint`" in output_of(SCRIPT)


FORK = """
import os, signal, sys, threading
from rolloutlib.graders import CachedGrader, GradeCache

begun, release = threading.Event(), threading.Event()

def grade(input, rubric):
    begun.set()
    release.wait()
    return 0.5

cache = GradeCache(*sys.argv[1:])
grader = CachedGrader(grade, cache, fingerprint="f")
thread = threading.Thread(target=grader.score, args=("x", "r"))
thread.start()
begun.wait()
child = os.fork()
if not child:
    signal.alarm(20)
    release.set()
    print(grader.score("x", "r").value, cache.misses, flush=True)
    os._exit(0)
os.waitpid(child, 0)
release.set()
thread.join()
print(grader.score("x", "r").value, len(cache))
cache.close()
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs processes that fork")
@pytest.mark.parametrize("in_memory", [True, False])
def test_a_forked_process_does_not_wait_for_threads_of_its_parent(
    tmp_path: Path, in_memory: bool
) -> None:
    path = [] if in_memory else [str(tmp_path / "grades.db")]
    assert output_of(FORK, *path).split() == ["0.5", "2", "0.5", "1"]


def test_errors_of_the_database_name_the_file(tmp_path: Path) -> None:
    with pytest.raises(sqlite3.OperationalError) as caught:
        GradeCache(tmp_path)
    assert caught.value.__notes__ == [f"in the cache {str(tmp_path)!r}"]


def write_text(path: Path) -> None:
    path.write_text("no database, but long enough to be taken for one" * 100)


def write_database(path: Path) -> None:
    database = sqlite3.connect(path)
    database.execute("CREATE TABLE grades (a)")
    database.close()


def write_newer(path: Path) -> None:
    GradeCache(path).close()
    database = sqlite3.connect(path)
    database.execute("PRAGMA user_version = 99")
    database.close()


@pytest.mark.parametrize(
    ("write", "message"),
    [
        (write_text, "is no file of grades"),
        (write_database, "is no file of grades, but another database"),
        (write_newer, "is of version 99"),
    ],
)
def test_another_file_is_refused(
    tmp_path: Path, write: Callable[[Path], None], message: str
) -> None:
    path = tmp_path / "other"
    write(path)
    with pytest.raises(ValueError, match=f"other' {message}"):
        GradeCache(path)
