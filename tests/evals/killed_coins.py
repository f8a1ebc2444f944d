"""An evaluation of coins that kills itself when so many samples have ended: a script, run by tests.

python killed_coins.py LOG KIND NUMBER
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import Any

from evals.coins import ARGUMENTS, coins, toss
from rolloutlib.evals import run_benchmark


def main(path: Path, kind: str, left: int) -> None:
    """Run, with an early stop or with another chance for what has failed, and die."""

    def on_event(event: Any) -> None:
        nonlocal left
        left -= event.kind == "finished"
        if not left:
            os.kill(os.getpid(), signal.SIGKILL)

    arguments: dict[str, Any] = {"log": path, "on_event": on_event, "concurrency": 8}
    if kind == "stop":
        run_benchmark(coins(), policy=toss, **ARGUMENTS, **arguments)
    else:
        run_benchmark(coins(40), policy=toss, retry_failed=True, model="m", **arguments)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]))
