"""Paired comparisons, against SciPy and statsmodels."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import statsmodels.api as sm
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.contingency_tables import mcnemar

from rolloutlib.evals.statistics import compare, mean_score, pass_at_k, sign_test

GENERATOR = np.random.default_rng(5)
OLD = dict(enumerate(GENERATOR.random((50, 3)).tolist()))
NEW = {item: [score + 0.05 + 0.2 * GENERATOR.random() for score in OLD[item]] for item in OLD}
single = st.lists(st.sampled_from([0.0, 1.0]), min_size=2, max_size=30)


def test_the_difference_is_paired() -> None:
    comparison = compare(mean_score(OLD), mean_score(NEW))
    old, new = (list(e.item_values.values()) for e in (comparison.baseline, comparison.candidate))
    expected = stats.ttest_rel(new, old)
    assert comparison.difference.value == pytest.approx(np.mean(new) - np.mean(old))
    assert comparison.p_value == pytest.approx(expected.pvalue, rel=1e-9)
    interval, limits = comparison.difference.t_interval(), expected.confidence_interval(0.95)
    assert (interval.low, interval.high) == pytest.approx((limits.low, limits.high))
    # Unpaired, the same runs tell much less.
    unpaired = math.hypot(comparison.baseline.standard_error, comparison.candidate.standard_error)
    assert comparison.difference.standard_error < unpaired / 3


def test_differences_are_clustered_as_the_estimates_are() -> None:
    clusters = {item: item // 5 for item in OLD}
    comparison = compare(mean_score(OLD, clusters=clusters), mean_score(NEW, clusters=clusters))
    differences = list(comparison.difference.item_values.values())
    fit = sm.OLS(differences, np.ones(50)).fit(
        cov_type="cluster", cov_kwds={"groups": np.array(list(clusters.values()))}, use_t=True
    )
    assert comparison.difference.standard_error == pytest.approx(fit.bse[0])
    assert comparison.p_value == pytest.approx(fit.pvalues[0], rel=1e-8)


@given(single, st.data())
def test_single_outcomes_have_mcnemars_exact_test(old: list[float], data: st.DataObject) -> None:
    size = len(old)
    new = data.draw(st.lists(st.sampled_from([0.0, 1.0]), min_size=size, max_size=size))
    comparison = compare(mean_score(dict(enumerate(old))), mean_score(dict(enumerate(new))))
    table = np.zeros((2, 2))
    for pair in zip(old, new, strict=True):
        table[tuple(map(int, pair))] += 1
    expected: Any = mcnemar(table, exact=True)
    assert comparison.mcnemar_p_value == pytest.approx(float(expected.pvalue))
    assert (comparison.num_better, comparison.num_worse) == (table[0, 1], table[1, 0])
    assert comparison.num_equal == table[0, 0] + table[1, 1]


def test_mcnemars_test_is_for_single_outcomes_alone() -> None:
    assert compare(mean_score(OLD), mean_score(NEW)).mcnemar_p_value is None
    twice = mean_score({0: [1, 1], 1: [0, 0]})
    assert compare(twice, twice).mcnemar_p_value is None
    clustered = mean_score({0: 1, 1: 0}, clusters={0: 0, 1: 1})
    assert compare(clustered, clustered).mcnemar_p_value is None


@given(st.integers(0, 60), st.integers(0, 60))
def test_the_sign_test_is_that_of_scipy(better: int, worse: int) -> None:
    assert sign_test(better, worse) == sign_test(worse, better)
    if better + worse:
        expected = stats.binomtest(better, better + worse).pvalue
        assert sign_test(better, worse) == pytest.approx(expected, rel=1e-9)


def test_the_sign_test_takes_numbers_of_numpy() -> None:
    counts: Any = np.array([300, 250])
    assert sign_test(*counts) == sign_test(300, 250) < 0.05


def test_the_sign_test_has_its_limits() -> None:
    assert sign_test(0, 0) == 1
    assert sign_test(5000, 4000) == pytest.approx(stats.binomtest(5000, 9000).pvalue, rel=1e-6)
    with pytest.raises(ValueError, match="num_better must be at least 0, got -1"):
        sign_test(-1, 2)


def test_the_comparison_changes_sign_with_the_order_of_the_runs() -> None:
    forth, back = (
        compare(mean_score(OLD), mean_score(NEW)),
        compare(mean_score(NEW), mean_score(OLD)),
    )
    assert forth.difference.value == -back.difference.value
    assert forth.p_value == back.p_value
    assert (forth.num_better, forth.num_worse) == (back.num_worse, back.num_better)


def test_runs_of_different_items_are_refused_unless_told() -> None:
    old, new = mean_score({"a": 1, "b": 0, "c": 1}), mean_score({"d": 1, "c": 0, "b": 1})
    with pytest.raises(
        ValueError,
        match=r"1 only in the baseline \('a'\) and 1 only in the candidate \('d'\); "
        "on_common_items=True compares them on the 2 that both have",
    ):
        compare(old, new)
    comparison = compare(old, new, on_common_items=True)
    assert comparison.num_left_out == 2
    assert dict(comparison.difference.item_values) == {"b": 1, "c": -1}
    assert (comparison.baseline.value, comparison.candidate.value) == (0.5, 0.5)
    assert str(comparison).endswith("; 2 items in one run alone")


def test_runs_without_a_common_item_are_refused() -> None:
    with pytest.raises(ValueError, match="no item in common: 2 only in the baseline"):
        compare(mean_score({"a": 1, "b": 1}), mean_score({"c": 1}), on_common_items=True)


def test_items_that_failed_altogether_are_left_out_of_both_runs_if_wished() -> None:
    old = mean_score({"a": [None, None], "b": [1, 0]}, failed=None)
    new = mean_score({"a": [1, 1], "b": [1, 1]}, failed=None)
    comparison = compare(old, new)
    assert comparison.num_left_out == 1
    assert comparison.candidate.num_items == 1
    assert comparison.difference.value == 0.5
    assert str(comparison).count("1 items left out") == 1


def test_items_that_are_left_out_stay_in_the_bounds() -> None:
    old = mean_score({"a": [None, None], "b": [1, 0]}, failed=None)
    new = mean_score({"a": [1, 1], "b": [1, 1]}, failed=None)
    comparison = compare(old, new)
    assert comparison.baseline.bounds == old.bounds == (0.25, 0.75)
    assert comparison.difference.bounds == (0.25, 0.75)  # if both had scored 1, and if both 0
    assert comparison.difference.num_failed == 2
    assert (comparison.baseline.value, comparison.candidate.value) == (0.5, 1)
    once = mean_score({"a": None, "b": 1}, failed=None)
    assert compare(once, once).mcnemar_p_value == 1


def test_bounds_of_a_difference_are_the_worst_and_the_best_for_the_candidate() -> None:
    comparison = compare(mean_score({"a": None, "b": 0}), mean_score({"a": 1, "b": None}))
    assert comparison.difference.value == 0.5
    assert comparison.difference.bounds == (0, 1)
    assert comparison.difference.num_failed == 2


def test_only_the_same_of_both_runs_is_compared() -> None:
    with pytest.raises(ValueError, match="cannot compare pass@2 with mean"):
        compare(mean_score(OLD), pass_at_k(NEW, 2))
    with pytest.raises(ValueError, match=r"cannot compare pass@1, threshold 0\.5 with pass@1"):
        compare(pass_at_k(OLD, 1), pass_at_k(NEW, 1, threshold=0.5))
    with pytest.raises(ValueError, match="cannot compare mean, failed left out with mean"):
        compare(mean_score(OLD), mean_score(NEW, failed=None))
    with pytest.raises(ValueError, match="the runs have different clusters"):
        compare(mean_score(OLD), mean_score(NEW, clusters=dict.fromkeys(NEW, 0)))


def test_runs_that_leave_nothing_to_test_have_defined_results() -> None:
    same = compare(mean_score({"a": 1, "b": 0}), mean_score({"a": 1, "b": 0}))
    assert (same.p_value, same.sign_p_value, same.difference.standard_error) == (1, 1, 0)
    better = compare(mean_score({"a": 0, "b": 0}), mean_score({"a": 1, "b": 1}))
    assert better.p_value == 0
    assert better.mcnemar_p_value == 0.5
    one = compare(mean_score({"a": 0}), mean_score({"a": 1}))
    assert math.isnan(one.p_value)
    empty = compare(mean_score({}), mean_score({}))
    assert math.isnan(empty.difference.value)
    assert math.isnan(empty.p_value)


def test_a_comparison_reads_well() -> None:
    old = {item: float(item < 10) for item in range(40)}
    new = {item: float(4 <= item < 20) for item in range(40)}
    assert str(compare(mean_score(old), mean_score(new))) == (
        "difference of mean = 0.15 ± 0.092, -0.03535 to 0.3354 (95% t); 40 items, 80 samples; "
        "p = 0.11 (paired t); 10 items better, 4 worse, 26 equal, p = 0.18 (sign test)"
    )
