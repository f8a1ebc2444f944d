"""Where the time of a row goes: what cProfile counts while our side of it runs.

    uv run benchmarks/profile_row.py                      # rollout-100
    uv run benchmarks/profile_row.py async-256 --lines 40
    uv run benchmarks/profile_row.py chat --sort cumulative

cProfile makes each call dearer, and so functions that make many of them; it shows where to look, and
`run.py` what was won. Only the thread of the event loop is seen.
"""

# Not named `profile`, which is a module that cProfile imports.
from __future__ import annotations

import argparse
import cProfile
import pstats
from time import perf_counter

from measuring import AREAS, Effort, rows_of


def main() -> None:
    """Profile the row that the command line names."""
    rows = {row.name: row for area in AREAS for row in rows_of(area)}
    parser = argparse.ArgumentParser(description="Profile our side of a row.")
    parser.add_argument("row", nargs="?", default="rollout-100", choices=rows, metavar="ROW")
    parser.add_argument("--lines", type=int, default=25, help="how many functions to print")
    parser.add_argument("--sort", default="tottime", choices=("tottime", "cumulative", "ncalls"))
    parser.add_argument("--quick", action="store_true", help="only see that everything works")
    arguments = parser.parse_args()

    effort = Effort(quick=arguments.quick)
    measure = rows[arguments.row].prepare(effort).ours
    measure()
    profile = cProfile.Profile()
    start = perf_counter()
    while perf_counter() - start < 20 * effort.seconds:
        profile.runcall(measure)
    pstats.Stats(profile).strip_dirs().sort_stats(arguments.sort).print_stats(arguments.lines)


if __name__ == "__main__":
    main()
