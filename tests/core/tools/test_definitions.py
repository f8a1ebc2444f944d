"""What a model is told of a function."""

from __future__ import annotations

import copy
import functools
import json
import math
import pickle
import subprocess
import sys
from collections.abc import AsyncIterator
from enum import Enum
from typing import Annotated, Any, Literal

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field

from rolloutlib.tools import Tool, Toolset


class Colour(Enum):
    RED = "red"


class Point(BaseModel):
    """A place."""

    x: int
    y: int = 0


def search(
    query: str,
    limit: Annotated[int, Field(gt=0)] = 10,
    *,
    order: Literal["new", "old"] = "new",
    words: list[str] | None = None,
) -> list[str]:
    """Search the archive.

    Newest first: unless told otherwise.

    Args:
        query: What to look for,
            in a few words.
        limit (int, optional): How many results.
        order: Which come first: "new" or "old".

    Returns:
        Titles.
    """
    return [query] * limit


def test_a_definition_tells_name_description_and_arguments() -> None:
    assert Tool(search).definition == {
        "type": "function",
        "function": {
            "name": "search",
            "description": (
                "Search the archive.\n\nNewest first: unless told otherwise.\n\nReturns:\n    Titles."
            ),
            "parameters": {
                "type": "object",
                "properties": {
                    "query": {
                        "type": "string",
                        "description": "What to look for, in a few words.",
                    },
                    "limit": {
                        "type": "integer",
                        "exclusiveMinimum": 0,
                        "default": 10,
                        "description": "How many results.",
                    },
                    "order": {
                        "type": "string",
                        "enum": ["new", "old"],
                        "default": "new",
                        "description": 'Which come first: "new" or "old".',
                    },
                    "words": {
                        "anyOf": [{"type": "array", "items": {"type": "string"}}, {"type": "null"}],
                        "default": None,
                    },
                },
                "required": ["query"],
                "additionalProperties": False,
            },
        },
    }


def test_a_definition_may_be_changed_without_changing_the_tool() -> None:
    tool = Tool(search)
    tool.definition["function"]["parameters"].clear()
    assert tool.definition == Tool(search).definition


def test_name_and_description_can_be_given() -> None:
    function = Tool(search, name="find", description="Find.").definition["function"]
    assert (function["name"], function["description"]) == ("find", "Find.")


def test_a_description_in_the_annotation_wins_over_the_docstring() -> None:
    def look(at: Annotated[str, Field(description="This.")]) -> None:
        """Look.

        Args:
            at: That.
        """

    parameters: Any = Tool(look).definition["function"]["parameters"]
    assert parameters["properties"]["at"]["description"] == "This."


@pytest.mark.parametrize(
    "docstring",
    [
        "Look.\n\nParameters\n----------\nat : str\n    What.",
        "Look.\n\n:param at: What.",
        "Look.\n\nArgs:\n\nAnything.",
        "",
    ],
)
def test_what_is_not_understood_of_a_docstring_stays_in_the_description(docstring: str) -> None:
    def look(at: str) -> None: ...

    look.__doc__ = docstring
    assert Tool(look).description == docstring


def test_a_model_is_described_by_its_fields() -> None:
    def go(to: Point, colour: Colour = Colour.RED) -> str:
        return f"{to.x} {to.y} {colour.name}"

    parameters: Any = Tool(go).definition["function"]["parameters"]
    assert parameters["$defs"]["Point"]["required"] == ["x"]
    assert parameters["properties"]["colour"]["default"] == "red"
    jsonschema.Draft202012Validator.check_schema(parameters)


def test_names_that_pydantic_has_for_itself_are_names_like_any_other() -> None:
    def awkward(copy: int, model_config: int, _private: int, schema: int) -> int:
        return copy + model_config + _private + schema

    arguments: dict[str, object] = {"copy": 1, "model_config": 2, "_private": 3, "schema": 4}
    outcome = Tool(awkward).call({"name": "awkward", "arguments": arguments})
    assert outcome.message["content"] == "10"


class Counter:
    """Counts."""

    def __init__(self) -> None:
        self.count = 0

    def add(self, number: int) -> int:
        """Add a number."""
        self.count += number
        return self.count

    def __call__(self, number: int) -> int:
        """Subtract a number."""
        return self.add(-number)


def test_methods_partials_and_callable_objects_are_functions_too() -> None:
    counter = Counter()
    bound = Tool(counter.add)
    called = Tool(counter, name="subtract")
    less = Tool(functools.partial(search, limit=2), name="two")
    assert bound.description == "Add a number."
    assert called.description == "Subtract a number."
    assert less.description == Tool(search).description
    bound.call({"name": "add", "arguments": {"number": 5}})
    called.call({"name": "subtract", "arguments": {"number": 2}})
    assert counter.count == 3
    found = less.call({"name": "two", "arguments": {"query": "a"}})
    assert found.message["content"] == '["a","a"]'


