"""What models may answer, and what tools take."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from rolloutlib.spaces import MessageSpace, TextSpace
from rolloutlib.spaces._structured import StructuredSpace
from rolloutlib.tools._sampling import draw
from rolloutlib.types import Message, Reply

if TYPE_CHECKING:
    from rolloutlib.tools._tool import Tool
    from rolloutlib.tools._toolset import Toolset

_TRIES = 20


class ArgumentsSpace(StructuredSpace[dict[str, object]]):
    """The arguments that a tool takes, as a call has them: dictionaries that JSON can hold.

    Samples follow the JSON schema of the arguments, as far as it says what there is: of those with
    a pattern, for example, none may be found.

    Args:
        tool: The tool.
        seed: Seeds the sampling.
    """

    def __init__(self, tool: Tool[..., Any], *, seed: int | None = None) -> None:
        self.tool = tool
        super().__init__(dict[str, object], seed=seed)

    def _problem(self, value: Any) -> str | None:
        if not isinstance(value, dict):
            return f"arguments are a dictionary, got {value!r}"
        try:
            self.tool.read(cast("dict[str, Any]", value))
        except ValueError as error:
            return str(error)
        return None

    def _draw(self) -> dict[str, object]:
        schema = cast("dict[str, Any]", self.tool.definition["function"]["parameters"])
        for _ in range(_TRIES):
            value = draw(schema, self.np_random)
            if self._problem(value) is None:
                return value
        msg = f"{self} found no arguments that {self.tool} takes: pass calls that you choose"
        raise NotImplementedError(msg)

    def _settings(self) -> tuple[Any, ...]:
        return (self.tool.definition, self.tool.strict)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.tool})"


class ReplySpace(StructuredSpace[Reply]):
    """What a model may answer: text, or a message of role "assistant", with calls of its tools.

    A call of another tool, or with arguments that its tool does not take, is no member. `ChatEnv`
    takes it nonetheless, and says what is wrong.

    Args:
        tools: The tools that there are.
        seed: Seeds the sampling.
    """

    def __init__(self, tools: Toolset, *, seed: int | None = None) -> None:
        self.tools = tools
        self._texts = TextSpace(min_length=1)
        self._messages = MessageSpace(roles=["assistant"])
        self._calls = tools.space if tools else None
        parts = [self._texts, *([self._calls] if self._calls else [])]
        super().__init__(cast("Any", Reply), parts=parts, seed=seed)

    def seed(self, seed: int | None = None) -> list[int]:
        """Seed the sampling of the space and of the spaces in it; return the seeds."""
        return self._seed_all(seed)

    def _problem(self, value: Any) -> str | None:
        if isinstance(value, str):
            return self._messages._reason({"role": "assistant", "content": value})
        if (problem := self._messages._reason(value)) is not None:
            return problem
        for call in cast("Message", value).get("tool_calls", []):
            if self._calls is None:
                return f"there is no tool {call['name']!r}"
            if (problem := self._calls._reason(call)) is not None:
                return problem
        return None

    def _draw(self) -> Reply:
        if self._calls is None or self.np_random.integers(2):
            return self._texts.sample()
        return {"role": "assistant", "content": "", "tool_calls": [self._calls.sample()]}

    def _settings(self) -> tuple[Any, ...]:
        return (self._calls,)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.tools})"
