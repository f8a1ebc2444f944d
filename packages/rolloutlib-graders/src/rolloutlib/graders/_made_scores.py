"""Scores of parts that were checked already, made faster than `Score` makes them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, cast

from rolloutlib.scores import Score

_new = object.__new__
_freeze = cast("Callable[[Mapping[str, Score]], Mapping[str, Score]]", type(Score(0.0).components))


def plain_score(value: float) -> Score:
    """Make a score of a finite float, in less than half of the time."""
    score = _new(Score)
    score.__dict__["value"] = value
    return score


def composed_score(
    value: float, components: Mapping[str, Score], metadata: Mapping[str, Any]
) -> Score:
    """Make a score with parts.

    Args:
        value: A finite float.
        components: Scores by name; copied.
        metadata: That of another score, which both share then: nothing in it may be changeable.
    """
    score = _new(Score)
    fields = score.__dict__
    fields["value"] = value
    fields["components"] = _freeze(components)
    fields["metadata"] = metadata
    return score
