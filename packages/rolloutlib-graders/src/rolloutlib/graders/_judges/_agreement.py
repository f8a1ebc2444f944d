"""How well verdicts agree with labels."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Hashable, Sequence
from fractions import Fraction


def cohens_kappa(first: Sequence[Hashable], second: Sequence[Hashable]) -> float | None:
    """Return the agreement of two raters beyond chance, (p_o - p_e) / (1 - p_e).

    p_o is the share of things that both label the same, p_e what it would be if each labelled at random
    with its own frequencies. 1 is perfect agreement, 0 that of chance. From Cohen, "A coefficient of
    agreement for nominal scales", Educational and Psychological Measurement 20 (1960).

    Args:
        first: The labels of one rater.
        second: Those of the other, for the same things.

    Returns:
        None if both give one and the same label to everything, or if there is nothing: chance alone then
        explains the agreement.
    """
    count = len(first)
    mine, theirs = Counter(first), Counter(second)
    # In whole numbers, so that no rounding makes 1 - p_e other than 0.
    chance = sum(mine[label] * theirs[label] for label in mine)
    if chance == count * count:
        return None
    same = sum(one == two for one, two in zip(first, second, strict=True))
    return (same * count - chance) / (count * count - chance)


def correlation(first: Sequence[float], second: Sequence[float]) -> float | None:
    """Return Pearson's correlation coefficient, or None where one side does not vary."""
    if len(set(first)) < 2 or len(set(second)) < 2:
        return None
    return statistics.correlation(_normal(first), _normal(second))


def mean(values: Sequence[float]) -> float | None:
    """Return the mean, or None where there is nothing, or it overflows."""
    try:
        return statistics.fmean(values) if values else None
    except OverflowError:
        return None


def mean_variance(samples: Sequence[Sequence[float]]) -> float | None:
    """Return the mean of the sample variances, or None where there is no sample, or it overflows."""
    try:
        return mean([statistics.variance(sample) for sample in samples])
    except OverflowError:
        return None


def rank_correlation(first: Sequence[float], second: Sequence[float]) -> float | None:
    """Return Spearman's rank correlation coefficient: Pearson's of the ranks, equal values at their mean."""
    return correlation(_ranks(first), _ranks(second))


def _normal(values: Sequence[float]) -> list[float]:
    """Map values linearly onto 0 to 1, so that no square of a difference under- or overflows."""
    low, high = min(values), max(values)
    return [
        float((Fraction(value) - Fraction(low)) / (Fraction(high) - Fraction(low)))
        for value in values
    ]


def _ranks(values: Sequence[float]) -> list[float]:
    below, places = 0, dict[float, float]()
    for value, count in sorted(Counter(values).items()):
        places[value] = below + (count + 1) / 2
        below += count
    return [places[value] for value in values]