def test_a_tool_is_the_function_too() -> None:
    @Tool
    def double(number: int) -> int:
        return 2 * number

    assert double(4) == 8
    assert double.name == "double"


def test_tools_of_one_method_read_its_signature_once() -> None:
    class Slow:
        built = 0

        @classmethod
        def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> Any:
            cls.built += 1
            return handler(int)

    class Env:
        def act(self, slow: Slow) -> None: ...

    vars(Env)["act"].__annotations__ = {"slow": Slow}
    for _ in range(3):
        Tool(Env().act)
    assert Slow.built == 1


@pytest.mark.parametrize("tool", [Tool(search, timeout=3, strict=True), Tool(Counter().add)])
def test_tools_are_copied_and_pickled(tool: Tool[..., Any]) -> None:
    for twin in (copy.deepcopy(tool), pickle.loads(pickle.dumps(tool))):  # noqa: S301
        assert twin.definition == tool.definition
        assert (twin.timeout, twin.strict) == (tool.timeout, tool.strict)


def test_a_program_needs_to_import_nothing_else() -> None:
    script = (
        "import rolloutlib\n"
        "def double(number: int = 1) -> int: return 2 * number\n"
        "call = {'name': 'double', 'arguments': {'number': 4}}\n"
        "print(rolloutlib.Tool(double).call(call).message['content'])\n"
        "def wrong(of: rolloutlib.Dataset) -> None: ...\n"
        "try: rolloutlib.Tool(wrong)\n"
        "except TypeError as error: print(error)\n"
    )
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    number, problem = run.stdout.splitlines()[:2]
    assert number == "8"
    assert "an annotation of tool 'wrong' has no JSON schema" in problem


def untyped(a: int) -> None: ...


untyped.__annotations__ = {}


def of_any_number(*numbers: int) -> None: ...


def of_any_names(**numbers: int) -> None: ...


def by_place(number: int, /) -> None: ...


def of_a_lock(lock: Counter) -> None: ...


def with_a_field(limit: int = Field(5, gt=0)) -> None: ...


def of_nothing_known(value: int) -> None: ...


of_nothing_known.__annotations__ = {"value": "Missing"}


async def of_no_end(number: int) -> AsyncIterator[int]:
    yield number


def of_places(places: Any, best: Any = None) -> int:
    return max(place.x for place in places)


of_places.__annotations__ = {"places": list["Place"], "best": "'Place | None'"}


class Place(BaseModel):
    x: int


class Counted:
    """An object in place of a function, as some decorators make it."""

    def __init__(self, function: Any) -> None:
        self.function = function
        functools.update_wrapper(self, function)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.function(*args, **kwargs)


def test_names_within_annotations_are_looked_up_where_the_function_is() -> None:
    for function in (of_places, functools.partial(of_places, best=None)):
        tool = Tool(function, name="of_places")
        found = tool.call(
            {"name": "of_places", "arguments": {"places": [{"x": 1}, {"x": 3}], "best": {"x": 3}}}
        )
        assert found.message["content"] == "3"
        schema: Any = tool.definition["function"]["parameters"]
        assert "Place" in schema["$defs"]


def test_an_argument_may_have_another_name_than_its_parameter() -> None:
    def act(of: str, from_: Annotated[int, Field(alias="from")], to: int = 9) -> list[int]:
        """Act.

        Args:
            of: Whose.
            from_: Where it begins.
            to: Where it ends.
        """
        return [from_, to]

    tool = Tool(act)
    parameters: Any = tool.definition["function"]["parameters"]
    assert parameters["properties"] == {
        "of": {"type": "string", "description": "Whose."},
        "from": {"type": "integer", "description": "Where it begins."},
        "to": {"type": "integer", "description": "Where it ends.", "default": 9},
    }
    outcome = tool.call({"name": "act", "arguments": {"of": "x", "from": 3}})
    assert outcome.message["content"] == "[3,9]"
    assert tool.call({"name": "act", "arguments": {"from_": 3}}).problem == "invalid"
    call: Any = Toolset([tool]).space.sample()
    assert tool.call(call).problem is None


class Range(BaseModel):
    low: float = -math.inf
    high: Annotated[float, Field(le=math.inf)] = 1.0


