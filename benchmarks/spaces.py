"""Membership in spaces, against checks written by hand for the same values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gymnasium as gym
import numpy as np

from measuring import Effort, Row, Sides, timed
from rolloutlib import spaces

VOCABULARY = 128_000
ROLES = {"system", "user", "assistant", "tool"}
KEYS = {"role", "content", "tool_calls", "tool_call_id", "name"}
is_a: Callable[[object, type], bool] = isinstance
"""The same, but type checkers do not narrow by it what stays Any here."""

TEXT = "The quick brown fox jumps over the lazy dog. " * 10


def hand_is_chat(value: Any) -> bool:
    """Check a conversation: known keys and roles, texts or parts, and tool calls if there are any."""
    if not is_a(value, list):
        return False
    for message in value:
        if not (is_a(message, dict) and message.keys() <= KEYS):
            return False
        if message.get("role") not in ROLES:
            return False
        content = message.get("content")
        if not is_a(content, str) and not hand_are_parts(content):
            return False
        if len(message) > 2 and not hand_has_calls(message):
            return False
    return True


def hand_are_parts(content: Any) -> bool:
    """Check content of several parts."""
    return is_a(content, list) and all(
        is_a(part, dict)
        and is_a(part.get("type"), str)
        and is_a(part.get("text" if part["type"] == "text" else "url"), str)
        for part in content
    )


def hand_has_calls(message: dict[str, Any]) -> bool:
    """Check what only some messages have."""
    return (
        is_a(message.get("name", ""), str)
        and is_a(message.get("tool_call_id", ""), str)
        and all(
            is_a(call, dict)
            and is_a(call.get("name"), str)
            and is_a(call.get("arguments"), dict)
            and is_a(call.get("id", ""), str)
            for call in message.get("tool_calls", ())
        )
    )


def hand_are_ids(ids: list[Any]) -> bool:
    """Check a list of ids: three passes in C, faster than one in Python."""
    return not ids or (set(map(type, ids)) == {int} and min(ids) >= 0 and max(ids) < VOCABULARY)


def hand_is_id_array(ids: np.ndarray[Any, Any]) -> bool:
    """Check an array of ids."""
    return (
        ids.ndim == 1
        and ids.dtype.kind in "iu"
        and (not ids.size or bool(ids.min() >= 0 and ids.max() < VOCABULARY))
    )


def plain_chat(text: str) -> list[Any]:
    """Return 50 messages that are a role and a text."""
    roles = ["user", "assistant"]
    return [{"role": roles[index % 2], "content": f"{index}: {text}"} for index in range(50)]


def tool_chat() -> list[Any]:
    """Return 50 messages of an agent: half of them call a tool, half are what it answers."""
    calls: list[Any] = [
        {
            "role": "assistant",
            "content": TEXT,
            "tool_calls": [{"name": "search", "arguments": {"query": TEXT}, "id": f"{index}"}],
        }
        for index in range(25)
    ]
    answers: list[Any] = [
        {"role": "tool", "content": TEXT, "tool_call_id": f"{index}"} for index in range(25)
    ]
    return [message for pair in zip(calls, answers, strict=True) for message in pair]


def tokens() -> gym.Space[Any]:
    """Return the space of id sequences; 0.2.0 takes only tuples unless they are stacked."""
    return spaces.tokens.sequence(VOCABULARY, stack=True)


def membership(
    make_space: Callable[[], gym.Space[Any]], value: object, hand: Callable[[Any], bool]
) -> Callable[[Effort], Sides]:
    """Ask a space and a function of one's own whether a value is a member."""

    def prepare(effort: Effort) -> Sides:
        space = make_space()
        if not (space.contains(value) and hand(value)):
            msg = f"{space} and {hand} must both take the value"
            raise AssertionError(msg)
        return Sides(
            timed(lambda: space.contains(value), effort),
            timed(lambda: hand(value), effort),
        )

    return prepare


IDS = np.random.default_rng(0).integers(VOCABULARY, size=32_768)

ROWS = [
    Row(
        "chat",
        "chat of 50 messages",
        "us",
        membership(spaces.messages.chat, plain_chat(TEXT), hand_is_chat),
        1.5,
    ),
    Row(
        "chat-unicode",
        "the same in text that is not ASCII",
        "us",
        membership(
            spaces.messages.chat, plain_chat("Zwölf Boxkämpfer jagen Viktor. " * 15), hand_is_chat
        ),
    ),
    Row(
        "chat-tools",
        "the same with a tool call in every other message",
        "us",
        membership(spaces.messages.chat, tool_chat(), hand_is_chat),
    ),
    Row("ids-numpy", "32k token ids, numpy", "us", membership(tokens, IDS, hand_is_id_array), 1.5),
    Row(
        "ids-list", "32k token ids, list", "us", membership(tokens, IDS.tolist(), hand_are_ids), 1.5
    ),
]
