"""Items and values as the data that a log can hold."""

from __future__ import annotations

import dataclasses
import enum
import hashlib
import sys
from collections.abc import Callable, Hashable, Iterable, Mapping
from pathlib import PurePath
from typing import Any, cast

import numpy as np
from pydantic import BaseModel
from pydantic_core import to_json

from rolloutlib.rollouts import UnstorableError
from rolloutlib.rollouts._codec import MAX_DEPTH, Encoder

__all__ = ["decode", "encode", "fingerprint", "to_plain", "to_text"]

_SCALARS = frozenset({type(None), bool, int, float, str})
_MAPPINGS = (dict, Mapping)  # of a dictionary this is known sooner than by the abstract class alone
_MAX_DEPTH = MAX_DEPTH - 8  # an item is stored in other values


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


def decode(name: str, value: Any) -> Any:
    """Make a model or a data class again from its fields, as they were: nothing is checked or run.

    A class that no loaded module has, or that has other fields by now, leaves the dictionary.
    """
    kind = _loaded(name)
    if issubclass(kind, BaseModel):
        return kind.model_construct(**value)
    if dataclasses.is_dataclass(kind) and {f.name for f in dataclasses.fields(kind)} == set(value):
        made = object.__new__(kind)
        for field, content in value.items():
            object.__setattr__(made, field, content)
        return made
    return value


def to_plain(value: Any) -> Any:
    """Return an item as data, with models and data classes as dictionaries.

    Members of enumerations become their values, paths text, and other kinds of text and numbers plain
    ones. What cannot be stored, such as an open file or a list in itself, becomes None: an item may
    hold more than data.
    """
    return _plain(value, ())


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


def _plain(value: Any, holders: tuple[int, ...]) -> Any:
    """Return a value as data.

    Args:
        value: The value.
        holders: The identities of what it is in.
    """
    if type(value) in _SCALARS:
        return value
    if len(holders) == _MAX_DEPTH or id(value) in holders:
        return None
    within = (*holders, id(value))
    if isinstance(value, _MAPPINGS):
        pairs = cast("Mapping[Any, Any]", value).items()
        return {
            key if type(key) is str else _key(key): (
                item if type(item) in _SCALARS else _plain(item, within)
            )
            for key, item in pairs
        }
    if isinstance(value, (list, tuple)):
        items = [_plain(item, within) for item in cast("Iterable[Any]", value)]
        return items if isinstance(value, list) else tuple(items)
    try:
        return _plain(encode(value), within)
    except TypeError:
        pass
    try:
        Encoder().write(value)
    except UnstorableError:
        return _simpler(value, within)
    return value


def _key(key: Any) -> Any:
    """Return a key of a mapping as data that can be one."""
    plain = to_plain(key)
    return (
        plain if isinstance(plain, Hashable) and (plain is not None or key is None) else repr(key)
    )


def _simpler(value: Any, within: tuple[int, ...]) -> Any:
    """Return what a value says that cannot be stored as it is, or None."""
    if isinstance(value, enum.Enum):
        return _plain(value.value, within)
    if isinstance(value, PurePath):
        return str(value)
    plain_kinds: tuple[Callable[[Any], Any], ...] = (str, int, float, bytes)
    for kind in plain_kinds:
        if isinstance(value, cast("type[Any]", kind)):
            return kind(value)
    return None


def _loaded(name: str) -> type[Any]:
    """Return the class of a name, with its module, if the module is loaded; else `object`."""
    for parts in range(name.count(".") + 1):
        owner, *path = name.rsplit(".", parts)
        found: Any = sys.modules.get(owner)
        for part in path:
            found = getattr(found, part, None)
        if isinstance(found, type):
            return cast("type[Any]", found)
    return object


def _told(value: object) -> object:
    if isinstance(value, (np.ndarray, np.generic)):
        return cast("Any", value).tolist()
    return repr(value)
