"""What a judge is shown: answers with the question they answer."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from rolloutlib.rollouts import Trajectory, TrajectoryGroup
from rolloutlib.types import Chat


@dataclass(frozen=True, slots=True)
class Candidate:
    """An answer that is judged.

    Attributes:
        text: The answer.
        question: What it answers: text, a message or a chat, which are written as text; None if the
            judge is to see the answer alone.
        references: Answers that are known to be right, beside those of the criterion.

    Raises:
        TypeError: A field is not text, or references are one text.
    """

    text: str
    question: str | Mapping[str, Any] | Sequence[Mapping[str, Any]] | None = None
    references: Sequence[str] = ()

    def __post_init__(self) -> None:
        if isinstance(self.references, str):
            msg = f"references must be several texts, got one, {self.references!r}"
            raise TypeError(msg)
        object.__setattr__(self, "text", plain_text(self.text, "text"))
        if self.question is not None:
            object.__setattr__(self, "question", plain_text(self.question, "question"))
        references = tuple([plain_text(each, "a reference") for each in self.references])
        object.__setattr__(self, "references", references)


def chat_text(chat: Chat) -> str:
    """Write a chat as text, for a model that continues text.

    Each message begins with its role, and the last line is "assistant:", for the model to go on.
    """
    return f"{plain_text(chat, 'chat')}\n\nassistant:"


def to_candidate(value: object) -> Candidate:
    """Return a text, a candidate, or a trajectory with its last action, as a candidate.

    Raises:
        TypeError: It is something else, or the trajectory's parts are not text.
    """
    if isinstance(value, Candidate):
        return value
    if isinstance(value, str):
        return Candidate(value)
    if isinstance(value, Trajectory):
        episode = cast("Trajectory[Any, Any]", value)
        action = episode.actions[-1] if episode.steps else ""
        return Candidate(
            plain_text(action, "the last action"),
            plain_text(episode.initial_observation, "the initial observation"),
        )
    msg = (
        f"a judge is shown text, a Candidate or a Trajectory, got {value!r}: give read=, a "
        "function that makes a Candidate of it"
    )
    raise TypeError(msg)


def to_candidates(value: object) -> list[Candidate]:
    """Return the candidates of a trajectory group, or of several values that are candidates.

    Raises:
        TypeError: One of them is no candidate.
        ValueError: They answer different questions.
    """
    if isinstance(value, TrajectoryGroup):
        value = cast("TrajectoryGroup[Any, Any, Any]", value).trajectories
    if isinstance(value, (str, Mapping)) or not isinstance(value, Iterable):
        msg = f"a comparison takes a TrajectoryGroup or several candidates, got {value!r}"
        raise TypeError(msg)
    candidates = [to_candidate(each) for each in cast("Iterable[object]", value)]
    asked = {each.question: None for each in candidates if each.question is not None}
    if len(asked) > 1:
        first, second = list(asked)[:2]
        msg = (
            f"candidates that are compared answer one question, got {first!r:.200} and {second!r:.200}: "
            "give read=, a function that makes Candidates of a group"
        )
        raise ValueError(msg)
    return candidates


def plain_text(value: object, name: str) -> str:
    """Return a text, or what a message or a chat says.

    Raises:
        TypeError: It is none of these.
    """
    if isinstance(value, str):
        return value
    if isinstance(value, Mapping):
        return _content(cast("Mapping[str, Any]", value).get("content"), name)
    if isinstance(value, Sequence):
        parts = cast("Sequence[Any]", value)
        if parts and all(isinstance(part, Mapping) and "role" in part for part in parts):
            return "\n\n".join(
                [f"{part['role']}: {_content(part.get('content'), name)}" for part in parts]
            )
    msg = f"{name} must be text, a message or a chat, got {value!r}"
    raise TypeError(msg)


def _content(content: object, name: str) -> str:
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        texts = [_part_text(part) for part in cast("list[object]", content)]
        if None not in texts:
            return "\n".join([text for text in texts if text is not None])
    msg = f"{name} has a message whose content is not text alone: {content!r:.200}"
    raise TypeError(msg)


def _part_text(part: object) -> str | None:
    text: object = (
        cast("Mapping[str, Any]", part).get("text") if isinstance(part, Mapping) else None
    )
    return text if isinstance(text, str) else None
