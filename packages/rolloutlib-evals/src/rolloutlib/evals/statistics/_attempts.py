"""What some attempts at an item tell: their mean, pass@k and pass^k."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rolloutlib._calls import check_count
from rolloutlib._values import to_float
from rolloutlib.evals.statistics._estimates import Estimate, ItemEstimate, mean_of
from rolloutlib.evals.statistics._scores import Scores, read_scores

__all__ = ["avg_at_k", "mean_score", "pass_at_k", "pass_hat_k"]


def mean_score(
    scores: Scores, *, clusters: Mapping[Any, Any] | None = None, failed: float | None = 0.0
) -> Estimate:
    """Return the mean score of one attempt: the mean over items of each item's mean.

    Args:
        scores: The scores of each item's samples.
        clusters: From the id of an item to that of its cluster, if items are not independent.
        failed: What a failed sample scores; None leaves failed samples out, and with them the items
            that have no others.

    Returns:
        The estimate; its value is NaN if there are no items.

    Raises:
        TypeError: A score is no number.
        ValueError: A score is infinite, or an item has no sample or no cluster.
    """
    return _estimate("mean", scores, mean_of, clusters, failed)


def avg_at_k(
    scores: Scores,
    k: int,
    *,
    clusters: Mapping[Any, Any] | None = None,
    failed: float | None = 0.0,
) -> Estimate:
    """Return the mean score over k attempts at each item.

    The mean over all subsets of k samples of an item is the mean of all its samples, so that this is
    `mean_score`, of items that have at least k samples.

    Args:
        scores: As for `mean_score`.
        k: How many attempts.
        clusters: As for `mean_score`.
        failed: As for `mean_score`.

    Raises:
        TypeError: A score is no number, or k no integer.
        ValueError: k is below 1 or above the number of an item's samples, or as for `mean_score`.
    """
    check_count("k", k)
    return _estimate(f"avg@{k}", scores, mean_of, clusters, failed, k)


def pass_at_k(
    scores: Scores,
    k: int,
    *,
    threshold: float = 1.0,
    clusters: Mapping[Any, Any] | None = None,
    failed: float | None = 0.0,
) -> Estimate:
    """Return the probability that at least one of k attempts at an item solves it, unbiased.

    Of an item's n samples c solve it: `1 - C(n - c, k) / C(n, k)`, from Chen et al., "Evaluating
    Large Language Models Trained on Code", arXiv 2107.03374, section 2.1, here in exact integers.

    Args:
        scores: As for `mean_score`.
        k: How many attempts.
        threshold: A sample solves its item if it scores at least this.
        clusters: As for `mean_score`.
        failed: As for `mean_score`.

    Raises:
        TypeError: A score or the threshold is no number, or k no integer.
        ValueError: k is below 1 or above the number of an item's samples, or as for `mean_score`.
    """
    check_count("k", k)
    threshold = to_float(threshold, "threshold")

    def any_of_k(num_solved: int, num_samples: int) -> float:
        subsets = math.comb(num_samples, k)
        return (subsets - math.comb(num_samples - num_solved, k)) / subsets

    value = partial(_of_solved, any_of_k, threshold)
    return _estimate(f"pass@{k}{_at(threshold)}", scores, value, clusters, failed, k)


def pass_hat_k(
    scores: Scores,
    k: int,
    *,
    threshold: float = 1.0,
    clusters: Mapping[Any, Any] | None = None,
    failed: float | None = 0.0,
) -> Estimate:
    """Return pass^k, the probability that all of k attempts at an item solve it, unbiased.

    Of an item's n samples c solve it: `C(c, k) / C(n, k)`, from Yao et al., "tau-bench", arXiv
    2406.12045.

    Args:
        scores: As for `mean_score`.
        k: How many attempts.
        threshold: A sample solves its item if it scores at least this.
        clusters: As for `mean_score`.
        failed: As for `mean_score`.

    Raises:
        TypeError: A score or the threshold is no number, or k no integer.
        ValueError: k is below 1 or above the number of an item's samples, or as for `mean_score`.
    """
    check_count("k", k)
    threshold = to_float(threshold, "threshold")

    def all_of_k(num_solved: int, num_samples: int) -> float:
        return math.comb(num_solved, k) / math.comb(num_samples, k)

    value = partial(_of_solved, all_of_k, threshold)
    return _estimate(f"pass^{k}{_at(threshold)}", scores, value, clusters, failed, k)


def _estimate(
    name: str,
    scores: Scores,
    value: Callable[[NDArray[np.float64]], float],
    clusters: Mapping[Any, Any] | None,
    failed: float | None,
    least: int = 1,
) -> Estimate:
    """Take a value of each item's scores, of which there must be at least so many.

    What is not usual is part of the name, for the reader and so that `compare` takes like with like.
    """
    if failed is None:
        name += ", failed left out"
    else:
        failed = to_float(failed, "failed")
        name += f", failed score {failed:g}" if failed else ""
    items: dict[Any, ItemEstimate] = {}
    for item, samples in read_scores(scores).items():
        lost = np.isnan(samples)
        num_failed = int(lost.sum())
        counted = samples[~lost] if failed is None else np.where(lost, failed, samples)
        if 0 < len(counted) < least or len(samples) < least:
            left = f" ({num_failed} failed ones left out)" if failed is None and num_failed else ""
            msg = f"k = {least} needs as many samples of each item, and {item!r} has n = {len(counted)}{left}"
            raise ValueError(msg)
        share = value(counted) if len(counted) else math.nan
        items[item] = ItemEstimate(
            share if len(counted) else None,
            _bounds(value, samples, lost) if num_failed else (share, share),
            len(samples),
            num_failed,
        )
    return Estimate(name, items, clusters)


def _bounds(
    value: Callable[[NDArray[np.float64]], float],
    samples: NDArray[np.float64],
    lost: NDArray[np.bool_],
) -> tuple[float, float]:
    return value(np.where(lost, 0.0, samples)), value(np.where(lost, 1.0, samples))


def _at(threshold: float) -> str:
    return "" if threshold == 1 else f", threshold {threshold:g}"


def _of_solved(
    value: Callable[[int, int], float], threshold: float, scores: NDArray[np.float64]
) -> float:
    return value(int((scores >= threshold).sum()), len(scores))
