"""What a tool returns, as the content of a message."""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from typing import Any, cast

import pydantic_core

from rolloutlib._values import to_unicode
from rolloutlib.spaces._shapes import is_text, message_problem
from rolloutlib.tools._arguments import cropped
from rolloutlib.types import ContentPart


def to_content(result: Any) -> str | list[ContentPart]:
    """Return the content of the message that shows a result to a model.

    Text stands for itself. Images (whatever has a method `_repr_png_`, as those of Pillow do) and
    dictionaries of the form of `rolloutlib.types.ContentPart` become parts of the message, as do
    lists that have one of them, with text between them. Anything else is shown as JSON, the way
    pydantic writes it: None as `null`, models and data classes by their fields, arrays as lists.

    Raises:
        TypeError: Pydantic cannot write a value as JSON.
    """
    if isinstance(result, str):
        return to_unicode(result)
    many = cast("Sequence[Any]", result if isinstance(result, (list, tuple)) else [result])
    parts = [_part(one) for one in many]
    if not any(parts):
        return _json(result)
    return [
        part or {"type": "text", "text": to_unicode(one) if isinstance(one, str) else _json(one)}
        for part, one in zip(parts, many, strict=True)
    ]


def _part(value: Any) -> ContentPart | None:
    if isinstance(value, dict):
        part = cast("ContentPart", value)
        is_part = message_problem({"role": "tool", "content": [part]}, ("tool",), is_text) is None
        return cast("ContentPart", dict(part)) if is_part else None
    make_png = getattr(value, "_repr_png_", None)
    png = make_png() if callable(make_png) else None
    if not isinstance(png, bytes):
        return None
    return {"type": "image", "url": f"data:image/png;base64,{base64.b64encode(png).decode()}"}


def _json(value: Any) -> str:
    try:
        plain = pydantic_core.to_jsonable_python(value, fallback=_plain, bytes_mode="base64")
    except ValueError as error:
        msg = f"{cropped(value)} of type {type(value).__name__} cannot be shown to a model: {error}"
        raise TypeError(msg) from error
    return to_unicode(json.dumps(plain, ensure_ascii=False, separators=(",", ":")))


def _plain(value: Any) -> Any:
    """Return an array, a tensor or one of their scalars as plain numbers."""
    if hasattr(value, "tolist"):
        return value.tolist()
    msg = f"{type(value).__name__} has no form in JSON; return text, or what has one"
    raise ValueError(msg)
