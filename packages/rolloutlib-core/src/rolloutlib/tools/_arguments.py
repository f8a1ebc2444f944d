"""Reading what a model writes as the arguments of a call."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any, cast

import pydantic
import pydantic_core

from rolloutlib._values import to_unicode
from rolloutlib.types import ToolCall

_SHOWN = 100
_MOST = 10
_DEEPEST = 32  # half of what files of trajectories take, with the conversation around it


def read_call(name: str, arguments: object, id: str | None = None) -> ToolCall:
    """Return the call that a model makes, of what a model server gives as its arguments.

    Text that is no JSON object, cut off for example, or is nested more than 32 levels deep, is kept as
    the call's `malformed`. Blank text stands for no arguments.

    Args:
        name: The tool's name.
        arguments: Text as a rule; some servers read it themselves, and give whatever it holds.
        id: The id of the call, if it has one.
    """
    call: ToolCall = {"name": to_unicode(name), "arguments": {}}
    if id is not None:
        call["id"] = to_unicode(id)
    try:
        call["arguments"] = parse_object(arguments)
    except ValueError:
        written = isinstance(arguments, str)
        text = arguments if written else json.dumps(arguments, ensure_ascii=False, default=str)
        call["malformed"] = to_unicode(text)
    return call


def parse_object(arguments: object) -> dict[str, object]:
    """Return the object of a JSON text, or of what was read, without NaN, infinity and endless nesting.

    Raises:
        ValueError: It is none; the error says where it stops being one.
    """
    found: object = {} if arguments is None else arguments
    if isinstance(arguments, str):
        text = to_unicode(arguments)
        found = pydantic_core.from_json(text, allow_inf_nan=False) if text.strip() else {}
    if not isinstance(found, Mapping):
        msg = f"expected an object, got {cropped(found)}"
        raise ValueError(msg)  # noqa: TRY004 - the text has a wrong value
    read = dict(cast("Mapping[str, object]", found))
    _check(read, 0)
    return read


def _check(value: object, depth: int) -> None:
    """Refuse infinity, which 1e999 is read as, and what records of episodes could not hold."""
    if isinstance(value, (dict, list)):
        if depth == _DEEPEST:
            msg = f"nested more than {_DEEPEST} levels deep"
            raise ValueError(msg)
        parts: Any = cast("Any", value.values() if isinstance(value, dict) else value)
        for part in parts:
            _check(part, depth + 1)
    elif isinstance(value, float) and not math.isfinite(value):
        msg = "a number is too large"
        raise ValueError(msg)


def malformed_problem(text: str) -> str:
    """Say why a text is no JSON object."""
    try:
        parse_object(text)
    except ValueError as error:
        return str(error)
    return "expected an object"


def invalid_problem(error: ValueError) -> str:
    """Say what is wrong with arguments: a line for each error, of the first ten."""
    if not isinstance(error, pydantic.ValidationError):
        return f"\n- {error}"
    lines: list[str] = []
    errors = error.errors(include_url=False, include_context=False)
    for one in errors[:_MOST]:
        place = ".".join(map(str, one["loc"]))
        if one["type"] == "extra_forbidden":
            lines.append(f"{place}: there is no such argument")
        elif one["type"] == "missing":
            lines.append(f"{place}: is missing")
        else:
            lines.append(f"{place}: {one['msg']}, got {cropped(one['input'])}")
    if len(errors) > _MOST:
        lines.append(f"and {len(errors) - _MOST} more")
    return "".join(f"\n- {line}" for line in lines)


def cropped(value: object) -> str:
    """Return a short text form of a value that a model gave."""
    text = repr(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."
