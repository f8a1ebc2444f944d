"""What a run of some size can tell, and the size that an effect needs."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rolloutlib._calls import check_count
from rolloutlib._values import to_float
from rolloutlib.evals.statistics._attempts import mean_score
from rolloutlib.evals.statistics._comparisons import compare
from rolloutlib.evals.statistics._distributions import normal_quantile
from rolloutlib.evals.statistics._intervals import read_fraction
from rolloutlib.evals.statistics._scores import Scores, read_scores

__all__ = ["PowerAnalysis"]


@dataclass(frozen=True)
class PowerAnalysis:
    """How the difference of two runs on the same items varies, and what follows for their size.

    The model is that of Miller, "Adding Error Bars to Evals", arXiv 2411.00640: with n items and
    K samples of each in both runs, the mean difference has the variance
    `(between + (baseline + candidate) / K) / n`. An effect is detected with the wanted power if it is
    `z(significance / 2) + z(1 - power)` standard errors large. That takes n as large: with twenty items
    the power of a t test at "80%" is some points less.

    Attributes:
        between: The variance over items of the true difference of their means (omega squared).
        baseline: The mean variance of the baseline's samples of one item (sigma squared of A).
        candidate: The same of the candidate (sigma squared of B).

    Raises:
        TypeError: A variance is no number.
        ValueError: One is negative or not finite.
    """

    between: float
    baseline: float
    candidate: float

    def __post_init__(self) -> None:
        for field in fields(self):
            value = to_float(getattr(self, field.name), field.name)
            if value < 0:
                msg = f"{field.name} is a variance and must not be negative, got {value!r}"
                raise ValueError(msg)
            object.__setattr__(self, field.name, value)

    @staticmethod
    def from_runs(baseline: Scores, candidate: Scores) -> PowerAnalysis:
        """Estimate the variances from two runs on the same items; failed samples count 0.

        Without an item that has two samples in a run, the variance within items cannot be told
        apart: it is then part of `between`, so that more epochs seem to gain nothing.

        Args:
            baseline: The scores of the one run.
            candidate: The scores of the other.

        Raises:
            ValueError: The runs have different items or fewer than two, or as for `mean_score`.
        """
        comparison = compare(mean_score(baseline), mean_score(candidate))
        old, new = _Within.of(baseline), _Within.of(candidate)
        between = _variance(comparison.difference.item_values) - old.of_means - new.of_means
        return PowerAnalysis(max(between, 0.0), old.of_samples, new.of_samples)

    @staticmethod
    def from_run(scores: Scores, *, correlation: float = 0.0) -> PowerAnalysis:
        """Estimate the variances from one run, for another like it; failed samples count 0.

        If the items' true means have the variance V in both runs, their difference has
        `2 (1 - correlation) V`.

        Args:
            scores: The scores of the run.
            correlation: How the items' true means are correlated between the runs, from -1 to 1. 0, as
                if nothing were shared, is cautious: models mostly agree on which items are hard.

        Raises:
            TypeError: The correlation is no number.
            ValueError: It is not from -1 to 1, or there are fewer than two items, or as for
                `mean_score`.
        """
        correlation = to_float(correlation, "correlation")
        if not -1 <= correlation <= 1:
            msg = f"correlation must lie from -1 to 1, got {correlation!r}"
            raise ValueError(msg)
        within = _Within.of(scores)
        between = max(_variance(mean_score(scores).item_values) - within.of_means, 0.0)
        return PowerAnalysis(2 * (1 - correlation) * between, within.of_samples, within.of_samples)

    def smallest_effect(
        self, num_items: int, *, epochs: int = 1, power: float = 0.8, significance: float = 0.05
    ) -> float:
        """Return the smallest difference that runs of this size detect.

        Args:
            num_items: How many items both runs have.
            epochs: How many samples of each item either run has.
            power: The probability of detecting it that is wanted, between 0 and 1.
            significance: The p-value, two-sided, below which a difference counts as detected.

        Raises:
            TypeError: A size is no integer.
            ValueError: A size is below 1, a probability not between 0 and 1, or the power not above
                the significance.
        """
        check_count("num_items", num_items)
        variance = self._of_item(epochs) / num_items
        return _standard_errors(power, significance) * math.sqrt(variance)

    def items_needed(
        self, effect: float, *, epochs: int = 1, power: float = 0.8, significance: float = 0.05
    ) -> int:
        """Return how many items it takes to detect a difference of this size.

        Args:
            effect: The difference, of either sign.
            epochs: As for `smallest_effect`.
            power: As for `smallest_effect`.
            significance: As for `smallest_effect`.

        Raises:
            TypeError: The effect is no number, or epochs no integer.
            ValueError: The effect is 0, epochs below 1, or as for `smallest_effect`.
        """
        effect = to_float(effect, "effect")
        if effect == 0:
            msg = "effect must not be 0: no run is large enough to detect it"
            raise ValueError(msg)
        errors = _standard_errors(power, significance)
        return max(1, math.ceil(errors**2 * self._of_item(epochs) / effect**2))

    def __str__(self) -> str:
        return (
            f"variance {self.between:.3g} between items, within them {self.baseline:.3g} (baseline) "
            f"and {self.candidate:.3g} (candidate)"
        )

    def _of_item(self, epochs: int) -> float:
        check_count("epochs", epochs)
        return self.between + (self.baseline + self.candidate) / epochs


@dataclass(frozen=True)
class _Within:
    """The variance within items: of a sample, and of the mean of an item's samples, both averaged."""

    of_samples: float
    of_means: float

    @staticmethod
    def of(scores: Scores) -> _Within:
        samples: list[NDArray[np.float64]] = [
            np.nan_to_num(item, nan=0.0) for item in read_scores(scores).values()
        ]
        variances = [float(item.var(ddof=1)) for item in samples if len(item) > 1]
        if not variances:
            return _Within(0.0, 0.0)
        variance = math.fsum(variances) / len(variances)
        return _Within(
            variance, variance * math.fsum(1 / len(item) for item in samples) / len(samples)
        )


def _variance(values: Mapping[Any, float]) -> float:
    if len(values) < 2:
        msg = f"a variance between items needs at least two items, got {len(values)}"
        raise ValueError(msg)
    return float(np.var(list(values.values()), ddof=1))


def _standard_errors(power: float, significance: float) -> float:
    power, significance = read_fraction(power, "power"), read_fraction(significance, "significance")
    if power <= significance:
        msg = (
            f"power must be above the significance, {significance!r}, at which a test finds what is "
            f"not there, got {power!r}"
        )
        raise ValueError(msg)
    return normal_quantile(significance / 2) + normal_quantile(1 - power)
