"""Values of any kind in the types that JSON has, and back without loss.

Text, booleans, None, finite floats, integers of 64 bits, lists and dictionaries with keys of text
stand for themselves. Everything else becomes a dictionary with the key "$", which tells its kind. The
same value gives the same form, in every process.
"""

from __future__ import annotations

import binascii
import datetime
import math
import uuid
from collections.abc import Callable, Mapping
from decimal import Decimal
from fractions import Fraction
from typing import Any, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from rolloutlib.rollouts._array_forms import describe_dtype, from_base64, load_array, to_base64
from rolloutlib.scores import Score

Encode: TypeAlias = Callable[[Any], Any]
"""Turns a value of a user's type into one that can be stored; raises `TypeError` for any other."""

Decode: TypeAlias = Callable[[str, Any], Any]
"""Takes the name of a user's type and what `Encode` returned for a value of it; returns the value."""

MAX_DEPTH = 64
"""How many containers may lie in each other. Parsers of JSON have limits, pydantic's is 200."""


class UnstorableError(TypeError):
    """Raised for a value that cannot be stored.

    Attributes:
        reason: What is wrong with it.
        path: Where it stands, the outermost part last.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason
        self.path: list[str] = []

    def __str__(self) -> str:
        return f"{''.join(reversed(self.path)).removeprefix('.') or 'the value'} {self.reason}"


class Encoder:
    """Writes values.

    Args:
        encode: For values of types that this module does not know.
    """

    def __init__(self, encode: Encode | None = None) -> None:
        self.encode = encode

    def write(self, value: Any) -> Any:
        """Return the form of a value.

        Raises:
            UnstorableError: It or something in it cannot be stored.
        """
        return self._write(value, 0)

    def _write(self, value: Any, depth: int) -> Any:
        kind = cast("type[Any]", type(value))
        if kind is str:
            return value if is_unicode(value) else _text(value)
        if value is None or kind is bool:
            return value
        if kind is int:
            return value if -(2**63) <= value < 2**63 else _written(kind, value)
        if kind is float:
            return value if math.isfinite(value) else _written(kind, value)
        if depth == MAX_DEPTH:
            msg = f"is nested more than {MAX_DEPTH} levels deep, or holds itself"
            raise UnstorableError(msg)
        if kind is dict:
            return self._dict(value, depth + 1)
        if kind is list:
            return self._items(value, depth + 1)
        if kind in _COLLECTIONS:
            items = self._items(value, depth + 1)
            if kind is not tuple:  # an order that does not depend on hashes
                items.sort(key=repr)
            return {"$": kind.__name__, "items": items}
        if kind in _TEXTS:
            return _written(kind, value)
        if kind in (bytes, bytearray):
            return {"$": kind.__name__, "base64": to_base64(value)}
        if kind is np.ndarray:
            return self._array(value, depth + 1)
        if kind is Score:
            return {"$": "Score", "value": self._write(value.to_dict(), depth + 1)}
        if kind.__module__ == "numpy" and isinstance(value, np.generic):
            return self._scalar(cast("Any", value), depth + 1)
        return self._foreign(value, depth + 1)

    def _items(self, values: Any, depth: int) -> list[Any]:
        items: list[Any] = []
        try:
            for value in values:
                items.append(self._write(value, depth))  # noqa: PERF401 - its length tells the place
        except UnstorableError as error:
            error.path.append(f"[{len(items)}]")
            raise
        return items

    def _dict(self, value: dict[Any, Any], depth: int) -> dict[str, Any]:
        plain: dict[str, Any] = {}
        key = None
        try:
            for key, item in value.items():
                if type(key) is not str or key == "$" or not (key.isascii() or is_unicode(key)):
                    break
                is_ascii = type(item) is str and item.isascii()  # most are: not even a call
                plain[key] = item if is_ascii else self._write(item, depth)
            else:
                return plain
            keys = self._items(value, depth)
            written: dict[Any, Any] = {}
            for key, item in value.items():
                written[key] = self._write(item, depth)
        except UnstorableError as error:
            error.path.append(f"[{key!r}]")
            raise
        return {"$": "dict", "keys": keys, "values": list(written.values())}

    def _array(self, array: NDArray[Any], depth: int) -> dict[str, Any]:
        form: dict[str, Any] = {"$": "array", **_description(array)}
        if array.dtype.hasobject:
            form["items"] = self._items(array.ravel().tolist(), depth)
        else:
            form["base64"] = to_base64(array.tobytes())
        return form

    def _scalar(self, scalar: np.generic, depth: int) -> dict[str, Any]:
        if isinstance(scalar, (np.str_, np.bytes_)):  # whose arrays drop NULs at the end
            plain = scalar[:] if isinstance(scalar, np.str_) else bytes(scalar)
            return {"$": type(scalar).__name__, "value": self._write(plain, depth)}
        array = np.asarray(scalar)
        dtype = _description(array)["dtype"]
        return {"$": "scalar", "dtype": dtype, "base64": to_base64(array.tobytes())}

    def _foreign(self, value: Any, depth: int) -> dict[str, Any]:
        kind = cast("type[Any]", type(value))
        name = f"{kind.__module__}.{kind.__qualname__}"
        msg = (
            f"is of type {name}, which cannot be stored: {_short(value)}; "
            "give `encode` and `decode` functions for it"
        )
        if self.encode is None:
            raise UnstorableError(msg)
        try:
            plain = self.encode(value)
        except TypeError as error:
            raise UnstorableError(f"{msg} that know it ({error})") from error
        return {"$": "object", "type": name, "value": self._write(plain, depth)}


class Decoder:
    """Reads what an `Encoder` wrote.

    Args:
        decode: For values of types that this module does not know.
    """

    def __init__(self, decode: Decode | None = None) -> None:
        self.decode = decode

    def read(self, form: Any) -> Any:
        """Return the value of a form.

        Raises:
            ValueError: It is not such a form, or holds a value of a user's type, and there is no
                function that reads it.
        """
        kind = cast("type[Any]", type(form))
        if kind is list:
            return [self.read(item) for item in form]
        if kind is dict:
            if "$" not in form:
                return {key: self.read(item) for key, item in form.items()}
            try:
                return self._tagged(form)
            except _NO_FORM as error:
                msg = f"not the form of a value: {_short(form)} ({error!r})"
                raise ValueError(msg) from error
        return form

    def _tagged(self, form: dict[str, Any]) -> Any:
        tag = form["$"]
        if tag in _READ_TEXT:
            return _READ_TEXT[tag](form["text"])
        if tag in _READ_ITEMS:
            return _READ_ITEMS[tag](self.read(form["items"]))
        match tag:
            case "dict":
                keys, values = self.read(form["keys"]), self.read(form["values"])
                return dict(zip(keys, values, strict=True))
            case "array":
                return self._array(form)
            case "scalar":
                return load_array(form["base64"], form["dtype"], [])[()]
            case "str":
                return from_base64(form["base64"]).decode("utf-8", "surrogatepass")
            case "bytes":
                return bytes(from_base64(form["base64"]))
            case "bytearray":
                return from_base64(form["base64"])
            case "str_":
                return np.str_(self.read(form["value"]))
            case "bytes_":
                return np.bytes_(self.read(form["value"]))
            case "Score":
                return Score.from_dict(self.read(form["value"]))
            case "object":
                return self._foreign(form["type"], form["value"])
            case _:
                msg = f"a value of the unknown kind {tag!r}: a newer version may have written it"
                raise ValueError(msg)

    def _array(self, form: dict[str, Any]) -> NDArray[Any]:
        if "base64" in form:
            return load_array(form["base64"], form["dtype"], form["shape"])
        array = np.empty(len(form["items"]), object)
        for index, item in enumerate(form["items"]):
            array[index] = self.read(item)
        return cast("NDArray[Any]", array.reshape(form["shape"]))

    def _foreign(self, name: str, form: Any) -> Any:
        value = self.read(form)
        if self.decode is None:
            msg = f"a value of type {name} needs a function `decode` that makes it: {_short(value)}"
            raise ValueError(msg)
        return self.decode(name, value)


# What damaged forms raise beside a `ValueError`: `Decimal` of a text, say, or `dtype`.
_NO_FORM = (LookupError, TypeError, AttributeError, ArithmeticError, SyntaxError, binascii.Error)
_Text: TypeAlias = tuple[Callable[[Any], str], Callable[[str], Any]]
_TEXTS: Mapping[type[Any], _Text] = {
    int: (hex, lambda text: int(text, 16)),  # Python limits the number of decimal digits
    float: (repr, float),
    complex: (repr, complex),
    Decimal: (str, Decimal),
    Fraction: (str, Fraction),
    uuid.UUID: (str, uuid.UUID),
    datetime.date: (datetime.date.isoformat, datetime.date.fromisoformat),
    datetime.datetime: (datetime.datetime.isoformat, datetime.datetime.fromisoformat),
    datetime.time: (datetime.time.isoformat, datetime.time.fromisoformat),
}
_TIMES = frozenset({datetime.datetime, datetime.time})
_READ_TEXT: Mapping[str, Callable[[str], Any]] = {
    kind.__name__: read for kind, (_, read) in _TEXTS.items()
}
_COLLECTIONS = frozenset({tuple, set, frozenset})
_READ_ITEMS: Mapping[str, Callable[[Any], Any]] = {kind.__name__: kind for kind in _COLLECTIONS}


def _written(kind: type[Any], value: Any) -> dict[str, Any]:
    write, read = _TEXTS[kind]
    text = write(value)
    if kind in _TIMES and repr(read(text)) != repr(value):  # a time zone with a name, say
        msg = f"is {_short(value)}, which cannot be stored without loss"
        raise UnstorableError(msg)
    return {"$": kind.__name__, "text": text}


def is_unicode(text: str) -> bool:
    """Tell whether a text is without lone surrogates, which JSON in UTF-8 cannot hold."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _text(text: str) -> dict[str, Any]:
    return {"$": "str", "base64": to_base64(text.encode("utf-8", "surrogatepass"))}


def _description(array: NDArray[Any]) -> dict[str, Any]:
    if (dtype := describe_dtype(array.dtype)) is None:
        raise UnstorableError(f"is an array of the type {array.dtype!r}, which cannot be stored")
    return {"dtype": dtype, "shape": list(array.shape)}


def _short(value: object) -> str:
    try:
        text = repr(value)
    except Exception as error:  # whatever a user's class raises
        return f"<its text raises {type(error).__qualname__}>"
    return text if len(text) <= 200 else f"{text[:200]}..."
