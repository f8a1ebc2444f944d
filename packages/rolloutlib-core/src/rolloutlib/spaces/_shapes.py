"""What is wrong with a message, a part of one, or a tool call: the shapes of `rolloutlib.types`.

Looked at directly, which costs a fraction of validating.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any, TypeGuard

_MESSAGE_KEYS = frozenset({"role", "content", "tool_calls", "tool_call_id", "name"})
_CALL_KEYS = frozenset({"name", "arguments", "id", "malformed"})
_PART_KEYS = {
    "text": ("text", frozenset({"type", "text"})),
    "image": ("url", frozenset({"type", "url", "alt"})),
    "audio": ("url", frozenset({"type", "url", "format"})),
}


def is_text(value: object) -> TypeGuard[str]:
    """Tell whether a value is Unicode text: a string without lone surrogates, which UTF-8 lacks."""
    if not isinstance(value, str):
        return False
    if value.isascii():
        return True
    try:
        value.encode("utf-16")  # refuses the same as UTF-8, in a fraction of the time
    except UnicodeEncodeError:
        return False
    return True


def message_problem(
    value: Any, roles: Collection[str], is_content: Callable[[Any], bool]
) -> str | None:
    """Say what is wrong with a message.

    Args:
        value: Anything.
        roles: The roles that there are.
        is_content: Tells which texts there are, as the content or as a part of it.
    """
    if not _is_dict(value):
        return f"a message is a dictionary, got {value!r}"
    if not _MESSAGE_KEYS.issuperset(value):
        return f"a message has no keys but {sorted(_MESSAGE_KEYS)}, got {list(value)!r}"
    role, content = value.get("role"), value.get("content")
    if not (is_text(role) and role in roles):
        return f"there is no role {role!r}"
    if _is_list(content):
        for part in content:
            if (problem := _part_problem(part, is_content)) is not None:
                return problem
    elif not (is_text(content) and is_content(content)):
        return f"the content may not be {content!r}"
    if len(value) == 2:
        return None
    for key in ("tool_call_id", "name"):
        if key in value and not is_text(value[key]):
            return f"{key} must be text, got {value[key]!r}"
    return _calls_problem(value["tool_calls"]) if "tool_calls" in value else None


def tool_call_problem(value: Any) -> str | None:
    """Say what is wrong with a tool call, whatever tools there are."""
    if not _is_dict(value):
        return f"a tool call is a dictionary, got {value!r}"
    if not _CALL_KEYS.issuperset(value):
        return f"a tool call has no keys but {sorted(_CALL_KEYS)}, got {list(value)!r}"
    if not is_text(value.get("name")):
        return f"the name of a tool must be text, got {value.get('name')!r}"
    arguments = value.get("arguments")
    if not _is_dict(arguments) or not all(map(is_text, arguments)):
        return f"the arguments of a tool call must be a dictionary by name, got {arguments!r}"
    if "id" in value and not is_text(value["id"]):
        return f"the id of a tool call must be text, got {value['id']!r}"
    if "malformed" in value and not (is_text(value["malformed"]) and not arguments):
        return f"a malformed call has a text and no arguments, got {value!r}"
    return None


def _calls_problem(calls: Any) -> str | None:
    if not _is_list(calls):
        return f"tool_calls must be a list, got {calls!r}"
    return next((problem for call in calls if (problem := tool_call_problem(call))), None)


def _part_problem(part: Any, is_content: Callable[[Any], bool]) -> str | None:
    if not _is_dict(part) or part.get("type") not in _PART_KEYS:
        return (
            f"a part of a message is a dictionary with a type in {list(_PART_KEYS)}, got {part!r}"
        )
    required, allowed = _PART_KEYS[part["type"]]
    if required not in part or not allowed.issuperset(part):
        return f"a part of type {part['type']!r} has the keys {sorted(allowed)}, got {list(part)!r}"
    if not all(map(is_text, part.values())):
        return f"a part of a message holds text only, got {part!r}"
    if part["type"] == "text" and not is_content(part["text"]):
        return f"the content may not be {part['text']!r}"
    return None


def _is_dict(value: Any) -> TypeGuard[dict[Any, Any]]:
    return isinstance(value, dict)


def _is_list(value: Any) -> TypeGuard[list[Any]]:
    return isinstance(value, list)
