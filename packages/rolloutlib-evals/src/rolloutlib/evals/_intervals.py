"""Which interval fits an estimate."""

from __future__ import annotations

from rolloutlib.evals.statistics import Estimate, Interval

__all__ = ["interval_of"]


def interval_of(estimate: Estimate) -> Interval:
    """Return Wilson's interval where each item has one sample of 0 or 1, else that of Student's t."""
    try:
        return estimate.wilson_interval() if _is_single(estimate) else estimate.t_interval()
    except ValueError:  # a score is neither 0 nor 1
        return estimate.t_interval()


def _is_single(estimate: Estimate) -> bool:
    return all(item.num_samples == 1 for item in estimate.items.values())
