"""Calls of tools, and what comes of them."""

from __future__ import annotations

import functools
import json
import sys
import threading
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import date
from typing import Any

import anyio
import anyio.lowlevel
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, field_validator

from rolloutlib import Step, Trajectory, spaces
from rolloutlib.tools import EndEpisode, Tool, ToolError, ToolOutcome, Toolset, read_call
from rolloutlib.types import Message, ToolCall

pytestmark = pytest.mark.anyio

STOCK = {"apple": 30, "pear": 45}
DEEP = '{"a": ' + "[" * 32 + "]" * 32 + "}"


def price(item: str, amount: int = 1) -> int:
    return STOCK[item] * amount


async def aprice(item: str, amount: int = 1) -> int:
    await anyio.lowlevel.checkpoint()
    return price(item, amount)


class Odd(BaseModel):
    x: int

    @field_validator("x")
    @classmethod
    def check(cls, value: int) -> int:
        raise KeyError(value)


def call(arguments: Any, name: str = "price") -> ToolCall:
    return {"name": name, "arguments": arguments, "id": "c1"}


def content(outcome: ToolOutcome) -> Any:
    assert [outcome.message] in spaces.messages.chat()
    return outcome.message["content"]


async def outcomes(tool: Callable[..., Any], asked: ToolCall) -> list[ToolOutcome]:
    """Ask in each way that there is: they agree."""
    tools = Toolset([Tool(tool, name="price")])
    found = [await tools.acall(asked), await tools.acall(asked, inline=True)]
    if not tools["price"].is_async:
        found.append(tools.call(asked))
    assert all(one.message == found[0].message for one in found)
    assert all(one.problem == found[0].problem for one in found)
    return found


@pytest.mark.parametrize("tool", [price, aprice])
async def test_a_call_is_answered(tool: Callable[..., Any]) -> None:
    for outcome in await outcomes(tool, call({"item": "apple", "amount": "2"})):
        assert outcome == ToolOutcome(
            {"role": "tool", "name": "price", "content": "60", "tool_call_id": "c1"}
        )


@pytest.mark.parametrize("tool", [price, aprice])
@pytest.mark.parametrize(
    ("asked", "problem", "text"),
    [
        (
            call({}, name="prices"),
            "unknown",
            "error: there is no tool 'prices'; the tools are: 'price'",
        ),
        (
            {"name": "price", "arguments": {}, "malformed": '{"item": "ap', "id": "c1"},
            "malformed",
            (
                "error: the arguments of 'price' are no JSON object: EOF while parsing a string at "
                "line 1 column 12"
            ),
        ),
        (
            {"name": "price", "arguments": {}, "malformed": '"{}"', "id": "c1"},
            "malformed",
            "error: the arguments of 'price' are no JSON object: expected an object, got '{}'",
        ),
        (
            call({"amount": "many", "items": 1}),
            "invalid",
            (
                "error: 'price' does not take these arguments:\n- item: is missing\n- amount: Input "
                "should be a valid integer, unable to parse string as an integer, got 'many'\n"
                "- items: there is no such argument"
            ),
        ),
        (call({"item": "kiwi"}), "failed", "error: 'price' failed: KeyError: 'kiwi'"),
    ],
)
async def test_whatever_is_wrong_with_a_call_becomes_its_answer(
    tool: Callable[..., Any], asked: ToolCall, problem: str, text: str
) -> None:
    for outcome in await outcomes(tool, asked):
        assert outcome.problem == problem
        assert content(outcome) == text
        assert outcome.message.get("tool_call_id") == "c1"


async def test_a_long_list_of_errors_is_cut_short() -> None:
    [outcome, *_] = await outcomes(price, call({f"a{n}": "x" * 1000 for n in range(500)}))
    assert content(outcome).endswith("\n- and 491 more")
    [outcome, *_] = await outcomes(price, call({"item": "apple", "amount": "x" * 10_000}))
    assert len(content(outcome)) < 300


async def test_exceptions_of_tools_are_read_whatever_they_are() -> None:
    class MuteError(Exception):
        def __str__(self) -> str:
            raise ValueError

    def fail(kind: str) -> None:
        raise {"empty": ValueError(), "mute": MuteError(), "told": ToolError("no such file")}[kind]

    texts = [
        content((await outcomes(fail, call({"kind": k})))[0]) for k in ("empty", "mute", "told")
    ]
    assert texts[0] == "error: 'price' failed: ValueError"
    assert "whose text raises ValueError" in texts[1]
    assert texts[2] == "error: no such file"


