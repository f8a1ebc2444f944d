"""What a row of the table is, and how it is measured: our side and the hand-written one in turn.

    python measuring.py AREA ROW [--rounds N] [--quick]

measures one row in a process of its own and prints it as JSON. It needs nothing but rolloutlib and
what the row imports, so that it runs in the environment of an older version too.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import importlib
import json
import math
import statistics
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from itertools import repeat
from time import perf_counter
from typing import Any, Literal, TypeAlias

AREAS = (
    "rollouts",
    "collecting",
    "records",
    "training",
    "storage",
    "parquet",
    "spaces",
    "adapters",
    "graders",
    "evals",
    "imports",
    "scaling",
)
"""The modules of rows; each has a list `ROWS`."""

Measure: TypeAlias = Callable[[], float]
"""Measures once; returns a number in the unit of the row."""


@dataclass(frozen=True, slots=True)
class Effort:
    """How much is spent on one measurement.

    Attributes:
        quick: Whether to only see that everything works.
    """

    quick: bool = False

    @property
    def seconds(self) -> float:
        """How long a measurement should take; the work is repeated to fill it."""
        return 0.001 if self.quick else 0.05

    def count(self, number: int) -> int:
        """Return a number of things to work on, or a few when quick."""
        return min(number, 20) if self.quick else number


@dataclass(frozen=True, slots=True)
class Sides:
    """Two ways to do the same work.

    Attributes:
        ours: Measures rolloutlib.
        hand: Measures what a competent engineer would write instead, if there is such a thing.
    """

    ours: Measure
    hand: Measure | None = None


@dataclass(frozen=True, slots=True)
class Row:
    """One row of the table.

    Attributes:
        name: What selects it on the command line.
        work: What is measured.
        unit: Of the numbers of both sides.
        prepare: Makes what the measurements need, and returns them.
        gate: The most that is allowed, or None for a row that only informs.
        gated: What the gate bounds: our side over the hand-written one, or our side alone.
        in_old: Whether rolloutlib 0.2.0 can do the work.
        most_rounds: How often it is measured at most, for what takes long.
        missing: What the row needs and is not there, or nothing.
    """

    name: str
    work: str
    unit: str
    prepare: Callable[[Effort], Sides]
    gate: float | None = None
    gated: Literal["ratio", "ours"] = "ratio"
    in_old: bool = True
    most_rounds: int = 100
    missing: str = ""


def timed(work: Callable[[], object], effort: Effort, *, per: int = 1) -> Measure:
    """Measure a function: microseconds a call, divided by the number of things it works on.

    Garbage is collected before, and stays enabled during it, as in a real program.
    """

    def run(calls: int) -> float:
        gc.collect()
        start = perf_counter()
        for _ in repeat(None, calls):
            work()
        return perf_counter() - start

    return _repeated(run, effort, per)


def timed_async(work: Callable[[], Awaitable[object]], effort: Effort, *, per: int = 1) -> Measure:
    """Measure an asynchronous function in the same way, in an event loop that runs already."""

    async def run(calls: int) -> float:
        gc.collect()
        start = perf_counter()
        for _ in repeat(None, calls):
            await work()
        return perf_counter() - start

    return _repeated(lambda calls: asyncio.run(run(calls)), effort, per)


def _repeated(run: Callable[[int], float], effort: Effort, per: int) -> Measure:
    """Measure what takes some seconds for some calls, with as many as fill a measurement."""
    calls = 0

    def measure() -> float:
        nonlocal calls
        if calls:
            elapsed = run(calls)
        else:
            calls = 1
            while (elapsed := run(calls)) < effort.seconds:
                calls = math.ceil(calls * min(10, 1.2 * effort.seconds / elapsed))
        return elapsed / calls / per * 1e6

    return measure


def measure_row(row: Row, effort: Effort, rounds: int) -> dict[str, Any]:
    """Measure both sides in turn, so many times; return the medians, and what they come from.

    The side that goes first changes from round to round. One round before them is dropped, unless
    one is all that the row may have.
    """
    sides = row.prepare(effort)
    measures = (
        {"ours": sides.ours} if sides.hand is None else {"ours": sides.ours, "hand": sides.hand}
    )
    order = list(measures)
    if row.most_rounds > 1:
        for side in order:
            measures[side]()
    found: dict[str, list[float]] = {side: [] for side in order}
    for _ in range(min(rounds, row.most_rounds)):
        for side in order:
            found[side].append(measures[side]())
        order.reverse()
    result: dict[str, Any] = {side: statistics.median(values) for side, values in found.items()}
    if "hand" in found:
        ratios = [ours / hand for ours, hand in zip(found["ours"], found["hand"], strict=True)]
        result["ratio"] = statistics.median(ratios)
    return {**result, "rounds": found}


def rows_of(area: str) -> list[Row]:
    """Return the rows of an area."""
    return importlib.import_module(area).ROWS


def main() -> None:
    """Measure the row that the command line names, and print it as JSON."""
    parser = argparse.ArgumentParser(description="Measure one row and print it as JSON.")
    parser.add_argument("area", choices=AREAS)
    parser.add_argument("row")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--quick", action="store_true")
    arguments = parser.parse_args()
    [row] = [row for row in rows_of(arguments.area) if row.name == arguments.row]
    print(json.dumps(measure_row(row, Effort(quick=arguments.quick), arguments.rounds)))


if __name__ == "__main__":
    # The rows are made by the module `measuring`, which this file, run as a script, is not.
    importlib.import_module("measuring").main()
