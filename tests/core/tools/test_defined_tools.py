"""What a model is told that it may call."""

from __future__ import annotations

from typing import Any

import pytest

from rolloutlib.tools import Tool, Toolset, define_tools
from rolloutlib.types import ToolDefinition


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


GIVEN: ToolDefinition = {
    "type": "function",
    "function": {"name": "given", "description": "", "parameters": {"type": "object"}},
}


def test_functions_tools_and_definitions_are_defined_in_their_order() -> None:
    definitions = define_tools([GIVEN, add, Tool(add, name="plus")])
    assert [each["function"]["name"] for each in definitions] == ["given", "add", "plus"]
    assert definitions[0] is GIVEN
    assert define_tools(Toolset([add])) == definitions[1:2]
    assert define_tools(None) == define_tools([]) == []


@pytest.mark.parametrize("tools", [GIVEN, "add", add, 3, [3]])
def test_what_is_no_list_of_tools_is_refused(tools: Any) -> None:
    with pytest.raises(TypeError, match=r"tools|3"):
        define_tools(tools)