@pytest.mark.parametrize("tool", [price, aprice])
async def test_exceptions_that_are_not_caught_come_out(tool: Callable[..., Any]) -> None:
    picky = Toolset([Tool(tool, name="price", catch=(ValueError, OSError))])
    with pytest.raises(KeyError, match="kiwi"):
        await picky.acall(call({"item": "kiwi"}))
    assert picky["price"].catch == (ValueError, OSError)
    with pytest.raises(KeyError, match="kiwi"):
        await picky.acall_all([call({"item": "apple"}), call({"item": "kiwi"})], parallel=True)

    def deny() -> None:
        raise ToolError("not now")

    assert content(Tool(deny, catch=()).call(call({}, "deny"))) == "error: not now"


async def test_a_tool_cannot_hide_that_a_run_is_to_end() -> None:
    def stop() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Tool(stop).call(call({}))
    with pytest.raises(KeyboardInterrupt):
        Tool(stop, timeout=30).call(call({}))
    with pytest.raises(KeyboardInterrupt):
        await Tool(stop).acall(call({}))


@pytest.mark.parametrize("status", [None, 0, "no more"])
async def test_a_tool_cannot_end_the_process(status: Any) -> None:
    def leave() -> None:
        sys.exit(status)

    async def aleave() -> None:
        sys.exit(status)

    text = f"error: 'price' failed: RuntimeError: it called sys.exit({'' if status is None else repr(status)})"
    for tool in (leave, aleave):
        for outcome in await outcomes(tool, call({})):
            assert (outcome.problem, content(outcome)) == ("failed", text)
        both = Toolset([Tool(tool, name="leave"), price])
        asked = [call({}, "leave"), call({"item": "apple"})]
        for parallel in (False, True):
            found = await both.acall_all(asked, parallel=parallel)
            assert [one.problem for one in found] == ["failed", None]
        with pytest.raises(RuntimeError, match=r"it called sys\.exit"):
            await Tool(tool, catch=()).acall(call({}))
    assert Tool(leave, timeout=30).call(call({})).problem == "failed"


async def test_a_cancellation_passes_through_a_tool() -> None:
    async def wait() -> None:
        await anyio.sleep_forever()

    with anyio.CancelScope() as scope:
        scope.cancel()
        await Tool(wait, timeout=30).acall(call({}))
    assert scope.cancelled_caught


async def test_a_cancellation_that_a_tool_makes_up_is_a_failure_of_it() -> None:
    async def give_up() -> None:
        raise anyio.get_cancelled_exc_class() from None

    if anyio.get_cancelled_exc_class().__module__.startswith("asyncio"):
        outcome = await Tool(give_up).acall(call({}))
        assert outcome.problem == "failed"
        assert "ended in a cancellation" in content(outcome)


async def test_a_coroutine_that_takes_too_long_is_cancelled() -> None:
    ended = anyio.Event()

    async def wait() -> None:
        try:
            await anyio.sleep_forever()
        finally:
            ended.set()

    outcome = await Tool(wait, timeout=0.01).acall(call({}))
    assert outcome.problem == "timeout"
    assert content(outcome) == "error: 'wait' took longer than 0.01 seconds"
    assert ended.is_set()


async def test_a_function_that_takes_too_long_is_left_alone() -> None:
    release = threading.Event()

    def wait() -> str:
        release.wait(30)
        return "late"

    try:
        for outcome in (
            Tool(wait, timeout=0.01).call(call({})),
            await Tool(wait, timeout=0.01).acall(call({})),
        ):
            assert outcome.problem == "timeout"
    finally:
        release.set()
    assert content(Tool(wait, timeout=30).call(call({}))) == "late"


async def test_a_time_out_of_the_functions_own_is_a_failure() -> None:
    def wait() -> None:
        raise TimeoutError("the server is slow")

    for outcome in (await outcomes(wait, call({}))) + [Tool(wait, timeout=9).call(call({}))]:
        assert outcome.problem == "failed"


