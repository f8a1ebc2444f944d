"""A few worker processes, kept warm, for work that only the end of its process can interrupt."""

from __future__ import annotations

import atexit
import io
import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any, cast

_SCRIPT = Path(__file__).with_name("_worker.py")
_START_SECONDS = 120.0
_CHUNK = 2**16


class TimeLimitError(Exception):
    """A job took longer than it may."""


class WorkerDiedError(Exception):
    """A process ended during a job, by itself or by the system."""


class WorkerPool:
    """At most so many processes, each started when it is first needed, for calls from any thread.

    A process that is late or in an unknown state is killed and waited for, and the next job gets a
    new one. All are killed at exit, and each ends by itself once this process has gone. They are not
    made by `multiprocessing`, whose children run the program's main script again.

    A fork of this process makes processes of its own.

    Args:
        handler: A Python file that defines `handle`, from a job to a reply, both JSON objects.
        size: How many processes there are at most.
    """

    def __init__(self, handler: Path, size: int) -> None:
        self._handler = handler
        self._size = size
        self._closed = False
        self._reset()
        atexit.register(self.close)
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._forget)

    def run(self, job: dict[str, Any], time_limit: float) -> dict[str, Any]:
        """Do a job in one of the processes, as soon as one is free.

        Args:
            job: What the handler takes.
            time_limit: How many seconds the job may take, without the wait for a process.

        Raises:
            TimeLimitError: It took longer.
            WorkerDiedError: Its process ended.
            RuntimeError: No process can be started, or the interpreter is exiting.
        """
        worker = self._take()
        try:
            reply = worker.ask(job, time_limit)
        except BaseException:
            self._drop(worker)
            raise
        with self._changed:
            self._idle.append(worker)
            self._changed.notify()
        return reply

    def close(self) -> None:
        """End all processes; there are no others afterwards."""
        with self._changed:
            self._closed = True
            workers = list(self._workers)
            self._changed.notify_all()
        for worker in workers:
            self._drop(worker)

    def _take(self) -> _Worker:
        with self._changed:
            self._changed.wait_for(
                lambda: self._closed or self._idle or len(self._workers) < self._size
            )
            if self._closed:
                msg = "no more work can be done: the interpreter is exiting"
                raise RuntimeError(msg)
            if self._idle:
                return self._idle.pop()
            worker = _Worker(self._handler)
            self._workers.add(worker)
        try:
            worker.wait_until_ready()
        except BaseException:
            self._drop(worker)
            raise
        return worker

    def _drop(self, worker: _Worker) -> None:
        worker.kill()
        with self._changed:
            self._workers.discard(worker)
            self._changed.notify()

    def _reset(self) -> None:
        self._changed = threading.Condition()
        self._workers: set[_Worker] = set()
        self._idle: list[_Worker] = []

    def _forget(self) -> None:
        """Leave the processes to the parent process, whose they are."""
        for worker in self._workers:
            worker.forget()
        self._reset()


def run_job(handler: str, size: int, job: dict[str, Any], time_limit: float) -> dict[str, Any]:
    """Do a job in a pool that all callers share.

    Args:
        handler: The name of a file beside this one.
        size: How many processes the pool has at most; each number has a pool.
        job: What the handler takes.
        time_limit: How many seconds the job may take.

    Returns:
        The reply; or "status", which is "timeout" if there was none in time and "exhausted" if the
        job ended its process twice, with a "reason".

    Raises:
        RuntimeError: No process can be started, or the interpreter is exiting.
    """
    pool = _shared_pool(handler, size)
    for _ in range(2):  # the first time the process may have been ended for another reason
        try:
            return pool.run(job, time_limit)
        except TimeLimitError as error:
            return {"status": "timeout", "reason": str(error)}
        except WorkerDiedError:
            continue
    return {"status": "exhausted", "reason": "it ended the process that worked on it"}


_lock = threading.Lock()
_pools: dict[tuple[str, int], WorkerPool] = {}
if hasattr(os, "register_at_fork"):  # no fork copies the lock while a thread holds it
    os.register_at_fork(
        before=_lock.acquire, after_in_parent=_lock.release, after_in_child=_lock.release
    )


def _shared_pool(handler: str, size: int) -> WorkerPool:
    with _lock:
        if (handler, size) not in _pools:
            _pools[handler, size] = WorkerPool(_SCRIPT.with_name(handler), size)
        return _pools[handler, size]


class _Worker:
    """A process that does one job at a time."""

    def __init__(self, handler: Path) -> None:
        path = os.pathsep.join([entry for entry in sys.path if entry])
        self._process = subprocess.Popen(  # noqa: S603 - this interpreter, on files of ours
            [sys.executable, "-P", str(_SCRIPT), str(handler)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "PYTHONPATH": path},
            bufsize=0,
        )
        # Unbuffered, so that no lock can be held by a thread that a fork does not copy.
        self._jobs = cast("io.RawIOBase", self._process.stdin)
        self._replies = cast("io.RawIOBase", self._process.stdout)

    def wait_until_ready(self) -> None:
        reply = self._exchange(b"", _START_SECONDS)
        if "error" in reply:
            msg = f"a worker process could not start: {reply['error']}"
            raise RuntimeError(msg)

    def ask(self, job: dict[str, Any], time_limit: float) -> dict[str, Any]:
        job = {**job, "time_limit": time_limit}
        return self._exchange(json.dumps(job).encode() + b"\n", time_limit)

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()
        self._close()

    def forget(self) -> None:
        self._process.returncode = 0  # as far as this process knows
        self._close()

    def _exchange(self, data: bytes, time_limit: float) -> dict[str, Any]:
        late = threading.Event()

        def end() -> None:
            late.set()
            self._process.kill()

        timer = threading.Timer(time_limit, end)
        timer.daemon = True
        timer.start()
        try:
            while data:
                data = data[self._jobs.write(data) or 0 :]
            line = self._read_line()
        except OSError:  # nobody reads any more
            line = b""
        finally:
            timer.cancel()
        if late.is_set():
            msg = f"a job took longer than {time_limit} s"
            raise TimeLimitError(msg)
        if not line.endswith(b"\n"):
            msg = "a worker process ended during its job"
            raise WorkerDiedError(msg)
        return json.loads(line)

    def _read_line(self) -> bytes:
        line = bytearray()
        while not line.endswith(b"\n"):
            part = self._replies.read(_CHUNK)
            if not part:
                break
            line += part
        return bytes(line)

    def _close(self) -> None:
        self._jobs.close()
        self._replies.close()
