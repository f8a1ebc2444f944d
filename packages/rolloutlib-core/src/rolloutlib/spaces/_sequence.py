"""Sequences of which lists and tuples are members alike."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, cast

import gymnasium as gym
import numpy as np

from rolloutlib.spaces._seeding import seed_each, state_with_stream


class SequenceSpace(gym.spaces.Sequence):
    """Gymnasium's sequence, of which lists are members too; no value makes `contains` raise."""

    def __init__(
        self, space: gym.Space[Any], *, stack: bool = False, seed: int | None = None
    ) -> None:
        super().__init__(space, seed=seed, stack=stack)
        if isinstance(cast("object", seed), np.random.Generator):
            seed_each(self.np_random, [space])

    def contains(self, x: Any) -> bool:
        """Tell whether a value is a list or tuple of members of the feature space."""
        try:
            return isinstance(x, (list, tuple)) and all(
                map(self.feature_space.contains, cast("list[Any]", x))
            )
        except Exception:  # whatever a value does that is looked at
            return False

    def to_jsonable(self, sample_n: Iterable[Any]) -> list[list[Any]]:
        """Return sequences as JSON can hold them."""
        return [cast("list[Any]", self.feature_space.to_jsonable(sample)) for sample in sample_n]

    def from_jsonable(self, sample_n: list[list[Any]]) -> list[Any]:
        """Return the sequences that `to_jsonable` was given, as tuples."""
        return [tuple(self.feature_space.from_jsonable(sample)) for sample in sample_n]

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and bool(super().__eq__(other))

    def __getstate__(self) -> dict[str, Any]:
        return state_with_stream(self)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.feature_space}, stack={self.stack})"