def test_an_asynchronous_function_cannot_be_called_without_a_loop() -> None:
    def hidden(item: str) -> Awaitable[int]:
        return aprice(item)

    for tool in (aprice, hidden, functools.partial(aprice, amount=2)):
        with pytest.raises(TypeError, match=r"Tool\('t'\) is asynchronous: use AsyncChatEnv"):
            Tool(tool, name="t").call(call({"item": "apple"}))


async def test_an_awaitable_that_a_function_returns_is_awaited() -> None:
    def hidden(item: str) -> Awaitable[int]:
        return aprice(item)

    assert content(await Tool(hidden).acall(call({"item": "pear"}))) == "45"


async def test_calls_of_one_turn_are_made_in_order_or_at_the_same_time() -> None:
    begun: list[int] = []
    both = anyio.Event()

    async def meet(number: int) -> int:
        begun.append(number)
        if len(begun) == 2:
            both.set()
        await both.wait()
        return number

    tools = Toolset([Tool(meet, timeout=60), price])
    calls: list[ToolCall] = [{"name": "meet", "arguments": {"number": n}} for n in (1, 2)]
    found = await tools.acall_all([*calls, call({})], parallel=True)
    assert [one.message["content"] for one in found[:2]] == ["1", "2"]
    assert found[2].problem == "invalid"

    order: list[str] = []

    async def note(text: str) -> None:
        order.append(f"{text} begins")
        await anyio.lowlevel.checkpoint()
        order.append(f"{text} ends")

    notes: list[ToolCall] = [{"name": "note", "arguments": {"text": text}} for text in "ab"]
    await Toolset([note]).acall_all(notes)
    assert order == ["a begins", "a ends", "b begins", "b ends"]


async def test_what_fails_in_parallel_cancels_the_others() -> None:
    cancelled = anyio.Event()

    async def wait() -> None:
        try:
            await anyio.sleep_forever()
        finally:
            cancelled.set()

    tools = Toolset([wait, Tool(price, catch=())])
    with pytest.raises(KeyError):
        await tools.acall_all(
            [{"name": "wait", "arguments": {}}, call({"item": "kiwi"})], parallel=True
        )
    assert cancelled.is_set()


def test_what_a_function_does_to_its_arguments_does_not_reach_the_call() -> None:
    def drain(items: list[str]) -> int:
        items.clear()
        return 0

    asked = call({"items": ["a"]})
    Tool(drain).call(asked)
    assert asked["arguments"] == {"items": ["a"]}


def test_arguments_are_read_as_json_is() -> None:
    def when(day: date, pair: tuple[int, int]) -> str:
        return f"{day.year} {pair[1]}"

    asked = call({"day": "2024-02-29", "pair": [1, 2]})
    assert content(Tool(when, strict=True).call(asked)) == "2024 2"
    asked = call({"day": "2024-02-29", "pair": ["1", 2]})
    assert content(Tool(when).call(asked)) == "2024 2"
    assert Tool(when, strict=True).call(asked).problem == "invalid"


def test_arguments_that_json_cannot_hold_are_invalid() -> None:
    endless: dict[str, Any] = {}
    endless["item"] = endless
    for arguments in ({"item": object()}, {"item": "\ud800"}, endless):
        assert Tool(price).call(call(arguments)).problem == "invalid"


def test_a_validator_that_raises_is_a_failure_of_the_tool() -> None:
    def take(odd: Odd) -> None: ...

    assert Tool(take).call(call({"odd": {"x": 1}})).problem == "failed"


@dataclass
class Row:
    name: str
    when: date


class Image:
    def _repr_png_(self) -> bytes:
        return b"\x89PNG"


IMAGE = {"type": "image", "url": "data:image/png;base64,iVBORw=="}
TEXT = {"type": "text", "text": "hi"}


