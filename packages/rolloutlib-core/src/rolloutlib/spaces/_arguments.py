"""Checks of the arguments that spaces are made of."""

from __future__ import annotations

import operator
from typing import TypeVar

T = TypeVar("T")


def checked_kind(name: str, value: T, kind: type[T]) -> T:
    """Return a value that is of a class, and refuse any other."""
    if not isinstance(value, kind):
        msg = f"{name} must be a {kind.__name__}, got {value!r}"
        raise TypeError(msg)
    return value


def checked_lengths(
    min_length: int, max_length: int | None, sample_max_length: int, *, default: int
) -> tuple[int, int | None, int]:
    """Check the bounds of a length, and fit the samples' bound, if it is the default, to them."""
    least = _length("min_length", min_length)
    greatest = None if max_length is None else _length("max_length", max_length)
    sampled = _length("sample_max_length", sample_max_length)
    if greatest is not None and greatest < least:
        msg = f"max_length must be at least min_length, got {greatest} and {least}"
        raise ValueError(msg)
    if sampled < least:
        if sampled != default:
            msg = f"sample_max_length must be at least min_length, got {sampled} and {least}"
            raise ValueError(msg)
        sampled = least
    return least, greatest, sampled if greatest is None else min(sampled, greatest)


def length_problem(length: int, min_length: int, max_length: int | None, things: str) -> str | None:
    """Say what is wrong with a length, if anything is."""
    if length < min_length:
        return f"expected at least {min_length} {things}, got {length}"
    if max_length is not None and length > max_length:
        return f"expected at most {max_length} {things}, got {length}"
    return None


def _length(name: str, value: int) -> int:
    try:
        length = operator.index(value)
    except TypeError:
        msg = f"{name} must be an integer, got {value!r}"
        raise TypeError(msg) from None
    if length < 0:
        msg = f"{name} must not be negative, got {length}"
        raise ValueError(msg)
    return length
