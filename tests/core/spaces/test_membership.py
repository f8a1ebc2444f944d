"""What each space takes and refuses, and what its constructor does."""

from __future__ import annotations

import copy
import json
import pickle
from collections.abc import Callable
from datetime import datetime
from enum import IntEnum
from typing import Annotated, Any

import gymnasium as gym
import numpy as np
import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field, TypeAdapter, ValidationError
from pydantic.errors import PydanticUserError

from rolloutlib import spaces

USER = {"role": "user", "content": "hello"}
CALL = {"name": "search", "arguments": {"q": "x"}}


class Special(IntEnum):
    EOS = 4


@given(st.text())
def test_every_text_is_a_member(value: str) -> None:
    assert value in spaces.TextSpace()
    assert value in spaces.TextSpace(min_length=len(value), max_length=len(value))
    assert value not in spaces.TextSpace(min_length=len(value) + 1)
    assert value + "x" not in spaces.TextSpace(max_length=len(value))
    assert value + "\ud800" not in spaces.TextSpace()


def test_samples_of_text_keep_to_the_alphabet() -> None:
    space = spaces.TextSpace(min_length=3, sample_max_length=4, sample_alphabet="ab", seed=1)
    samples = [space.sample() for _ in range(50)]
    assert {len(sample) for sample in samples} == {3, 4}
    assert set("".join(samples)) == {"a", "b"}
    assert "xyz" in space
    assert len(spaces.TextSpace(min_length=40, seed=1).sample()) == 40
    assert spaces.TextSpace(max_length=0).sample() == ""


@pytest.mark.parametrize(
    "ids",
    [
        [],
        (),
        [3, 52],
        (3, 4),
        [np.int64(3), np.int32(5)],
        [Special.EOS],
        np.array([3, 52]),
        np.array([3], np.uint8),
        np.array([], np.int32),
        np.array([3, 52]).astype(">i4"),
    ],
)
def test_sequences_of_ids(ids: Any) -> None:
    for stack in (False, True):
        assert spaces.tokens.sequence(50, start=3, stack=stack).contains(ids) is True


@pytest.mark.parametrize(
    "ids",
    [
        [2],
        [53],
        [3, True],
        [3.0],
        ["3"],
        [None],
        [[3]],
        {3},
        "3",
        3,
        iter([3]),
        np.array([2]),
        np.array([53]),
        np.array([3.0]),
        np.array([True]),
        np.array([]),
        np.array([3], object),
        [np.timedelta64(3, "s")],
        np.array([3], "m8[s]"),
        np.array([[3]]),
        np.array(3),
    ],
)
def test_no_sequences_of_ids(ids: Any) -> None:
    for stack in (False, True):
        assert spaces.tokens.sequence(50, start=3, stack=stack).contains(ids) is False


def test_single_ids() -> None:
    space = spaces.tokens.id(50, start=3)
    assert isinstance(space, gym.spaces.Discrete)
    for token in (3, 52, np.int32(5), np.array(5), Special.EOS):
        assert token in space
    for wrong in (2, 53, True, 3.0, "3", None, [3], 10**400, np.timedelta64(3, "s")):
        assert wrong not in space


@pytest.mark.parametrize(
    "message",
    [
        USER,
        {"role": "tool", "content": "x", "tool_call_id": "1", "name": "search"},
        {"role": "assistant", "content": "", "tool_calls": [CALL, {**CALL, "id": "1"}]},
        {"role": "user", "content": []},
        {"role": "user", "content": "\u2028 \U0001f600"},
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "see"},
                {"type": "image", "url": "data:x"},
                {"type": "image", "url": "u", "alt": "a cat"},
                {"type": "audio", "url": "u", "format": "wav"},
            ],
        },
    ],
)
def test_messages(message: Any) -> None:
    assert message in spaces.MessageSpace()
    assert [message] in spaces.ChatSpace()
    assert spaces.MessageSpace().validate(message) is message


