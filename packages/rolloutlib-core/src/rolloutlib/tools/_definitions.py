"""What a model is told that it may call."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeAlias, cast

from rolloutlib.tools._tool import Tool
from rolloutlib.tools._toolset import Toolset
from rolloutlib.types import ToolDefinition

Tools: TypeAlias = Toolset | Iterable[ToolDefinition | Tool[..., Any] | Callable[..., Any]]
"""What policies take as tools: those of an environment, or functions, tools or definitions."""


def define_tools(tools: Tools | None) -> list[ToolDefinition]:
    """Return the definitions of tools, for the adapter of a model backend.

    Args:
        tools: The tools; None for none.

    Raises:
        TypeError: Something is no tool.
    """
    if isinstance(tools, Toolset):
        return tools.definitions
    given: Any = () if tools is None else tools
    if isinstance(given, Mapping | str) or not isinstance(given, Iterable):
        msg = f"tools must be a Toolset or a list of functions, tools or definitions, got {given!r}"
        raise TypeError(msg)
    return [
        cast("ToolDefinition", one) if isinstance(one, Mapping) else Toolset([one]).definitions[0]
        for one in cast("Iterable[Any]", given)
    ]
