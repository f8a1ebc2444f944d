"""What a model is told that it may call, and by which renderers."""

from __future__ import annotations

from typing import TypeVar

from rolloutlib.tinker._renderers import ChatTemplateRenderer, Renderer
from rolloutlib.types import ToolDefinition

RendererT = TypeVar("RendererT", bound=Renderer | None)


def check_renderer(renderer: object) -> None:
    """Refuse what is no renderer.

    Raises:
        TypeError: It lacks a method.
    """
    for name in ("build_generation_prompt", "get_stop_sequences", "parse_response"):
        if renderer is not None and not callable(getattr(renderer, name, None)):
            msg = f"{renderer!r} is no renderer: it lacks {name}"
            raise TypeError(msg)


def with_tools(renderer: RendererT, tools: list[ToolDefinition]) -> RendererT:
    """Return a renderer that shows the model tools.

    Raises:
        TypeError: It cannot.
    """
    if isinstance(renderer, ChatTemplateRenderer):
        return renderer.with_tools(tools)
    if (
        renderer is not None
        and tools
        and not hasattr(renderer, "create_conversation_prefix_with_tools")
    ):
        msg = f"{renderer!r} cannot tell a model of tools: it lacks create_conversation_prefix_with_tools"
        raise TypeError(msg)
    return renderer
