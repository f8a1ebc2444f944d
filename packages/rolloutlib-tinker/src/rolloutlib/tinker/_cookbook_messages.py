"""Messages in the form of tinker-cookbook's renderers, which is not imported for it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from types import SimpleNamespace
from typing import Any, cast

from rolloutlib.tinker._images import digest_of, mark, mark_id, marked_text
from rolloutlib.tools import read_call
from rolloutlib.types import Message, ToolCall, ToolDefinition


def write_messages(messages: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return messages as the renderers take them."""
    return [_write_message(message) for message in messages]


def write_tools(
    renderer: Any, tools: Sequence[ToolDefinition], messages: list[dict[str, Any]]
) -> list[dict[str, Any]]:
    """Return messages that begin by telling of tools, in the renderer's own way."""
    system = ""
    if messages and messages[0]["role"] == "system":
        system, messages = marked_text(messages[0]["content"]), messages[1:]
    specs = [tool["function"] for tool in tools]
    return [*renderer.create_conversation_prefix_with_tools(specs, system), *messages]


def read_message(message: Any) -> tuple[Message, str]:
    """Return a message that a renderer read, with its text and calls, and the thinking in it."""
    content: Any = message["content"]
    parts: list[Any] = [{"type": "text", "text": content}] if isinstance(content, str) else content
    read: Message = {
        "role": "assistant",
        "content": "".join(part["text"] for part in parts if part["type"] == "text"),
    }
    calls = [_read_call(call) for call in message.get("tool_calls") or ()]
    calls += [_read_unparsed(call) for call in message.get("unparsed_tool_calls") or ()]
    if calls:
        read["tool_calls"] = calls
    return read, "".join(part["thinking"] for part in parts if part["type"] == "thinking")


def read_prompt(chunks: Iterable[Any]) -> tuple[list[int], dict[int, Any]]:
    """Return a prompt's token ids, with numbers for what is no text, and what these stand for."""
    ids: list[int] = []
    others: dict[int, Any] = {}
    for chunk in chunks:
        if (tokens := getattr(chunk, "tokens", None)) is not None:
            ids += tokens
        else:
            number = mark_id(_digest(chunk))
            ids.append(number)
            others[number] = chunk
    return ids, others


def decode_prompt(chunks: Iterable[Any], decode: Any) -> str:
    """Return the text of a prompt, with marks for what is no text."""
    pieces: list[str] = []
    run: list[int] = []
    for chunk in chunks:
        if (tokens := getattr(chunk, "tokens", None)) is not None:
            run += tokens  # a character may reach across chunks
        else:
            pieces += [decode(run), mark(_digest(chunk))]
            run = []
    return "".join([*pieces, decode(run)])


def _digest(chunk: Any) -> str:
    return digest_of(chunk.model_dump_json())


def _write_message(message: Mapping[str, Any]) -> dict[str, Any]:
    written = {name: message[name] for name in ("role", "name", "tool_call_id") if name in message}
    content = message["content"]
    written["content"] = content
    if not isinstance(content, str):
        written["content"] = [
            part if part["type"] == "text" else {"type": "image", "image": part["url"]}
            for part in cast("list[dict[str, str]]", content)
        ]
    if calls := message.get("tool_calls"):
        # The renderers read attributes, and parse arguments, which malformed ones would not stand.
        written["tool_calls"] = [
            SimpleNamespace(
                type="function",
                id=call.get("id"),
                function=SimpleNamespace(
                    name=call["name"], arguments=json.dumps(call["arguments"])
                ),
            )
            for call in calls
        ]
    return written


def _read_call(call: Any) -> ToolCall:
    function = _get(call, "function")
    if function is None:  # in our own form already
        return call
    return read_call(_get(function, "name"), _get(function, "arguments"), _get(call, "id"))


def _read_unparsed(call: Any) -> ToolCall:
    text = str(_get(call, "raw_text"))
    name = _NAME.search(text)
    return {"name": name[1] if name else "", "arguments": {}, "malformed": text}


def _get(thing: Any, name: str) -> Any:
    if isinstance(thing, Mapping):
        return cast("Mapping[str, Any]", thing).get(name)
    return getattr(thing, name, None)


_NAME = re.compile(r'"name"\s*:\s*"([^"]*)"')
