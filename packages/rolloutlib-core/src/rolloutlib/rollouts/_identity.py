"""Names and seeds of episodes, the same in every process that asks for the same ones."""

from __future__ import annotations

import dataclasses
import enum
import functools
import hashlib
import json
import uuid
from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from typing import Any, cast

import numpy as np
import pydantic
from numpy.typing import NDArray

SEED_BITS = 31
"""Seeds fit into every generator's: NumPy's, PyTorch's and those of inference servers."""

# Item ids are text, but a UUID or a NumPy integer is let pass for what it says.
_ENCODER = json.JSONEncoder(default=str)


def derive_seed(seed: int, *path: int | str) -> int:
    """Derive a seed from another, and from where it is used.

    The seed of a member's environment is `derive_seed(seed, item_id, member)`, with the seed and the
    item id of its group; that of a further attempt is `derive_seed(seed, item_id, member, attempt)`.
    The seed of a group that `collect` plays is `derive_seed(seed, position)`, with the seed of the
    run and the position of its item. The derivation is the first 31 bits of SHA-256 over the JSON of
    the arguments, so that neighbouring arguments give unrelated seeds, on every machine.

    Args:
        seed: The seed of the run.
        path: What tells the use from all others.

    Returns:
        A seed from 0 to 2**31 - 1.
    """
    # Part by part, since the encoder of texts is much faster than that of lists.
    parts = [str(part) if type(part) is int else _ENCODER.encode(part) for part in (seed, *path)]
    digest = hashlib.sha256(f"[{', '.join(parts)}]".encode()).digest()
    return int.from_bytes(digest[:4], "big") >> (32 - SEED_BITS)


def member_seed(seed: int, item_id: str, member: int, attempt: int) -> int:
    """Return the seed of an attempt at a member of a group, from the seed of the group."""
    path = (item_id, member, attempt) if attempt else (item_id, member)
    return derive_seed(seed, *path)


def content_id(item: object, make_env: Callable[..., object]) -> str:
    """Return a name for an item as a certain factory uses it: equal items, equal names.

    Built from the item's contents, the factory's own name. An item whose contents cannot be told
    (an open file, say) gets a name that no other has.
    """
    try:
        text = json.dumps([_factory(make_env), _contents(item)], sort_keys=True)
    except Exception:  # whatever the item does that is looked at
        return uuid.uuid4().hex[:16]
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def describe_function(function: Callable[..., object]) -> str:
    """Return a text that tells a function of an item or a group from others, in every process."""
    return json.dumps(_factory(function))


def same_contents(one: object, other: object) -> bool:
    """Tell whether two items are equal, as far as their contents can be told."""
    try:
        return _text(one) == _text(other)
    except Exception:  # whatever an item does that is looked at
        return True


def _factory(function: Callable[..., object]) -> Any:
    """Describe a factory by its name, the names that it uses, and the arguments of a partial.

    Not by what may change from call to call: variables around a function, an object's attributes.
    """
    if isinstance(function, functools.partial):
        bound = cast("functools.partial[object]", function)
        return [_factory(bound.func), _setting(bound.args), _setting(bound.keywords)]
    owner = getattr(function, "__self__", None)
    code = getattr(function, "__code__", None)
    names = () if code is None else (*code.co_names, *code.co_freevars)
    return [_name(function), names, None if owner is None else _name(owner)]


def _name(value: Any) -> str:
    """Name a function or a class by its module too, and anything else by its class."""
    named = value if hasattr(value, "__qualname__") else cast("Any", type(value))
    if named.__module__ in ("__main__", "__mp_main__"):  # the same file in another process
        return named.__qualname__
    return f"{named.__module__}.{named.__qualname__}"


def _setting(value: Any) -> Any:
    """Describe an argument by its contents if it is a value, else by the name of its class."""
    if isinstance(value, Mapping):
        pairs = cast("Mapping[Any, Any]", value).items()
        return sorted([str(key), _setting(item)] for key, item in pairs)
    if isinstance(value, (list, tuple)):
        return [_setting(item) for item in cast("list[Any]", value)]
    if type(value).__repr__ is object.__repr__:  # an object with a life of its own: a client, say
        return _name(value)
    try:
        return _contents(value)
    except (TypeError, ValueError, RecursionError):
        return _name(value)


def _contents(value: Any) -> Any:
    """Return a value as JSON can hold it, different for different contents."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, (list, tuple)):
        return [_contents(item) for item in cast("list[Any]", value)]
    if isinstance(value, Mapping):
        pairs = cast("Mapping[Any, Any]", value).items()
        return {"mapping": sorted([_text(key), _contents(item)] for key, item in pairs)}
    if isinstance(value, AbstractSet):
        return {"set": sorted(_text(item) for item in cast("AbstractSet[Any]", value))}
    if isinstance(value, (bytes, bytearray)):
        return {"bytes": value.hex()}
    if isinstance(value, np.ndarray):
        array = cast("NDArray[Any]", value)
        data = _contents(array.tolist()) if array.dtype.hasobject else array.tobytes().hex()
        return {"array": [str(array.dtype), list(array.shape), data]}
    if isinstance(value, np.generic):
        return _contents(value.item())
    return {type(value).__qualname__: _contents(_state(value))}


def _text(value: Any) -> str:
    return json.dumps(_contents(value), sort_keys=True)


def _state(value: Any) -> Any:
    if isinstance(value, enum.Enum):
        return value.name
    if isinstance(value, pydantic.BaseModel):
        return dict(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    if callable(value) and hasattr(value, "__qualname__"):
        return value.__qualname__
    text = repr(value)
    if " at 0x" not in text:
        return text
    if getattr(value, "__dict__", None):
        return vars(value)
    msg = f"the contents of {text} cannot be told"
    raise TypeError(msg)
