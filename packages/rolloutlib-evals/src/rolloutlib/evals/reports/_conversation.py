"""An episode as a conversation: what was shown and said, each thing once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

from rolloutlib._values import same
from rolloutlib.evals._plain import to_text
from rolloutlib.evals.reports._text import laid_out
from rolloutlib.rollouts import Trajectory
from rolloutlib.scores import Score

__all__ = ["Call", "Highlight", "Turn", "conversation", "length", "marked"]

_FIELDS = {"role", "content", "tool_calls", "tool_call_id", "name"}
_REASONING = ("reasoning", "reasoning_content")


@dataclass(frozen=True)
class Call:
    """A call of a tool: its name, the arguments as JSON or as the model wrote them, and its id."""

    name: str
    arguments: str
    id: str | None = None


@dataclass(frozen=True)
class Turn:
    """What one side said.

    Attributes:
        role: The role of a message; of what is no message "observation" or "action".
        parts: What it says: text, or the fields of an image or a sound.
        step: The step that it is the action of; None for what the environment shows.
        calls: The tools that it calls.
        answers: The id of the call that it answers.
        name: Who speaks, if the message tells.
        reasoning: What the model thought before, if that is told apart from what it says.
        extra: What else the message has, as JSON.
    """

    role: str
    parts: tuple[str | Mapping[str, Any], ...]
    step: int | None = None
    calls: tuple[Call, ...] = ()
    answers: str | None = None
    name: str | None = None
    reasoning: str | None = None
    extra: str | None = None

    @property
    def text(self) -> str:
        """What it says in words."""
        return "\n".join(part for part in self.parts if isinstance(part, str))


@dataclass(frozen=True)
class Highlight:
    """Where a grader read an answer in the last action.

    Attributes:
        start: The first character.
        stop: The one after the last.
        status: What became of it: "found", "none", "ambiguous" or "truncated".
        label: What is to be said of it.
    """

    start: int
    stop: int
    status: str
    label: str


def conversation(trajectory: Trajectory[Any, Any]) -> list[Turn]:
    """Return what was said in an episode, in order.

    Texts and messages are read as `rolloutlib.training.to_messages` reads them. Of an observation
    that repeats the conversation so far only the rest is shown, and of the rest not the action again.
    """
    turns: list[Turn] = []
    seen: list[Any] = []
    said: list[Turn] = []
    for number, observation in enumerate(trajectory.observations):
        shown = _messages(observation)
        is_chat = not (len(shown) == 1 and shown[0] is observation)
        goes_on = is_chat and same(shown[: len(seen)], seen)
        new = shown[len(seen) :] if goes_on else shown
        heard = [_turn(message, "user", "observation") for message in new]
        if said and _same(heard[: len(said)], said):
            heard = heard[len(said) :]
        turns += [
            turn for turn in heard if turn.parts or turn.calls or turn.extra or turn.reasoning
        ]
        seen = shown
        if number < len(trajectory.steps):
            action = trajectory.actions[number]
            said = [_turn(message, "assistant", "action", number) for message in _messages(action)]
            reasoning = _reasoning(trajectory.steps[number].policy_info)
            turns += [replace(turn, reasoning=turn.reasoning or reasoning) for turn in said[:1]]
            turns += said[1:]
    return turns


def length(action: Any) -> int:
    """Return how many characters an action has: of messages, those of their words and calls."""
    messages = _messages(action)
    if not all(isinstance(message, Mapping) and "role" in message for message in messages):
        return len(to_text(action))
    calls = [message.get("tool_calls") for message in messages]
    words = sum(len(_turn(message, "assistant", "action").text) for message in messages)
    return words + sum(len(to_text(each)) for each in calls if each)


def marked(turns: Sequence[Turn], score: Score | None) -> Iterator[tuple[Turn, list[Highlight]]]:
    """Yield each turn with the places in its first part that the score, or a component of it, tells of.

    A grader reads the text of the last action, so that is what its places are in.

    Args:
        turns: The conversation.
        score: What it scored.
    """
    last = max([place for place, turn in enumerate(turns) if turn.step is not None], default=None)
    for place, turn in enumerate(turns):
        marks: list[Highlight] = []
        text = turn.parts[0] if turn.parts else None
        if place == last and score is not None and isinstance(text, str):
            marks = list(_highlights(score, "", len(text)))
        yield turn, marks


def _highlights(score: Score, name: str, length: int) -> Iterator[Highlight]:
    span, status = _span(score.metadata.get("span"), length), score.metadata.get("status")
    if span is not None and isinstance(status, str):
        facts = [name, status, score.metadata.get("rule"), score.metadata.get("reason")]
        yield Highlight(*span, status, ", ".join([to_text(fact) for fact in facts if fact]))
    for part, component in score.components.items():
        yield from _highlights(component, part, length)


def _span(value: Any, length: int) -> tuple[int, int] | None:
    """Return start and end of a place in a text of this length, if a grader told of one."""
    if not isinstance(value, (list, tuple)):
        return None
    ends = tuple(cast("list[Any]", value))
    if len(ends) != 2 or not all(type(end) is int for end in ends):
        return None
    return ends if 0 <= ends[0] <= ends[1] <= length else None


def _messages(value: Any) -> list[Any]:
    """Return the messages that a value is, or the value as the only one."""
    if isinstance(value, (list, tuple)):
        entries = list(cast("list[Any]", value))
        if entries and all(
            isinstance(entry, Mapping) and ("role" in entry or "arguments" in entry)
            for entry in entries
        ):
            return entries
    return [value]


def _turn(message: Any, role: str, other: str, step: int | None = None) -> Turn:
    if message is None:
        return Turn(other, (), step)
    if isinstance(message, str):
        return Turn(role, (message,) if message else (), step)
    if isinstance(message, Mapping):
        fields = cast("Mapping[str, Any]", message)
        if "role" in fields:
            reasoning = _reasoning(fields)
            known = _FIELDS if reasoning is None else _FIELDS | set(_REASONING)
            extra = {key: fields[key] for key in fields if key not in known}
            return Turn(
                to_text(fields["role"]),
                _parts(fields.get("content")),
                step,
                _calls(fields.get("tool_calls")),
                _optional(fields.get("tool_call_id")),
                _optional(fields.get("name")),
                reasoning,
                laid_out(extra) if extra else None,
            )
        if "name" in fields and "arguments" in fields:
            return Turn(role, (), step, (_call(fields),))
    return Turn(other, (laid_out(message),), step)


def _reasoning(fields: Mapping[str, Any]) -> str | None:
    told = [fields.get(name) for name in _REASONING]
    return next((text for text in told if isinstance(text, str) and text), None)


def _parts(content: Any) -> tuple[str | Mapping[str, Any], ...]:
    if content is None or content == "":
        return ()
    if not isinstance(content, (list, tuple)):
        return (laid_out(content),)
    return tuple([_part(part) for part in cast("list[Any]", content)])


def _part(part: Any) -> str | Mapping[str, Any]:
    fields = cast("dict[str, Any]", part if isinstance(part, dict) else {})
    if fields.get("type") == "text" and isinstance(fields.get("text"), str):
        return fields["text"]
    if fields.get("type") in ("image", "audio") and isinstance(fields.get("url"), str):
        return {key: to_text(fields[key]) for key in ("type", "url", "alt") if key in fields}
    return laid_out(part)


def _calls(value: Any) -> tuple[Call, ...]:
    if not value:
        return ()
    calls = cast("list[Any]", value if isinstance(value, (list, tuple)) else [value])
    return tuple([_call(call) for call in calls])


def _call(call: Any) -> Call:
    outer = cast("Mapping[str, Any]", call if isinstance(call, Mapping) else {})
    inner: Any = outer.get("function", outer)  # as chat templates have it
    if not isinstance(inner, Mapping) or "name" not in inner:
        return Call("?", laid_out(call))
    fields = cast("Mapping[str, Any]", inner)
    arguments = fields.get("malformed", fields.get("arguments"))
    return Call(to_text(fields["name"]), laid_out(arguments), _optional(outer.get("id")))


def _optional(value: Any) -> str | None:
    return None if value is None else to_text(value)


def _same(heard: list[Turn], said: list[Turn]) -> bool:
    """Tell whether an environment repeats an action."""
    return len(heard) == len(said) and all(
        (one.parts, one.calls) == (other.parts, other.calls) and one.role in (other.role, "user")
        for one, other in zip(heard, said, strict=True)
    )
