"""Scores grouped by item, as all statistics take them."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from rolloutlib._values import to_float

__all__ = ["Samples", "Scores", "group_scores", "is_missing", "read_scores"]

IdT = TypeVar("IdT", bound=Hashable)

Scores: TypeAlias = Mapping[Any, float | Sequence[float | None] | NDArray[Any] | None]
"""From the id of an item to the scores of its samples: one number, or a sequence with one an epoch.

Items may have different numbers of samples. None and NaN stand for a sample that failed.
"""

Samples: TypeAlias = dict[Any, NDArray[np.float64]]
"""From the id of an item to the scores of its samples, at least one; NaN where a sample failed."""


def group_scores(
    scores: Iterable[float | None], items: Iterable[IdT]
) -> dict[IdT, list[float | None]]:
    """Group the scores of samples by item.

        group_scores([1, 0, None], ["a", "b", "a"]) == {"a": [1, None], "b": [0]}

    Args:
        scores: One score a sample, or None; an array does as well.
        items: The id of each sample's item, in the same order.

    Returns:
        The scores of each item, in the order given; items in the order of their first sample.

    Raises:
        ValueError: There are more of the one than of the other.
    """
    scores, items = list(scores), list(items)
    if len(scores) != len(items):
        msg = f"there must be one item id a score, got {len(scores)} scores and {len(items)} ids"
        raise ValueError(msg)
    grouped: dict[IdT, list[float | None]] = {}
    for score, item in zip(scores, items, strict=True):
        grouped.setdefault(item, []).append(score)
    return grouped


def read_scores(scores: Scores) -> Samples:
    """Check the scores and return them as arrays.

    Raises:
        TypeError: The scores are no mapping, or one is no number.
        ValueError: A score is infinite, or an item has no sample.
    """
    if not isinstance(cast("object", scores), Mapping):
        msg = (
            f"scores must map the id of each item to its scores, got {type(scores).__name__}; "
            "group_scores(scores, items) makes such a mapping of two arrays"
        )
        raise TypeError(msg)
    return {item: _read_item(item, values) for item, values in scores.items()}


def is_missing(value: Any) -> bool:
    """Tell whether a value is None, or NaN of any width, as tables write None."""
    return value is None or (isinstance(value, (float, np.floating)) and bool(value != value))


def _read_item(item: Any, values: object) -> NDArray[np.float64]:
    if isinstance(values, np.ndarray):
        values = cast("object", values.tolist())
    samples: list[object] = [values]
    if isinstance(values, Sequence) and not isinstance(values, (str, bytes, bytearray)):
        samples = list(cast("Sequence[object]", values))
    if not samples:
        msg = f"item {item!r} has no samples; leave it out, or give None for each that failed"
        raise ValueError(msg)
    read = [_read_sample(sample, item, index) for index, sample in enumerate(samples)]
    return np.array(read, dtype=np.float64)


def _read_sample(sample: object, item: Any, index: int) -> float:
    if type(sample) is float and math.isfinite(sample):
        return sample  # most of them: no text is made for a message that nobody reads
    return math.nan if is_missing(sample) else to_float(sample, f"score {index} of item {item!r}")
