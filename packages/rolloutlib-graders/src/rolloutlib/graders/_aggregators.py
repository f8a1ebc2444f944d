"""Aggregations: from the scores of a rubric's criteria to one number."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from operator import mul
from typing import TypeAlias

from rolloutlib.graders._rubric import Criterion, Rubric
from rolloutlib.scores import Score

Aggregator: TypeAlias = Callable[[Rubric, Mapping[str, Score]], float]
"""Combines the scores of a rubric's criteria, by criterion id, into one number."""

_KINDS = ("required", "bonus", "penalty")


def weighted_mean(rubric: Rubric, components: Mapping[str, Score]) -> float:
    """Return the mean of the criteria's scores by their weights: sum(w * s) / sum(w).

    Args:
        rubric: Whose criteria are combined.
        components: A score for each, by criterion id.

    Raises:
        KeyError: A criterion has no score.
        ValueError: All weights are 0.
    """
    weights, values = _columns(rubric.criteria, components)
    if not any(weights):
        msg = "a weighted mean needs a criterion whose weight is above 0, and all weights are 0"
        raise ValueError(msg)
    return _mean(weights, values)


def weighted_sum(rubric: Rubric, components: Mapping[str, Score]) -> float:
    """Return the sum of the criteria's scores times their weights.

    Args:
        rubric: Whose criteria are combined.
        components: A score for each, by criterion id.

    Raises:
        KeyError: A criterion has no score.
    """
    return _sum(*_columns(rubric.criteria, components))


def all_pass(rubric: Rubric, components: Mapping[str, Score]) -> float:
    """Return 1.0 if every criterion's score is 1 or more, else 0.0; weights do not matter.

    Args:
        rubric: Whose criteria are combined.
        components: A score for each, by criterion id.

    Raises:
        KeyError: A criterion has no score.
    """
    scores = [components[criterion.id] for criterion in rubric.criteria]
    return float(all(score.value >= 1.0 for score in scores))


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
    what is wanted as the others do: it costs nothing when its score is 1.

    Args:
        rubric: Whose criteria are combined; each is "required", a "bonus" or a "penalty".
        components: A score for each, by criterion id.
        bonus_weight: What bonuses bring at most, for scores from 0 to 1; finite, not negative.
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
    required, bonus, penalty = (
        _columns([each for each in rubric.criteria if each.kind == kind], components)
        for kind in _KINDS
    )
    shortfall = _mean(penalty[0], [1.0 - value for value in penalty[1]])
    return math.fsum((_mean(*required), bonus_weight * _mean(*bonus), -penalty_weight * shortfall))


def check_aggregation(aggregate: Aggregator, rubric: Rubric) -> None:
    """Raise what an aggregation will raise for a rubric whatever the scores, before any is made.

    Only the aggregations of this module are tried, as they are or in a `functools.partial`: a custom
    one might take made-up scores amiss.
    """
    function = aggregate.func if isinstance(aggregate, partial) else aggregate
    if function in (weighted_mean, weighted_sum, all_pass, asymmetric_mean):
        aggregate(rubric, dict.fromkeys((each.id for each in rubric.criteria), Score(0.0)))


def _columns(
    criteria: Sequence[Criterion], components: Mapping[str, Score]
) -> tuple[list[float], list[float]]:
    """Return the weights, and the values of the scores."""
    weights: list[float] = []
    values: list[float] = []
    for criterion in criteria:
        weights.append(criterion.weight)
        values.append(components[criterion.id].value)
    return weights, values


def _sum(weights: list[float], values: list[float]) -> float:
    # fsum is exact: the order of the criteria does not show in the last digits.
    return math.fsum(map(mul, weights, values))


def _mean(weights: list[float], values: list[float]) -> float:
    """Divide the weighted sum by the weights'; without weight the mean is 0."""
    total = math.fsum(weights)
    return _sum(weights, values) / total if total else 0.0
