"""What policies are made of, what reaches the server of it, and what is refused."""

from __future__ import annotations

import copy
import logging
import pickle
import traceback
from typing import Any, assert_type

import numpy as np
import openai
import pytest

from rolloutlib.openai import (
    AsyncChatPolicy,
    ChatPolicy,
    CompletionPolicy,
    ModelServerError,
)
from rolloutlib.rollouts import EpisodeTruncated, PolicyOutput, derive_seed
from rolloutlib.types import Message
from scripted_server import Behaviour, ScriptedServer, hang_up, respond

KEY = "sk-proj-0123456789abcdef"
ANSWER = {"choices": [{"message": {"content": "4"}, "text": "4"}]}


def test_sampling_parameters_are_sent(server: ScriptedServer) -> None:
    server.plays(respond(ANSWER))
    with ChatPolicy(
        "m",
        base_url=server.url,
        max_tokens=9,
        temperature=0,
        top_p=0.5,
        stop=["\n"],
        extra_body={"min_p": 0.1},
    ) as policy:
        policy("Hi")
    assert server.received[0].body == {
        "model": "m",
        "messages": [{"role": "user", "content": "Hi"}],
        "max_tokens": 9,
        "temperature": 0,
        "top_p": 0.5,
        "stop": ["\n"],
        "min_p": 0.1,
    }


def test_numbers_may_be_scalars_of_numpy(server: ScriptedServer) -> None:
    server.plays(respond(ANSWER))
    numbers: Any = {"max_tokens": np.int64(9), "temperature": np.float32(1), "seed": np.int64(3)}
    with ChatPolicy("m", base_url=server.url, **numbers) as policy:
        policy("Hi")
    body = server.received[0].body
    assert (body["max_tokens"], body["temperature"]) == (9, 1)


def test_what_is_not_given_is_left_to_the_server(server: ScriptedServer) -> None:
    server.plays(respond(ANSWER))
    with CompletionPolicy("m", base_url=server.url, temperature=None, max_tokens=None) as policy:
        policy("Hi")
    assert server.received[0].body == {"model": "m", "prompt": "Hi"}


def test_seeds_differ_by_episode_step_and_policy(server: ScriptedServer) -> None:
    server.plays(respond(ANSWER))
    calls: list[tuple[dict[str, Any], int | None, int | None]] = [
        ({}, 1, 0),
        ({}, 1, 1),
        ({}, 2, 0),
        ({"seed": 3}, 1, 0),
        ({"seed": 3}, None, None),
        ({}, None, 0),
        ({"send_seed": False}, 1, 0),
    ]
    for options, seed, step in calls:
        with ChatPolicy("m", base_url=server.url, **options) as policy:
            output = policy("Hi", seed=seed, step=step)
        assert output.info.get("seed") == server.received[-1].body.get("seed")
    sent = [one.body.get("seed") for one in server.received]
    assert sent[0] == derive_seed(0, 1, 0)
    assert len(set(sent[:5])) == 5
    assert sent[5:] == [None, None]
    assert all(0 <= seed < 2**31 for seed in sent[:5])


def test_reasoning_models_of_openai_are_given_the_name_that_they_know(
    server: ScriptedServer,
) -> None:
    server.plays(respond(ANSWER))
    with openai.DefaultHttpxClient(proxy=server.url) as http:
        client = openai.OpenAI(api_key=KEY, base_url="http://api.openai.com/v1", http_client=http)
        assert ChatPolicy("o9", client=client, max_tokens=5)("Hi").action == "4"
        assert not http.is_closed
    [request] = server.received
    assert request.headers["host"] == "api.openai.com"
    assert request.body["max_completion_tokens"] == 5
    assert "max_tokens" not in request.body


LEAKS: dict[str, Behaviour] = {
    "refused": respond({"error": {"message": f"Incorrect API key provided: {KEY}"}}, 401),
    "failed": respond(f"<p>proxy: Bearer {KEY}</p>", 502),
    "no JSON": respond(f"Authorization: Bearer {KEY}"),
    "overflow": respond({"error": {"message": f"maximum context length, {KEY}"}}, 400),
    "hung up": hang_up,
}


@pytest.mark.parametrize("fault", LEAKS)
def test_a_key_is_in_no_error_log_or_repr(
    server: ScriptedServer, caplog: pytest.LogCaptureFixture, fault: str
) -> None:
    caplog.set_level(logging.DEBUG)
    server.plays(LEAKS[fault])
    with (
        ChatPolicy("m", base_url=server.url, api_key=KEY, max_retries=0) as policy,
        pytest.raises((ModelServerError, EpisodeTruncated)) as caught,
    ):
        policy("Hi")
    told = [repr(policy), repr(vars(policy))]
    error: BaseException | None = caught.value
    told += traceback.format_exception(caught.value)
    while error is not None:
        told += [repr(error), repr(getattr(error, "__dict__", None))]
        error = error.__cause__ or error.__context__
    told += [record.getMessage() for record in caplog.records]
    assert server.received[0].headers["authorization"] == f"Bearer {KEY}"
    assert KEY not in "\n".join(told)


