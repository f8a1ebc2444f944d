"""Estimates: a mean over items with its error."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rolloutlib._calls import check_count
from rolloutlib.evals.statistics._distributions import normal_tail, t_quantile
from rolloutlib.evals.statistics._intervals import Interval, read_fraction, wilson_interval

__all__ = ["Estimate", "ItemEstimate", "mean_of"]

_CHUNK = 2_000_000


@dataclass(frozen=True)
class ItemEstimate:
    """What the samples of one item tell.

    Attributes:
        value: The item's share in an estimate, such as the mean of its scores; None if the item is
            left out, all its samples having failed.
        bounds: The value if all failed samples had scored 0, and if all had scored 1.
        num_samples: How many samples the item has.
        num_failed: How many of them failed.

    Raises:
        ValueError: The value is NaN or infinite.
    """

    value: float | None
    bounds: tuple[float, float]
    num_samples: int
    num_failed: int = 0

    def __post_init__(self) -> None:
        if self.value is not None and not math.isfinite(self.value):
            msg = f"value must be finite, or None to leave the item out, got {self.value!r}"
            raise ValueError(msg)


@dataclass(frozen=True)
class Estimate:
    """A mean over items, with its standard error.

    Every item counts the same, however many samples it has. What is drawn at random is the item (or
    the cluster of items), so that samples of one item make its value surer, and not their number: the
    standard error is clustered as in Miller, "Adding Error Bars to Evals", arXiv 2411.00640. With n
    items of values v in C clusters it is
    `sqrt(C / (C - 1) * sum over clusters of (sum of v - mean)^2) / n`, which is `std(v) / sqrt(n)` if
    every item is a cluster of its own. The factor `C / (C - 1)` is the usual one for few clusters, as in
    statsmodels.

    Attributes:
        name: What is estimated, such as "mean" or "pass@4".
        items: What the samples of each item tell, by the item's id.
        clusters: From the id of each item to that of its cluster: of those that share a passage, a
            template or a repository, say. None if the items are independent.
        is_difference: Whether the values are differences of two runs, from -1 to 1.
        value: The mean over the items that are not left out; NaN if there are none.
        standard_error: The standard deviation of `value` over draws of items and samples; NaN with
            fewer than two clusters, 0 if all values are equal.
        bounds: The value if all failed samples had scored 0, and if all had scored 1, over all items.
        item_values: The values of the items that are not left out, by id.

    Raises:
        ValueError: An item has no cluster.
    """

    name: str
    items: Mapping[Any, ItemEstimate] = field(repr=False)
    clusters: Mapping[Any, Any] | None = field(default=None, repr=False)
    is_difference: bool = field(default=False, repr=False, kw_only=True)
    value: float = field(init=False)
    standard_error: float = field(init=False)
    bounds: tuple[float, float] = field(init=False)
    item_values: Mapping[Any, float] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        items = dict(self.items)
        object.__setattr__(self, "items", items)
        if self.clusters is not None:
            lacking = [item for item in items if item not in self.clusters]
            if lacking:
                msg = (
                    f"clusters must name a cluster for every item, and has none for {lacking[0]!r}"
                )
                raise ValueError(msg)
            clusters = {item: self.clusters[item] for item in items}
            object.__setattr__(self, "clusters", clusters)
        low, high = (mean_of([item.bounds[end] for item in items.values()]) for end in (0, 1))
        values = {key: item.value for key, item in items.items() if item.value is not None}
        value = mean_of(list(values.values()))
        object.__setattr__(self, "item_values", values)
        object.__setattr__(self, "bounds", (low, high))
        object.__setattr__(self, "value", value)
        sums, sizes = self._cluster_sums(value)
        count = len(sums)
        error = math.nan
        if count > 1:
            # The root of the sum of squares, which would overflow by itself.
            size = math.hypot(*sums.tolist()) / float(sizes.sum())
            error = math.sqrt(count / (count - 1)) * size
        object.__setattr__(self, "standard_error", error)

    @property
    def num_items(self) -> int:
        """How many items the value is the mean of."""
        return len(self.item_values)

    @property
    def num_left_out(self) -> int:
        """How many items are left out, all their samples having failed."""
        return len(self.items) - self.num_items

    @property
    def num_clusters(self) -> int:
        """How many clusters these items form: as many as items, if the items are independent."""
        if self.clusters is None:
            return self.num_items
        return len({self.clusters[item] for item in self.item_values})

    @property
    def num_samples(self) -> int:
        """How many samples there are, failed ones included."""
        return sum(item.num_samples for item in self.items.values())

    @property
    def num_failed(self) -> int:
        """How many samples failed."""
        return sum(item.num_failed for item in self.items.values())

    def interval(self, confidence: float = 0.95) -> Interval:
        """Return the interval to report: Wilson's, the bootstrap's, or else that of t.

        Wilson's fits if all values are 0 or 1 and the items independent. The t interval of such values
        claims too much where nearly all are alike, and has the width 0 where all are: see Bowyer et
        al., "Don't use the CLT in LLM evals with fewer than a few hundred datapoints", arXiv
        2503.01747. The bootstrap's fits clusters of different sizes, for which C - 1 degrees of freedom
        are too many.

        Args:
            confidence: The coverage wanted, between 0 and 1.

        Returns:
            The interval, whose `method` says which it is; NaN if the data determine none.
        """
        if not self._not_wilson():
            return self.wilson_interval(confidence)
        _, sizes = self._cluster_sums(0.0)
        if len(set(sizes.tolist())) > 1:
            return self.bootstrap_interval(confidence)
        return self.t_interval(confidence)

    def t_interval(self, confidence: float = 0.95) -> Interval:
        """Return `value ± t * standard_error`, t of Student's distribution with C - 1 degrees.

        It fits some thirty clusters or more, of about the same size, and values not nearly all alike.
        All values equal give an interval of width 0, which for 0 and 1 claims too much:
        `wilson_interval` does not.

        Args:
            confidence: The coverage wanted, between 0 and 1.

        Returns:
            The interval, not cut off at the ends of the scale; NaN with fewer than two clusters.
        """
        confidence = read_fraction(confidence, "confidence")
        if self.num_clusters < 2:
            return Interval(math.nan, math.nan, confidence, "t")
        half = t_quantile(1 - confidence, self.num_clusters - 1) * self.standard_error
        return Interval(self.value - half, self.value + half, confidence, "t")

    def bootstrap_interval(
        self, confidence: float = 0.95, *, num_resamples: int = 10_000, seed: int = 0
    ) -> Interval:
        """Return the expanded percentile interval of the bootstrap over clusters.

        Whole clusters are drawn with replacement, as many as there are, and their mean is taken anew:
        Efron and Tibshirani, "An Introduction to the Bootstrap", chapter 13; Field and Welsh,
        "Bootstrapping clustered data", JRSS B 69 (2007). Plain percentiles of C clusters are too narrow
        by the factor `z / t * sqrt((C - 1) / C)`; these lie further out, where normal values would
        have the t interval: Hesterberg, "What Teachers Should Know About the Bootstrap", arXiv
        1411.5279. It follows skewed values, and has the width 0 if all are equal, as the t interval has.

        Args:
            confidence: The coverage wanted, between 0 and 1.
            num_resamples: How many times to draw.
            seed: Seeds the draws: one seed, one interval. It is 0 unless told, and not random.

        Returns:
            The interval, within the range of the values; NaN with fewer than two clusters.

        Raises:
            TypeError: A number is no integer.
            ValueError: The seed is negative, there are no resamples, or the confidence is not between 0
                and 1.
        """
        confidence = read_fraction(confidence, "confidence")
        check_count("num_resamples", num_resamples)
        check_count("seed", seed, least=0)
        sums, sizes = self._cluster_sums(0.0)
        count = len(sums)
        if count < 2:
            return Interval(math.nan, math.nan, confidence, "bootstrap")
        generator = np.random.default_rng(seed)
        means: list[NDArray[np.float64]] = []
        rows = max(1, _CHUNK // count)  # bounds the memory
        for start in range(0, num_resamples, rows):
            drawn = generator.integers(count, size=(min(rows, num_resamples - start), count))
            means.append(sums[drawn].sum(axis=1) / sizes[drawn].sum(axis=1))
        tail = normal_tail(math.sqrt(count / (count - 1)) * t_quantile(1 - confidence, count - 1))
        low, high = np.quantile(np.concatenate(means), [tail, 1 - tail])
        return Interval(float(low), float(high), confidence, "bootstrap")

    def wilson_interval(self, confidence: float = 0.95) -> Interval:
        """Return the score interval of a proportion of items, as the function of this name does.

        If the values are means of several samples, which all came out alike, it is on the safe side.

        Raises:
            ValueError: The estimate is no plain proportion: a value is neither 0 nor 1, the items are
                clustered, or it is a difference.
        """
        reason = self._not_wilson()
        if reason:
            msg = (
                f"Wilson's interval needs independent items of value 0 or 1, and {self.name} has "
                f"{reason}; use t_interval or bootstrap_interval"
            )
            raise ValueError(msg)
        values = self.item_values.values()
        return wilson_interval(int(sum(values)), len(values), confidence=confidence)

    def __str__(self) -> str:
        parts = [f"{self.interval()}", f"{self.num_items} items, {self.num_samples} samples"]
        if self.num_clusters != self.num_items:
            parts.append(f"{self.num_clusters} clusters")
        if self.num_failed:
            low, high = self.bounds
            parts.append(f"{self.num_failed} failed: {low:.4g} if they score 0, {high:.4g} if 1")
        if self.num_left_out:
            parts.append(f"{self.num_left_out} items left out")
        if not self.num_items:
            return f"{self.name}: none; {'; '.join(parts[1:])}"
        error = "" if math.isnan(self.standard_error) else f" ± {self.standard_error:.2g}"
        return f"{self.name} = {self.value:.4g}{error}, {'; '.join(parts)}"

    def _not_wilson(self) -> str:
        """What keeps Wilson's interval from fitting, or nothing."""
        if self.is_difference:
            return "differences, from -1 to 1"
        if self.num_clusters != self.num_items:
            return "clusters"
        other = ((item, value) for item, value in self.item_values.items() if value not in (0, 1))
        return next((f"item {item!r} of value {value!r}" for item, value in other), "")

    def _cluster_sums(self, center: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """For each cluster, the sum of its values less the centre, and how many these are."""
        values = self.item_values
        off = np.array([value - center for value in values.values()])
        if self.clusters is None:
            return off, np.ones(len(off))
        numbers: dict[Any, int] = {}
        labels = [numbers.setdefault(self.clusters[item], len(numbers)) for item in values]
        sums, sizes = np.zeros(len(numbers)), np.zeros(len(numbers))
        np.add.at(sums, labels, off)
        np.add.at(sizes, labels, 1)
        return sums, sizes


def mean_of(values: Sequence[float] | NDArray[np.float64]) -> float:
    """Return the mean, exactly v if all values are v; NaN of none."""
    plain: Sequence[float] = values.tolist() if isinstance(values, np.ndarray) else values
    if not plain:
        return math.nan
    return float(min(max(math.fsum(plain) / len(plain), min(plain)), max(plain)))
