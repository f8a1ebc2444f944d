"""Student's t, against SciPy."""

from __future__ import annotations

import math

import pytest
from scipy import stats

from rolloutlib.evals.statistics._distributions import (
    normal_quantile,
    normal_tail,
    t_quantile,
    t_tail,
)

every_df = pytest.mark.parametrize(
    "df", [1, 2, 3, 4, 5, 10, 29, 30, 99, 199, 200, 201, 1318, 10**4, 10**6]
)


@every_df
def test_tails_are_those_of_scipy(df: int) -> None:
    for t in [1e-3, 0.1, 0.5, 1, 1.7, math.sqrt(3), 1.75, 1.96, 2.5, 5, 8, 20, -2]:
        assert t_tail(t, df) == pytest.approx(2 * stats.t.sf(abs(t), df), rel=1e-10, abs=1e-300)


@every_df
def test_quantiles_are_those_of_scipy(df: int) -> None:
    for tail in [0.9, 0.5, 0.3, 0.1, 0.05, 0.01, 1e-3, 1e-6, 1e-10]:
        assert t_quantile(tail, df) == pytest.approx(stats.t.isf(tail / 2, df), rel=1e-10)


def test_tails_reach_from_one_to_nothing() -> None:
    assert t_tail(0, 5) == 1
    assert t_tail(math.inf, 5) == 0
    assert t_tail(1e200, 5) == 0


def test_normal_quantiles_are_those_of_scipy() -> None:
    for probability in [0.5, 0.2, 0.025, 1e-12]:
        assert normal_quantile(probability) == pytest.approx(stats.norm.isf(probability), rel=1e-8)


def test_normal_tails_are_those_of_scipy() -> None:
    for z in [-3, 0, 1.96, 8, 20]:
        assert normal_tail(z) == pytest.approx(stats.norm.sf(z), rel=1e-12)
