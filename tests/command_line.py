"""The command in this process and in others, and what a model server answers."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from typer.testing import CliRunner

from rolloutlib.evals._command._app import app
from scripted_server import Behaviour, respond

SCRIPT = "from rolloutlib_command import main; main()"


@dataclass(frozen=True)
class Ended:
    """What the command wrote, and how it ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


def run(*arguments: object, environment: Mapping[str, str] | None = None) -> Ended:
    """Run the command in this process."""
    result = CliRunner().invoke(app, [str(each) for each in arguments], env=environment)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return Ended(result.exit_code, result.stdout, result.stderr)


def start(
    *arguments: object, stderr: int = subprocess.PIPE, encoding: str = "utf-8"
) -> subprocess.Popen[str]:
    """Start the command in a process of its own."""
    command = [sys.executable, "-c", SCRIPT, *[str(each) for each in arguments]]
    environment = {
        **os.environ,
        "TERM": "xterm",
        "PYTHONUNBUFFERED": "1",
        "PYTHONIOENCODING": encoding,
    }
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=stderr, encoding=encoding, env=environment
    )


def says(text: str, **usage: int) -> Behaviour:
    """Answer each request with a text."""
    message = {"role": "assistant", "content": text}
    return respond(
        {
            "id": "1",
            "model": "m",
            "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
            "usage": usage or {"prompt_tokens": 3, "completion_tokens": 5, "total_tokens": 8},
        }
    )


class Holding:
    """Answers so many requests, and holds up those after them until it is released."""

    def __init__(self, free: int, awaited: int) -> None:
        self.held = threading.Semaphore(0)  # is released once for each request that waits
        self._free = free
        self._awaited = awaited
        self._released = threading.Event()
        self._lock = threading.Lock()
        self._answer = says("It is 1.")

    def __call__(self, connection: socket.socket) -> bool:
        with self._lock:
            self._free -= 1
            must_wait = self._free < 0
        if must_wait:
            self.held.release()
            assert self._released.wait(60)
        return self._answer(connection)

    def wait(self) -> None:
        """Wait until as many requests are held up as are awaited."""
        for _ in range(self._awaited):
            assert self.held.acquire(timeout=60)

    def release(self) -> None:
        """Answer all."""
        self._released.set()


def read_terminal(master: int, found: Callable[[str], bool]) -> str:
    """Read what is drawn until something is found, or nobody draws any more."""
    drawn = b""
    while not found(text := drawn.decode(errors="replace")):
        try:
            chunk = os.read(master, 65536)
        except OSError:  # nobody writes to it any more
            return text
        if not chunk:
            return text
        drawn += chunk
    return text


def read_until(stream: Any, found: Callable[[str], bool]) -> str:
    """Read lines until one is found; return what was read."""
    read = ""
    for line in stream:
        read += line
        if found(line):
            return read
    raise AssertionError(read)
