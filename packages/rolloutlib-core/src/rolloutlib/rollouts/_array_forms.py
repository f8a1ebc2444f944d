"""NumPy arrays as text and numbers that JSON can hold."""

from __future__ import annotations

import binascii
import math
from collections.abc import Sequence
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray


def to_base64(data: Any) -> str:
    """Return the bytes of a buffer as text (RFC 4648, section 4)."""
    return binascii.b2a_base64(data, newline=False).decode("ascii")


def from_base64(text: str) -> bytearray:
    """Return the bytes that a text stands for, in memory that an array may write to.

    Raises:
        ValueError: It is not such a text.
    """
    return bytearray(binascii.a2b_base64(text, strict_mode=True))


def load_array(text: str, dtype: Any, shape: Sequence[int]) -> NDArray[Any]:
    """Return the array that bytes as text, a type and a shape stand for.

    Raises:
        ValueError: They do not fit together, or the type is none whose elements bytes can be.
    """
    buffer, kind = from_base64(text), read_dtype(dtype)
    fits = min(shape, default=0) >= 0 and len(buffer) == kind.itemsize * math.prod(shape)
    if kind.hasobject or not fits:
        msg = f"{len(buffer)} bytes are no array of the shape {shape!r} and type {kind!r}"
        raise ValueError(msg)
    return np.ndarray(shape, kind, buffer)


def describe_dtype(dtype: np.dtype[Any]) -> Any:
    """Describe a type of elements as NumPy's files do: by a text, or a list of fields.

    Returns:
        The description, or None of a type that has none: one of another library, or fields that
        hold objects or overlap, or are attributes too.
    """
    if (dtype.hasobject and dtype.kind != "O") or dtype.type is np.record:
        return None
    try:
        description = np.lib.format.dtype_to_descr(dtype) if dtype.names else dtype.str
    except ValueError:  # fields that overlap, or are in another order than in memory
        return None
    return _lists(description) if read_dtype(description) == dtype else None


def read_dtype(description: Any) -> np.dtype[Any]:
    """Return the type of elements that `describe_dtype` described."""
    if isinstance(description, list):
        return np.lib.format.descr_to_dtype(_fields(cast("list[Any]", description)))
    return np.dtype(description)


def _lists(description: Any) -> Any:
    """Make a description of fields such as JSON reads it."""
    if isinstance(description, (list, tuple)):
        return [_lists(part) for part in cast("Sequence[Any]", description)]
    return description


def _fields(description: Sequence[Any]) -> list[Any]:
    """Make a description of fields from its JSON, which has no tuples."""
    return [
        (_tuple(name), _tuple(kind), *[tuple(size) for size in shape])
        for name, kind, *shape in description
    ]


def _tuple(value: Any) -> Any:
    """Read a name, which may be two, or a type, which may be fields of its own."""
    if not isinstance(value, (list, tuple)):
        return value
    items = cast("Sequence[Any]", value)
    return tuple(items) if all(isinstance(item, str) for item in items) else _fields(items)
