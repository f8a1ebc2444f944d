"""The processes behind `MathMatch` and `SchemaMatch`, with work that does what a test tells it to."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import pytest

from rolloutlib.graders import CompositeGrader, Criterion, MathMatch, Rubric
from rolloutlib.graders._matches._workers import TimeLimitError, WorkerDiedError, WorkerPool

pytestmark = pytest.mark.anyio

HANDLER = """
import os, pathlib, sys, time

def handle(job):
    print("no reply")
    if job.get("touch"):
        pathlib.Path(job["touch"]).touch()
    if job.get("wait_for"):
        while not pathlib.Path(job["wait_for"]).exists():
            time.sleep(0.005)
    if job["do"] == "hang":
        time.sleep(1000)
    if job["do"] == "die":
        os._exit(3)
    if job["do"] == "eat":
        return {"size": len(bytearray(2**40))}
    if job["do"] == "recurse":
        handle(job)
    return {"pid": os.getpid(), "echo": job.get("echo")}
"""


@pytest.fixture
def handler(tmp_path: Path) -> Path:
    path = tmp_path / "handler.py"
    path.write_text(HANDLER)
    return path


@pytest.fixture
def make_pool(handler: Path) -> Iterator[Callable[[int], WorkerPool]]:
    pools: list[WorkerPool] = []

    def make(size: int) -> WorkerPool:
        pools.append(WorkerPool(handler, size))
        return pools[-1]

    yield make
    for pool in pools:
        pool.close()


def is_alive(pid: int) -> bool:
    """Whether there is such a process; a zombie is one."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def children() -> set[int]:
    if shutil.which("ps") is None:
        pytest.skip("needs the command ps, which lists processes")
    listing = subprocess.Popen(
        ["ps", "-o", "pid=", "--ppid", str(os.getpid())],  # noqa: S607
        stdout=subprocess.PIPE,
        text=True,
    )
    return {int(pid) for pid in listing.communicate()[0].split()} - {listing.pid}


def test_a_process_is_kept_for_the_next_job(make_pool: Callable[[int], WorkerPool]) -> None:
    pool = make_pool(2)
    pids = {pool.run({"do": "tell"}, 60)["pid"] for _ in range(5)}
    assert len(pids) == 1
    assert pids != {os.getpid()}


def test_a_late_process_is_ended_and_waited_for(make_pool: Callable[[int], WorkerPool]) -> None:
    pool = make_pool(1)
    first = pool.run({"do": "tell"}, 60)["pid"]
    with pytest.raises(TimeLimitError, match=r"longer than 0\.05 s"):
        pool.run({"do": "hang"}, 0.05)
    assert not is_alive(first)
    second = pool.run({"do": "tell"}, 60)["pid"]
    assert second != first


def test_a_process_that_dies_is_replaced(make_pool: Callable[[int], WorkerPool]) -> None:
    pool = make_pool(1)
    first = pool.run({"do": "tell"}, 60)["pid"]
    with pytest.raises(WorkerDiedError):
        pool.run({"do": "die"}, 60)
    assert not is_alive(first)
    second = pool.run({"do": "tell"}, 60)["pid"]
    os.kill(second, signal.SIGKILL)  # between two jobs
    with pytest.raises(WorkerDiedError):
        pool.run({"do": "tell"}, 60)
    assert pool.run({"do": "tell"}, 60)["pid"] not in {first, second}


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no limit of this kind")
@pytest.mark.parametrize(("do", "reason"), [("eat", "MemoryError"), ("recurse", "RecursionError")])
def test_memory_is_bounded(make_pool: Callable[[int], WorkerPool], do: str, reason: str) -> None:
    pool = make_pool(1)
    assert pool.run({"do": do}, 60) == {"status": "exhausted", "reason": reason}
    assert pool.run({"do": "tell"}, 60)["pid"]


def test_jobs_of_any_size_and_content_come_through(make_pool: Callable[[int], WorkerPool]) -> None:
    pool = make_pool(1)
    for text in ("x" * 3_000_000, "\ud800\n\r\u2028\x00\u00e9", ""):
        assert pool.run({"do": "tell", "echo": text}, 60)["echo"] == text


def test_threads_share_a_bounded_number_of_processes(
    make_pool: Callable[[int], WorkerPool], tmp_path: Path
) -> None:
    pool, flag = make_pool(2), tmp_path / "flag"

    def ask(number: int) -> dict[str, Any]:
        return pool.run({"do": "tell", "echo": number, "wait_for": str(flag)}, 60)

    with ThreadPoolExecutor(8) as threads:
        replies = [threads.submit(ask, number) for number in range(8)]
        flag.touch()
        results = [reply.result(60) for reply in replies]
    assert [result["echo"] for result in results] == list(range(8))
    assert len({result["pid"] for result in results}) <= 2


