"""Means, their errors and intervals, against SciPy and statsmodels and by their invariants."""

from __future__ import annotations

import copy
import math
import pickle
from typing import Any

import numpy as np
import pytest
import statsmodels.api as sm
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.proportion import proportion_confint

from rolloutlib.evals.statistics import (
    Estimate,
    Interval,
    ItemEstimate,
    compare,
    mean_score,
    wilson_interval,
)

unit = st.floats(0, 1)
runs = st.dictionaries(
    st.integers(), st.lists(unit, min_size=1, max_size=4), min_size=2, max_size=9
)


def drawn(num_items: int, epochs: int, seed: int = 0) -> dict[int, list[float]]:
    """Outcomes of items that differ in how hard they are."""
    generator = np.random.default_rng(seed)
    chances = generator.beta(0.8, 0.6, num_items)
    outcomes = (generator.random((num_items, epochs)) < chances[:, None]).astype(float)
    return dict(enumerate(outcomes.tolist()))


def clustered_error(values: list[float], groups: list[int]) -> float:
    fit = sm.OLS(values, np.ones(len(values))).fit(
        cov_type="cluster", cov_kwds={"groups": np.array(groups)}
    )
    return float(fit.bse[0])


def test_the_error_is_clustered_by_item() -> None:
    scores = drawn(60, 5)
    estimate = mean_score(scores)
    flat = [score for item in scores.values() for score in item]
    groups = [item for item, values in scores.items() for _ in values]
    assert estimate.value == pytest.approx(np.mean(flat))
    assert estimate.standard_error == pytest.approx(clustered_error(flat, groups), rel=1e-12)
    # Were the epochs independent, the error would be much smaller.
    assert estimate.standard_error > 1.5 * np.std(flat) / math.sqrt(len(flat))


def test_items_may_be_clustered_in_turn() -> None:
    scores = drawn(60, 2)
    passages = {item: int(item**0.5) for item in scores}
    estimate = mean_score(scores, clusters=passages)
    means = [float(np.mean(item)) for item in scores.values()]
    expected = clustered_error(means, list(passages.values()))
    assert estimate.standard_error == pytest.approx(expected, rel=1e-12)
    assert estimate.num_clusters == 8
    assert "8 clusters" in str(estimate)


def test_the_t_interval_is_that_of_scipy() -> None:
    estimate = mean_score(drawn(40, 3))
    values = list(estimate.item_values.values())
    for confidence in (0.5, 0.9, 0.95, 0.999):
        expected = stats.ttest_1samp(values, 0).confidence_interval(confidence)
        interval = estimate.t_interval(confidence)
        assert (interval.low, interval.high) == pytest.approx((expected.low, expected.high))


def test_the_bootstrap_interval_is_that_of_scipy_but_for_chance() -> None:
    estimate = mean_score(drawn(80, 3))
    values = list(estimate.item_values.values())
    expected = stats.bootstrap(
        (values,), np.mean, n_resamples=20_000, method="percentile", rng=np.random.default_rng(1)
    ).confidence_interval
    interval = estimate.bootstrap_interval(num_resamples=20_000)
    assert (interval.low, interval.high) == pytest.approx((expected.low, expected.high), abs=5e-3)


