"""The report on a terminal."""

from __future__ import annotations

from collections.abc import Mapping

from rich.console import Console
from rich.text import Text

from rolloutlib.evals._plain import to_text
from rolloutlib.evals._records import EvaluationRecord
from rolloutlib.evals.reports._report import Report
from rolloutlib.evals.reports._text import visible

__all__ = ["print_sample", "print_samples", "print_summary"]


def print_summary(report: Report, console: Console | None = None) -> None:
    """Print the figures of a run, and how it compares.

    Args:
        report: The report.
        console: Where to print; by default standard output.
    """
    console = console or Console()
    console.print(Text(visible(report.title), style="bold"))
    console.print(f"score {report.result.score:.4g}, {report.interval}")


def print_samples(
    report: Report,
    samples: Mapping[str, EvaluationRecord],
    console: Console | None = None,
    *,
    limit: int | None = 20,
) -> None:
    """Print samples as a table, a line each.

    Args:
        report: The report that they are of.
        samples: Some of its samples, as `Report.select` returns them.
        console: Where to print; by default standard output.
        limit: How many at most; the others are counted. None means all.
    """
    console = console or Console()
    for name in list(samples)[:limit]:
        console.print(Text(f"{visible(name)} {samples[name].outcome}"))


def print_sample(report: Report, name: str, console: Console | None = None) -> None:
    """Print one sample in full.

    Args:
        report: The report.
        name: The name of the sample.
        console: Where to print; by default standard output.

    Raises:
        KeyError: The report has no such sample; the message has the nearest names.
    """
    console = console or Console()
    record = report.samples[name]
    console.print(Text(visible(to_text(record.item))))
