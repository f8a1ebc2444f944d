"""Episodes as conversations: for supervised fine-tuning."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, cast

from rolloutlib.rollouts import Trajectory

_CALLED = ("name", "arguments", "malformed")
"""What a call says of the function; the rest stays beside it."""


def to_messages(trajectories: Iterable[Trajectory[Any, Any]]) -> list[dict[str, Any]]:
    """Return episodes as the rows of a dataset for supervised fine-tuning: `{"messages": [...]}`.

    An observation is a text, which the user says; a message; or a list of messages, which is the
    whole conversation if it goes on from the one before with a reply, and else is added to it. An action is a text
    or a message of the model, or one or several tool calls. A conversation ends with the last action.

    Tool calls have the form of chat templates, `{"type": "function", "function": {...}}`. A data set
    gives each call the arguments of all others, with None, unless it is made with
    `datasets.Dataset.from_list(rows, on_mixed_types="use_json")`, of datasets 4.7 or later.

    TRL's `SFTTrainer` trains on the words of the model alone with `assistant_only_loss=True`.

    Source: TRL, `docs/source/dataset_formats.md` at commit 0087e4f5, "Conversational" and "Tool
    Calling", and TRL 1.16; other trainers take the same.

    Args:
        trajectories: Episodes of text or chat, of at least one step.

    Raises:
        TypeError: An observation or an action is neither text nor messages.
        ValueError: An episode has no step.
    """
    return [{"messages": messages} for _, _, messages, _ in conversations(trajectories)]


def conversations(
    trajectories: Iterable[Trajectory[Any, Any]],
) -> Iterator[tuple[int, Trajectory[Any, Any], list[dict[str, Any]], int]]:
    """Yield each episode with its number, its messages, and how many stand before the first action."""
    for number, trajectory in enumerate(trajectories):
        if not trajectory.steps:
            msg = f"trajectory {number} has no step, so no reply of the model"
            raise ValueError(msg)
        messages: list[Any] = []
        seen: list[Any] = []
        first = 0
        for index, step in enumerate(trajectory.steps):
            place = f"trajectory {number}, step {index}"
            shown = _observed(step.observation, place)
            replied = shown[len(seen) :][:1]
            if (
                seen
                and shown[: len(seen)] == seen
                and replied
                and replied[0]["role"] == "assistant"
            ):
                messages = list(shown)
            else:
                messages += shown
            seen = shown
            first = first or len(messages)
            messages += _acted(step.action, place)
        yield number, trajectory, [_exported(message) for message in messages], first


def _observed(observation: Any, place: str) -> list[Any]:
    if isinstance(observation, str):
        return [{"role": "user", "content": observation}]
    return _messages(observation, f"{place}: the observation")


def _acted(action: Any, place: str) -> list[Any]:
    if isinstance(action, str):
        return [{"role": "assistant", "content": action}]
    calls = _listed(action)
    if calls and all(isinstance(call, Mapping) and "arguments" in call for call in calls):
        return [{"role": "assistant", "content": "", "tool_calls": calls}]
    return _messages(action, f"{place}: the action")


def _messages(value: Any, place: str) -> list[Any]:
    messages = _listed(value)
    if not all(isinstance(message, Mapping) and "role" in message for message in messages):
        msg = f"{place} is neither text nor messages: {value!r}"
        raise TypeError(msg)
    return messages


def _listed(value: Any) -> list[Any]:
    return list(cast("list[Any]", value)) if isinstance(value, (list, tuple)) else [value]


def _exported(message: Mapping[str, Any]) -> dict[str, Any]:
    exported = dict(message)
    if calls := exported.get("tool_calls"):
        exported["tool_calls"] = [
            {
                **{key: call[key] for key in call if key not in _CALLED},
                "type": "function",
                "function": {
                    "name": call["name"],
                    "arguments": call.get("malformed", call["arguments"]),
                },
            }
            if "name" in call
            else call
            for call in calls
        ]
    return exported