def test_the_bootstrap_draws_whole_clusters() -> None:
    scores = {item: float(item < 40) for item in range(80)}
    halves = {item: item // 8 for item in scores}
    clustered = mean_score(scores, clusters=halves).bootstrap_interval()
    independent = mean_score(scores).bootstrap_interval()
    assert clustered.width > 2.5 * independent.width


def test_the_bootstrap_of_clusters_of_different_sizes_agrees_with_the_t_interval() -> None:
    clusters = {item: int(item**0.5) for item in range(2500)}  # 50, of 1 to 99 items
    estimate = mean_score(drawn(2500, 1), clusters=clusters)
    plain, resampled = estimate.t_interval(), estimate.bootstrap_interval()
    assert (resampled.low, resampled.high) == pytest.approx((plain.low, plain.high), abs=6e-3)


def test_the_bootstrap_allows_for_few_clusters() -> None:
    # Ten values make plain percentiles too narrow by 1.96 / 2.262 * sqrt(9 / 10): nearly a fifth.
    values = stats.norm.ppf((np.arange(10) + 0.5) / 10)
    estimate = mean_score(dict(enumerate(values.tolist())))
    assert estimate.bootstrap_interval().width == pytest.approx(
        estimate.t_interval().width, rel=0.05
    )
    pair = mean_score({"a": 0.25, "b": 0.5}).bootstrap_interval()
    assert (pair.low, pair.high) == (0.25, 0.5)  # all that two values can tell


def test_the_bootstrap_covers_means_of_clusters_of_very_different_sizes() -> None:
    generator = np.random.default_rng(0)
    covered = {"t": 0, "bootstrap": 0}
    for _ in range(300):
        sizes = np.minimum(generator.zipf(2, 15), 50)
        clusters = dict(enumerate(np.repeat(np.arange(15), sizes).tolist()))
        chances = np.repeat(generator.random(15), sizes)
        outcomes = (generator.random(len(chances)) < chances).astype(float)
        estimate = mean_score(dict(enumerate(outcomes.tolist())), clusters=clusters)
        for interval in (estimate.t_interval(), estimate.bootstrap_interval(num_resamples=500)):
            covered[interval.method] += interval.low <= 0.5 <= interval.high
    assert covered["bootstrap"] / 300 > 0.9
    assert covered["t"] < covered["bootstrap"] - 15


@pytest.mark.parametrize(("seed", "error"), [(-1, ValueError), (None, TypeError), ("a", TypeError)])
def test_a_seed_is_a_number(seed: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match="seed must be"):
        mean_score({"a": 1, "b": 0}).bootstrap_interval(seed=seed)


def test_a_seed_makes_one_bootstrap_interval() -> None:
    estimate = mean_score(drawn(80, 3))
    assert estimate.bootstrap_interval(seed=3) == estimate.bootstrap_interval(seed=3)
    assert estimate.bootstrap_interval(seed=3) != estimate.bootstrap_interval(seed=4)


def test_intervals_cover_the_truth_as_often_as_they_say() -> None:
    generator = np.random.default_rng(0)
    covered = {"t": 0, "bootstrap": 0}
    for _ in range(400):
        outcomes = generator.random((50, 4)) < generator.beta(2, 1, (50, 1))  # of mean 2/3
        estimate = mean_score(dict(enumerate(outcomes.astype(float))))
        for interval in (estimate.t_interval(), estimate.bootstrap_interval(num_resamples=400)):
            covered[interval.method] += interval.low <= 2 / 3 <= interval.high
    # Three standard errors of 400 draws about 95% are 3.3%.
    assert 0.915 <= covered["t"] / 400 <= 0.985
    assert 0.905 <= covered["bootstrap"] / 400 <= 0.985


@pytest.mark.parametrize(("successes", "trials"), [(0, 10), (7, 10), (10, 10), (812, 1319)])
def test_wilson_intervals_are_those_of_scipy_and_statsmodels(successes: int, trials: int) -> None:
    for confidence in (0.9, 0.95):
        interval = wilson_interval(successes, trials, confidence=confidence)
        ours = (interval.low, interval.high)
        test = stats.binomtest(successes, trials)
        expected = test.proportion_ci(confidence, method="wilson")
        assert ours == pytest.approx((expected.low, expected.high), rel=1e-9, abs=1e-12)
        other = proportion_confint(successes, trials, alpha=1 - confidence, method="wilson")
        assert ours == pytest.approx(other, rel=1e-9, abs=1e-12)


def test_an_estimate_of_single_outcomes_has_wilson_interval() -> None:
    estimate = mean_score({item: float(item < 18) for item in range(20)})
    assert estimate.wilson_interval(0.9) == wilson_interval(18, 20, confidence=0.9)


def test_the_interval_to_report_is_the_one_that_fits() -> None:
    outcomes = {item: float(item < 18) for item in range(20)}
    single = mean_score(outcomes)
    assert single.interval(0.9) == single.wilson_interval(0.9)
    several = mean_score(drawn(40, 3))
    assert several.interval() == several.t_interval()
    pairs = mean_score(outcomes, clusters={item: item // 2 for item in outcomes})
    assert pairs.interval() == pairs.t_interval()
    unequal = mean_score(outcomes, clusters={item: int(item**0.5) for item in outcomes})
    assert unequal.interval() == unequal.bootstrap_interval()
    assert math.isnan(mean_score({}).interval().low)


def test_all_solved_is_not_reported_as_certain() -> None:
    solved = mean_score({item: [1, 1] for item in range(20)})
    assert solved.interval().low == pytest.approx(0.839, abs=1e-3)
    assert "0.8389 to 1 (95% Wilson)" in str(solved)


def test_wilson_interval_is_refused_where_it_does_not_fit() -> None:
    with pytest.raises(ValueError, match=r"mean has item 'a' of value 0\.5;"):
        mean_score({"a": [1, 0], "b": [1, 1]}).wilson_interval()
    with pytest.raises(ValueError, match="clusters"):
        mean_score({"a": 1, "b": 0}, clusters={"a": 0, "b": 0}).wilson_interval()
    same = compare(mean_score({"a": 1, "b": 0}), mean_score({"a": 1, "b": 0}))
    with pytest.raises(ValueError, match="difference of mean has differences, from -1 to 1"):
        same.difference.wilson_interval()  # would lie from 0 upwards
    with pytest.raises(ValueError, match="num_successes must be at most num_trials, 3, got 4"):
        wilson_interval(4, 3)


def test_numbers_of_numpy_do_not_overflow() -> None:
    counts: Any = np.array([60_000, 90_000], dtype=np.int32)
    assert wilson_interval(*counts) == wilson_interval(60_000, 90_000)
    for scale in (1e200, 1e-200):
        estimate = mean_score({"a": scale, "b": -scale, "c": 3 * scale})
        assert estimate.standard_error == pytest.approx(2 / math.sqrt(3) * scale)


def test_no_items_have_no_score() -> None:
    empty = mean_score({})
    assert math.isnan(empty.value)
    assert math.isnan(empty.standard_error)
    assert all(map(math.isnan, empty.bounds))
    intervals = (empty.t_interval(), empty.bootstrap_interval(), empty.wilson_interval())
    assert all(math.isnan(interval.width) for interval in intervals)
    assert (empty.num_items, empty.num_samples, empty.num_clusters) == (0, 0, 0)
    assert str(empty) == "mean: none; 0 items, 0 samples"
    failed = mean_score({"a": [None]}, failed=None)
    assert str(failed).startswith("mean, failed left out: none; 0 items, 1 samples; 1 failed: 0 if")


def test_one_item_has_a_value_and_no_error() -> None:
    one = mean_score({"a": [1, 0, 1]})
    assert one.value == pytest.approx(2 / 3)
    assert math.isnan(one.standard_error)
    assert math.isnan(one.t_interval().low)
    assert math.isnan(one.bootstrap_interval().low)
    assert str(one) == "mean = 0.6667, no interval; 1 items, 3 samples"
    assert math.isnan(mean_score({"a": 1, "b": 0}, clusters={"a": "x", "b": "x"}).standard_error)


@given(unit, st.integers(2, 9))
def test_equal_values_have_no_error(value: float, count: int) -> None:
    estimate = mean_score({item: [value] * 3 for item in range(count)})
    assert (estimate.value, estimate.standard_error) == (value, 0)
    for interval in (estimate.t_interval(), estimate.bootstrap_interval(num_resamples=9)):
        assert (interval.low, interval.high) == pytest.approx((value, value))


@given(runs, st.randoms())
def test_the_order_of_items_and_epochs_does_not_matter(
    scores: dict[int, list[float]], random: Any
) -> None:
    shuffled = {
        item: random.sample(scores[item], len(scores[item]))
        for item in random.sample(list(scores), len(scores))
    }
    first, second = mean_score(scores), mean_score(shuffled)
    assert first.value == second.value
    assert first.standard_error == pytest.approx(second.standard_error)


@given(runs)
def test_a_mean_lies_within_its_scores_and_its_intervals(scores: dict[int, list[float]]) -> None:
    estimate = mean_score(scores)
    flat = [score for item in scores.values() for score in item]
    assert min(flat) <= estimate.value <= max(flat)
    previous = 0.0
    for confidence in (0.5, 0.9, 0.99):
        interval = estimate.t_interval(confidence)
        assert interval.low <= estimate.value <= interval.high
        assert interval.width >= previous
        previous = interval.width
    drawn = estimate.bootstrap_interval(num_resamples=50)
    assert min(flat) - 1e-12 <= drawn.low <= drawn.high <= max(flat) + 1e-12


@given(st.integers(1, 200), st.data())
def test_wilson_intervals_rise_with_successes_and_stay_in_range(trials: int, data: Any) -> None:
    successes = data.draw(st.integers(0, trials - 1))
    lower, higher = wilson_interval(successes, trials), wilson_interval(successes + 1, trials)
    assert 0 <= lower.low <= successes / trials <= lower.high <= 1
    assert lower.low < higher.low
    assert lower.high < higher.high


@pytest.mark.parametrize("confidence", [0, 1, 95, -0.5])
def test_a_confidence_is_a_fraction(confidence: float) -> None:
    estimate = mean_score({"a": 1, "b": 0})
    for interval in (estimate.t_interval, estimate.bootstrap_interval, estimate.wilson_interval):
        with pytest.raises(ValueError, match="confidence must lie between 0 and 1"):
            interval(confidence)


def test_every_item_needs_a_cluster() -> None:
    with pytest.raises(ValueError, match="a cluster for every item, and has none for 'b'"):
        mean_score({"a": 1, "b": 0}, clusters={"a": 0})


def test_estimates_read_well_and_survive_copies() -> None:
    estimate = mean_score({"a": [1, 0], "b": [1, 1], "c": [0, 0]})
    assert str(estimate) == ("mean = 0.5 ± 0.29, -0.7421 to 1.742 (95% t); 3 items, 6 samples")
    assert str(Interval(0.25, 0.5, 0.9, "bootstrap")) == "0.25 to 0.5 (90% bootstrap)"
    assert pickle.loads(pickle.dumps(estimate)) == copy.deepcopy(estimate) == estimate  # noqa: S301


def test_an_estimate_of_ones_own_has_intervals_too() -> None:
    best = {"a": [0.2, 0.7], "b": [0.1, 0.3]}
    estimate = Estimate(
        "best", {item: ItemEstimate(max(s), (max(s), max(s)), len(s)) for item, s in best.items()}
    )
    assert estimate.value == pytest.approx(0.5)
    assert estimate.standard_error == pytest.approx(0.2)
    with pytest.raises(
        ValueError, match="value must be finite, or None to leave the item out, got nan"
    ):
        ItemEstimate(math.nan, (0, 1), 1)