def test_a_key_that_the_user_s_client_renews_is_in_no_error(server: ScriptedServer) -> None:
    server.plays(LEAKS["refused"])
    with openai.OpenAI(base_url=server.url, api_key="sk-before-0123456789") as client:
        policy = ChatPolicy("m", client=client)
        client.api_key = KEY
        with pytest.raises(ModelServerError) as caught:
            policy("Hi")
    assert server.received[0].headers["authorization"] == f"Bearer {KEY}"
    assert KEY not in str(caught.value)


HEADERS = [
    {"Authorization": f"Bearer {KEY}"},
    {"Authorization": f"Bearer {KEY}\n"},  # which cannot be sent
    {"api-key": KEY},
    {"X-Gateway-Token": KEY},
]


@pytest.mark.parametrize("fault", LEAKS)
@pytest.mark.parametrize("headers", HEADERS)
def test_no_header_with_a_key_of_the_user_s_client_is_in_an_error(
    server: ScriptedServer, headers: dict[str, str], fault: str
) -> None:
    server.plays(LEAKS[fault])
    query = {"subscription-key": KEY}
    with (
        openai.OpenAI(
            base_url=server.url, api_key="none", default_headers=headers, max_retries=0
        ) as by_header,
        openai.OpenAI(
            base_url=server.url, api_key="none", default_query=query, max_retries=0
        ) as by_query,
    ):
        for client in (by_header, by_query):
            with pytest.raises((ModelServerError, EpisodeTruncated)) as caught:
                ChatPolicy("m", client=client)("Hi")
            assert KEY not in "".join(traceback.format_exception(caught.value))


def test_a_key_is_in_no_error_of_a_server_that_another_one_sent_it_to(
    server: ScriptedServer,
) -> None:
    with ScriptedServer(LEAKS["refused"]) as further:
        server.plays(respond("", 307, {"Location": further.url}))
        with (
            ChatPolicy("m", base_url=server.url, api_key=KEY, max_retries=0) as policy,
            pytest.raises(ModelServerError, match=r"provided: \*\*\*") as caught,
        ):
            policy("Hi")
        assert "authorization" not in further.received[0].headers
    assert KEY not in str(caught.value)


@pytest.mark.parametrize("kind", [ChatPolicy, AsyncChatPolicy])
@pytest.mark.parametrize("take", [pickle.dumps, copy.copy, copy.deepcopy])
def test_a_policy_with_its_key_and_connections_is_neither_pickled_nor_copied(
    kind: Any, take: Any
) -> None:
    policy = kind("m", base_url="http://127.0.0.1:9/v1", api_key=KEY)
    with pytest.raises(TypeError, match="make it in the process that uses it"):
        take(policy)