@pytest.mark.parametrize(
    ("result", "shown"),
    [
        ("as it is\n", "as it is\n"),
        ("half \ud83d", "half \ufffd"),
        ("\ud83d\ude00", "\U0001f600"),
        (None, "null"),
        (True, "true"),
        ({"a": [1, 2.5]}, '{"a":[1,2.5]}'),
        ([], "[]"),
        (["a", "b"], '["a","b"]'),
        (Row("x", date(2024, 1, 2)), '{"name":"x","when":"2024-01-02"}'),
        ({"v": np.array([1, 2]), "f": np.float64(0.5)}, '{"v":[1,2],"f":0.5}'),
        (b"\xff", '"_w=="'),
        (Image(), [IMAGE]),
        (["hi", Image(), {"a": 1}], [TEXT, IMAGE, {"type": "text", "text": '{"a":1}'}]),
        (TEXT, [TEXT]),
        ({"type": "text", "text": 5}, '{"type":"text","text":5}'),
        ({"half": ["\ud83d"]}, '{"half":["\ufffd"]}'),
        ({"type": "text", "text": "\ud83d"}, '{"type":"text","text":"\ufffd"}'),
    ],
)
def test_results_are_shown_as_text_images_or_json(result: Any, shown: Any) -> None:
    def give() -> Any:
        return result

    assert content(Tool(give).call(call({}))) == shown
    ended = Tool(lambda: EndEpisode(result), name="end").call(call({}))
    assert content(ended) == shown
    assert ended.ends_episode


def test_a_result_that_cannot_be_shown_is_a_failure_that_names_it() -> None:
    def odd() -> object:
        return object()

    outcome = Tool(odd).call(call({}))
    assert outcome.problem == "failed"
    assert "of type object cannot be shown to a model" in content(outcome)
    many = Tool(lambda: ["x" * 10_000, object()], name="many").call(call({}))
    assert "of type list cannot be shown to a model" in content(many)
    assert len(content(many)) < 500
    with pytest.raises(TypeError, match="cannot be shown"):
        Tool(odd, catch=()).call(call({}))


@pytest.mark.parametrize(
    ("text", "arguments"),
    [('{"a": 1}', {"a": 1}), ("", {}), (" \n", {}), (None, {}), ({"a": 1}, {"a": 1})],
)
def test_arguments_of_a_server_are_read(text: Any, arguments: dict[str, Any]) -> None:
    assert read_call("f", text, "c") == {"name": "f", "arguments": arguments, "id": "c"}
    assert "id" not in read_call("f", text)


@pytest.mark.parametrize(
    "text",
    [
        '{"a": ',
        '{"a": [{"b": -1e999}]}',
        "[]",
        '"{}"',
        "5",
        '{"a": NaN}',
        "[" * 9999,
        DEEP,
        '{"a": "\\ud800"}',
        "null",
    ],
)
def test_what_is_no_object_is_kept_as_it_was_written(text: str) -> None:
    asked = read_call("price", text)
    assert asked.get("malformed") == text
    assert [{"role": "assistant", "content": "", "tool_calls": [asked]}] in spaces.messages.chat()
    assert Tool(price).call(asked).problem == "malformed"


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ([1], "[1]"),
        (5, "5"),
        (False, "false"),
        ({"amount": float("nan")}, '{"amount": NaN}'),
        ({"a": [{"b": float("inf")}]}, '{"a": [{"b": Infinity}]}'),
        (json.loads(DEEP), DEEP),
    ],
)
def test_what_a_server_read_that_is_no_object_of_json_is_malformed(
    arguments: Any, text: str
) -> None:
    asked = read_call("price", arguments)
    assert asked == {"name": "price", "arguments": {}, "malformed": text}
    assert Tool(price).call(asked).problem == "malformed"


def test_arguments_that_are_read_can_be_kept() -> None:
    asked = read_call("price", DEEP.replace("[]", ""))  # one level less
    assert "malformed" not in asked
    reply: Message = {"role": "assistant", "content": "", "tool_calls": [asked]}
    run = Trajectory([reply], [Step([reply], reply, 0.0, [reply], True, False, {"x": [reply]})])
    assert Trajectory.from_dict(run.to_dict()).steps[0].action == reply


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=10,
)


@given(text=st.text() | JSON.map(json.dumps) | st.dictionaries(st.text(), JSON).map(json.dumps))
def test_no_text_crashes_a_tool(text: str) -> None:
    asked = read_call("price", text)
    outcome = Toolset([price]).call(asked)
    assert isinstance(content(outcome), str)
    assert ("malformed" in asked) == (outcome.problem == "malformed")
    if "malformed" not in asked and text.strip():
        assert asked["arguments"] == json.loads(text)
