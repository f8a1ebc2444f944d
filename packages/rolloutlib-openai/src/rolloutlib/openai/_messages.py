"""Chats in the form of OpenAI's API."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, TypeAlias, cast

from rolloutlib.spaces._shapes import is_text, message_problem
from rolloutlib.types import ContentPart, Message, ToolCall

Wire: TypeAlias = dict[str, Any]
"""A dictionary in the form of OpenAI's API."""


def write_chat(chat: object) -> list[Wire]:
    """Return a chat as OpenAI's API takes it; a text is a chat of one message of the user.

    Calls without ids, and answers to them, are given ids by their order.

    Raises:
        TypeError: It is neither a chat nor a text.
        ValueError: A message is not of the form of `rolloutlib.types.Message`.
    """
    if isinstance(chat, str):
        chat = [{"role": "user", "content": chat}]
    if not isinstance(chat, Sequence):
        msg = f"a chat policy must be shown a chat or a text, got {chat!r}"
        raise TypeError(msg)
    written: list[Wire] = []
    open_ids: list[str] = []  # of calls that no message has answered
    for position, entry in enumerate(cast("Sequence[object]", chat)):
        # A server may know further roles.
        roles: list[Any] = (
            [cast("dict[str, Any]", entry).get("role")] if isinstance(entry, dict) else []
        )
        if (problem := message_problem(entry, roles, is_text)) is not None:
            msg = f"message {position} is not as rolloutlib.types.Message says: {problem}"
            raise ValueError(msg)
        message = cast("Message", entry)
        wire: Wire = {"role": message["role"], "content": _write_content(message["content"])}
        if name := message.get("name"):
            wire["name"] = name
        if calls := message.get("tool_calls"):
            wire["tool_calls"] = [
                _write_call(call, default_id=f"call_{position}_{number}")
                for number, call in enumerate(calls)
            ]
            open_ids = [call["id"] for call in wire["tool_calls"]]
        if message["role"] == "tool":
            answered = message.get("tool_call_id") or (open_ids[0] if open_ids else "")
            wire["tool_call_id"] = answered
            open_ids = [one for one in open_ids if one != answered]
        written.append(wire)
    return written


def _write_content(content: str | list[ContentPart]) -> str | list[Wire]:
    return content if isinstance(content, str) else [_write_part(part) for part in content]


def _write_part(part: ContentPart) -> Wire:
    if part["type"] == "text":
        return {"type": "text", "text": part["text"]}
    url = part["url"]
    if part["type"] == "image":
        return {"type": "image_url", "image_url": {"url": url}}
    head, _, data = url.partition(";base64,")
    if not data:  # vLLM takes it; OpenAI takes no sound by URL
        return {"type": "audio_url", "audio_url": {"url": url}}
    kind = head.rpartition("/")[2].partition(";")[0]
    sound = {"data": data, "format": part.get("format") or _FORMATS.get(kind, kind)}
    return {"type": "input_audio", "input_audio": sound}


def _write_call(call: ToolCall, *, default_id: str) -> Wire:
    # Servers refuse a history with arguments that are no JSON object, so those that were malformed
    # go out empty; the tool's answer tells the model what was wrong.
    arguments = json.dumps(call["arguments"], ensure_ascii=False, allow_nan=False)
    return {
        "id": call.get("id") or default_id,
        "type": "function",
        "function": {"name": call["name"], "arguments": arguments},
    }


_FORMATS = {"mpeg": "mp3", "x-wav": "wav", "wave": "wav", "vnd.wave": "wav"}  # by media types
