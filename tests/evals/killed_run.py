"""An evaluation that kills itself at an event of a number: a script, run by a test.

python killed_run.py LOG KIND NUMBER
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import Any

import anyio

from evals.sums import aadd, add, sums
from rolloutlib.evals import arun_benchmark, run_benchmark


def main(path: Path, kind: str, left: int) -> None:
    """Run, and die before the policy has answered so many times, or after a sample has ended."""

    def on_event(event: Any) -> None:
        nonlocal left
        if event.kind in ("step", "finished"):
            left -= 1
            if not left:
                os.kill(os.getpid(), signal.SIGKILL)

    if kind == "sync":
        run_benchmark(sums(), policy=add, epochs=2, log=path, on_event=on_event, model="m")
    else:

        async def play() -> None:
            await arun_benchmark(
                sums(),
                policy=aadd,
                epochs=2,
                log=path,
                on_event=on_event,
                concurrency=3,
                model="m",
            )

        anyio.run(play, backend=kind)
    print("lived")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]))
