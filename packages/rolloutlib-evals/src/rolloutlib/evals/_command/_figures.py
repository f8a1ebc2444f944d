"""The figures of a run as data, for `--json`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rolloutlib.evals._results import BenchmarkResult
from rolloutlib.evals.statistics import Comparison, Estimate, Interval

if TYPE_CHECKING:
    from rolloutlib.evals.reports import Report

_COUNTS = (
    "num_expected",
    "num_examples",
    "num_scored",
    "num_completed",
    "num_credited",
    "num_wrong",
    "num_no_answer",
    "num_truncated",
    "num_errors",
    "num_remaining",
)


def report_figures(report: Report) -> dict[str, Any]:
    """Return the figures of a report, and of its comparison if it has one."""
    figures = {
        "model": report.settings.get("model"),
        **result_figures(report.result),
        "interval": interval_figures(report.interval),
    }
    if report.comparison is not None:
        figures["comparison"] = comparison_figures(report.comparison)
    return figures


def result_figures(result: BenchmarkResult) -> dict[str, Any]:
    """Return the figures of a result, without its records."""
    return {
        "benchmark": result.name,
        "score": result.score,
        "score_bounds": result.score_bounds,
        "score_completed": result.score_completed,
        "components": dict(result.components),
        "component_counts": dict(result.component_counts),
        **{name: getattr(result, name) for name in _COUNTS},
        "stopped_early": result.stopped_early,
        "elapsed_seconds": result.elapsed_seconds,
    }


def interval_figures(interval: Interval) -> dict[str, Any]:
    """Return the ends of an interval, and what it is."""
    return {
        "low": interval.low,
        "high": interval.high,
        "confidence": interval.confidence,
        "method": interval.method,
    }


def comparison_figures(comparison: Comparison) -> dict[str, Any]:
    """Return the figures of a comparison, without those of each item."""
    names = (
        "num_left_out",
        "p_value",
        "num_better",
        "num_worse",
        "num_equal",
        "sign_p_value",
        "mcnemar_p_value",
    )
    return {
        "baseline": _estimate(comparison.baseline),
        "candidate": _estimate(comparison.candidate),
        "difference": _estimate(comparison.difference),
        **{name: getattr(comparison, name) for name in names},
    }


def _estimate(estimate: Estimate) -> dict[str, Any]:
    return {
        "name": estimate.name,
        "value": estimate.value,
        "standard_error": estimate.standard_error,
        "interval": interval_figures(estimate.t_interval()),
        "bounds": estimate.bounds,
        "num_items": estimate.num_items,
        "num_samples": estimate.num_samples,
        "num_failed": estimate.num_failed,
    }