@pytest.mark.parametrize(
    ("message", "problem"),
    [
        ("hello", "a message is a dictionary, got 'hello'"),
        ({"content": "x"}, "there is no role None"),
        ({"role": [], "content": 5}, r"there is no role \[\]"),
        ({"role": "user", "content": "\ud800"}, "the content may not be"),
        ({"role": "bot", "content": "x"}, "there is no role 'bot'"),
        ({"role": "user"}, "the content may not be None"),
        ({"role": "user", "content": None}, "the content may not be None"),
        ({**USER, "weight": 1}, "a message has no keys but .*'weight'"),
        ({**USER, "name": 5}, "name must be text, got 5"),
        ({**USER, "tool_calls": {}}, "tool_calls must be a list"),
        ({**USER, "tool_calls": [5]}, "a tool call is a dictionary, got 5"),
        ({**USER, "tool_calls": [{"name": "a"}]}, "the arguments of a tool call must be"),
        (
            {**USER, "tool_calls": [{"name": "a", "arguments": "{}"}]},
            "the arguments of a tool call must be",
        ),
        ({**USER, "tool_calls": [{**CALL, "id": None}]}, "the id of a tool call must be text"),
        ({**USER, "tool_calls": [{**CALL, "type": "f"}]}, "a tool call has no keys but"),
        ({"role": "user", "content": ["x"]}, "a part of a message is a dictionary"),
        (
            {"role": "user", "content": [{"type": "video", "url": "u"}]},
            "a part of a message is a dictionary with a type in",
        ),
        ({"role": "user", "content": [{"type": "image"}]}, "a part of type 'image' has the keys"),
        (
            {"role": "user", "content": [{"type": "text", "text": "x", "url": "u"}]},
            "a part of type 'text' has the keys",
        ),
        (
            {"role": "user", "content": [{"type": "text", "text": 5}]},
            "a part of a message holds text only",
        ),
    ],
)
def test_no_messages_and_why(message: Any, problem: str) -> None:
    assert message not in spaces.MessageSpace()
    with pytest.raises(ValueError, match=f"not in MessageSpace.*: {problem}"):
        spaces.MessageSpace().validate(message)
    with pytest.raises(ValueError, match=f"not in ChatSpace.*: message 1: {problem}"):
        spaces.ChatSpace().validate([USER, message])


def test_a_content_space_bounds_text_and_text_parts() -> None:
    space = spaces.MessageSpace(content_space=spaces.TextSpace(max_length=3))
    for content in ("abc", [{"type": "text", "text": "abc"}], [{"type": "image", "url": "long"}]):
        assert {"role": "user", "content": content} in space
    for content in ("abcd", [{"type": "text", "text": "abcd"}]):
        assert {"role": "user", "content": content} not in space


def test_chats_have_a_length() -> None:
    space = spaces.ChatSpace(min_length=1, max_length=2)
    assert [USER] in space
    assert [USER, USER] in space
    assert [] not in space
    assert [USER] * 3 not in space
    assert (USER,) not in space
    with pytest.raises(ValueError, match="expected at most 2 messages, got 3"):
        space.validate([USER] * 3)
    with pytest.raises(ValueError, match=r"message 0: there is no role \[\]"):
        space.validate([{"role": [], "content": "x"}])
    bots = spaces.ChatSpace(spaces.MessageSpace(roles=("bot",)))
    assert [{"role": "bot", "content": ""}] in bots
    assert [USER] not in bots


class Equal:
    """Is no text, and equals any."""

    def __eq__(self, other: object) -> bool:
        return True

    def __hash__(self) -> int:
        return hash("user")


@pytest.mark.parametrize(
    "messages",
    [
        spaces.messages.message(content_space=spaces.text.text(min_length=2, max_length=3)),
        spaces.messages.message(content_space=gym.spaces.Text(3, min_length=2)),
    ],
)
def test_a_chat_agrees_with_its_message_space(messages: spaces.MessageSpace) -> None:
    for content in ("", "a", "ab", "abc", "abcd", "\xe4b", "ab\ud800", [], 5, None):
        for role in ("user", "tool", "bot", None, [], Equal()):
            message = {"role": role, "content": content}
            assert ([message] in spaces.ChatSpace(messages)) == (message in messages)


