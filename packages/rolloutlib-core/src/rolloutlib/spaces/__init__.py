"""Spaces for text, tokens, messages and tool calls, beside all of Gymnasium's."""

from rolloutlib.spaces import messages, text, tokens, tools
from rolloutlib.spaces._pydantic import PydanticSpace
from rolloutlib.spaces.messages import ChatSpace, MessageSpace
from rolloutlib.spaces.text import TextSpace
from rolloutlib.spaces.tools import ToolCallSpace

Chat = ChatSpace
Message = MessageSpace
Text = TextSpace
ToolCall = ToolCallSpace

__all__ = [
    "Chat",
    "ChatSpace",
    "Message",
    "MessageSpace",
    "PydanticSpace",
    "Text",
    "TextSpace",
    "ToolCall",
    "ToolCallSpace",
    "messages",
    "text",
    "tokens",
    "tools",
]
