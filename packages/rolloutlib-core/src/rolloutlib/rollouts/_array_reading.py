"""Numbers as NumPy arrays, from whatever holds them: lists, arrays, tensors of any library."""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from typing import Any, Protocol, TypeAlias, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

NumberT = TypeVar("NumberT", int, float)


class SupportsArray(Protocol):
    """A NumPy array, a tensor, or what else turns itself into an array."""

    def __array__(self) -> NDArray[Any]: ...


Numbers: TypeAlias = Iterable[NumberT] | SupportsArray
"""What is taken for numbers."""


def read_array(values: object, name: str, what: str, *, kinds: str) -> NDArray[Any]:
    """Return an array of some kinds of numbers, in one dimension; an empty one is of any kind.

    Raises:
        TypeError: It is none.
    """
    try:
        numbers = to_array(cast("Any", values))
    except (TypeError, ValueError, RuntimeError) as error:  # ragged; a tensor without data
        msg = f"{name} must be {what} that NumPy can read: {error}"
        raise TypeError(msg) from error
    if numbers.ndim != 1 or (numbers.dtype.kind not in kinds and numbers.size):
        form = f"{numbers.dtype} of shape {numbers.shape}"
        msg = f"{name} must be {what} in one dimension, got {form}"
        raise TypeError(msg)
    return numbers


def to_float32(numbers: NDArray[Any]) -> NDArray[np.float32]:
    """Return numbers as float32, a copy, infinite where they are too large for it."""
    with np.errstate(over="ignore"):
        return numbers.astype(np.float32)


def to_array(values: Any) -> NDArray[Any]:
    """Return numbers as an array, not a copy if they are one.

    Raises:
        TypeError: They are none.
        ValueError: They differ in length.
        RuntimeError: They are a tensor that has none.
    """
    try:
        return np.asarray(values)
    except (TypeError, RuntimeError):
        # A tensor of a type that NumPy has not, such as bfloat16, or one with a gradient: its numbers
        # are to be had all the same.
        if not hasattr(values, "tolist"):
            raise
        try:
            numbers: Any = values.tolist()
        except (TypeError, RuntimeError):  # one without data
            numbers = None
        if not isinstance(numbers, list):
            raise
        return np.asarray(cast("list[Any]", numbers))


def is_array(values: object) -> bool:
    """Tell NumPy arrays, `array.array` and tensors from lists and other iterables."""
    return isinstance(values, (np.ndarray, array)) or hasattr(values, "__array__")
