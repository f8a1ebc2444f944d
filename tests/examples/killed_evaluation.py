"""Runs examples/evaluate.py, and kills it when so many samples have ended: a script, run by a test.

python killed_evaluation.py NUMBER [ARGUMENT ...]
"""

from __future__ import annotations

import importlib
import os
import signal
import sys
from pathlib import Path
from typing import Any

from rolloutlib.evals import ProgressDisplay
from rolloutlib.rollouts import RolloutEvent

EXAMPLES = Path(__file__).parents[2] / "examples"


class Killer(ProgressDisplay):
    """Shows progress, and ends it."""

    left = int(sys.argv.pop(1))

    def __call__(self, event: RolloutEvent) -> None:
        super().__call__(event)
        Killer.left -= event.kind == "finished"
        if not Killer.left:
            os.kill(os.getpid(), signal.SIGKILL)


sys.path.insert(0, str(EXAMPLES))
evaluate: Any = importlib.import_module("evaluate")
evaluate.ProgressDisplay = Killer
evaluate.main()
