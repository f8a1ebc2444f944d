"""The time of `import rolloutlib`, against that of the libraries which it stands on."""

from __future__ import annotations

import subprocess
import sys

from measuring import Effort, Measure, Row, Sides


def importing(modules: str) -> Measure:
    """Measure the milliseconds that an import statement takes in a fresh interpreter."""
    script = (
        f"import time; t = time.perf_counter(); import {modules}; print(time.perf_counter() - t)"
    )

    def measure() -> float:
        command = [sys.executable, "-c", script]
        output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        return float(output) * 1e3

    return measure


def imports(effort: Effort) -> Sides:
    """Import in fresh interpreters; those that come before have read the files from the disk."""
    return Sides(importing("rolloutlib"), importing("gymnasium, pydantic, anyio"))


ROWS = [
    Row("import", "import rolloutlib, against gymnasium + pydantic + anyio", "ms", imports, 1.1)
]