def test_a_message_space_of_a_subclass_has_its_say() -> None:
    class Polite(spaces.MessageSpace):
        def contains(self, x: object) -> bool:
            return super().contains(x) and "please" in str(x)

    space = spaces.ChatSpace(Polite())
    assert [{"role": "user", "content": "please"}] in space
    assert [USER] not in space
    with pytest.raises(ValueError, match="message 0: not in Polite"):
        space.validate([USER])


class Search(BaseModel):
    query: str
    limit: int = 10


def draw_search(generator: np.random.Generator) -> Search:
    return Search(query="q" * int(generator.integers(1, 5)))


def test_a_model_describes_arguments() -> None:
    space = spaces.tools.call({"search": spaces.PydanticSpace(Search, sampler=draw_search)})
    calls: list[Any] = [
        {"name": "search", "arguments": {"query": "x"}},
        {"name": "search", "arguments": {"query": "x", "limit": 3}},
    ]
    assert all(call in space for call in calls)
    assert space.from_jsonable(json.loads(json.dumps(space.to_jsonable(calls)))) == calls
    assert {"name": "search", "arguments": {"limit": 3}} not in space
    sample = space.sample()
    assert sample in space
    assert list(sample["arguments"]) == ["query"]


def test_the_order_of_tools_is_kept_and_changes_no_sample() -> None:
    nothing = gym.spaces.Dict({})
    one = spaces.tools.call({"b": nothing, "a": nothing}, seed=1)
    two = spaces.tools.call({"a": nothing, "b": nothing}, seed=1)
    assert list(one.tool_schemas) == ["b", "a"]
    assert one == two
    assert [one.sample() for _ in range(9)] == [two.sample() for _ in range(9)]


def test_arguments_that_are_no_dictionaries_are_refused() -> None:
    for schema in (spaces.text.text(), gym.spaces.Discrete(3), gym.spaces.Box(0, 1)):
        with pytest.raises(TypeError, match=r"tool 'a' must be described by a Space of dict"):
            spaces.tools.call({"a": schema})
    numbers = spaces.tools.call({"a": spaces.PydanticSpace(int, sampler=lambda _: 3)})
    with pytest.raises(TypeError, match="the arguments of tool 'a' must be a dictionary, got 3"):
        numbers.sample()


def test_tool_calls() -> None:
    space = spaces.tools.call({"search": gym.spaces.Dict({"q": spaces.text.text()})})
    assert CALL in space
    assert {**CALL, "id": "1"} in space
    for wrong, problem in [
        ({**CALL, "name": "find"}, "there is no tool 'find'"),
        ({**CALL, "arguments": {}}, "tool 'search' does not take the arguments {}"),
        ({**CALL, "arguments": {"q": 5}}, "does not take the arguments {'q': 5}"),
        ({**CALL, "more": 1}, "a tool call has no keys but"),
        ({"name": "search"}, "the arguments of a tool call must be"),
    ]:
        assert wrong not in space
        with pytest.raises(ValueError, match=problem):
            space.validate(wrong)
        with pytest.raises((ValueError, KeyError, TypeError)):
            space.from_jsonable([wrong])
    assert dict(space.tool_schemas) == {"search": gym.spaces.Dict({"q": spaces.text.text()})}
    sequence = spaces.tools.calls({"search": gym.spaces.Dict({"q": spaces.text.text()})})
    assert isinstance(sequence, gym.spaces.Sequence)
    for calls in ([], (), [CALL], (CALL, CALL)):
        assert calls in sequence
    assert [{**CALL, "name": "find"}] not in sequence


def test_samples_have_an_id_if_asked() -> None:
    tools = {"stop": gym.spaces.Dict({})}
    assert "id" not in spaces.tools.call(tools).sample()
    space = spaces.tools.call(tools, include_id_in_samples=True, seed=1)
    ids = {space.sample().get("id") for _ in range(20)}
    assert len(ids) == 20


