"""Aggregations: from the scores of a rubric's criteria to one number."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TypeAlias

from rolloutlib.graders._rubric import Columns, Rubric, columns_of
from rolloutlib.scores import Score

Aggregator: TypeAlias = Callable[[Rubric, Mapping[str, Score]], float]
"""Combines the scores of a rubric's criteria, by criterion id, into one number."""

_KINDS = ("required", "bonus", "penalty")


def weighted_mean(rubric: Rubric, components: Mapping[str, Score]) -> float:
    """Return the mean of the criteria's scores by their weights: sum(w * s) / sum(w).

    A score counts by its place on the criterion's scale, so that the mean goes from 0 to 1.

    Args:
        rubric: Whose criteria are combined.
        components: A score for each, by criterion id.

    Raises:
        KeyError: A criterion has no score.
        ValueError: All weights are 0.
    """
    columns = columns_of(rubric)
    if not columns.total:
        msg = "a weighted mean needs a criterion whose weight is above 0, and all weights are 0"
        raise ValueError(msg)
    return columns.mean(components)


def weighted_sum(rubric: Rubric, components: Mapping[str, Score]) -> float:
    """Return the sum of the criteria's scores times their weights.

    A score counts by its place on the criterion's scale, so that the sum goes from 0 to that of the
    weights.

    Args:
        rubric: Whose criteria are combined.
        components: A score for each, by criterion id.

    Raises:
        KeyError: A criterion has no score.
    """
    columns = columns_of(rubric)
    return columns.sum(columns.places(components))


def all_pass(rubric: Rubric, components: Mapping[str, Score]) -> float:
    """Return 1.0 if every criterion's score is the highest of its scale, else 0.0.

    A criterion without a scale passes with 1 or more. Weights do not matter.

    Args:
        rubric: Whose criteria are combined.
        components: A score for each, by criterion id.

    Raises:
        KeyError: A criterion has no score.
    """
    return float(min(columns_of(rubric).places(components)) >= 1.0)


def asymmetric_mean(
    rubric: Rubric,
    components: Mapping[str, Score],
    *,
    bonus_weight: float = 1.0,
    penalty_weight: float = 1.0,
) -> float:
    """Return the mean of what is required, with bonuses on top and penalties off it.

    With the weighted mean of each kind of criterion, this is

        mean(required) + bonus_weight * mean(bonus) - penalty_weight * (1 - mean(penalty))

    where a kind that has no criterion with a weight above 0 adds nothing. A penalty criterion says
    what is wanted as the others do: it costs nothing when its score is the highest of its scale. It
    goes from `-penalty_weight` to `1 + bonus_weight`, by the scores' places on their scales.

    Args:
        rubric: Whose criteria are combined; each is "required", a "bonus" or a "penalty".
        components: A score for each, by criterion id.
        bonus_weight: What bonuses bring at most; finite, not negative.
        penalty_weight: What penalties cost at most, likewise.

    Raises:
        KeyError: A criterion has no score.
        ValueError: A criterion is of another kind, or a weight is unusable.
    """
    for name, weight in (("bonus_weight", bonus_weight), ("penalty_weight", penalty_weight)):
        if not 0 <= weight < math.inf:
            msg = f"{name} must be finite and not negative, got {weight!r}"
            raise ValueError(msg)
    unknown = [
        f"{criterion.id!r} is {criterion.kind!r}"
        for criterion in rubric.criteria
        if criterion.kind not in _KINDS
    ]
    if unknown:
        msg = f"an asymmetric mean takes criteria of the kinds {_KINDS}, but {', '.join(unknown)}"
        raise ValueError(msg)
    required, bonus, penalty = (_of_kind(rubric, kind) for kind in _KINDS)
    shortfalls = [1.0 - place for place in penalty.places(components)]
    return math.fsum(
        (
            _mean(required, required.places(components)),
            bonus_weight * _mean(bonus, bonus.places(components)),
            -penalty_weight * _mean(penalty, shortfalls),
        )
    )


def check_aggregation(aggregate: Aggregator, rubric: Rubric) -> None:
    """Raise what an aggregation will raise for a rubric whatever the scores, before any is made.

    Only the aggregations of this module are tried, as they are or in a `functools.partial`: a custom
    one might take made-up scores amiss.
    """
    if _function(aggregate) in (weighted_mean, weighted_sum, all_pass, asymmetric_mean):
        aggregate(rubric, dict.fromkeys((each.id for each in rubric.criteria), Score(0.0)))


def bind(aggregate: Aggregator, rubric: Rubric) -> Callable[[Mapping[str, Score]], float]:
    """Return an aggregation for one rubric, which was checked; faster than asking for it each time."""
    if aggregate is weighted_mean:
        return columns_of(rubric).mean
    return partial(aggregate, rubric)


def check_exclusion(aggregate: Aggregator) -> None:
    """Refuse an aggregation for which leaving a criterion out would be grading it.

    Raises:
        ValueError: It is such a one.
    """
    function = _function(aggregate)
    if function in (weighted_sum, all_pass):
        effect = (
            "add nothing to it, as if it had the score 0" if function is weighted_sum else "pass"
        )
        msg = (
            f"on_error='record' leaves a failed criterion out, which {function.__name__} cannot do: "
            f"the criterion would {effect}; use a mean, or on_error='raise'"
        )
        raise ValueError(msg)


def is_enough(aggregate: Aggregator, rubric: Rubric, rest: Rubric) -> bool:
    """Tell whether what is left of a rubric without failed criteria can stand for all of it.

    A mean must have something left to be taken of, and so must each part of an asymmetric mean: the
    bonuses would be 0 without, and the penalties all avoided.
    """
    function = _function(aggregate)
    if function is weighted_mean:
        return columns_of(rest).total > 0
    if function is asymmetric_mean:
        return all(
            _of_kind(rest, kind).total > 0 for kind in _KINDS if _of_kind(rubric, kind).total > 0
        )
    return True


def _function(aggregate: Aggregator) -> Callable[..., float]:
    return aggregate.func if isinstance(aggregate, partial) else aggregate


def _of_kind(rubric: Rubric, kind: str) -> Columns:
    return Columns([criterion for criterion in rubric.criteria if criterion.kind == kind])


def _mean(columns: Columns, places: Sequence[float]) -> float:
    """Divide the weighted sum by the weights'; without weight the mean is 0."""
    return columns.sum(places) / columns.total if columns.total else 0.0
