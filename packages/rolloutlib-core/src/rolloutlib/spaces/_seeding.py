"""Seeding the spaces that a space is made of, and keeping streams of samples in copies."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, cast

import gymnasium as gym
import numpy as np


def seed_each(generator: np.random.Generator, spaces: Iterable[gym.Space[Any]]) -> list[int]:
    """Seed each of the spaces from a generator, and return all the seeds that they tell."""
    limit = np.iinfo(np.int32).max
    return [seed for space in spaces for seed in _flat(space.seed(int(generator.integers(limit))))]


def state_with_stream(space: gym.Space[Any]) -> dict[str, Any]:
    """Return what a copy of a space is made from: one that draws the samples which come next.

    Gymnasium makes a generator when the first sample is drawn. Copies taken before that would each
    make their own, so it is made now.
    """
    _ = space.np_random
    return space.__dict__.copy()


def _flat(seeds: Any) -> list[int]:
    """List the seeds that Gymnasium's composite spaces return as tuples and dictionaries."""
    if isinstance(seeds, Mapping):
        return _flat(list(cast("Mapping[Any, Any]", seeds).values()))
    if isinstance(seeds, (list, tuple)):
        return [seed for item in cast("list[Any]", seeds) for seed in _flat(item)]
    return [int(seeds)]
