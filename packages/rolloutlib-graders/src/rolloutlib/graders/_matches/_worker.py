"""What a worker process runs: one job after another, each a line of JSON, each answered by a line.

Run as a script, with the path of a file that defines `handle`, so that nothing else is imported.
"""

from __future__ import annotations

import contextlib
import faulthandler
import importlib.util
import json
import os
import runpy
import signal
import sys
from typing import Any

_MAX_BYTES = 2**30  # of address space, so that no answer takes the machine's memory
_GRACE_SECONDS = 1.0


def main() -> None:
    """Serve until the input ends, as it does when the parent process has gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's to handle
    _limit_memory()
    source, replies = sys.stdin, os.fdopen(os.dup(1), "w", encoding="ascii")
    with open(os.devnull, "w", encoding="utf-8") as nowhere:
        os.dup2(nowhere.fileno(), 1)  # what a library prints is no reply
        try:
            handle = runpy.run_path(sys.argv[1])["handle"]
        except Exception as error:
            _send(replies, {"error": f"{type(error).__name__}: {error}"})
            return
        _send(replies, {"ready": True})
        for line in source:
            job = json.loads(line)
            # Whatever the parent does, no job runs for ever: this watch is a thread of C.
            limit = job["time_limit"] + _GRACE_SECONDS
            faulthandler.dump_traceback_later(limit, exit=True, file=nowhere)
            try:
                reply = handle(job)
            except (MemoryError, RecursionError) as error:
                reply = {"status": "exhausted", "reason": type(error).__name__}
            faulthandler.cancel_dump_traceback_later()
            _send(replies, reply)


def _send(replies: Any, reply: dict[str, Any]) -> None:
    replies.write(json.dumps(reply) + "\n")
    replies.flush()


def _limit_memory() -> None:
    if importlib.util.find_spec("resource") is None:  # Windows has no such limit
        return
    resource: Any = importlib.import_module("resource")
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    bounds = [bound for bound in (_MAX_BYTES, soft, hard) if bound != resource.RLIM_INFINITY]
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_AS, (min(bounds), hard))


if __name__ == "__main__":
    main()
