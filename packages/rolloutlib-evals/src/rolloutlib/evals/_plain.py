"""Items and values as the data that a log can hold."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Iterable, Mapping
from typing import Any, cast

import numpy as np
from pydantic import BaseModel
from pydantic_core import to_json

from rolloutlib.rollouts import UnstorableError
from rolloutlib.rollouts._codec import Encoder

__all__ = ["encode", "fingerprint", "to_plain", "to_text"]


def encode(value: Any) -> Any:
    """Return a pydantic model or a data class as a dictionary of its fields.

    Raises:
        TypeError: The value is neither.
    """
    if isinstance(value, BaseModel):
        return dict(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    msg = f"no form for {value!r}"
    raise TypeError(msg)


def to_plain(value: Any) -> Any:
    """Return an item as data, with models and data classes as dictionaries.

    What cannot be stored, such as an open file, becomes None: an item may hold more than data.
    """
    if value is None or type(value) in (bool, int, float, str):
        return value
    if isinstance(value, Mapping):
        pairs = cast("Mapping[Any, Any]", value).items()
        return {key: to_plain(item) for key, item in pairs}
    if isinstance(value, (list, tuple)):
        items = [to_plain(item) for item in cast("Iterable[Any]", value)]
        return items if isinstance(value, list) else tuple(items)
    try:
        return to_plain(encode(value))
    except TypeError:
        pass
    try:
        Encoder().write(value)
    except UnstorableError:
        return None
    return value


def fingerprint(ids: Iterable[str], items: Iterable[Any]) -> str:
    """Return a text that tells a data set by the ids and the plain contents of its items."""
    digest = hashlib.sha256()
    encoder = Encoder()
    for item_id, item in zip(ids, items, strict=True):
        digest.update(to_json(encoder.write([item_id, item])))
        digest.update(b"\n")
    return f"sha256:{digest.hexdigest()}"


def to_text(value: Any, *, indent: int | None = None) -> str:
    """Return a text as it is, and other data as JSON, or by its `repr` where JSON cannot hold it.

    Arrays are lists, and their numbers are numbers.
    """
    if isinstance(value, str):
        return value
    try:
        return to_json(value, indent=indent, fallback=_told, inf_nan_mode="constants").decode()
    except ValueError:  # bytes, or a text with lone surrogates
        return repr(value)


def _told(value: object) -> object:
    if isinstance(value, (np.ndarray, np.generic)):
        return cast("Any", value).tolist()
    return repr(value)
