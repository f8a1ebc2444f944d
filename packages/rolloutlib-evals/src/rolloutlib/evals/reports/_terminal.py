"""The report on a terminal: the figures, and samples in a line each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
from rich.console import Console
from rich.padding import Padding
from rich.segment import SegmentLines
from rich.table import Table
from rich.text import Text

from rolloutlib.evals._records import EvaluationRecord
from rolloutlib.evals._rows import to_row
from rolloutlib.evals.reports._charts import bins
from rolloutlib.evals.reports._conversation import conversation
from rolloutlib.evals.reports._figures import (
    OUTCOMES,
    Figure,
    comparison_figures,
    component_figures,
    count_words,
    figures,
    number,
    outcome_counts,
    reason_counts,
)
from rolloutlib.evals.reports._report import Report, item_name
from rolloutlib.evals.reports._text import visible
from rolloutlib.evals.reports._thinking import take_thinking

__all__ = ["STYLES", "print_samples", "print_summary"]

STYLES = {
    "credited": "green",
    "wrong": "red",
    "no_answer": "magenta",
    "truncated": "yellow",
    "failed": "bold red",
}
_BAR = 30
_REASONS = 8
_LINE = 60
_NAME = 28
_WIDE = 120  # from here on samples have their replies beside them
_NARROW = 80  # below, columns are left out that tell least


def print_summary(report: Report, console: Console | None = None) -> None:
    """Print the figures of a run, how scores and lengths are distributed, and how it compares.

    Args:
        report: The report.
        console: Where to print; by default standard output.
    """
    console = console or Console()
    console.print(_text(report.title, "bold"))
    for name in ("benchmark", "model"):
        if report.settings.get(name):
            console.print(_text(f"{name} {report.settings[name]}", "dim"))
    console.print()
    console.print(_figures(figures(report)))
    total = len(report.samples)
    if total:
        console.print("\nOutcomes", style="bold")
        table = _grid(2)
        for outcome, count in outcome_counts(report).items():
            kind, style = OUTCOMES[outcome], STYLES[outcome]
            bar = Text(_bar(console, count / total), style)
            meaning = [Text(kind.meaning, "dim")] if console.width >= _NARROW else []
            table.add_row(Text(kind.name, style), f"{count:,}", bar, *meaning)
        console.print(table)
    if reasons := reason_counts(report):
        console.print("\nWhy there is no credit", style="bold")
        table = _grid(1)
        for outcome, why, count in reasons[:_REASONS]:
            table.add_row(f"{count:,}", _text(_line(why)), Text(OUTCOMES[outcome].name, "dim"))
        if rest := reasons[_REASONS:]:
            table.add_row(f"{sum(count for *_, count in rest):,}", f"for {len(rest)} other reasons")
        console.print(table)
    if components := component_figures(report):
        console.print("\nComponents", style="bold")
        table = _grid(2)
        for name, mean, count in components:
            over = Text(f"over {count_words(count, 'sample')}", "dim")
            table.add_row(_text(name), number(mean), over)
        console.print(table)
    scores = [record.score.value for record in report.samples.values() if record.score]
    _print_distribution(console, "Scores", scores)
    _print_distribution(console, f"Lengths in {report.length_unit}", report.lengths.values())
    if report.baseline is not None:
        console.print(_text(f"\nCompared with {report.baseline.title}", "bold"))
        console.print(_figures(comparison_figures(report)))


def print_samples(
    report: Report,
    samples: Mapping[str, EvaluationRecord],
    console: Console | None = None,
    *,
    limit: int | None = 20,
) -> None:
    """Print samples as a table, a line each, or two where the console is too narrow for their replies.

        print_samples(report, report.select(outcomes=["wrong"]))

    Args:
        report: The report that they are of.
        samples: Some of its samples, as `Report.select` returns them.
        console: Where to print; by default standard output.
        limit: How many at most; the others are counted. None means all.
    """
    console = console or Console()
    wide = console.width >= _WIDE
    table = Table(box=None, pad_edge=False, header_style="dim", expand=wide)
    heads = ["sample", "outcome", "score"]
    if console.width >= _NARROW:
        heads += [report.length_unit, "expected", "extracted"]
    for head in heads:
        right = head in ("score", report.length_unit)
        table.add_column(head, justify="right" if right else "left", no_wrap=True)
    if report.comparison is not None:
        table.add_column("change", no_wrap=True)
    replies: list[Text] = []
    if wide:
        table.add_column("reply", no_wrap=True, ratio=1)
    for name in list(samples)[:limit]:
        record = samples[name]
        row = to_row(record, ())
        length = report.lengths.get(name)
        cells = [
            _text(_line(name, max(min(_NAME, console.width - _NAME), 8))),
            Text(OUTCOMES[record.outcome].name, STYLES[record.outcome]),
            "" if record.score is None else number(record.score.value),
            "" if length is None else f"{length:,}",
            _text(_line(row["expected"] or "", 16)),
            _text(_line(row["extracted"] or "", 16)),
        ][: len(heads)]
        if report.comparison is not None:
            cells.append(report.changes.get(item_name(record), ""))
        replies.append(_text(_line(_reply(record), _WIDE), "dim"))
        table.add_row(*cells, *replies[-1:] if wide else [])
    if wide:
        console.print(table)
    else:
        lines = console.render_lines(table, pad=False)
        for line, reply in zip(lines, [None, *replies], strict=True):
            console.print(SegmentLines([line], new_lines=True), end="")
            if reply:
                console.print(Padding(reply, (0, 0, 0, 2)), no_wrap=True, overflow="ellipsis")
    shown = len(samples) if limit is None else min(limit, len(samples))
    console.print(
        f"{shown:,} of {len(samples):,} found, of {len(report.samples):,} samples", style="dim"
    )


def _reply(record: EvaluationRecord) -> str:
    """Return what was said last, without thinking, or else what went wrong."""
    if record.trajectory is None or not record.trajectory.steps:
        return record.error or ""
    said = [turn for turn in conversation(record.trajectory) if turn.step is not None]
    _, turn, _ = take_thinking(said[-1], ())
    calls = [f"-> {call.name}({call.arguments})" for call in turn.calls]
    return " ".join([turn.text, *calls]) if turn.text or calls else record.error or ""


def _figures(found: Iterable[Figure]) -> Table:
    table = _grid(0)
    for figure in found:
        table.add_row(figure.name, Text(figure.value, "bold"), Text(figure.note, "dim"))
    return table


def _grid(right: int) -> Table:
    """Return a table without lines, whose column before the one given stands at the right."""
    table = Table.grid(padding=(0, 2, 0, 0))
    for _ in range(right - 1):
        table.add_column()
    if right:
        table.add_column(justify="right")
    return table


def _print_distribution(console: Console, title: str, values: Iterable[float]) -> None:
    array = np.array(list(values), dtype=np.float64)
    if not array.size:
        return
    labels, positions = bins(array, 14)
    counts = np.bincount(positions(array), minlength=len(labels)).tolist()
    console.print(f"\n{title}", style="bold")
    table = _grid(2)
    for label, count in zip(labels, counts, strict=True):
        table.add_row(label, f"{count:,}", Text(_bar(console, count / max(counts)), "blue"))
    console.print(table)


def _bar(console: Console, share: float) -> str:
    block = "█" if console.encoding.lower().startswith("utf") else "#"
    return block * max(round(min(_BAR, console.width // 4) * share), 1 if share else 0)


def _text(text: str, style: str = "") -> Text:
    return Text(visible(text), style)


def _line(text: str, width: int = _LINE) -> str:
    """Return the beginning of a text as one line."""
    line = " ".join(text[: 4 * width].split())
    return line if len(line) <= width else f"{line[: width - 1]}…"
