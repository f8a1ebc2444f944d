"""The figures of a report in words, the same on a terminal and on a page."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rolloutlib.evals._plain import to_text
from rolloutlib.evals._records import EvaluationRecord, Outcome
from rolloutlib.evals._rows import to_row
from rolloutlib.evals.reports._report import Report
from rolloutlib.evals.statistics import Estimate, Interval

__all__ = [
    "OUTCOMES",
    "Figure",
    "Kind",
    "comparison_figures",
    "component_figures",
    "count_words",
    "figures",
    "interval_words",
    "number",
    "outcome_counts",
    "reason",
    "reason_counts",
    "settings_words",
]


@dataclass(frozen=True)
class Kind:
    """An outcome: a sign that tells it without colour, its name, and what it means."""

    sign: str
    name: str
    meaning: str


OUTCOMES: dict[Outcome, Kind] = {
    "credited": Kind("✓", "credited", "scored more than 0"),
    "wrong": Kind("✗", "wrong", "gave an answer, and scored 0 or less"),
    "no_answer": Kind("∅", "no answer", "gave no definite answer, and scored 0"),
    "truncated": Kind("…", "truncated", "was cut short, whatever it scored"),
    "failed": Kind("!", "failed", "has an error and no score; counts 0"),
}


@dataclass(frozen=True)
class Figure:
    """A number that heads a report: what it is, its value, and what it is taken over."""

    name: str
    value: str
    note: str


def figures(report: Report) -> list[Figure]:
    """Return the headline figures, with intervals and denominators."""
    result, estimate = report.result, report.estimate
    samples = f"mean over {count_words(result.num_examples, 'sample')}"
    samples += f" of {count_words(len(estimate.items), 'item')}"
    interval = interval_words(report.interval)
    if math.isclose(result.score, estimate.value, abs_tol=1e-12) or not estimate.items:
        found = [Figure("score", number(result.score), f"{interval}; {samples}")]
    else:  # items have different numbers of samples, and the interval is of this mean
        note = f"{interval}; each item counts the same"
        found = [
            Figure("score", number(result.score), samples),
            Figure("mean over items", number(estimate.value), note),
        ]
    if result.num_errors:
        low, high = result.score_bounds
        note = f"if what failed ({result.num_errors:,}) all scored 0, or all 1"
        found.append(Figure("bounds", f"{number(low)} to {number(high)}", note))
    if result.score_completed is not None and result.num_completed < result.num_examples:
        note = f"mean over the {result.num_completed:,} neither failed nor truncated"
        found.append(Figure("score of completed", number(result.score_completed), note))
    note = f"{result.num_errors:,} failed, {result.num_truncated:,} truncated"
    if result.num_remaining:
        note += f", {result.num_remaining:,} not {'needed' if result.stopped_early else 'played'}"
    played = f"{result.num_completed:,} of {result.num_expected:,}"
    found.append(Figure("completed", played, note))
    lengths = report.lengths.values()
    if lengths:
        note = f"{report.length_unit} in {len(lengths):,} samples; {sum(lengths):,} in all"
        mean = f"{sum(lengths) / len(lengths):,.4g}"
        found.append(Figure("mean length", mean, note))
    if result.elapsed_seconds:
        found.append(Figure("time", f"{result.elapsed_seconds:,.3g} s", "from first to last"))
    return found


def component_figures(report: Report) -> list[tuple[str, float, int]]:
    """Return each component of the scores, its mean, and how many samples have it."""
    result = report.result
    return [(name, mean, result.component_counts[name]) for name, mean in result.components.items()]


def outcome_counts(report: Report) -> dict[Outcome, int]:
    """Return how many samples have each outcome."""
    result = report.result
    return {
        "credited": result.num_credited,
        "wrong": result.num_wrong,
        "no_answer": result.num_no_answer,
        "truncated": result.num_truncated,
        "failed": result.num_errors,
    }


def reason(record: EvaluationRecord) -> str | None:
    """Return why a sample has no credit, as far as it tells, in words that can be counted."""
    row = to_row(record, ())
    if record.error is not None:
        phase = f" in {row['phase']}" if row["phase"] else ""
        return f"{row['error_type']}{phase}"
    if record.outcome == "truncated":
        trajectory = record.trajectory
        by = None if trajectory is None else trajectory.metadata.get("truncated_by")
        return to_text(by or row["reason"] or row["stop_reason"] or "cut short")
    return row["reason"]


def reason_counts(report: Report) -> list[tuple[Outcome, str, int]]:
    """Return the reasons for which samples have no credit, the most frequent first."""
    counts: Counter[tuple[Outcome, str]] = Counter()
    for record in report.samples.values():
        if record.outcome != "credited" and (why := reason(record)):
            counts[record.outcome, why] += 1
    return [(outcome, why, count) for (outcome, why), count in counts.most_common()]


def comparison_figures(report: Report) -> list[Figure]:
    """Return the figures of the comparison with the baseline; none without one."""
    comparison = report.comparison
    if comparison is None:
        return []
    compared = count_words(comparison.difference.num_items, "item")
    left_out = f"; {comparison.num_left_out:,} left out" if comparison.num_left_out else ""

    def mean(name: str, estimate: Estimate) -> Figure:
        note = f"{interval_words(estimate.interval())}, over {compared}"
        return Figure(name, number(estimate.value), note)

    paired = f"{interval_words(comparison.difference.t_interval())}, paired over {compared}"
    found = [
        Figure("difference", f"{comparison.difference.value:+.4g}", f"{paired}{left_out}"),
        mean("this run", comparison.candidate),
        mean("baseline", comparison.baseline),
        Figure("p-value", f"{comparison.p_value:.3g}", "paired t test that the difference is 0"),
    ]
    exact = "McNemar's exact test" if comparison.mcnemar_p_value is not None else "sign test"
    changed = f"{comparison.num_better:,} better, {comparison.num_worse:,} worse"
    note = f"{exact}: {changed}, {comparison.num_equal:,} equal"
    found.append(Figure("p-value by items", f"{comparison.sign_p_value:.3g}", note))
    return found


def settings_words(settings: Mapping[str, Any]) -> dict[str, str]:
    """Return what a file says of its run, without what it leaves open."""
    return {
        name.replace("_", " "): to_text(value)
        for name, value in settings.items()
        if value not in (None, "", {}, [])
    }


def interval_words(interval: Interval) -> str:
    """Return an interval in words."""
    if math.isnan(interval.low):
        return "too few items for an interval"
    ends = f"{number(interval.low)} to {number(interval.high)}"
    return f"{ends} ({interval.confidence * 100:.4g}% {interval.method})"


def number(value: float) -> str:
    """Return a number with four digits."""
    return "unknown" if math.isnan(value) else f"{value:,.4g}"


def count_words(count: int, noun: str) -> str:
    """Return how many there are of something."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
