"""What comes of a call."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from rolloutlib.types import Message

ToolProblem: TypeAlias = Literal["unknown", "malformed", "invalid", "failed", "timeout"]
"""What is wrong with a call.

- "unknown": there is no tool of that name.
- "malformed": the arguments are no JSON object.
- "invalid": they are not what the tool takes.
- "failed": the tool raised an exception.
- "timeout": it took too long.

The first three are mistakes of the model.
"""


class ToolError(Exception):
    """Raised by a tool to tell the model, in the exception's text, why it cannot do as asked."""


@dataclass(frozen=True, slots=True)
class EndEpisode:
    """Returned by a tool to end the episode of a `ChatEnv`.

    Attributes:
        result: What the tool answers.
    """

    result: Any = ""


@dataclass(frozen=True, slots=True)
class ToolOutcome:
    """What came of a call.

    Attributes:
        message: What the tool answers, or what is wrong with the call: of role "tool", with the
            call's id.
        problem: What is wrong, or None.
        error: The exception that the tool raised, or that says what is wrong with the arguments.
        ends_episode: Whether the tool returned an `EndEpisode`.
    """

    message: Message
    problem: ToolProblem | None = None
    error: Exception | None = None
    ends_episode: bool = False
