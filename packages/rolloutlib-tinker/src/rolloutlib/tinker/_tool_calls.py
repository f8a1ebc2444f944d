"""Tool calls in the text of an answer."""

from __future__ import annotations

import json
import re
from typing import Any, cast

from rolloutlib.tools import read_call
from rolloutlib.types import ToolCall


def split_calls(text: str) -> tuple[str, list[ToolCall]]:
    """Split an answer into what it says and the calls that it makes.

    A call is an object with a name and arguments, in JSON between `<tool_call>` and `</tool_call>`, as
    Hermes, Qwen and SmolLM write it; what they think before does not count. What is no such object,
    for being cut off, say, is a malformed call.
    """
    thinking, mark, answer = text.rpartition("</think>")
    said: list[str] = []
    calls: list[ToolCall] = []
    position = 0
    for found in _CALL.finditer(answer):
        if found[1] is None:  # thinking that does not end
            break
        said.append(answer[position : found.start()])
        calls.append(_read(found[1]))
        position = found.end()
    if not calls:
        return text, []
    said.append(answer[position:])
    return (thinking + mark + "".join(said)).rstrip(), calls


def _read(body: str) -> ToolCall:
    try:
        call: object = json.loads(body)
    except (ValueError, RecursionError):  # the latter where it is nested too deeply
        call = None
    if isinstance(call, dict):
        facts = cast("dict[str, Any]", call)
        name, arguments = facts.get("name"), facts.get("arguments", facts.get("parameters"))
        if isinstance(name, str) and (arguments is None or isinstance(arguments, (str, dict))):
            return read_call(name, cast("Any", arguments))
    name = _NAME.search(body)
    arguments = _ARGUMENTS.search(body)
    # Never an object that is whole, which would be taken for arguments.
    return {
        "name": name[1] if name else "",
        "arguments": {},
        "malformed": arguments[1] if arguments else body,
    }


_CALL = re.compile(r"<think>.*|<tool_call>\s*(.*?)\s*(?:</tool_call>|\Z)", re.DOTALL)
_NAME = re.compile(r'"name"\s*:\s*"([^"]*)"')
_ARGUMENTS = re.compile(r'"(?:arguments|parameters)"\s*:\s*(.*)', re.DOTALL)
