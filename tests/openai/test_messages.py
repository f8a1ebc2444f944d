"""Messages, tools and tool calls on their way to a server and back."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rolloutlib import rollout
from rolloutlib.envs import ChatEnv
from rolloutlib.openai import ChatPolicy, CompletionPolicy
from rolloutlib.tools import Toolset
from rolloutlib.types import Chat, Message
from scripted_server import ScriptedServer, respond


def answer(**message: Any) -> dict[str, Any]:
    return {"choices": [{"message": {"role": "assistant", **message}, "finish_reason": "stop"}]}


def call(name: str, arguments: object, id: str | None = "c1") -> dict[str, Any]:
    return {"id": id, "type": "function", "function": {"name": name, "arguments": arguments}}


def sent_for(server: ScriptedServer, chat: Chat | str) -> list[dict[str, Any]]:
    """The messages that reach the server when a policy is shown a chat."""
    with ChatPolicy("m", base_url=server.plays(respond(answer(content="")))) as policy:
        policy(chat)
    return server.received[-1].body["messages"]


def read_from(server: ScriptedServer, reply: object) -> Message:
    with ChatPolicy("m", base_url=server.plays(respond(reply)), tools=[]) as policy:
        return policy("Hi").action


def test_a_text_is_what_the_user_says(server: ScriptedServer) -> None:
    assert sent_for(server, "  Hi\n") == [{"role": "user", "content": "  Hi\n"}]


def test_images_and_sounds_are_sent_as_the_api_names_them(server: ScriptedServer) -> None:
    pixel, sound = "data:image/png;base64,iVBORw0KGgo=", "data:audio/wav;base64,UklGRg=="
    chat: Chat = [
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "What is it?"},
                {"type": "image", "url": pixel, "alt": "a pixel"},
                {"type": "audio", "url": sound},
                {"type": "audio", "url": "https://example.org/a.mp3"},
            ],
        }
    ]
    assert sent_for(server, chat)[0]["content"] == [
        {"type": "text", "text": "What is it?"},
        {"type": "image_url", "image_url": {"url": pixel}},
        {"type": "input_audio", "input_audio": {"data": "UklGRg==", "format": "wav"}},
        {"type": "audio_url", "audio_url": {"url": "https://example.org/a.mp3"}},
    ]


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("mpeg", "mp3"),
        ("x-wav", "wav"),
        ("wav;codecs=1", "wav"),
        ("flac", "flac"),
    ],
)
def test_a_sound_has_the_format_that_the_api_knows_its_media_type_by(
    server: ScriptedServer, kind: str, name: str
) -> None:
    sound: Any = {"type": "audio", "url": f"data:audio/{kind};base64,UklGRg=="}
    [part] = sent_for(server, [{"role": "user", "content": [sound]}])[0]["content"]
    assert part["input_audio"] == {"data": "UklGRg==", "format": name}


def test_calls_without_ids_are_tied_to_their_answers_by_order(server: ScriptedServer) -> None:
    chat: Chat = [
        {
            "role": "assistant",
            "content": "",
            "tool_calls": [
                {"name": "now", "arguments": {}},
                {"name": "add", "arguments": {"a": 1}, "id": "mine"},
            ],
        },
        {"role": "tool", "content": "noon", "name": "now"},
        {"role": "tool", "content": "1", "tool_call_id": "mine"},
    ]
    asked, first, second = sent_for(server, chat)
    assert [one["id"] for one in asked["tool_calls"]] == ["call_0_0", "mine"]
    assert (first["tool_call_id"], second["tool_call_id"]) == ("call_0_0", "mine")
    assert first["name"] == "now"


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=5,
)


@settings(max_examples=30)
@given(st.dictionaries(st.text(), json_values))
def test_a_tool_call_survives_the_way_there_and_back(arguments: dict[str, Any]) -> None:
    with ScriptedServer() as server:
        chat: Chat = [
            {
                "role": "assistant",
                "content": "so",
                "tool_calls": [{"name": "f", "arguments": arguments, "id": "c"}],
            }
        ]
        [sent] = sent_for(server, chat)
        assert read_from(server, {"choices": [{"message": sent}]}) == chat[0]


MALFORMED = ['{"a": 1', "[1]", '"a"', "{'a': 1}", '{"a": NaN}', "null", '{"a": 1} extra']


@pytest.mark.parametrize("arguments", MALFORMED)
def test_malformed_arguments_are_kept_as_written(server: ScriptedServer, arguments: str) -> None:
    message = read_from(server, answer(content=None, tool_calls=[call("add", arguments)]))
    expected = {"name": "add", "arguments": {}, "id": "c1", "malformed": arguments}
    assert message == {"role": "assistant", "content": "", "tool_calls": [expected]}


@pytest.mark.parametrize(
    ("arguments", "text"), [([1], "[1]"), (5, "5"), (True, "true"), ({"a": math.nan}, '{"a": NaN}')]
)
def test_arguments_that_a_server_read_as_no_object_are_malformed(
    server: ScriptedServer, arguments: object, text: str
) -> None:
    message = read_from(server, answer(content=None, tool_calls=[call("add", arguments)]))
    expected = {"name": "add", "arguments": {}, "id": "c1", "malformed": text}
    assert message.get("tool_calls") == [expected]


@pytest.mark.parametrize("arguments", ["", "{}", None, {}])
def test_a_call_may_have_no_arguments(server: ScriptedServer, arguments: object) -> None:
    message = read_from(server, answer(content=None, tool_calls=[call("now", arguments, None)]))
    assert message.get("tool_calls") == [{"name": "now", "arguments": {}}]


def test_a_malformed_call_becomes_an_observation_and_the_episode_goes_on(
    server: ScriptedServer,
) -> None:
    def add(a: int, b: int) -> int:
        """Add two numbers."""
        return a + b

    server.plays(
        respond(answer(content=None, tool_calls=[call("add", '{"a": 1, ')])),
        respond(answer(content=None, tool_calls=[call("add", '{"a": 1, "b": 2}', "c2")])),
        respond(answer(content="3")),
    )
    env = ChatEnv("1 + 2?", tools=[add])
    with ChatPolicy("m", base_url=server.url, tools=env.tools) as policy:
        trajectory = rollout(env, policy)
    assert trajectory.actions[-1] == {"role": "assistant", "content": "3"}
    last = server.received[-1].body["messages"]
    assert [one["role"] for one in last] == ["user", "assistant", "tool", "assistant", "tool"]
    assert last[1]["tool_calls"][0]["function"]["arguments"] == "{}"  # servers refuse the other
    assert last[2]["tool_call_id"] == "c1"
    assert last[4] == {"role": "tool", "name": "add", "content": "3", "tool_call_id": "c2"}


def test_tools_are_told_to_the_model(server: ScriptedServer) -> None:
    def add(a: int) -> int:
        """Add one."""
        return a + 1

    tools = Toolset([add])
    for given_tools in (tools, tools.definitions, [add], list(tools.values())):
        url = server.plays(respond(answer(content="")))
        with ChatPolicy("m", base_url=url, tools=given_tools) as policy:
            policy("Hi")
        assert server.received[-1].body["tools"] == json.loads(json.dumps(tools.definitions))


@pytest.mark.parametrize("wrong", ["add", {"add": print}, [5], 5])
def test_what_is_no_tool_is_refused_at_once(wrong: Any) -> None:
    with pytest.raises(TypeError, match="tool"):
        ChatPolicy("m", base_url="http://127.0.0.1:9/v1", tools=wrong)


def test_reasoning_is_kept_apart_from_the_answer(server: ScriptedServer) -> None:
    for name in ("reasoning_content", "reasoning"):
        url = server.plays(respond(answer(content="4", **{name: "2 and 2"})))
        with ChatPolicy("m", base_url=url) as policy:
            output = policy("2 + 2?")
        assert (output.action, output.info["reasoning"]) == ("4", "2 and 2")


@pytest.mark.parametrize("thinking", ["2 and 2", [{"type": "text", "text": "2 and 2"}]])
def test_reasoning_in_parts_is_kept_apart_too(server: ScriptedServer, thinking: object) -> None:
    parts = [{"type": "thinking", "thinking": thinking}, {"type": "text", "text": "4"}]
    with ChatPolicy("m", base_url=server.plays(respond(answer(content=parts)))) as policy:
        output = policy("2 + 2?")
    assert (output.action, output.info["reasoning"]) == ("4", "2 and 2")


def test_parts_of_an_answer_are_put_together(server: ScriptedServer) -> None:
    parts = [{"type": "thinking", "text": None}, {"type": "text", "text": "4"}]
    with ChatPolicy("m", base_url=server.plays(respond(answer(content=parts)))) as policy:
        assert policy("2 + 2?").action == "4"


def test_a_refusal_is_told(server: ScriptedServer) -> None:
    url = server.plays(respond(answer(content=None, refusal="I cannot.")))
    with ChatPolicy("m", base_url=url) as policy:
        output = policy("Hi")
    assert (output.action, output.info["refusal"]) == ("", "I cannot.")


WRONG: Sequence[tuple[Any, str]] = [
    (5, "must be shown a chat or a text, got 5"),
    ([{"role": "user"}], "message 0 is not as .*: the content may not be None"),
    (["Hi"], "message 0 is not as .*: a message is a dictionary"),
    ("half \ud83d", "message 0 is not as"),
    # The forms of OpenAI's API are written from ours.
    (
        [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}],
        "a part of a message is a dictionary with a type in",
    ),
    ([{"role": "user", "content": [{"type": "video", "url": "x"}]}], "a type in"),
    (
        [{"role": "assistant", "content": "", "tool_calls": [call("add", "{}")]}],
        "a tool call has no keys but",
    ),
    (
        [
            {
                "role": "assistant",
                "content": "",
                "tool_calls": [{"name": "f", "arguments": {"a": float("nan")}}],
            }
        ],
        "not JSON compliant",
    ),
]


@pytest.mark.parametrize("ids", [[1.5, 2], ["12"], [{"role": "user"}]])
def test_what_are_no_token_ids_is_not_made_into_them(server: ScriptedServer, ids: Any) -> None:
    with (
        CompletionPolicy("m", base_url=server.url) as policy,
        pytest.raises(TypeError, match="must be shown a text or token ids"),
    ):
        policy(ids)
    assert server.received == []


@pytest.mark.parametrize(("shown", "problem"), WRONG)
def test_what_is_no_chat_is_refused_before_it_is_sent(
    server: ScriptedServer, shown: Any, problem: str
) -> None:
    with (
        ChatPolicy("m", base_url=server.url) as policy,
        pytest.raises((TypeError, ValueError), match=problem),
    ):
        policy(shown)
    assert server.received == []
