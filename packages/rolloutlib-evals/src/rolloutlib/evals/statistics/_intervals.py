"""Intervals, and that of Wilson for a proportion."""

from __future__ import annotations

import math
from dataclasses import dataclass

from rolloutlib._calls import check_count
from rolloutlib._values import to_float
from rolloutlib.evals.statistics._distributions import normal_quantile

__all__ = ["Interval", "read_fraction", "wilson_interval"]


@dataclass(frozen=True)
class Interval:
    """A confidence interval.

    Attributes:
        low: Its lower end; NaN if the data determine none.
        high: Its upper end; NaN if the data determine none.
        confidence: The probability with which such intervals cover the true value, as a fraction.
        method: How it was made: "t", "bootstrap", "Wilson" or "betting".
    """

    low: float
    high: float
    confidence: float
    method: str

    @property
    def width(self) -> float:
        """Upper minus lower end."""
        return self.high - self.low

    def __str__(self) -> str:
        if math.isnan(self.width):
            return "no interval"
        return f"{self.low:.4g} to {self.high:.4g} ({self.confidence * 100:.4g}% {self.method})"


def wilson_interval(num_successes: int, num_trials: int, *, confidence: float = 0.95) -> Interval:
    """Return the score interval of a proportion.

    `(p + z^2/2n ± z sqrt(p(1-p)/n + z^2/4n^2)) / (1 + z^2/n)`: Wilson, "Probable inference, the law
    of succession, and statistical inference", JASA 22 (1927). Unlike the t interval it fits few
    trials and proportions near 0 and 1: 20 successes of 20 give 0.839 to 1.

    Args:
        num_successes: How many trials succeeded.
        num_trials: How many independent trials there were. Epochs of one item are not independent.
        confidence: The coverage wanted, between 0 and 1.

    Returns:
        The interval; its ends are NaN if there were no trials.

    Raises:
        TypeError: A number is no integer.
        ValueError: One is negative, there are more successes than trials, or the confidence is not
            between 0 and 1.
    """
    confidence = read_fraction(confidence, "confidence")
    check_count("num_successes", num_successes, least=0)
    check_count("num_trials", num_trials, least=0)
    if num_successes > num_trials:
        msg = f"num_successes must be at most num_trials, {num_trials!r}, got {num_successes!r}"
        raise ValueError(msg)
    if num_trials == 0:
        return Interval(math.nan, math.nan, confidence, "Wilson")
    z = normal_quantile((1 - confidence) / 2)
    n = int(num_trials)  # the squares of NumPy's integers overflow
    p = num_successes / n
    center = (p + z * z / (2 * n)) / (1 + z * z / n)
    half = z * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n)) / (1 + z * z / n)
    # Rounding would leave 0 of n and n of n a hair inside.
    low = 0.0 if num_successes == 0 else center - half
    high = 1.0 if num_successes == num_trials else center + half
    return Interval(low, high, confidence, "Wilson")


def read_fraction(value: object, name: str) -> float:
    """Return a number strictly between 0 and 1.

    Raises:
        TypeError: It is no number.
        ValueError: It is 0, 1 or beyond.
    """
    fraction = to_float(value, name)
    if not 0 < fraction < 1:
        msg = f"{name} must lie between 0 and 1, got {value!r}"
        raise ValueError(msg)
    return fraction
