"""The tools that a model has."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, cast

from rolloutlib._calls import task_group
from rolloutlib.spaces import ToolCallSpace
from rolloutlib.tools._outcomes import ToolOutcome
from rolloutlib.tools._spaces import ArgumentsSpace
from rolloutlib.tools._tool import Tool, refuse
from rolloutlib.types import ToolCall, ToolDefinition


class Toolset(Mapping[str, Tool[..., Any]]):
    """Tools by their names.

    Args:
        tools: Functions with annotations, or tools; also those of another set.

    Raises:
        TypeError: No tool can be made of a function, or a function is given alone.
        ValueError: Two tools have the same name.
    """

    def __init__(self, tools: Toolset | Iterable[Tool[..., Any] | Callable[..., Any]] = ()) -> None:
        self._tools: dict[str, Tool[..., Any]] = {}
        if callable(tools):
            msg = f"tools are several functions, got {tools!r}: pass it in a list"
            raise TypeError(msg)
        for given in tools.values() if isinstance(tools, Toolset) else tools:
            tool = cast("Tool[..., Any]", given if isinstance(given, Tool) else Tool(given))
            if tool.name in self._tools:
                msg = f"there are two tools named {tool.name!r}: pass name= to one of them"
                raise ValueError(msg)
            self._tools[tool.name] = tool

    @property
    def definitions(self) -> list[ToolDefinition]:
        """What a model is told of the tools, in the form that OpenAI's API and chat templates take."""
        return [tool.definition for tool in self.values()]

    @property
    def space(self) -> ToolCallSpace:
        """The space of calls of these tools.

        Raises:
            ValueError: There are no tools.
        """
        return ToolCallSpace({name: ArgumentsSpace(tool) for name, tool in self.items()})

    def call(self, call: ToolCall) -> ToolOutcome:
        """Do what a model asks.

        Raises:
            TypeError: The tool is asynchronous.
            Exception: What the function raises and its tool does not catch.
        """
        tool = self.get(call["name"])
        return self._unknown(call) if tool is None else tool.call(call)

    async def acall(self, call: ToolCall, *, inline: bool = False) -> ToolOutcome:
        """Do what a model asks; a synchronous function runs on a worker thread unless `inline`.

        Raises:
            Exception: What the function raises and its tool does not catch.
        """
        tool = self.get(call["name"])
        return self._unknown(call) if tool is None else await tool.acall(call, inline=inline)

    async def acall_all(
        self, calls: Iterable[ToolCall], *, inline: bool = False, parallel: bool = False
    ) -> list[ToolOutcome]:
        """Do what a model asks in one turn; the outcomes are in the order of the calls.

        Args:
            calls: The calls.
            inline: Call synchronous functions on the event loop.
            parallel: Make the calls at the same time, not one after the other.

        Raises:
            Exception: What a function raises first and its tool does not catch; the other calls are
                cancelled.
        """
        if not parallel:
            return [await self.acall(call, inline=inline) for call in calls]
        outcomes: dict[int, ToolOutcome] = {}
        errors: list[Exception] = []
        async with task_group() as tasks:

            async def run(index: int, call: ToolCall) -> None:
                try:
                    outcomes[index] = await self.acall(call, inline=inline)
                except Exception as error:
                    errors.append(error)
                    tasks.cancel_scope.cancel()

            for index, call in enumerate(calls):
                tasks.start_soon(run, index, call)
        if errors:
            raise errors[0]
        return [outcomes[index] for index in sorted(outcomes)]

    def _unknown(self, call: ToolCall) -> ToolOutcome:
        names = ", ".join(map(repr, self)) or "none"
        return refuse(call, "unknown", f"there is no tool {call['name']!r}; the tools are: {names}")

    def __getitem__(self, name: str) -> Tool[..., Any]:
        return self._tools[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._tools)

    def __len__(self) -> int:
        return len(self._tools)

    def __repr__(self) -> str:
        return f"Toolset({list(self)})"
