"""The four aggregations: their formulas, bounds and independence of order."""

from __future__ import annotations

import math
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rolloutlib.graders import (
    Aggregator,
    Criterion,
    Rubric,
    Score,
    all_pass,
    asymmetric_mean,
    weighted_mean,
    weighted_sum,
)

KINDS = ("required", "bonus", "penalty")
AGGREGATIONS: list[Aggregator] = [weighted_mean, weighted_sum, all_pass, asymmetric_mean]

Part = tuple[float, float, str]
weights = st.just(0.0) | st.floats(min_value=1e-3, max_value=1e3)
parts = st.lists(
    st.tuples(weights, st.floats(min_value=0, max_value=1), st.sampled_from(KINDS)),
    min_size=1,
    max_size=6,
)
weighted_parts = parts.filter(lambda each: any(weight for weight, _, _ in each))


def build(parts: list[Part]) -> tuple[Rubric, dict[str, Score]]:
    criteria = [
        Criterion(id=f"c{index}", description="d", weight=weight, kind=kind)
        for index, (weight, _, kind) in enumerate(parts)
    ]
    scores = {f"c{index}": Score(value) for index, (_, value, _) in enumerate(parts)}
    return Rubric(criteria=tuple(criteria)), scores


def combine(aggregate: Aggregator, *parts: Part) -> float:
    return aggregate(*build(list(parts)))


@given(weighted_parts, st.randoms(use_true_random=False))
def test_the_order_of_the_criteria_makes_no_difference(parts: list[Part], random: object) -> None:
    rubric, scores = build(parts)
    shuffled = list(rubric.criteria)
    getattr(random, "shuffle")(shuffled)  # noqa: B009 - hypothesis does not type it
    for aggregate in AGGREGATIONS:
        expected = aggregate(rubric, scores)
        assert aggregate(Rubric(criteria=tuple(shuffled)), scores) == expected
        assert aggregate(rubric, dict(reversed(scores.items()))) == expected


@given(weighted_parts)
def test_a_weighted_mean_lies_between_the_scores_that_count(parts: list[Part]) -> None:
    counting = [value for weight, value, _ in parts if weight]
    mean = combine(weighted_mean, *parts)
    assert min(counting) - 1e-12 <= mean <= max(counting) + 1e-12


@given(weighted_parts, st.floats(min_value=1e-3, max_value=1e3))
def test_a_weighted_mean_does_not_depend_on_the_scale_of_the_weights(
    parts: list[Part], factor: float
) -> None:
    scaled = [(weight * factor, value, kind) for weight, value, kind in parts]
    assert combine(weighted_mean, *scaled) == pytest.approx(combine(weighted_mean, *parts))


@given(parts)
def test_a_weighted_sum_lies_between_0_and_the_sum_of_the_weights(parts: list[Part]) -> None:
    total = math.fsum(weight for weight, _, _ in parts)
    assert 0 <= combine(weighted_sum, *parts) <= total * (1 + 1e-12)


@given(parts)
def test_all_pass_is_1_exactly_if_no_score_is_below_1(parts: list[Part]) -> None:
    assert combine(all_pass, *parts) == float(all(value >= 1 for _, value, _ in parts))
    assert combine(all_pass, *[(weight, 1.0, kind) for weight, _, kind in parts]) == 1.0


@given(parts, st.floats(min_value=0, max_value=10), st.floats(min_value=0, max_value=10))
def test_an_asymmetric_mean_lies_between_the_whole_penalty_and_the_whole_bonus(
    parts: list[Part], bonus: float, penalty: float
) -> None:
    mean = asymmetric_mean(*build(parts), bonus_weight=bonus, penalty_weight=penalty)
    assert -penalty - 1e-9 <= mean <= 1 + bonus + 1e-9


@given(weighted_parts)
def test_where_all_is_required_an_asymmetric_mean_is_the_weighted_mean(parts: list[Part]) -> None:
    required = [(weight, value, "required") for weight, value, _ in parts]
    assert combine(asymmetric_mean, *required) == combine(weighted_mean, *required)


def test_kinds_make_a_difference_to_the_asymmetric_mean_alone() -> None:
    parts = [(1.0, 0.5, "required"), (3.0, 1.0, "required"), (1.0, 0.5, "bonus")]
    parts += [(1.0, 0.25, "penalty"), (1.0, 0.75, "penalty")]
    assert combine(weighted_mean, *parts) == (0.5 + 3 + 0.5 + 0.25 + 0.75) / 7
    assert combine(weighted_sum, *parts) == 5.0
    assert combine(asymmetric_mean, *parts) == 0.875 + 0.5 - 0.5
    scaled = partial(asymmetric_mean, bonus_weight=0.5, penalty_weight=2.0)
    assert combine(scaled, *parts) == 0.875 + 0.5 * 0.5 - 2.0 * 0.5


def test_a_penalty_that_is_met_costs_nothing_and_a_kind_without_weight_adds_nothing() -> None:
    assert combine(asymmetric_mean, (1, 1.0, "required"), (1, 1.0, "penalty")) == 1.0
    assert combine(asymmetric_mean, (1, 1.0, "required"), (0, 0.0, "penalty")) == 1.0
    assert combine(asymmetric_mean, (1, 0.5, "required"), (0, 1.0, "bonus")) == 0.5
    assert combine(asymmetric_mean, (0, 0.5, "required")) == 0.0


def test_scores_outside_0_to_1_are_taken_as_they_are() -> None:
    assert combine(weighted_mean, (1, -1.0, "required"), (1, 5.0, "required")) == 2.0
    assert combine(weighted_sum, (1, -1.0, "required"), (2, 5.0, "required")) == 9.0
    assert combine(all_pass, (1, 2.0, "required")) == 1.0


def test_a_weighted_mean_without_weight_is_refused() -> None:
    with pytest.raises(ValueError, match="all weights are 0"):
        combine(weighted_mean, (0, 1.0, "required"), (0, 1.0, "required"))
    assert combine(weighted_sum, (0, 1.0, "required")) == 0.0


def test_a_kind_that_the_asymmetric_mean_does_not_know_is_named() -> None:
    with pytest.raises(ValueError, match="'c1' is 'optional'"):
        combine(asymmetric_mean, (1, 1.0, "required"), (1, 1.0, "optional"))


@pytest.mark.parametrize("name", ["bonus_weight", "penalty_weight"])
@pytest.mark.parametrize("value", [-1.0, math.nan, math.inf])
def test_the_scales_of_the_asymmetric_mean_are_checked(name: str, value: float) -> None:
    with pytest.raises(ValueError, match=f"{name} must be finite and not negative"):
        asymmetric_mean(*build([(1, 1.0, "required")]), **{name: value})


@pytest.mark.parametrize("aggregate", AGGREGATIONS)
def test_a_missing_score_is_named_and_a_surplus_one_is_ignored(aggregate: Aggregator) -> None:
    rubric, scores = build([(1, 1.0, "required"), (1, 1.0, "required")])
    assert aggregate(rubric, {**scores, "other": Score(0)}) == aggregate(rubric, scores)
    with pytest.raises(KeyError, match="c1"):
        aggregate(rubric, {"c0": Score(1)})
