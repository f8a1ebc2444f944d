"""Tails and quantiles of the normal and of Student's t distribution.

SciPy has both, but weighs ten times what this package and numpy do together; the tests compare with it.
"""

from __future__ import annotations

import math
from statistics import NormalDist

__all__ = ["normal_quantile", "normal_tail", "t_quantile", "t_tail"]

_EPSILON = 1e-16
_TINY = 1e-300


def normal_quantile(probability: float) -> float:
    """Return the z that a standard normal variable exceeds with this probability."""
    return -NormalDist().inv_cdf(probability)


def normal_tail(z: float) -> float:
    """Return the probability with which a standard normal variable exceeds z."""
    return math.erfc(z / math.sqrt(2)) / 2


def t_tail(t: float, df: int) -> float:
    """Return the probability that `|T| >= |t|`, T of Student's t with `df` degrees of freedom.

    It is the incomplete beta function `I_x(df / 2, 1 / 2)` at `x = df / (df + t^2)`: Abramowitz and
    Stegun, Handbook of Mathematical Functions, 26.5.27 and 26.7.1.
    """
    square = t * t
    if square == 0:
        return 1.0
    if math.isinf(square):
        return 0.0
    a, x, y = df / 2, df / (df + square), square / (df + square)
    log_front = -a * math.log1p(square / df) + math.log(y) / 2 - _log_beta(a)
    if square > 3:
        return math.exp(log_front) * _continued_fraction(a, 0.5, x) / a
    return 1 - math.exp(log_front) * _continued_fraction(0.5, a, y) / 0.5


def t_quantile(tail: float, df: int) -> float:
    """Return the t with `t_tail(t, df) == tail`, for a tail strictly between 0 and 1.

    The tail falls and is convex, and the normal quantile lies left of the root, so that Newton's
    steps rise to the root and never pass it.
    """
    t = normal_quantile(tail / 2)
    while True:
        log_density = -_log_beta(df / 2) - math.log(df) / 2 - (df + 1) / 2 * math.log1p(t * t / df)
        step = (t_tail(t, df) - tail) / (2 * math.exp(log_density))
        t += step
        if step <= 1e-14 * t:
            return t


def _log_beta(a: float) -> float:
    """The logarithm of B(a, 1/2); by Stirling's series where gamma functions would cancel."""
    if a < 100:
        return math.lgamma(a) + math.lgamma(0.5) - math.lgamma(a + 0.5)
    series = 1 / (8 * a) - 1 / (192 * a**3) + 1 / (640 * a**5)
    return (math.log(math.pi) - math.log(a)) / 2 + series


def _continued_fraction(a: float, b: float, x: float) -> float:
    """The continued fraction of `I_x(a, b)`, by Lentz's method.

    It converges fast for `x < (a + 1) / (a + b + 2)`: Press et al., Numerical Recipes, section 6.4.
    """
    c, d = 1.0, 1 / _away_from_zero(1 - (a + b) * x / (a + 1))
    fraction, m = d, 0
    while True:
        m += 1
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        change = 1.0
        for coefficient in (even, odd):
            d = 1 / _away_from_zero(1 + coefficient * d)
            c = _away_from_zero(1 + coefficient / c)
            change = c * d
            fraction *= change
        if abs(change - 1) <= 2 * _EPSILON:
            return fraction


def _away_from_zero(value: float) -> float:
    return value if abs(value) > _TINY else _TINY