def test_pydantic_is_strict() -> None:
    space = spaces.PydanticSpace(dict[str, int])
    assert {"a": 1} in space
    assert {"a": "1"} not in space
    assert {"a": True} not in space
    assert space.validate({"a": 1}) == {"a": 1}
    with pytest.raises(ValidationError):
        space.validate({"a": "1"})
    with pytest.raises(
        NotImplementedError, match=r"no sampler: pass sampler= to draw values of dict"
    ):
        space.sample()
    liar = spaces.PydanticSpace[Any](int, sampler=lambda _: "x")
    with pytest.raises(ValueError, match=r"the sampler of PydanticSpace\(int\) drew 'x'"):
        liar.sample()
    with pytest.raises(NotImplementedError, match="cannot be sampled with a mask"):
        spaces.TextSpace().sample(mask=1)


class Timed(BaseModel):
    when: datetime = Field(alias="at")
    pair: tuple[int, float]
    raw: bytes = b"x"


@given(st.datetimes(), st.integers(), st.floats(allow_nan=False), st.text())
def test_json_holds_what_pydantic_describes(
    when: datetime, first: int, second: float, raw: str
) -> None:
    space = spaces.PydanticSpace(Timed)
    value = Timed(at=when, pair=(first, second), raw=raw.encode())
    form = json.loads(json.dumps(space.to_jsonable([value])))
    assert space.from_jsonable(form) == [value]


class Metres(BaseModel):
    value: float


class Feet(BaseModel):
    value: float


def test_pydantic_chooses_the_first_of_a_union() -> None:
    metres = spaces.PydanticSpace[Any](list[Metres | Feet])
    feet = spaces.PydanticSpace[Any](list[Feet | Metres])
    assert metres.validate([{"value": 1.0}]) == [Metres(value=1.0)]
    assert feet.validate([{"value": 1.0}]) == [Feet(value=1.0)]
    assert metres != feet
    assert metres == spaces.PydanticSpace[Any](list[Metres | Feet])


def test_pydantic_spaces_with_equal_fields_are_equal() -> None:
    def made(least: int) -> spaces.PydanticSpace[Any]:
        return spaces.PydanticSpace(Annotated[int, Field(ge=least)])

    space = made(1)
    assert space == made(1) != made(2)
    assert space == pickle.loads(pickle.dumps(space)) == copy.deepcopy(space)  # noqa: S301


def test_a_validator_is_built_once_a_process(monkeypatch: pytest.MonkeyPatch) -> None:
    built: list[Any] = []

    def build(annotation: Any) -> TypeAdapter[Any]:
        built.append(annotation)
        return TypeAdapter(annotation)

    monkeypatch.setattr(pydantic, "TypeAdapter", build)
    for _ in range(3):
        assert 1 in spaces.PydanticSpace(frozenset[int] | int)
        assert [] in spaces.ChatSpace()
    assert built == [frozenset[int] | int]


def wrong(value: object) -> Any:
    """An argument that a type checker would refuse."""
    return value


