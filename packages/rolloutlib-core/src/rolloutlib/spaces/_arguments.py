"""Checks of the arguments that spaces are made of."""

from __future__ import annotations

import operator
from typing import Any, TypeVar, cast

import gymnasium as gym

SpaceT = TypeVar("SpaceT", bound=gym.Space[Any])


def checked_space(name: str, space: SpaceT | None, default: type[SpaceT]) -> SpaceT:
    """Return a space, or one made by default, and refuse what is none."""
    if space is None:
        return default()
    if not isinstance(cast("object", space), gym.Space):
        msg = f"{name} must be a Space, got {space!r}"
        raise TypeError(msg)
    return space


def checked_lengths(
    min_length: int, max_length: int | None, sample_max_length: int, *, default: int
) -> tuple[int, int | None, int]:
    """Check the bounds of a length, and fit the samples' bound, if it is the default, to them."""
    lengths = {"min_length": min_length, "max_length": max_length}
    for name, length in {**lengths, "sample_max_length": sample_max_length}.items():
        if length is None:
            continue
        try:
            operator.index(length)
        except TypeError:
            msg = f"{name} must be an integer, got {length!r}"
            raise TypeError(msg) from None
        if length < 0:
            msg = f"{name} must not be negative, got {length!r}"
            raise ValueError(msg)
    if max_length is not None and max_length < min_length:
        msg = f"max_length must be at least min_length, got {max_length!r} and {min_length!r}"
        raise ValueError(msg)
    if sample_max_length < min_length:
        if sample_max_length != default:
            msg = (
                "sample_max_length must be at least min_length, "
                f"got {sample_max_length!r} and {min_length!r}"
            )
            raise ValueError(msg)
        sample_max_length = min_length
    if max_length is not None:
        sample_max_length = min(sample_max_length, max_length)
    return min_length, max_length, sample_max_length


def length_problem(length: int, min_length: int, max_length: int | None, things: str) -> str | None:
    """Say what is wrong with a length, if anything is."""
    if length < min_length:
        return f"expected at least {min_length} {things}, got {length}"
    if max_length is not None and length > max_length:
        return f"expected at most {max_length} {things}, got {length}"
    return None
