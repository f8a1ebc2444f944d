"""Reading plain Python values out of what environments, policies and graders return."""

from __future__ import annotations

import copy
import math
from decimal import Decimal
from fractions import Fraction
from typing import Any, TypeVar, cast

import numpy as np

T = TypeVar("T")


def to_float(value: object, name: str, owner: object = None) -> float:
    """Return a finite real number as a Python float.

    Args:
        value: A number: int, float, bool, Decimal, Fraction, or an array or tensor that holds
            exactly one element (NumPy, PyTorch and JAX scalars included).
        name: What the value is, for the error message.
        owner: Whose it is, if the message is to say so. Its text may be long to make, so it is made
            for a message alone.

    Raises:
        TypeError: The value is not a real number.
        ValueError: It is NaN or infinite, or too large for a float.
    """
    plain = value if type(value) is float else _real(value)
    if plain is not None and math.isfinite(plain):
        return plain
    place = name if owner is None else f"{name} of {owner}"
    if plain is None:
        msg = f"{place} must be a real number, got {value!r} of type {type(value).__name__}"
        raise TypeError(msg)
    msg = f"{place} must be finite, got {value!r}"
    raise ValueError(msg)


def to_bool(value: object, name: str) -> bool:
    """Return a flag as a Python bool.

    Args:
        value: A bool, the integer 0 or 1, or an array or tensor that holds exactly one of these.
        name: What the value is, for the error message.

    Raises:
        TypeError: The value is neither.
    """
    if type(value) is bool:
        return value
    plain = _element(value)
    if isinstance(plain, (bool, int)) and plain in (0, 1):
        return bool(plain)
    msg = f"{name} must be a bool, got {value!r}"
    raise TypeError(msg)


def is_flag(value: object) -> bool:
    """Tell whether a value is a bool, or an array or tensor that holds exactly one."""
    return isinstance(_element(value), bool)


def to_unicode(text: str) -> str:
    """Return text that UTF-8 can hold: half of a character becomes a replacement character."""
    if text.isascii():
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def snapshot(value: T) -> T:
    """Return a copy of a value that later changes to the original do not reach.

    Immutable scalars, NumPy's too, are returned as they are. An object that refuses to be copied (a
    lock, an open connection) is returned as it is too: a record then refers to it.
    """
    if type(value) in _ATOMS:  # most of what is copied: not even a call
        return value
    try:
        return cast("T", _copy(value))
    except RecursionError:  # a container that holds itself; deepcopy follows such cycles
        return copy.deepcopy(value)


def same(left: object, right: object) -> bool:
    """Tell whether two values are equal in contents; never ambiguous, as NumPy's `==` is.

    Arrays are the same if their dtypes, shapes and elements are. NaN is the same as NaN.
    """
    if left is right:
        return True
    if isinstance(left, np.ndarray) or isinstance(right, np.ndarray):
        return _same_arrays(cast("Any", left), cast("Any", right))
    if isinstance(left, dict) and isinstance(right, dict):
        one, two = cast("dict[Any, Any]", left), cast("dict[Any, Any]", right)
        return one.keys() == two.keys() and all(same(one[key], two[key]) for key in one)
    if (isinstance(left, list) and isinstance(right, list)) or (
        isinstance(left, tuple) and isinstance(right, tuple)
    ):
        one, two = cast("list[Any]", left), cast("list[Any]", right)
        return len(one) == len(two) and all(map(same, one, two))
    return bool(left == right) or (left != left and right != right)


def _same_arrays(left: Any, right: Any) -> bool:
    if type(left) is not type(right) or left.dtype != right.dtype or left.shape != right.shape:
        return False
    if left.dtype.hasobject:
        return same(left.tolist(), right.tolist())
    return np.array_equal(left, right, equal_nan=left.dtype.kind in "fc")


def _real(value: object) -> float | None:
    """Return a number as a float, infinite if it is too large, and None for what is no number."""
    plain = _element(value)
    if not isinstance(plain, (int, float, Decimal, Fraction)):
        return None
    try:
        return float(plain)
    except OverflowError:
        return math.inf


def _element(value: object) -> object:
    """Unwrap an array, tensor or NumPy scalar of one element; return anything else unchanged."""
    item: Any = getattr(value, "item", None)
    if item is None:
        return value
    try:
        return item()
    except (TypeError, ValueError, RuntimeError):  # more than one element, or another kind of item
        return value


_ATOMS = frozenset(
    {type(None), bool, int, float, complex, str, bytes, Ellipsis.__class__, range}
    | set(np.sctypeDict.values()) - {np.void, np.object_}  # of a void the fields can be set
)
_are_atoms = _ATOMS.issuperset


def _copy(value: Any) -> Any:
    kind = cast("type[Any]", type(value))
    if kind in _ATOMS:
        return value
    if kind is dict:
        if _are_atoms(map(type, value.values())):
            return value.copy()
        return {key: _copy(item) for key, item in value.items()}
    if kind is list:
        if _are_atoms(map(type, value)):
            return value.copy()
        return [_copy(item) for item in value]
    if kind is tuple:
        if _are_atoms(map(type, value)):
            return value
        return tuple([_copy(item) for item in value])
    if kind is np.ndarray and not value.dtype.hasobject:
        return value.copy()
    try:
        return copy.deepcopy(value)
    except RecursionError:
        raise
    except Exception:  # whatever a user's __deepcopy__ or __reduce__ raises
        return value
