"""The table of speed gates: rolloutlib against what one would write by hand.

    uv run benchmarks/run.py                        # every row that has a gate, and those beside it
    uv run benchmarks/run.py rollouts spaces chat   # some areas and rows
    uv run benchmarks/run.py scaling                # many episodes
    uv run benchmarks/run.py --old PYTHON           # also rolloutlib 0.2.0 in an environment of its own

Each row is measured in a process of its own, both sides in turn. Results are kept in a folder beside
this file; the column "before" shows the newest of them from earlier.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from rich.console import Console

from measuring import AREAS, Row, rows_of
from table import earlier, save, show

HERE = Path(__file__).parent
ON_REQUEST = ("scaling",)
"""Areas that are measured only when they are named."""


def main() -> None:
    """Measure the rows that the command line names, print them and keep the results."""
    areas = {area: rows_of(area) for area in AREAS}
    arguments = parse(areas)
    chosen = choose(areas, arguments.names)
    for _, row in chosen:
        if row.missing:
            print(f"{row.name} is left out: {row.missing}", file=sys.stderr)
    chosen = [(area, row) for area, row in chosen if not row.missing]
    before = earlier(arguments.results)
    ours: dict[str, Any] = {}
    old: dict[str, Any] = {}
    options = [f"--rounds={arguments.rounds}", *(["--quick"] if arguments.quick else [])]
    with Console(stderr=True).status("") as status:
        for area, row in chosen:
            try:
                status.update(f"{row.name}: {row.work}")
                if result := measure(sys.executable, area, row, options):
                    ours[row.name] = result
                status.update(f"{row.name} in 0.2.0")
                if (
                    arguments.old
                    and row.in_old
                    and (result := measure(arguments.old, area, row, options))
                ):
                    old[row.name] = result
            except KeyboardInterrupt:
                print("interrupted; here is what was measured", file=sys.stderr)
                break
    path = save(arguments.results, ours, old, quick=arguments.quick)
    show([row for _, row in chosen], ours, old, before)
    print(f"Kept in {path}. Ratios are medians of rounds; compare them, not the other numbers.")
    sys.exit(len(ours) < len(chosen))


def parse(areas: dict[str, list[Row]]) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description="Measure rolloutlib against what one would write by hand, and print a table.",
        epilog="Areas and rows: "
        + "; ".join(
            f"{area}: {' '.join(row.name for row in rows)}" for area, rows in areas.items()
        ),
    )
    parser.add_argument("names", nargs="*", help="areas and rows; by default all but scaling")
    parser.add_argument("--rounds", type=int, default=7, help="how often each side is measured")
    parser.add_argument("--quick", action="store_true", help="only see that everything works")
    parser.add_argument("--old", metavar="PYTHON", help="an interpreter that has rolloutlib 0.2.0")
    parser.add_argument(
        "--results", type=Path, default=HERE / "results", help="the folder that keeps results"
    )
    arguments = parser.parse_args()
    known = {*areas, *(row.name for rows in areas.values() for row in rows)}
    if unknown := [name for name in arguments.names if name not in known]:
        parser.error(f"no area or row {', '.join(unknown)}; --help lists them")
    if arguments.rounds < 1:
        parser.error(f"--rounds must be at least 1, got {arguments.rounds}")
    return arguments


def choose(areas: dict[str, list[Row]], names: list[str]) -> list[tuple[str, Row]]:
    """Return the rows of those names, with their areas, in the order of the table."""
    names = names or [area for area in AREAS if area not in ON_REQUEST]
    return [
        (area, row)
        for area, rows in areas.items()
        for row in rows
        if area in names or row.name in names
    ]


def measure(python: str, area: str, row: Row, options: list[str]) -> dict[str, Any] | None:
    """Measure one row in a process of its own; say why if that fails, and return None."""
    command = [python, str(HERE / "measuring.py"), area, row.name, *options]
    process = subprocess.run(command, capture_output=True, text=True, check=False)
    if process.returncode:
        reason = (process.stderr.splitlines() or [f"exit status {process.returncode}"])[-1]
        print(f"{row.name} failed with {python}: {reason}", file=sys.stderr)
        return None
    return json.loads(process.stdout)


if __name__ == "__main__":
    main()
