"""An interval that stays valid however often one looks at it, and whenever one stops."""

from __future__ import annotations

import math

import numpy as np

from rolloutlib._values import to_float
from rolloutlib.evals.statistics._intervals import Interval, read_fraction

__all__ = ["ConfidenceSequence"]

_STEPS = 1000
_MOST_STEPS = 20_000  # finer ones would serve no benchmark: half a million items to get there
_TRUNCATION = 0.5


class ConfidenceSequence:
    """Intervals for a mean that hold at all times at once, so that a run may stop when one is narrow.

        sequence = ConfidenceSequence(width=0.1)
        for item in shuffled_items:
            sequence.update(score_of(item))
            if sequence.is_narrow:
                break

    A plain interval that is looked at after every item, and reported at the first time it suits,
    covers the truth less often than it says. This is the correction: the hedged capital process of
    Waudby-Smith and Ramdas, "Estimating means of bounded random variables by betting", JRSS B 86 (2024),
    arXiv 2010.09686, theorem 3. Against each possible mean two gamblers bet on every next score, one that
    the mean is higher and one that it is lower; a mean is in the interval until either has turned 1 into
    `2 / (1 - confidence)`. What is out stays out, so that each interval lies within those before it, and a
    narrow one stays narrow. By Ville's inequality the true mean is ever left out with a probability of at
    most `1 - confidence`, for any number of items and without approximation. That mean is the one of the
    population that the items are drawn from, as it is for all intervals here, and not the mean over
    the items of a benchmark that is stopped half-way.

    What it needs: scores within the range given, and items taken in an order that does not depend on
    their scores. Shuffle the items first and take them in that order, not as they finish: quick answers
    may be the right ones. With several epochs give the mean of an item's scores, once all are there.

    Its price: the stakes are set for the width wanted, at which the interval is about 1.3 times as wide as
    the t interval of as many items. To get there takes 1.5 to 2 times the items that a plain interval
    would, and more where nearly all scores are alike: 20 are too few to tell 98% from 100%.

    Args:
        width: The width of the interval at which the run is to stop, in units of the score.
        confidence: The probability with which all intervals cover the mean, between 0 and 1.
        low: The lowest score possible.
        high: The highest score possible.

    Raises:
        TypeError: An argument is no number.
        ValueError: The confidence is not between 0 and 1, the range is empty, or the width is not
            above 0 or wider than the range.
    """

    def __init__(
        self, width: float, confidence: float = 0.95, *, low: float = 0.0, high: float = 1.0
    ) -> None:
        self._confidence = read_fraction(confidence, "confidence")
        self._low, self._high = to_float(low, "low"), to_float(high, "high")
        if not self._low < self._high:
            msg = f"low must be below high, got {low!r} and {high!r}"
            raise ValueError(msg)
        self._width = to_float(width, "width")
        if not 0 < self._width <= self._high - self._low:
            msg = f"width must be above 0 and within the range {low!r} to {high!r}, got {width!r}"
            raise ValueError(msg)
        # On a scale from 0 to 1, with one score at its middle, of variance 1/4, before the first.
        self._sum, self._squares, self._count = 0.5, 0.25, 0
        # A mean of the grid stands for its cell; the cells are narrow beside the width.
        steps = math.ceil(min(50 * (self._high - self._low) / self._width, _MOST_STEPS))
        steps = max(steps, _STEPS)
        self._cell = 1 / steps
        self._limit = math.log(2 / (1 - self._confidence))
        # The means that are in, and the logarithms of the capital of either gambler.
        self._means = (np.arange(steps) + 0.5) / steps
        self._higher = np.zeros(steps)
        self._lower = np.zeros(steps)

    @property
    def num_items(self) -> int:
        """How many scores were taken."""
        return self._count

    @property
    def mean(self) -> float:
        """The mean of the scores taken; NaN of none."""
        if not self._count:
            return math.nan
        return self._low + (self._high - self._low) * (self._sum - 0.5) / self._count

    @property
    def interval(self) -> Interval:
        """The interval after the scores taken; before the first, the whole range."""
        beyond = 1.5 * self._cell  # outwards: to the end of the cell next to the outermost mean
        below = max(float(self._means[0]) - beyond, 0.0)
        above = max(1 - float(self._means[-1]) - beyond, 0.0)
        scale = self._high - self._low
        return Interval(
            self._low + scale * below, self._high - scale * above, self._confidence, "betting"
        )

    @property
    def is_narrow(self) -> bool:
        """Whether the interval is as narrow as wanted."""
        return self.interval.width <= self._width

    def update(self, score: float) -> None:
        """Take the score of the next item.

        Args:
            score: The item's score; a failed item counts what the caller lets it score, such as 0.

        Raises:
            TypeError: The score is no number.
            ValueError: It is outside the range; nothing has changed.
        """
        value = to_float(score, "score")
        if not self._low <= value <= self._high:
            msg = f"score must lie from {self._low!r} to {self._high!r}, got {score!r}"
            raise ValueError(msg)
        scale = self._high - self._low
        x = (value - self._low) / scale
        # The stake rests on earlier scores alone. At a constant variance the interval has the width
        # wanted after n = 8 variance log(2 / (1 - confidence)) / width^2 scores, for which the stake
        # sqrt(2 log(2 / (1 - confidence)) / (n variance)) is best: that is width / (2 variance).
        n = self._count + 1
        stake = self._width / scale / (2 * self._squares / n)
        means = self._means
        self._higher += np.log1p(np.minimum(stake, _TRUNCATION / means) * (x - means))
        self._lower += np.log1p(-np.minimum(stake, _TRUNCATION / (1 - means)) * (x - means))
        self._count, self._sum = n, self._sum + x
        self._squares += (x - self._sum / (n + 1)) ** 2
        inside = np.flatnonzero(np.maximum(self._higher, self._lower) <= self._limit)
        # These are neighbours, for the one capital falls with the mean and the other rises. Scores that
        # drift may drive out all means: then the last interval stays.
        if len(inside):
            kept = slice(int(inside[0]), int(inside[-1]) + 1)
            self._means, self._higher, self._lower = (
                values[kept] for values in (self._means, self._higher, self._lower)
            )
