"""Two runs over the same items, compared item by item."""

from __future__ import annotations

import math
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from typing import Any

from rolloutlib._calls import check_count
from rolloutlib.evals.statistics._distributions import t_tail
from rolloutlib.evals.statistics._estimates import Estimate, ItemEstimate

__all__ = ["Comparison", "compare", "sign_test"]


@dataclass(frozen=True)
class Comparison:
    """A candidate's estimate less a baseline's, over the same items.

    Attributes:
        baseline: The baseline's estimate over the compared items; its bounds are over all common items.
        candidate: The candidate's.
        difference: Candidate minus baseline, from the differences of each item: its standard error
            and intervals are those of the paired differences, clustered as the estimates are (Miller,
            arXiv 2411.00640). Its bounds are the worst and the best for the candidate, over all
            common items.
        num_left_out: How many items are not compared: those that one run lacks, and those whose
            samples all failed and were left out.
        p_value: Two-sided, of the paired t test that the difference is 0, with C - 1 degrees of freedom
            for C clusters. NaN with fewer than two clusters. If all differences are equal it is 1 where
            they are 0, else 0. Of few clusters, or of very different sizes, it is too small: see
            whether the bootstrap interval of the difference holds 0.
        num_better: On how many items the candidate is better.
        num_worse: On how many it is worse.
        num_equal: On how many both are equal.
        sign_p_value: Two-sided, of the exact sign test on better and worse items. It takes items as
            independent.
        mcnemar_p_value: Two-sided, of McNemar's exact test, which is the sign test on outcomes of 0 and
            1. None unless each item has one sample in each run, of value 0 or 1, and there are no
            clusters.
    """

    baseline: Estimate
    candidate: Estimate
    difference: Estimate
    num_left_out: int
    p_value: float
    num_better: int
    num_worse: int
    num_equal: int
    sign_p_value: float
    mcnemar_p_value: float | None

    def __str__(self) -> str:
        alone = self.num_left_out - self.difference.num_left_out
        left_out = f"; {alone} items in one run alone" if alone else ""
        return (
            f"{self.difference}; p = {self.p_value:.3g} (paired t); {self.num_better} items better, "
            f"{self.num_worse} worse, {self.num_equal} equal, p = {self.sign_p_value:.3g} (sign test)"
            f"{left_out}"
        )


def compare(
    baseline: Estimate, candidate: Estimate, *, on_common_items: bool = False
) -> Comparison:
    """Compare two runs on the same items.

        compare(mean_score(old), mean_score(new))
        compare(pass_at_k(old, 4), pass_at_k(new, 4))

    Args:
        baseline: An estimate from the one run.
        candidate: The same from the other run.
        on_common_items: Whether to leave out items that only one run has, rather than refuse.

    Returns:
        The difference, its error and tests of it; NaN if there are no items.

    Raises:
        ValueError: The estimates are of different things, they have different clusters, or the runs
            have different items and `on_common_items` is not set, or no item in common.
    """
    if baseline.name != candidate.name:
        msg = f"cannot compare {candidate.name} with {baseline.name}: take the same of both runs"
        raise ValueError(msg)
    _check_items(baseline.items.keys(), candidate.items.keys(), on_common_items)
    common = [item for item in baseline.items if item in candidate.items]
    both = baseline.item_values.keys() & candidate.item_values.keys()
    compared = [item for item in common if item in both]
    num_left_out = len(baseline.items.keys() | candidate.items.keys()) - len(compared)
    baseline, candidate = _on(baseline, common, compared), _on(candidate, common, compared)
    if baseline.clusters != candidate.clusters:
        msg = "the runs have different clusters; give both estimates the same"
        raise ValueError(msg)
    old, new = baseline.item_values, candidate.item_values
    difference = Estimate(
        f"difference of {baseline.name}",
        {item: _minus(candidate.items[item], baseline.items[item]) for item in common},
        baseline.clusters,
        is_difference=True,
    )
    num_better = sum(new[item] > old[item] for item in compared)
    num_worse = sum(new[item] < old[item] for item in compared)
    sign_p_value = sign_test(num_better, num_worse)
    return Comparison(
        baseline=baseline,
        candidate=candidate,
        difference=difference,
        num_left_out=num_left_out,
        p_value=_t_test(difference),
        num_better=num_better,
        num_worse=num_worse,
        num_equal=len(compared) - num_better - num_worse,
        sign_p_value=sign_p_value,
        mcnemar_p_value=sign_p_value if _is_binary(baseline) and _is_binary(candidate) else None,
    )


def sign_test(num_better: int, num_worse: int) -> float:
    """Return the exact two-sided p-value of so many better and so many worse, if both are as likely.

    `min(1, 2 P(X <= min(better, worse)))`, X binomial with probability 1/2. With outcomes of 0 and 1,
    where "better" counts the items that only the candidate solves, this is McNemar's exact test.

    Args:
        num_better: On how many independent items the one is better.
        num_worse: On how many it is worse; items on which both are equal count in neither.

    Raises:
        TypeError: A number is no integer.
        ValueError: One is negative.
    """
    check_count("num_better", num_better, least=0)
    check_count("num_worse", num_worse, least=0)
    num_better, num_worse = int(num_better), int(num_worse)  # NumPy's integers overflow
    n, fewer = num_better + num_worse, min(num_better, num_worse)
    term = total = 1
    for i in range(fewer):
        term = term * (n - i) // (i + 1)
        total += term
    return min(1.0, 2 * total / 2**n)


def _check_items(baseline: AbstractSet[Any], candidate: AbstractSet[Any], common: bool) -> None:
    num_common = len(baseline & candidate)
    differing = [
        f"{len(only)} only in the {run} ({next(iter(only))!r}{', ...' if len(only) > 1 else ''})"
        for run, only in (("baseline", baseline - candidate), ("candidate", candidate - baseline))
        if only
    ]
    if differing and not num_common:
        msg = f"the runs have no item in common: {' and '.join(differing)}"
        raise ValueError(msg)
    if differing and not common:
        msg = (
            f"the runs differ in their items: {' and '.join(differing)}; on_common_items=True compares "
            f"them on the {num_common} that both have"
        )
        raise ValueError(msg)


def _on(estimate: Estimate, common: list[Any], compared: list[Any]) -> Estimate:
    """Take the common items alone, and leave out those that are not compared."""
    items = {item: replace(estimate.items[item], value=None) for item in common}
    items |= {item: estimate.items[item] for item in compared}
    return replace(estimate, items=items)


def _minus(candidate: ItemEstimate, baseline: ItemEstimate) -> ItemEstimate:
    value = None
    if candidate.value is not None and baseline.value is not None:
        value = candidate.value - baseline.value
    return ItemEstimate(
        value,
        (candidate.bounds[0] - baseline.bounds[1], candidate.bounds[1] - baseline.bounds[0]),
        candidate.num_samples + baseline.num_samples,
        candidate.num_failed + baseline.num_failed,
    )


def _t_test(difference: Estimate) -> float:
    if difference.num_clusters < 2:
        return math.nan
    if difference.standard_error == 0:
        return float(difference.value == 0)
    return t_tail(difference.value / difference.standard_error, difference.num_clusters - 1)


def _is_binary(estimate: Estimate) -> bool:
    return estimate.clusters is None and all(
        item.num_samples == 1 and item.value in (None, 0, 1) for item in estimate.items.values()
    )