def test_a_pool_that_is_closed_leaves_nothing(
    make_pool: Callable[[int], WorkerPool], tmp_path: Path
) -> None:
    pool, before = make_pool(2), children()
    errors: list[Exception] = []

    def ask() -> None:
        try:
            pool.run({"do": "tell", "wait_for": str(tmp_path / "never")}, 60)
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=ask) for _ in range(3)]
    for thread in threads:
        thread.start()
    while len(children() - before) < 2:
        time.sleep(0.01)
    pool.close()
    for thread in threads:
        thread.join(60)
    assert len(errors) == 3
    assert children() <= before
    with pytest.raises(RuntimeError, match="the interpreter is exiting"):
        pool.run({"do": "tell"}, 60)


def test_what_keeps_a_process_from_starting_is_told(tmp_path: Path) -> None:
    broken = tmp_path / "broken.py"
    broken.write_text("import absent_module")
    pool, before = WorkerPool(broken, 1), children()
    for _ in range(2):
        with pytest.raises(RuntimeError, match="could not start: ModuleNotFoundError: No module"):
            pool.run({"do": "tell"}, 60)
    assert children() <= before


def test_ctrl_c_ends_the_job_it_interrupts(
    make_pool: Callable[[int], WorkerPool], tmp_path: Path
) -> None:
    pool = make_pool(1)
    first = pool.run({"do": "tell"}, 60)["pid"]
    here, started = threading.get_ident(), tmp_path / "started"

    def interrupt() -> None:
        while not started.exists():
            time.sleep(0.005)
        signal.pthread_kill(here, signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        pool.run({"do": "hang", "touch": str(started)}, 300)
    thread.join()
    assert not is_alive(first)
    assert pool.run({"do": "tell", "echo": 5}, 60)["echo"] == 5  # no reply of the other job


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_fork_starts_processes_of_its_own(make_pool: Callable[[int], WorkerPool]) -> None:
    pool = make_pool(1)
    here = pool.run({"do": "tell"}, 60)["pid"]
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        there = pool.run({"do": "tell"}, 60)["pid"]
        pool.close()
        os.write(writing, str(there).encode())
        os._exit(0)
    os.waitpid(child, 0)
    assert int(os.read(reading, 20)) != here
    os.close(reading)
    os.close(writing)
    assert pool.run({"do": "tell"}, 60)["pid"] == here


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
@pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")
def test_a_fork_beside_threads_that_wait_for_replies_goes_on(
    make_pool: Callable[[int], WorkerPool], tmp_path: Path
) -> None:
    pool, started, flag = make_pool(1), tmp_path / "started", tmp_path / "flag"
    job = {"do": "tell", "touch": str(started), "wait_for": str(flag)}
    with ThreadPoolExecutor(1) as threads:
        reply = threads.submit(pool.run, job, 60)
        while not started.exists():
            time.sleep(0.005)
        child = os.fork()
        if child == 0:
            pool.run({"do": "tell"}, 60)
            pool.close()
            os._exit(0)
        deadline = time.monotonic() + 60
        while (ended := os.waitpid(child, os.WNOHANG)) == (0, 0):
            if time.monotonic() > deadline:  # nothing in the child can end it
                os.kill(child, signal.SIGKILL)
            time.sleep(0.005)
        flag.touch()
        assert ended == (child, 0)
        assert reply.result(60)["pid"]


SCRIPT = """
import contextlib, os, sys, threading
from rolloutlib.graders._matches._workers import WorkerPool
from pathlib import Path

pool = WorkerPool(Path(sys.argv[1]), 2)
print(pool.run({"do": "tell"}, 60)["pid"], flush=True)
started = Path(sys.argv[1]).with_name("started")

def busy():
    while not started.exists():  # a busy machine may take longer than the limit to begin
        with contextlib.suppress(Exception):
            pool.run({"do": "hang", "touch": str(started)}, 60 if sys.argv[2] == "exits" else 1)

threading.Thread(target=busy, daemon=True).start()
while not started.exists():
    pass
if sys.argv[2] == "killed":
    os.kill(os.getpid(), 9)
"""


@pytest.mark.parametrize("ending", ["exits", "killed"])
def test_no_process_outlives_the_program(handler: Path, ending: str) -> None:
    # No `if __name__ == "__main__"`: the main script is not run again.
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", SCRIPT, str(handler), ending],
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )
    assert done.stderr == ""
    assert done.returncode == (0 if ending == "exits" else -signal.SIGKILL)
    pid = int(done.stdout)
    deadline = time.monotonic() + 60
    while is_alive(pid):
        assert time.monotonic() < deadline, "the worker process is still alive"
        time.sleep(0.01)


async def test_graders_share_processes_under_each_event_loop() -> None:
    criteria = [
        Criterion(id=f"c{number}", description="d", references=(f"{number}x",))
        for number in range(6)
    ]
    rubric = Rubric(criteria=tuple(criteria))
    grader = CompositeGrader(MathMatch(num_workers=1))
    score = await grader.ascore(r"\boxed{x + x + x}", rubric)
    assert [name for name, value in score.component_values.items() if value] == ["c3"]
    assert score == await anyio.to_thread.run_sync(grader.score, r"\boxed{x + x + x}", rubric)
