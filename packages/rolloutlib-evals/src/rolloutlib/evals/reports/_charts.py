"""Charts as shapes to draw: where they stand, and how they are called in words."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Literal

import numpy as np
from numpy.typing import NDArray

__all__ = ["Chart", "Shape", "bins", "histogram", "intervals", "stack"]

WIDTH, HEIGHT = 400, 190
LEFT, RIGHT, TOP, BOTTOM = 40, 12, 12, 24
NUM_BINS = 24
ROW = 34


@dataclass(frozen=True)
class Shape:
    """A rectangle, a line, a point or a text, in the units of its chart.

    Attributes:
        kind: Which of them.
        x: The left end; of points and texts the middle.
        y: The upper end; of points the middle, of texts the line that they stand on.
        width: Of rectangles; of lines how far they reach to the right.
        height: Of rectangles; of lines how far they reach down.
        style: The names of its classes.
        text: What it says; of a rectangle what it says when one points to it.
    """

    kind: Literal["rect", "line", "point", "text"]
    x: float
    y: float
    width: float = 0
    height: float = 0
    style: str = ""
    text: str = ""


@dataclass
class Chart:
    """A chart.

    Attributes:
        title: What it shows.
        width: Its width.
        height: Its height.
        shapes: What is drawn.
        legend: The style and the name of each series, if there are several.
        columns: The heads of the table that says the same.
        rows: The rows of that table.
    """

    title: str
    width: float = WIDTH
    height: float = HEIGHT
    shapes: list[Shape] = field(default_factory=list[Shape])
    legend: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    columns: list[str] = field(default_factory=list[str])
    rows: list[list[str]] = field(default_factory=list[list[str]])


def histogram(
    title: str, series: Mapping[str, Sequence[float]], *, styles: Mapping[str, str], unit: str
) -> Chart:
    """Draw how values are distributed, the series on top of each other.

    Few different values have a bar each, many are counted in bins of one width; values far above
    nearly all others share the last bin.

    Args:
        title: What is shown.
        series: The values of each series, by its name.
        styles: The class of each series.
        unit: What the values are, for the table.
    """
    chart = Chart(title, columns=[unit, *series])
    values = np.array([value for each in series.values() for value in each], dtype=np.float64)
    if not values.size:
        return chart
    labels, positions = bins(values)
    counts: dict[str, list[int]] = {}
    for name, each in series.items():
        places = positions(np.array(each, dtype=np.float64))
        counts[name] = np.bincount(places, minlength=len(labels)).tolist()
    most = max(map(sum, zip(*counts.values(), strict=True)))
    ticks = _ticks(0, most, whole=True)
    inner, tall = WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM
    for tick in ticks:
        y = TOP + tall * (1 - tick / ticks[-1])
        chart.shapes.append(Shape("line", LEFT, y, inner, 0, "grid"))
        chart.shapes.append(Shape("text", LEFT - 6, y + 4, style="end", text=f"{tick:,g}"))
    step = inner / len(labels)
    every = math.ceil(len(labels) / 7)
    for number, label in enumerate(labels):
        x, bottom = LEFT + step * number, float(TOP + tall)
        for name in series:
            height = tall * counts[name][number] / ticks[-1]
            bottom -= height
            if height:
                gap = min(step * 0.2, 8)
                words = f"{label} {unit}: {counts[name][number]:,} {name}"
                style = f"bar {styles[name]}"
                shape = Shape("rect", x + gap / 2, bottom, step - gap, height, style, words)
                chart.shapes.append(shape)
        if number % every == 0:
            middle = x + step / 2
            short = label.partition(" to ")[0]
            chart.shapes.append(Shape("text", middle, HEIGHT - 6, style="middle", text=short))
        chart.rows.append([label, *[f"{counts[name][number]:,}" for name in series]])
    if len(series) > 1:
        chart.legend = [(styles[name], name) for name in series]
    return chart


def bins(
    values: NDArray[np.float64], count: int = NUM_BINS
) -> tuple[list[str], Callable[[NDArray[np.float64]], NDArray[np.int64]]]:
    """Return the names of the bins of values, and what tells in which of them some values are.

    Args:
        values: All values, at least one.
        count: About how many bins.
    """
    distinct = np.unique(values)
    if len(distinct) <= 11:
        return [f"{value:.4g}" for value in distinct], lambda some: np.searchsorted(distinct, some)
    low, high = float(distinct[0]), float(distinct[-1])
    usual = float(np.quantile(values, 0.98))
    beyond = high - low > 2 * (usual - low) > 0
    ticks = _ticks(low, usual if beyond else high, count=count - 4)
    edges = np.array([*ticks, math.inf] if beyond else ticks)
    labels = [f"{start:,.4g} to {stop:,.4g}" for start, stop in pairwise(ticks)]
    if beyond:
        labels.append(f"≥ {ticks[-1]:,.4g}")

    def positions(some: NDArray[np.float64]) -> NDArray[np.int64]:
        return np.clip(np.searchsorted(edges, some, side="right") - 1, 0, len(labels) - 1)

    return labels, positions


def stack(title: str, counts: Mapping[str, int], *, styles: Mapping[str, str]) -> Chart:
    """Draw shares of a whole as one bar.

    Args:
        title: What is shown.
        counts: How many there are of each kind.
        styles: The class of each kind.
    """
    chart = Chart(title, width=800, height=30)
    total, x = sum(counts.values()), 0.0
    for name, count in counts.items():
        if count:
            width = chart.width * count / total
            words = f"{name}: {count:,} of {total:,}"
            style = f"bar {styles[name]}"
            chart.shapes.append(Shape("rect", x, 0, max(width - 1, 0.5), 30, style, words))
            x += width
    return chart


def intervals(
    title: str, rows: Sequence[tuple[str, str, float, float, float]], *, zero: bool = False
) -> Chart:
    """Draw values with their intervals, a row each, on one scale.

    Args:
        title: What is shown.
        rows: Of each row the name, the class, the value, and the ends of the interval, which may be
            NaN.
        zero: Whether 0 is marked.
    """
    chart = Chart(title, height=ROW * len(rows) + 30)
    chart.columns = ["", "value", "from", "to"]
    ends = [end for row in rows for end in row[2:] if math.isfinite(end)]
    low, high = min([*ends, 0.0] if zero else ends), max([*ends, 0.0] if zero else ends)
    ticks = _ticks(low, high)
    inner = WIDTH - 2 * RIGHT - 8

    def place(value: float) -> float:
        return RIGHT + 4 + inner * (value - ticks[0]) / (ticks[-1] - ticks[0])

    for tick in ticks:
        style = "zero" if zero and tick == 0 else "grid"
        chart.shapes.append(Shape("line", place(tick), 4, 0, ROW * len(rows), style))
        label = Shape("text", place(tick), chart.height - 8, style="middle", text=f"{tick:.4g}")
        chart.shapes.append(label)
    for number, (name, style, value, start, stop) in enumerate(rows):
        y = ROW * number + 26
        if math.isfinite(start) and math.isfinite(stop):
            whisker = Shape("line", place(start), y, place(stop) - place(start), 0, "whisker")
            chart.shapes.append(whisker)
        chart.shapes.append(Shape("point", place(value), y, style=style, text=f"{value:.4g}"))
        words = Shape("text", RIGHT + 9, y - 9, style="start label", text=name)
        chart.shapes.append(words)
        chart.rows.append([name, *[f"{end:.4g}" for end in (value, start, stop)]])
    return chart


def _ticks(low: float, high: float, *, count: int = 4, whole: bool = False) -> list[float]:
    """Return round numbers in even steps, the first not above `low`, the last not below `high`."""
    span = high - low or abs(high) or 1.0
    power = 10.0 ** math.floor(math.log10(span / count))
    step = min([m * power for m in (1, 2, 5, 10)], key=lambda step: abs(step - span / count))
    if whole:
        step = max(1.0, step)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [float(f"{step * n:.12g}") for n in range(first, max(last, first + 1) + 1)]
