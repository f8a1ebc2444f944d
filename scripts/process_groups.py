"""Commands with all that they start: Ctrl-C, an error or the end of a block leaves none of it running."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import Any


@contextmanager
def running(
    command: Sequence[str], *, first: signal.Signals = signal.SIGTERM, **settings: Any
) -> Generator[subprocess.Popen[Any]]:
    """Run a command in a group of processes of its own, which ends with the block.

    Args:
        command: The program and its arguments.
        first: The signal by which the group is asked to end; after 10 seconds come SIGTERM and SIGKILL.
        settings: What else `subprocess.Popen` takes.

    Raises:
        OSError: There is no such program.
    """
    process = subprocess.Popen(command, start_new_session=True, **settings)
    try:
        yield process
    finally:
        for number in dict.fromkeys((first, signal.SIGTERM, signal.SIGKILL)):
            try:
                os.killpg(process.pid, number)
                process.wait(timeout=10)
            except (ProcessLookupError, PermissionError):  # macOS refuses where all have ended
                break
            except subprocess.TimeoutExpired:
                continue
        if process.stdin:
            process.stdin.close()
        process.wait()
