"""Scales and gates: what a score may be, how it counts, and what caps the total."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from rolloutlib.graders import (
    Aggregator,
    CompositeGrader,
    Criterion,
    Gate,
    Rubric,
    Score,
    all_pass,
    asymmetric_mean,
    weighted_mean,
    weighted_sum,
)

pytestmark = pytest.mark.anyio


def look_up(values: Mapping[str, float], criterion: Criterion) -> float:
    return values[criterion.id]


def make_criterion(name: str = "a", **fields: Any) -> Criterion:
    return Criterion(id=name, description="d", **fields)


async def test_a_criterion_states_its_scale_and_another_value_is_an_error() -> None:
    rubric = Rubric(criteria=(make_criterion(scale=(1, 5)),))
    grader = CompositeGrader(look_up)
    for value in (1, 3, 5):
        assert grader.score({"a": value}, rubric).components["a"].value == value
    for value in (0, 0.999, 5.001, 9e124, -math.inf):
        with pytest.raises(ValueError, match="the score of criterion 'a' must be"):
            grader.score({"a": value}, rubric)
        with pytest.raises(ValueError, match="the score of criterion 'a' must be"):
            await grader.ascore({"a": value}, rubric)


async def test_without_a_scale_any_finite_number_is_a_score() -> None:
    rubric = Rubric(criteria=(make_criterion(scale=None),))
    grader = CompositeGrader(look_up)
    for value in (-1e300, 0.0, 1e300):
        assert grader.score({"a": value}, rubric).value == value
    for value in (math.nan, math.inf):
        with pytest.raises(ValueError, match="must be finite"):
            await grader.ascore({"a": value}, rubric)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"scale": (1, 1)}, "a lower and a higher finite number"),
        ({"scale": (1, 0)}, "a lower and a higher finite number"),
        ({"scale": (0, math.inf)}, "a lower and a higher finite number"),
        ({"scale": (math.nan, 1)}, "a lower and a higher finite number"),
        ({"scale": (-1e308, 1e308)}, "a lower and a higher finite number"),
        ({"gate": {"threshold": 0}}, "above its lowest value 0.0, which would never fail"),
        ({"gate": {"threshold": 1.5}}, "not above 1.0; got 1.5"),
        ({"gate": {"threshold": math.nan}, "scale": None}, "threshold"),
        ({"gate": {"threshold": 1, "cap": math.inf}}, "cap"),
    ],
)
def test_unusable_scales_and_gates_are_refused(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        make_criterion(**fields)


def test_scales_and_gates_count_in_the_fingerprint_and_come_back_from_json() -> None:
    choices: list[dict[str, Any]] = [
        {},
        {"scale": None},
        {"scale": (0, 2)},
        {"gate": Gate(threshold=0.5)},
        {"gate": Gate(threshold=0.5, cap=0.1)},
    ]
    rubrics = [Rubric(criteria=(make_criterion(**choice),)) for choice in choices]
    assert len({rubric.fingerprint for rubric in rubrics}) == len(rubrics)
    for rubric in rubrics:
        restored = Rubric.model_validate_json(rubric.model_dump_json())
        assert restored == rubric
        assert restored.fingerprint == rubric.fingerprint


def test_the_default_scale_is_the_same_rubric_however_it_is_said() -> None:
    said, unsaid = make_criterion(scale=(0, 1)), make_criterion()
    assert Rubric(criteria=(said,)).fingerprint == Rubric(criteria=(unsaid,)).fingerprint


@st.composite
def graded(draw: st.DrawFn) -> tuple[Rubric, dict[str, float]]:
    """Criteria of all kinds on any scales, and a value of each."""
    bounds = st.tuples(st.floats(-1e6, 1e6), st.floats(-1e6, 1e6)).filter(
        lambda pair: pair[0] < pair[1]
    )
    criteria = [
        make_criterion(
            str(index),
            scale=draw(bounds),
            weight=draw(st.floats(min_value=1e-6, max_value=1e6)),
            kind=draw(st.sampled_from(["required", "bonus", "penalty"])),
        )
        for index in range(draw(st.integers(1, 5)))
    ]
    values = {each.id: draw(st.floats(*each.scale)) for each in criteria if each.scale is not None}
    return Rubric(criteria=tuple(criteria)), values


TOTALS: list[tuple[Aggregator, Callable[[Rubric], tuple[float, float]]]] = [
    (weighted_mean, lambda rubric: (0.0, 1.0)),
    (weighted_sum, lambda rubric: (0.0, math.fsum(each.weight for each in rubric.criteria))),
    (all_pass, lambda rubric: (0.0, 1.0)),
    (partial(asymmetric_mean, bonus_weight=2, penalty_weight=3), lambda rubric: (-3.0, 3.0)),
]


@pytest.mark.parametrize(("aggregate", "bounds"), TOTALS)
@given(graded())
def test_whatever_the_scales_the_total_lies_in_the_range_that_the_aggregation_promises(
    aggregate: Aggregator,
    bounds: Callable[[Rubric], tuple[float, float]],
    case: tuple[Rubric, dict[str, float]],
) -> None:
    rubric, values = case
    low, high = bounds(rubric)
    assert low <= CompositeGrader(look_up, aggregate=aggregate).score(values, rubric).value <= high


@pytest.mark.parametrize(("aggregate", "bounds"), TOTALS[:3])
@given(graded())
def test_the_ends_of_all_scales_give_the_ends_of_the_range(
    aggregate: Aggregator,
    bounds: Callable[[Rubric], tuple[float, float]],
    case: tuple[Rubric, dict[str, float]],
) -> None:
    rubric, _ = case
    grader = CompositeGrader(look_up, aggregate=aggregate)
    for end, total in enumerate(bounds(rubric)):
        values = {each.id: each.scale[end] for each in rubric.criteria if each.scale is not None}
        assert grader.score(values, rubric).value == total


def test_a_score_counts_by_its_place_on_its_scale() -> None:
    rubric = Rubric(criteria=(make_criterion("a"), make_criterion("b", scale=(1, 5))))
    score = CompositeGrader(look_up).score({"a": 1.0, "b": 2.0}, rubric)
    assert score.value == (1.0 + 0.25) / 2
    assert score.component_values == {"a": 1.0, "b": 2.0}


GATED = Rubric(
    criteria=(
        make_criterion("right", weight=3),
        make_criterion("safe", weight=0, scale=(0, 10), gate=Gate(threshold=5)),
        make_criterion("format", gate=Gate(threshold=1, cap=0.25)),
    )
)


@pytest.mark.parametrize(
    ("values", "total", "failed", "uncapped"),
    [
        ({"right": 1, "safe": 5, "format": 1}, 1.0, None, None),
        ({"right": 1, "safe": 5, "format": 0.5}, 0.25, ["format"], 0.875),
        ({"right": 0, "safe": 10, "format": 0.5}, 0.125, ["format"], 0.125),
        ({"right": 1, "safe": 4.9, "format": 1}, 0.0, ["safe"], 1.0),
        ({"right": 1, "safe": 0, "format": 0}, 0.0, ["safe", "format"], 0.75),
    ],
)
async def test_a_failed_gate_caps_the_total_and_the_metadata_says_so(
    values: dict[str, float], total: float, failed: list[str] | None, uncapped: float | None
) -> None:
    grader = CompositeGrader(look_up)
    for score in (grader.score(values, GATED), await grader.ascore(values, GATED)):
        assert score.value == total
        assert score.metadata.get("uncapped_value") == uncapped
        gates = score.metadata.get("failed_gates")
        assert (None if gates is None else list(gates)) == failed
        assert score.component_values == values


def test_the_metadata_of_a_failed_gate_tells_its_terms() -> None:
    metadata = CompositeGrader(look_up).score({"right": 1, "safe": 1, "format": 1}, GATED).metadata
    assert metadata["failed_gates"] == {"safe": {"value": 1.0, "threshold": 5.0, "cap": 0.0}}


def test_gates_hold_whatever_the_aggregation_and_come_before_the_grader_s_metadata() -> None:
    grader = CompositeGrader(
        look_up, aggregate=lambda rubric, scores: 7.0, metadata={"failed_gates": "none"}
    )
    passed = grader.score({"right": 0, "safe": 9, "format": 1}, GATED)
    assert (passed.value, passed.metadata["failed_gates"]) == (7.0, "none")
    capped = grader.score({"right": 0, "safe": 0, "format": 1}, GATED)
    assert (capped.value, list(capped.metadata["failed_gates"])) == (0.0, ["safe"])


def test_scores_share_no_metadata_that_can_be_changed() -> None:
    rubric = Rubric(criteria=(make_criterion(),))
    for metadata in ({"list": [1]}, {"flat": 1}):
        grader = CompositeGrader(look_up, metadata=metadata)
        first = grader.score({"a": 1}, rubric)
        expected = Score.from_dict(first.to_dict())
        for value in first.metadata.values():
            if isinstance(value, list):
                value.append(2)
        assert grader.score({"a": 1}, rubric) == expected
        changeable: Any = first.metadata
        with pytest.raises(TypeError, match="cannot be changed"):
            changeable["new"] = 1
