"""Power: the published example, statsmodels, and a simulation."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from statsmodels.stats.power import NormalIndPower

from rolloutlib.evals.statistics import PowerAnalysis, compare, mean_score

variances = st.floats(0.01, 1)


def test_items_needed_are_those_of_the_published_formula() -> None:
    # Three points at 80% power with a variance of 1/9 between items and none within them: 969 items.
    assert PowerAnalysis(1 / 9, 0, 0).items_needed(0.03) == 969
    assert PowerAnalysis(1 / 9, 1 / 6, 1 / 6).items_needed(0.03) == 3876
    assert PowerAnalysis(1 / 9, 1 / 6, 1 / 6).items_needed(-0.03, epochs=10) == 1260


@pytest.mark.parametrize("power", [0.8, 0.95])
def test_power_is_that_of_statsmodels(power: float) -> None:
    analysis = PowerAnalysis(0.08, 0.1, 0.15)
    effect = analysis.smallest_effect(300, epochs=2, power=power, significance=0.01)
    deviation = np.sqrt(0.08 + 0.25 / 2)
    expected = NormalIndPower().solve_power(
        nobs1=300, alpha=0.01, power=power, ratio=0, alternative="two-sided"
    )
    assert effect / deviation == pytest.approx(expected, rel=1e-4)


@given(variances, variances, variances, st.integers(2, 5000), st.integers(1, 16))
def test_the_smallest_effect_needs_the_size_that_finds_it(
    between: float, old: float, new: float, num_items: int, epochs: int
) -> None:
    analysis = PowerAnalysis(between, old, new)
    effect = analysis.smallest_effect(num_items, epochs=epochs)
    assert analysis.items_needed(effect * 1.0001, epochs=epochs) <= num_items
    assert analysis.items_needed(effect * 0.9999, epochs=epochs) >= num_items
    assert analysis.smallest_effect(num_items + 1, epochs=epochs) < effect
    assert analysis.smallest_effect(num_items, epochs=epochs + 1) < effect
    assert analysis.smallest_effect(num_items, epochs=epochs, power=0.9) > effect


def two_runs(seed: int, num_items: int, epochs: int, gain: float) -> list[dict[int, list[float]]]:
    generator = np.random.default_rng(seed)
    chances = generator.uniform(0.1, 0.8, (num_items, 1))
    return [
        dict(enumerate((generator.random((num_items, epochs)) < chance).astype(float).tolist()))
        for chance in (chances, chances + gain)
    ]


@pytest.mark.slow
def test_variances_are_estimated_without_bias() -> None:
    old, new = two_runs(0, 10_000, 3, 0.1)
    analysis = PowerAnalysis.from_runs(old, new)
    # The candidate gains the same everywhere; p (1 - p) of p uniform on an interval.
    moments = [(a + b) / 2 - (a * a + a * b + b * b) / 3 for a, b in ((0.1, 0.8), (0.2, 0.9))]
    assert analysis.between == pytest.approx(0, abs=0.01)
    assert [analysis.baseline, analysis.candidate] == pytest.approx(moments, abs=0.003)
    alone = PowerAnalysis.from_run(old, correlation=0.5)
    assert alone.between == pytest.approx(0.7**2 / 12, abs=0.004)
    assert alone.baseline == alone.candidate == analysis.baseline


@pytest.mark.slow
def test_an_effect_of_the_smallest_size_is_found_as_often_as_planned() -> None:
    pilot = PowerAnalysis.from_runs(*two_runs(1, 5000, 2, 0.1))
    num_items = pilot.items_needed(0.1, epochs=2)
    found = 0
    for seed in range(200):
        old, new = two_runs(10 + seed, num_items, 2, 0.1)
        found += compare(mean_score(old), mean_score(new)).p_value < 0.05
    assert 0.715 <= found / 200 <= 0.885  # three standard errors about 80%


def test_single_epochs_leave_all_variance_between_items() -> None:
    old, new = {0: 1, 1: 0, 2: 1, 3: 0}, {0: 1, 1: 1, 2: 1, 3: 0}
    analysis = PowerAnalysis.from_runs(old, new)
    assert analysis == PowerAnalysis(0.25, 0, 0)
    error = compare(mean_score(old), mean_score(new)).difference.standard_error
    assert analysis.smallest_effect(4) == pytest.approx(2.8016 * error, rel=1e-4)


def test_failed_samples_count_zero() -> None:
    failed: dict[int, Any] = {0: [1, None], 1: [0, 1]}
    assert PowerAnalysis.from_run(failed) == PowerAnalysis.from_run({0: [1, 0], 1: [0, 1]})


def test_what_cannot_be_planned_is_refused() -> None:
    analysis = PowerAnalysis(0.1, 0, 0)
    with pytest.raises(ValueError, match="effect must not be 0"):
        analysis.items_needed(0)
    with pytest.raises(ValueError, match="power must lie between 0 and 1, got 80"):
        analysis.items_needed(0.1, power=80)
    with pytest.raises(
        ValueError, match=r"power must be above the significance, 0\.1, .* got 0\.1"
    ):
        analysis.smallest_effect(10, power=0.1, significance=0.1)
    with pytest.raises(ValueError, match="epochs must be at least 1, got 0"):
        analysis.smallest_effect(10, epochs=0)
    with pytest.raises(ValueError, match="candidate is a variance and must not be negative"):
        PowerAnalysis(0.1, 0, -1)
    with pytest.raises(ValueError, match="at least two items, got 1"):
        PowerAnalysis.from_run({"a": [1, 0]})
    with pytest.raises(ValueError, match="correlation must lie from -1 to 1, got 2"):
        PowerAnalysis.from_run({"a": 1, "b": 0}, correlation=2)


def test_an_analysis_reads_well() -> None:
    assert str(PowerAnalysis(0.1, 0.2, 0.25)) == (
        "variance 0.1 between items, within them 0.2 (baseline) and 0.25 (candidate)"
    )