@pytest.mark.parametrize(
    ("build", "error", "message"),
    [
        (lambda: spaces.text.text(min_length=-1), ValueError, "min_length .* got -1"),
        (lambda: spaces.text.text(max_length=-1), ValueError, "max_length .* got -1"),
        (lambda: spaces.text.text(min_length=3, max_length=2), ValueError, "got 2 and 3"),
        (lambda: spaces.text.text(min_length=3, sample_max_length=2), ValueError, "got 2 and 3"),
        (lambda: spaces.text.text(max_length=wrong(2.5)), TypeError, "max_length .* got 2.5"),
        (lambda: spaces.text.text(sample_alphabet=""), ValueError, "sample_alphabet .* got ''"),
        (
            lambda: spaces.text.text(sample_alphabet=wrong({"a"})),
            TypeError,
            "alphabet .* got {'a'}",
        ),
        (lambda: spaces.PydanticSpace(object()), PydanticUserError, "Unable to generate"),
        (
            lambda: spaces.PydanticSpace(int, sampler=wrong(3)),
            TypeError,
            "sampler must be .* got 3",
        ),
        (lambda: spaces.messages.message(roles=()), ValueError, r"roles .* got \(\)"),
        (lambda: spaces.messages.message(roles="user"), TypeError, "roles .* got 'user'"),
        (lambda: spaces.messages.message(roles=wrong(5)), TypeError, "roles .* got 5"),
        (
            lambda: spaces.messages.message(roles=wrong(iter(["user"]))),
            TypeError,
            "roles must be a sequence of names, got <list_iterator",
        ),
        (lambda: spaces.messages.message(roles=(wrong(1),)), TypeError, r"roles .* got \(1,\)"),
        (lambda: spaces.messages.message(content_space=wrong(5)), TypeError, "content_space .* 5"),
        (lambda: spaces.messages.chat(wrong(5)), TypeError, "message_space .* got 5"),
        (lambda: spaces.messages.chat(wrong(spaces.TextSpace())), TypeError, "be a MessageSpace"),
        (lambda: spaces.messages.chat(min_length=2, max_length=1), ValueError, "got 1 and 2"),
        (lambda: spaces.tokens.id(0), ValueError, "vocab_size must be positive, got 0"),
        (lambda: spaces.tokens.sequence(-1), ValueError, "vocab_size must be positive, got -1"),
        (
            lambda: spaces.tokens.sequence(wrong(1.5)),
            TypeError,
            "vocab_size must be an integer, got 1.5",
        ),
        (lambda: spaces.tokens.id(True), TypeError, "vocab_size must be an integer, got True"),
        (lambda: spaces.tools.call({}), ValueError, "tools must have at least one tool"),
        (lambda: spaces.tools.call(wrong(["a"])), TypeError, r"tools must be a .* got \['a'\]"),
        (
            lambda: spaces.tools.call({"a": wrong(5)}),
            TypeError,
            "tool 'a' must be described by a Space",
        ),
        (
            lambda: spaces.tokens.id(5, start=wrong(0.5)),
            TypeError,
            "start must be an integer, got 0.5",
        ),
        (lambda: spaces.tools.call({"": gym.spaces.Dict({})}), ValueError, "must not be empty"),
        (
            lambda: spaces.tools.call({wrong(1): gym.spaces.Dict({})}),
            TypeError,
            "must be text, got 1",
        ),
    ],
)
def test_bad_arguments_are_named(
    build: Callable[[], Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        build()


def test_seeds_of_all_parts_are_told() -> None:
    assert len(spaces.messages.message().seed(3)) == 2
    assert len(spaces.messages.chat().seed(3)) == 3
    assert spaces.messages.chat().seed(3) == spaces.messages.chat().seed(3)
    tools = {"a": gym.spaces.Dict({"q": spaces.text.text()}), "b": gym.spaces.Dict({})}
    assert all(type(seed) is int for seed in spaces.tools.call(tools).seed(3))
    assert all(type(seed) is int for seed in spaces.tools.call(tools).seed())


@pytest.mark.parametrize(
    "space",
    [spaces.TextSpace(), spaces.MessageSpace(), spaces.ChatSpace(), spaces.PydanticSpace(int)],
)
def test_every_space_that_validates_raises_pydantics_error(space: Any) -> None:
    with pytest.raises(ValidationError, match=r"1 validation error for"):
        space.validate({1, 2})


def test_a_call_with_arguments_that_are_no_json_may_stand_in_a_chat_and_is_no_call_of_a_tool() -> (
    None
):
    call = {"name": "search", "arguments": {}, "malformed": '{"query": "ra'}
    chat = [{"role": "assistant", "content": "", "tool_calls": [call]}]
    assert chat in spaces.messages.chat()
    assert call not in spaces.tools.call({"search": gym.spaces.Dict({})})
    for wrong in ({"malformed": 5}, {"arguments": {"query": "rain"}}):
        assert [{**chat[0], "tool_calls": [{**call, **wrong}]}] not in spaces.messages.chat()