@pytest.mark.parametrize("default", [math.inf, math.nan, {"x": [-math.inf]}, object(), "\ud800"])
def test_a_default_that_json_lacks_is_left_out(default: Any) -> None:
    def act(within: Range, last: Any = default) -> bool:
        return last is default

    tool = Tool(act)
    text = json.dumps(tool.definition, allow_nan=False, ensure_ascii=False)
    assert text.encode()
    parameters: Any = tool.definition["function"]["parameters"]
    assert parameters["properties"]["last"] == {}
    assert parameters["$defs"]["Range"]["properties"]["low"] == {"type": "number"}
    assert tool.call({"name": "act", "arguments": {"within": {}}}).message["content"] == "true"


def test_a_field_that_json_lacks_is_refused() -> None:
    def act(x: Annotated[float, Field(examples=[math.nan])]) -> None: ...

    with pytest.raises(TypeError, match=r"what tool 'act' says of itself .* a Field has NaN"):
        Tool(act)


def test_what_wraps_a_function_is_described_by_it() -> None:
    for wrapper in (
        Counted(search),
        functools.lru_cache(search),
        functools.partial(Counted(search)),
    ):
        assert Tool(wrapper, name="search").definition == Tool(search).definition


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (of_no_end, "'of_no_end' is an asynchronous generator.*return a list"),
        (untyped, "parameter 'a' of tool 'untyped' has no annotation: add one"),
        (Counter.add, "parameter 'self' of tool 'add' .* method of an instance"),
        (of_any_number, "tool 'of_any_number' takes .*numbers.*, but a model gives all .* by name"),
        (of_any_names, "by name"),
        (by_place, "by name"),
        (of_a_lock, "an annotation of tool 'of_a_lock' has no JSON schema"),
        (of_nothing_known, "'Missing' is not defined.*at the top of a module"),
        (with_a_field, "is a Field.*write Annotated"),
        (5, "made of a function, got 5"),
        (Tool(search), "made of a function"),
    ],
)
def test_what_no_tool_can_be_made_of_is_refused_with_a_remedy(function: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        Tool(function)


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        ({"name": "a b"}, ValueError, "64 ASCII letters.*'a b'; pass name="),
        ({"timeout": 0}, ValueError, "positive, got 0"),
        ({"timeout": "1"}, TypeError, "timeout must be a real number"),
        ({"catch": BaseException}, TypeError, "catch must be a class of exceptions"),
        ({"catch": "all"}, TypeError, "got 'all'"),
    ],
)
def test_wrong_settings_are_refused(
    settings: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        Tool(search, **settings)
    with pytest.raises(ValueError, match="<lambda>"):
        Tool(lambda: 1)


def test_a_toolset_is_made_of_several_tools_or_of_another_set() -> None:
    alone: Any
    for alone in (search, Tool(search)):
        with pytest.raises(TypeError, match=r"tools are several functions.*in a list"):
            Toolset(alone)
    tools = Toolset([search])
    assert list(Toolset(tools).values()) == list(tools.values())


def test_a_toolset_has_each_name_once() -> None:
    tools = Toolset([search, Tool(search, name="find")])
    assert list(tools) == ["search", "find"]
    assert [one["function"]["name"] for one in tools.definitions] == ["search", "find"]
    with pytest.raises(ValueError, match="two tools named 'search': pass name="):
        Toolset([search, search])


def plan(
    point: Point,
    colour: Colour | None,
    steps: list[tuple[int, str]],
    share: Annotated[float, Field(ge=0, lt=1)],
    name: Annotated[str, Field(min_length=2, max_length=4)] = "ab",
    really: bool = True,
) -> str:
    return name


@given(seed=st.integers(0, 2**32))
def test_samples_of_the_space_are_calls_that_the_tools_take(seed: int) -> None:
    tools = Toolset([plan, search])
    space = tools.space
    space.seed(seed)
    call = space.sample()
    assert call in space
    jsonschema.validate(call["arguments"], tools[call["name"]].definition["function"]["parameters"])
    assert tools.call(call).problem is None
    assert space.from_jsonable(space.to_jsonable([call])) == [call]


def test_arguments_of_wide_ranges_are_drawn_too() -> None:
    def move(
        to: Annotated[int, Field(ge=-(2**70), le=2**64)],
        speed: Annotated[float, Field(ge=-1e308, le=1e308)],
        note: Annotated[str, Field(max_length=10**12)],
    ) -> None: ...

    space = Toolset([move]).space
    assert space.sample() in space


def test_a_space_without_samples_says_so() -> None:
    def match(text: Annotated[str, Field(pattern="^x{50}$")]) -> None: ...

    with pytest.raises(NotImplementedError, match=r"found no arguments that Tool\('match'\) takes"):
        Toolset([match]).space.sample()


def test_spaces_of_equal_tools_are_equal() -> None:
    assert Toolset([Counter().add]).space == Toolset([Counter().add]).space
    assert Toolset([search]).space != Toolset([Tool(search, description="")]).space
