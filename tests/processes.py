"""What scripts print in processes of their own."""

from __future__ import annotations

import os
import subprocess
import sys


def outputs_under_hash_seeds(script: str) -> set[str]:
    """Run a script under several seeds of Python's hashes; return the different outputs."""
    return {
        subprocess.run(
            [sys.executable, "-c", script],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("0", "1", "2")
    }


def output_of(script: str, *arguments: str) -> str:
    """Run a script with arguments; return its output."""
    command = [sys.executable, "-c", script, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout
