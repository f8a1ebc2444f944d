"""Tool calls, alone and in sequences."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, cast

import gymnasium as gym
import pydantic

from rolloutlib.spaces._pydantic import PydanticSpace
from rolloutlib.spaces._sequence import SequenceSpace
from rolloutlib.spaces._shapes import is_text, tool_call_problem
from rolloutlib.spaces._structured import StructuredSpace
from rolloutlib.spaces.text import TextSpace
from rolloutlib.types import ToolCall

__all__ = ["ToolCallSpace", "call", "calls"]


class ToolCallSpace(StructuredSpace[ToolCall]):
    """Calls of certain tools: dictionaries of the form of `rolloutlib.types.ToolCall`.

    Args:
        tools: The space of each tool's arguments, by the tool's name. Arguments are dictionaries:
            of a `gymnasium.spaces.Dict`, say, or of a `PydanticSpace` of a model, whose samples
            become dictionaries of its fields.
        include_id_in_samples: Give samples an id; members may have one or not.
        seed: Seeds the sampling, also of the spaces of arguments.

    Raises:
        TypeError: `tools` is no mapping, a name is not text, or the schema of a tool is not a space
            of dictionaries.
        ValueError: There are no tools, or a tool has no name.
    """

    def __init__(
        self,
        tools: Mapping[str, gym.Space[Any]],
        *,
        include_id_in_samples: bool = False,
        seed: int | None = None,
    ) -> None:
        if not isinstance(cast("object", tools), Mapping):
            msg = f"tools must be a mapping from names to spaces, got {tools!r}"
            raise TypeError(msg)
        if not tools:
            msg = f"tools must have at least one tool, got {tools!r}"
            raise ValueError(msg)
        for name, space in tools.items():
            if not is_text(name):
                msg = f"the name of a tool must be text, got {name!r}"
                raise TypeError(msg)
            if not name:
                msg = f"the name of a tool must not be empty, got {dict(tools)!r}"
                raise ValueError(msg)
            if not isinstance(cast("object", space), gym.Space) or isinstance(space, _NO_DICTS):
                msg = (
                    f"the arguments of tool {name!r} must be described by a Space of dictionaries, "
                    f"such as gymnasium.spaces.Dict, got {space!r}"
                )
                raise TypeError(msg)
        self._tools = dict(tools)
        self._names = sorted(tools)  # the order of drawing: equal spaces draw equal samples
        self.include_id_in_samples = include_id_in_samples
        super().__init__(ToolCall, parts=[tools[name] for name in self._names], seed=seed)

    @property
    def tool_schemas(self) -> Mapping[str, gym.Space[Any]]:
        """The space of each tool's arguments, by the tool's name; read-only."""
        return MappingProxyType(self._tools)

    def contains(self, x: object) -> bool:
        """Tell whether a value calls one of the tools with arguments that it takes."""
        return super().contains(x)

    def seed(self, seed: int | None = None) -> list[int]:
        """Seed the sampling of the space and of the spaces of arguments; return the seeds."""
        return self._seed_all(seed)

    def to_jsonable(self, sample_n: Iterable[ToolCall]) -> list[dict[str, Any]]:
        """Return calls as JSON can hold them, the arguments in the form of their spaces."""
        return [
            {**call, "arguments": _to_json(self._tools[call["name"]], call["arguments"])}
            for call in sample_n
        ]

    def from_jsonable(self, sample_n: Sequence[Any]) -> list[ToolCall]:
        """Return the calls that `to_jsonable` was given.

        Raises:
            ValueError: What was read calls no tool of the space.
        """
        calls: list[ToolCall] = []
        for call in sample_n:
            problem = tool_call_problem(call) or self._name_problem(call["name"])
            if problem is not None:
                msg = f"not in {self}: {problem}"
                raise ValueError(msg)
            arguments = self._arguments(
                call["name"], _from_json(self._tools[call["name"]], call["arguments"])
            )
            calls.append(self.validate({**call, "arguments": arguments}))
        return calls

    def _problem(self, value: Any) -> str | None:
        problem = tool_call_problem(value) or self._name_problem(value["name"])
        if problem is None and "malformed" in value:
            return f"the arguments of tool {value['name']!r} are malformed: {value['malformed']!r}"
        if problem is None and not self._tools[value["name"]].contains(value["arguments"]):
            return f"tool {value['name']!r} does not take the arguments {value['arguments']!r}"
        return problem

    def _name_problem(self, name: str) -> str | None:
        return None if name in self._tools else f"there is no tool {name!r}"

    def _draw(self) -> ToolCall:
        name = self._names[self.np_random.integers(len(self._names))]
        call: ToolCall = {
            "name": name,
            "arguments": self._arguments(name, self._tools[name].sample()),
        }
        if self.include_id_in_samples:
            call["id"] = f"call_{self.np_random.bytes(8).hex()}"
        return call

    def _arguments(self, name: str, value: Any) -> dict[str, object]:
        """Return arguments as a dictionary; a model as what it was made from."""
        if isinstance(value, pydantic.BaseModel):
            return value.model_dump(by_alias=True, exclude_unset=True)
        if not isinstance(value, dict):
            msg = (
                f"the arguments of tool {name!r} must be a dictionary, got {value!r} from its space"
            )
            raise TypeError(msg)
        return cast("dict[str, object]", value)

    def _settings(self) -> tuple[Any, ...]:
        return (self._tools, self.include_id_in_samples)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(tools={tuple(self._tools)})"


def call(
    schemas: Mapping[str, gym.Space[Any]],
    *,
    include_id_in_samples: bool = False,
    seed: int | None = None,
) -> ToolCallSpace:
    """Return a `ToolCallSpace` of these arguments."""
    return ToolCallSpace(schemas, include_id_in_samples=include_id_in_samples, seed=seed)


def calls(
    schemas: Mapping[str, gym.Space[Any]],
    *,
    include_id_in_samples: bool = False,
    stack: bool = False,
    seed: int | None = None,
) -> SequenceSpace:
    """Return the space of sequences of tool calls: lists and tuples of them.

    Args:
        schemas: The space of each tool's arguments, by the tool's name.
        include_id_in_samples: Give samples an id.
        stack: As in Gymnasium's `Sequence`; tool calls cannot be stacked, so samples are tuples
            either way.
        seed: Seeds the sampling.
    """
    space = ToolCallSpace(schemas, include_id_in_samples=include_id_in_samples)
    return SequenceSpace(space, seed=seed, stack=stack)


def _to_json(space: gym.Space[Any], value: Any) -> Any:
    """Return one member of a space as JSON can hold it; Gymnasium's own form is for batches."""
    if isinstance(space, gym.spaces.Dict):
        return {key: _to_json(part, value[key]) for key, part in _parts(cast("object", space))}
    if isinstance(space, gym.spaces.Tuple):
        return [_to_json(part, value[index]) for index, part in _parts(cast("object", space))]
    if type(space) is PydanticSpace:  # without the defaults of a model that are not in the value
        described = cast("PydanticSpace[Any]", space)
        return described.adapter.dump_python(
            described.validate(value), mode="json", by_alias=True, exclude_unset=True
        )
    return space.to_jsonable([value])[0]


def _from_json(space: gym.Space[Any], value: Any) -> Any:
    if isinstance(space, gym.spaces.Dict):
        return {key: _from_json(part, value[key]) for key, part in _parts(cast("object", space))}
    if isinstance(space, gym.spaces.Tuple):
        return tuple(
            [_from_json(part, value[index]) for index, part in _parts(cast("object", space))]
        )
    return space.from_jsonable([value])[0]


def _parts(space: object) -> Iterable[tuple[Any, gym.Space[Any]]]:
    parts = cast("Any", space).spaces
    return cast("Any", parts.items() if hasattr(parts, "items") else enumerate(parts))


_NO_DICTS = (
    gym.spaces.Box,
    gym.spaces.Discrete,
    gym.spaces.Graph,
    gym.spaces.MultiBinary,
    gym.spaces.MultiDiscrete,
    gym.spaces.OneOf,
    gym.spaces.Sequence,
    gym.spaces.Text,
    gym.spaces.Tuple,
    TextSpace,
)
"""Spaces none of whose members is a dictionary."""
