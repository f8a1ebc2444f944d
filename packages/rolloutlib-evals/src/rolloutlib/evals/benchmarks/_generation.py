"""Making the problems of reasoning-gym, the same ones in every process."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from collections.abc import Mapping
from typing import Any

__all__ = ["generate"]

# These follow the order of sets, which is another in every process, or draw from the global random
# numbers of Python or NumPy. Composites may have them.
_APART = {
    "codeio",
    "composite",
    "isomorphic_strings",
    "knight_swap",
    "list_functions",
    "polynomial_multiplication",
    "pool_matrix",
    "ransom_note",
    "word_ladder",
}
_CHILD = """
import pickle, random, sys, warnings
warnings.simplefilter("ignore")
output, sys.stdout = sys.stdout.buffer, sys.stderr
task, settings = pickle.load(sys.stdin.buffer)
from reasoning_gym import create_dataset
dataset = create_dataset(task, **settings)
random.seed(settings["seed"])
output.write(pickle.dumps([dataset[index] for index in range(len(dataset))]))
"""


def generate(dataset: Any, task: str, settings: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the problems of a data set of reasoning-gym in order, since some depend on the order.

    Raises:
        RuntimeError: A process of its own, which some tasks need, failed; the message has the end of
            what it wrote.
    """
    if task not in _APART:
        return [dataset[index] for index in range(len(dataset))]
    done = subprocess.run(  # noqa: S603 - this interpreter on the text above
        [sys.executable, "-c", _CHILD],
        input=pickle.dumps((task, dict(settings))),
        env={**os.environ, "PYTHONHASHSEED": "0"},
        capture_output=True,
        check=False,
    )
    if done.returncode != 0:
        written = done.stderr.decode(errors="replace")[-2000:]
        msg = f"making the problems of reasoning-gym's task {task!r} failed: {written}"
        raise RuntimeError(msg)
    return pickle.loads(done.stdout)  # noqa: S301 - our own
