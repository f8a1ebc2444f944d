"""The state of a chat with tools, which `ChatEnv` and its asynchronous twin share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias, TypeGuard, cast

import gymnasium as gym

from rolloutlib._values import snapshot, to_unicode
from rolloutlib.spaces._shapes import is_text, message_problem
from rolloutlib.tools import ToolOutcome, read_call
from rolloutlib.types import Chat, Message, ToolCall

Messages: TypeAlias = str | Message | Sequence[Message]
"""What is said: text of the user, a message, or several."""


class Conversation:
    """Messages that only ever become more, and counts of what happened."""

    def __init__(self) -> None:
        self.is_open = False
        self._messages: Chat = []
        self._counts: dict[str, int] = dict.fromkeys(_COUNTS, 0)

    @property
    def messages(self) -> Chat:
        """The messages so far: a copy, which a policy or a grader may change."""
        return snapshot(self._messages)

    @property
    def counts(self) -> dict[str, Any]:
        """What happened in the episode so far: a copy."""
        return dict(self._counts)

    @property
    def num_turns(self) -> int:
        """How many times the model has answered."""
        return self._counts["num_turns"]

    def begin(self, said: Messages, space: gym.Space[Any], place: str) -> None:
        """Begin a new conversation.

        Raises:
            TypeError: What is said is no message.
            ValueError: Nothing is said.
        """
        self.is_open = False
        self._messages = []
        self._counts = dict.fromkeys(_COUNTS, 0)
        self.add(said, space, place)
        self.is_open = True

    def add(self, said: Messages, space: gym.Space[Any], place: str) -> None:
        """Add what others than the model say.

        Raises:
            TypeError: It is no message, or none of a conversation in the space.
            ValueError: There is no message.
        """
        if isinstance(said, str):
            said = [{"role": "user", "content": said}]
        elif isinstance(said, Mapping):
            said = [said]
        if not _is_sequence(said):
            msg = f"{place} must give text, a message or several, got {said!r}"
            raise TypeError(msg)
        if not said:
            msg = f"{place} must give at least one message, got {said!r}"
            raise ValueError(msg)
        for message in snapshot(list(said)):
            if [message] not in space:
                msg = f"{place} must give messages of a chat in {space}, got {message!r}"
                raise TypeError(msg)
            self._messages.append(message)

    def take(self, reply: object, env: object) -> list[ToolCall]:
        """Add what the model answers, and what is wrong with it; return the calls in it.

        Raises:
            RuntimeError: No episode is going on.
        """
        if not self.is_open:
            msg = f"the episode of {env} is over or has not begun: call reset() before step()"
            raise RuntimeError(msg)
        self._counts["num_turns"] += 1
        message, problem = _read_reply(reply)
        self._messages.append(message)
        if problem is None:
            return message.get("tool_calls", [])
        self._counts["num_mistakes"] += 1
        self._messages.append({"role": "user", "content": to_unicode(f"error: {problem}")})
        return []

    def expects_words(self) -> bool:
        """Tell whether the model has spoken last, without calling a tool."""
        last = self._messages[-1]
        return last["role"] == "assistant"

    def add_outcome(self, outcome: ToolOutcome) -> None:
        """Add what came of a call."""
        self._counts["num_tool_calls"] += 1
        if outcome.problem in ("failed", "timeout"):
            self._counts["num_tool_failures"] += 1
        elif outcome.problem is not None:
            self._counts["num_mistakes"] += 1
        self._messages.append(outcome.message)


_COUNTS = ("num_turns", "num_tool_calls", "num_mistakes", "num_tool_failures")


def _read_reply(reply: object) -> tuple[Message, str | None]:
    """Return a reply as a message, and what is wrong with it, whose text alone is kept then."""
    if isinstance(reply, str):
        return {"role": "assistant", "content": to_unicode(reply)}, None
    read: object = reply
    content = ""
    if _is_dict(reply):
        # Servers give null for what there is none of.
        given = {key: value for key, value in reply.items() if value is not None}
        message = snapshot({"content": "", **given})
        if isinstance(calls := message.get("tool_calls"), list):
            message["tool_calls"] = list(map(_read_call, cast("list[object]", calls)))
        if isinstance(text := message["content"], str):
            message["content"] = content = to_unicode(text)
        read = message
    problem = message_problem(read, ("assistant",), is_text)
    if problem is None:
        return cast("Message", read), None
    return {"role": "assistant", "content": content}, problem


def _read_call(call: object) -> object:
    """Read arguments that are still text, as servers give them."""
    if _is_dict(call) and isinstance(arguments := call.get("arguments"), str):
        return {**call, **read_call(str(call.get("name")), arguments)}
    return call


def _is_sequence(value: object) -> bool:
    return isinstance(value, Sequence)


def _is_dict(value: object) -> TypeGuard[dict[str, Any]]:
    return isinstance(value, dict)