def test_the_key_of_the_environment_is_for_the_server_of_the_environment(
    server: ScriptedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.plays(respond(ANSWER))
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with ChatPolicy("m", base_url=server.url) as policy:
        policy("Hi")
    monkeypatch.setenv("OPENAI_BASE_URL", server.url)
    with ChatPolicy("m") as policy:
        policy("Hi")
    sent = [one.headers["authorization"] for one in server.received]
    assert sent == ["Bearer none", f"Bearer {KEY}"]


@pytest.mark.parametrize("address", ["http://me:{}@127.0.0.1:9/v1", "http://h/v1?k={}", "{}"])
def test_an_address_of_the_environment_is_refused_as_one_that_is_passed(
    monkeypatch: pytest.MonkeyPatch, address: str
) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", address.format(KEY))
    with pytest.raises(ValueError, match="OPENAI_BASE_URL must") as caught:
        ChatPolicy("m")
    assert KEY not in str(caught.value)


def test_openai_s_server_needs_a_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    with pytest.raises(ValueError, match="pass api_key or set OPENAI_API_KEY"):
        ChatPolicy("m")


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"temprature": 1}, "unknown argument 'temprature': did you mean 'temperature'?"),
    ({"frequency_penalty": 1}, "unknown argument 'frequency_penalty': pass it in extra_body"),
    ({"max_tokens": 0}, "max_tokens must be at least 1, got 0"),
    ({"max_retries": -1}, "max_retries must be at least 0, got -1"),
    ({"temperature": -1}, "temperature must be at least 0, got -1.0"),
    ({"top_p": 1.5}, "top_p must be at most 1, got 1.5"),
    ({"temperature": "hot"}, "temperature must be a real number, got 'hot'"),
    ({"timeout": 0}, "timeout must be positive, got 0.0"),
    ({"base_url": "localhost:8000/v1"}, "base_url must begin with http:// or https://"),
    ({"base_url": "http://"}, "base_url must begin with http:// or https:// and a host"),
    ({"base_url": "http://[::1"}, "base_url must begin with http:// or https:// and a host"),
    ({"base_url": 8000}, "base_url must be a text, got an object of type int"),
    ({"api_key": b"x"}, "api_key must be a text, got an object of type bytes"),
    ({"api_key": KEY + "\n"}, "the key has characters that no request can have"),
    ({"api_key": KEY + "\xe9"}, "the key has characters that no request can have"),
    ({"logprobs": 5}, "logprobs must be a bool"),
    ({"seed": "7"}, "seed must be an integer"),
    ({"stop": 5}, "stop must be a text or a list of texts"),
    ({"extra_body": [1]}, "extra_body must be a dictionary"),
    ({"extra_body": {"bias": {"a": [float("nan")]}}}, "extra_body must hold what JSON can: "),
    ({"extra_body": {"bias": {(1, 2): 3}}}, "extra_body must hold what JSON can: "),
    ({"extra_body": {"n": 3}}, "extra_body may not have 'n'"),
    ({"extra_body": {"stream": True}}, "extra_body may not have 'stream'"),
    ({"base_url": f"http://me:{KEY}@127.0.0.1/v1"}, "pass a key as api_key"),
    ({"base_url": f"http://127.0.0.1/v1?key={KEY}"}, "pass a key as api_key"),
    ({"base_url": KEY, "api_key": "http://127.0.0.1/v1"}, "base_url must begin with http://"),
    ({"base_url": f"me:{KEY}@127.0.0.1/v1"}, "base_url must begin with http://"),
    ({"base_url": f"http://me:{KEY}@[::1/v1"}, "base_url must begin with http://"),
    ({"client": KEY, "base_url": None}, "got an object of type str"),
]


@pytest.mark.parametrize(("options", "problem"), REFUSED)
def test_what_no_server_takes_is_refused_at_once(options: dict[str, Any], problem: str) -> None:
    for kind in (ChatPolicy, CompletionPolicy, AsyncChatPolicy):
        given: Any = {"base_url": "http://127.0.0.1:9/v1", **options}
        with pytest.raises((TypeError, ValueError)) as caught:
            kind("m", **given)
        assert problem in str(caught.value)
        assert KEY not in str(caught.value)


def test_a_client_of_the_user_s_is_of_its_kind_and_keeps_its_settings() -> None:
    with openai.OpenAI(base_url="http://127.0.0.1:9/v1", api_key=KEY) as client:
        wrong: Any = client
        with pytest.raises(TypeError, match=r"client must be an openai\.AsyncOpenAI"):
            AsyncChatPolicy("m", client=wrong)
        with pytest.raises(ValueError, match="pass timeout to the client"):
            ChatPolicy("m", client=client, timeout=3)


@pytest.mark.parametrize("key", [KEY + "\n", KEY + "\xe9"])
def test_a_key_that_cannot_be_sent_is_told_by_nothing_but_its_kind(key: str) -> None:
    with (
        openai.OpenAI(base_url="http://127.0.0.1:9/v1", api_key=key) as client,
        pytest.raises(ValueError, match="no request can have") as caught,
    ):
        ChatPolicy("m", client=client)("Hi")
    assert KEY not in repr(caught.value)


def test_a_model_has_a_name() -> None:
    with pytest.raises(ValueError, match="model must be the name"):
        ChatPolicy("", base_url="http://127.0.0.1:9/v1")


def test_a_policy_tells_its_model_and_server() -> None:
    with ChatPolicy("m", base_url="http://127.0.0.1:9/v1") as policy:
        assert policy.model == "m"
        assert repr(policy) == "ChatPolicy('m', base_url='http://127.0.0.1:9/v1/')"


def test_type_checkers_know_the_actions(server: ScriptedServer) -> None:
    server.plays(respond(ANSWER))
    with ChatPolicy("m", base_url=server.url) as texts:
        assert_type(texts("Hi"), PolicyOutput[str])
    with ChatPolicy("m", base_url=server.url, tools=[]) as messages:
        assert_type(messages("Hi"), PolicyOutput[Message])
    assert issubclass(ModelServerError, Exception)


@pytest.mark.anyio
async def test_a_client_of_the_user_s_is_used_and_left_open(server: ScriptedServer) -> None:
    server.plays(respond(ANSWER))
    async with openai.AsyncOpenAI(base_url=server.url, api_key=KEY) as client:
        async with AsyncChatPolicy("m", client=client) as policy:
            assert (await policy("Hi")).action == "4"
        assert not client.is_closed()
    assert server.received[0].headers["authorization"] == f"Bearer {KEY}"
