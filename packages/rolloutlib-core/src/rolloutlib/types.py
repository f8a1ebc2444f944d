"""Message and tool-call dictionaries, as chat models exchange them.

Values of these types are ordinary dictionaries and lists. The spaces in `rolloutlib.spaces`
validate them; nothing has to be constructed.
"""

from __future__ import annotations

from typing import Literal, NotRequired, TypeAlias

from typing_extensions import TypedDict

__all__ = [
    "AudioContentPart",
    "Chat",
    "ContentPart",
    "FunctionDefinition",
    "ImageContentPart",
    "Message",
    "Reply",
    "Role",
    "TextContentPart",
    "ToolCall",
    "ToolDefinition",
]

Role: TypeAlias = str
"""Who speaks: "system", "user", "assistant", "tool", or a role of the application's own."""


class TextContentPart(TypedDict):
    """A piece of text inside a message of several parts."""

    type: Literal["text"]
    text: str


class ImageContentPart(TypedDict):
    """An image inside a message, by URL (a `data:` URL holds the bytes themselves)."""

    type: Literal["image"]
    url: str
    alt: NotRequired[str]


class AudioContentPart(TypedDict):
    """A sound inside a message, by URL (a `data:` URL holds the bytes themselves)."""

    type: Literal["audio"]
    url: str
    format: NotRequired[str]


ContentPart: TypeAlias = TextContentPart | ImageContentPart | AudioContentPart


class ToolCall(TypedDict):
    """A call that a model makes of a tool; `id` ties the tool's answer to the call.

    `malformed` is what the model wrote as arguments if that is no JSON object, with text cut off, for
    example; `arguments` is empty then.
    """

    name: str
    arguments: dict[str, object]
    id: NotRequired[str]
    malformed: NotRequired[str]


class FunctionDefinition(TypedDict):
    """What a model is told of a function: `parameters` is the JSON schema of its arguments."""

    name: str
    description: str
    parameters: dict[str, object]


class ToolDefinition(TypedDict):
    """What a model is told of a tool, in the form that OpenAI's API and chat templates take."""

    type: Literal["function"]
    function: FunctionDefinition


class Message(TypedDict):
    """One turn of a conversation.

    `tool_call_id` stands in a message of role "tool" and names the call that it answers.
    """

    role: Role
    content: str | list[ContentPart]
    tool_calls: NotRequired[list[ToolCall]]
    tool_call_id: NotRequired[str]
    name: NotRequired[str]


Chat: TypeAlias = list[Message]

Reply: TypeAlias = str | Message
"""What a model answers: text, or a message of role "assistant", which may call tools."""
