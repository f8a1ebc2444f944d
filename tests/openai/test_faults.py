"""What policies raise when a server fails, and how often they ask again."""

from __future__ import annotations

import gc
import json
import pickle
import socket
from collections.abc import Callable
from typing import Any, TypeAlias

import anyio
import anyio.from_thread
import anyio.lowlevel
import anyio.to_thread
import pytest

from rolloutlib.envs import ChatEnv
from rolloutlib.openai import (
    AsyncChatPolicy,
    ChatPolicy,
    ModelServerError,
    RequestRefusedError,
    ServerTimeoutError,
    ServerUnavailableError,
)
from rolloutlib.rollouts import EpisodeTruncated, PolicyOutput, Retry, rollout_group
from scripted_server import (
    Behaviour,
    ScriptedServer,
    hang_up,
    respond,
    respond_in_part,
    respond_slowly,
    stall,
)

ANSWER = {"choices": [{"message": {"content": "4"}, "finish_reason": "stop"}], "model": "m"}
OVERLOADED = respond({"error": {"message": "busy"}}, 429, {"Retry-After": "0.01"})

Ask: TypeAlias = Callable[..., PolicyOutput[str]]


@pytest.fixture(params=["sync", "asyncio", "trio"])
def ask(request: pytest.FixtureRequest) -> Ask:
    """Ask a policy once: a synchronous one, or its twin in a loop of its own."""

    def ask_in_a_loop(server: ScriptedServer, **options: Any) -> PolicyOutput[str]:
        async def main() -> PolicyOutput[str]:
            return await AsyncChatPolicy("m", base_url=server.url, **options)("2 + 2?")

        return anyio.run(main, backend=request.param)

    def ask_at_once(server: ScriptedServer, **options: Any) -> PolicyOutput[str]:
        with ChatPolicy("m", base_url=server.url, **options) as policy:
            return policy("2 + 2?")

    return ask_at_once if request.param == "sync" else ask_in_a_loop


TRANSIENT = {
    "overloaded": respond({"error": {"message": "busy"}}, 429),
    "failed": respond("<h1>Bad gateway</h1>", 502),
    "loading": respond({"error": {"message": "Loading model", "code": 503}}, 503),
    "hung up": hang_up,
    "cut": respond_in_part(ANSWER),
    "no JSON": respond("<html>"),
    "no choices": respond({"choices": []}),
    "wrong shape": respond({"choices": [{"message": {"content": 4}}]}),
    "an error with status 200": respond({"error": {"message": "upstream", "code": 502}}),
    "a code that is a text": respond({"error": {"message": "busy", "code": "429"}}),
    "broken off": respond({"choices": [{"message": {"content": "4"}, "finish_reason": "error"}]}),
    "broken off by a model": respond(
        {
            "choices": [
                {
                    "message": {"content": ""},
                    "finish_reason": "error",
                    "error": {"message": "upstream", "code": "server_error"},
                }
            ]
        }
    ),
}


@pytest.mark.parametrize("fault", TRANSIENT)
def test_what_may_pass_is_a_connection_error(server: ScriptedServer, ask: Ask, fault: str) -> None:
    server.plays(TRANSIENT[fault])
    with pytest.raises(ServerUnavailableError, match="model 'm' at http://127") as caught:
        ask(server, max_retries=0)
    assert isinstance(caught.value, ConnectionError)
    assert Retry().is_transient(caught.value)
    assert len(server.received) == 1


PERMANENT = {
    "a wrong key": respond({"error": {"message": "no such key", "code": "invalid"}}, 401),
    "no model": respond({"error": {"message": "the model does not exist"}}, 404),
    "a wrong parameter": respond({"message": "temperature must be at most 2"}, 422),
    "an error beside no choices": respond(
        {"error": {"message": "no", "code": 401}, "choices": None}
    ),
    "broken off by a filter": respond(
        {
            "choices": [
                {
                    "message": {"content": ""},
                    "finish_reason": "error",
                    "error": {"message": "flagged", "code": 403},
                }
            ]
        }
    ),
    "a code that is no status": respond({"error": {"message": "no", "code": "9" * 5000}}),
    "no money": respond({"error": {"message": "quota", "code": "insufficient_quota"}}, 429),
}


@pytest.mark.parametrize("fault", PERMANENT)
def test_what_will_not_pass_is_not_tried_again(
    server: ScriptedServer, ask: Ask, fault: str
) -> None:
    server.plays(PERMANENT[fault])
    with pytest.raises(RequestRefusedError) as caught:
        ask(server, max_retries=0)
    assert not Retry().is_transient(caught.value)
    assert caught.value.status_code in {200, 401, 403, 404, 422, 429}


@pytest.mark.parametrize(
    ("behaviour", "kind"),
    [
        (respond({"detail": "Sorry"}, 404), RequestRefusedError),
        (respond({"detail": "Sorry"}, 405), RequestRefusedError),
        (respond({"detail": "Sorry"}, 501), RequestRefusedError),
        (respond({"detail": "Sorry"}), ServerUnavailableError),
    ],
)
def test_an_address_without_its_usual_end_is_pointed_out(
    server: ScriptedServer, behaviour: Behaviour, kind: type[Exception]
) -> None:
    url = server.plays(behaviour).removesuffix("/v1")
    with (
        ChatPolicy("m", base_url=url, max_retries=0) as policy,
        pytest.raises(kind, match=r"Sorry.*ends in /v1"),
    ):
        policy("Hi")


def test_a_server_that_is_not_there_may_come(ask: Ask) -> None:
    gone = ScriptedServer(hang_up)
    with gone, socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))  # so that no other server gets the port meanwhile
        gone.url = f"http://127.0.0.1:{holder.getsockname()[1]}/v1"
        with pytest.raises(ServerUnavailableError, match=r"\[Errno"):
            ask(gone, max_retries=0)


def test_a_server_that_never_answers_is_given_up(server: ScriptedServer, ask: Ask) -> None:
    server.plays(stall)
    with pytest.raises(ServerTimeoutError) as caught:
        ask(server, max_retries=0, timeout=0.3)
    assert isinstance(caught.value, TimeoutError)


# Each byte comes in time; the answer does not.
def test_an_answer_that_comes_byte_by_byte_is_given_up(server: ScriptedServer, ask: Ask) -> None:
    server.plays(respond_slowly(ANSWER))
    with pytest.raises(ServerTimeoutError, match="did not end in"):
        ask(server, max_retries=0, timeout=0.3)


def test_the_wait_that_a_server_asks_for_is_told(server: ScriptedServer, ask: Ask) -> None:
    server.plays(respond({"error": {"message": "busy"}}, 429, {"Retry-After": "1800"}))
    with pytest.raises(ServerUnavailableError, match="retry after 1800") as caught:
        ask(server)  # half an hour is not waited for
    assert caught.value.retry_after == "1800"
    assert caught.value.status_code == 429


@pytest.mark.parametrize("fault", [OVERLOADED, hang_up, respond_in_part(ANSWER)])
def test_a_request_is_sent_again_and_counted(server: ScriptedServer, ask: Ask, fault: Any) -> None:
    server.plays(fault, respond(ANSWER))
    output = ask(server)
    assert output.action == "4"
    assert output.info["retries"] == 1
    assert len(server.received) == 2
    assert server.received[0].body == server.received[1].body


# Nothing but its end tells that such an answer is cut, and a gateway tells of a fault with status 200.
UNREADABLE = {
    "cut": respond(json.dumps(ANSWER)[:-9], keep=False),
    "an error with status 200": TRANSIENT["an error with status 200"],
    "broken off": TRANSIENT["broken off"],
}


@pytest.mark.parametrize("fault", UNREADABLE)
def test_what_cannot_be_read_is_asked_for_again(
    server: ScriptedServer, ask: Ask, fault: str
) -> None:
    server.plays(OVERLOADED, UNREADABLE[fault], respond(ANSWER))
    output = ask(server, max_retries=2)
    assert (output.action, output.info["retries"]) == ("4", 2)
    assert len(server.received) == 3
    assert server.received[0].body == server.received[2].body


def test_tries_are_as_many_as_allowed_whatever_goes_wrong(server: ScriptedServer, ask: Ask) -> None:
    server.plays(OVERLOADED, UNREADABLE["cut"], OVERLOADED)
    with pytest.raises(ServerUnavailableError, match="429"):
        ask(server, max_retries=2)
    assert len(server.received) == 3
    server.plays(OVERLOADED, UNREADABLE["cut"])
    with pytest.raises(ServerUnavailableError, match="cannot be read"):
        ask(server, max_retries=1)
    assert len(server.received) == 5


def test_retries_end(server: ScriptedServer, ask: Ask) -> None:
    server.plays(OVERLOADED)
    with pytest.raises(ServerUnavailableError):
        ask(server, max_retries=2)
    assert len(server.received) == 3


OVERFLOWS = {
    "OpenAI": (
        400,
        {
            "message": "This model's maximum context length is 8 tokens.",
            "code": "context_length_exceeded",
        },
    ),
    "vLLM": (
        400,
        {
            "object": "error",
            "message": "This model's maximum context length is 16 tokens. However, you requested 20.",
            "type": "BadRequestError",
            "code": 400,
        },
    ),
    "SGLang": (400, {"message": "The input (20 tokens) is longer than the model's context length"}),
    "llama.cpp": (
        400,
        {
            "message": "request (20 tokens) too long",
            "type": "exceed_context_size_error",
            "code": 400,
        },
    ),
    "Anthropic": (400, {"message": "prompt is too long: 20 tokens > 16 maximum"}),
    "Gemini": (400, {"message": "The input token count (20) exceeds the maximum number of tokens"}),
}


# What further servers say, as their users report it.
OVERFLOW_TEXTS = [
    "The decoder prompt (length 20) is longer than the maximum model length of 16.",
    "input length and `max_tokens` exceed context limit: 12 + 8 > 16",
    "This model's maximum prompt length is 16 but the request contains 20 tokens.",
    "Trying to keep the first 20 tokens when the prompt is greater than the context length",
    "invalid params, context window exceeds limit",
    "Your request exceeded model token limit: 16",
    "prompt too long; exceeded max context length by 4 tokens",
    "Range of input length should be [1, 16]",
    "Please reduce the length of the messages or completion.",
    "litellm.BadRequestError: context_length_exceeded",
]


@pytest.mark.parametrize("text", OVERFLOW_TEXTS)
def test_a_prompt_that_does_not_fit_is_told_in_many_words(
    server: ScriptedServer, text: str
) -> None:
    server.plays(respond({"error": {"message": text}}, 400))
    with (
        ChatPolicy("m", base_url=server.url, max_retries=0) as policy,
        pytest.raises(EpisodeTruncated, match="context_overflow: "),
    ):
        policy("Hi")


@pytest.mark.parametrize("text", ["context deadline exceeded", "max_tokens is too large: 20"])
def test_other_limits_truncate_nothing(server: ScriptedServer, text: str) -> None:
    server.plays(respond({"error": {"message": text}}, 500), respond({"error": text}, 400))
    for _ in range(2):
        with (
            ChatPolicy("m", base_url=server.url, max_retries=0) as policy,
            pytest.raises(ModelServerError),
        ):
            policy("Hi")


@pytest.mark.parametrize("kind", OVERFLOWS)
def test_a_prompt_that_does_not_fit_truncates(server: ScriptedServer, ask: Ask, kind: str) -> None:
    status, error = OVERFLOWS[kind]
    server.plays(respond({"error": error}, status))
    with pytest.raises(EpisodeTruncated, match="context_overflow: "):
        ask(server, max_retries=0)


def test_an_idle_connection_that_the_server_closed_is_not_used(server: ScriptedServer) -> None:
    server.plays(respond(ANSWER, keep=False), respond(ANSWER), respond(ANSWER), hang_up)
    with ChatPolicy("m", base_url=server.url, max_retries=0) as policy:
        assert policy("2 + 2?").action == "4"
        server.ended.acquire()
        for _ in range(2):
            assert policy("2 + 2?").action == "4"
        with pytest.raises(ServerUnavailableError):  # closed just as the request came
            policy("2 + 2?")
    assert [one.connection for one in server.received] == [1, 2, 2, 2]


def test_core_retries_the_episodes_that_a_fault_ended(server: ScriptedServer) -> None:
    server.plays(hang_up, respond(ANSWER))
    with ChatPolicy("m", base_url=server.url, max_retries=0) as policy:
        group = rollout_group(
            "2 + 2?",
            ChatEnv,
            policy,
            num_rollouts=2,
            retry=Retry(attempts=2, initial_delay=0),
        )
    assert group.num_completed == 2
    kinds = [error.error_type for error in group.retried]
    assert kinds == ["rolloutlib.openai.ServerUnavailableError"]


def test_a_refusal_is_recorded_with_the_server_s_own_words(server: ScriptedServer) -> None:
    server.plays(PERMANENT["no model"])
    with ChatPolicy("m", base_url=server.url) as policy:
        group = rollout_group("Hi", ChatEnv, policy, num_rollouts=1, retry=Retry(attempts=3))
    assert "the model does not exist" in group.errors[0].error_message
    assert len(server.received) == 1


def test_errors_survive_pickling(server: ScriptedServer) -> None:
    server.plays(OVERLOADED)
    with (
        ChatPolicy("m", base_url=server.url, max_retries=0) as policy,
        pytest.raises(ModelServerError) as caught,
    ):
        policy("Hi")
    copy = pickle.loads(pickle.dumps(caught.value))  # noqa: S301 - our own
    assert (str(copy), copy.status_code, copy.retry_after) == (str(caught.value), 429, "0.01")


@pytest.mark.anyio
async def test_a_call_that_is_cancelled_leaves_nothing_open(server: ScriptedServer) -> None:
    begun = anyio.Event()
    token = anyio.lowlevel.current_token()

    def drip(connection: socket.socket) -> bool:
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{")
        anyio.from_thread.run_sync(begun.set, token=token)
        return stall(connection)

    server.plays(drip, respond(ANSWER))
    policy = AsyncChatPolicy("m", base_url=server.url)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(policy, "2 + 2?")
        await begun.wait()
        tasks.cancel_scope.cancel()
    await anyio.to_thread.run_sync(server.ended.acquire)
    assert (await policy("2 + 2?")).action == "4"
    assert [one.connection for one in server.received] == [1, 2]


# Trio warns of generators of HTTPX besides, which a cancelled request leaves in the middle.
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
@pytest.mark.anyio
async def test_a_call_that_is_cancelled_as_it_connects_leaves_nothing_open(
    server: ScriptedServer,
) -> None:
    server.plays(respond(ANSWER))
    async with AsyncChatPolicy("m", base_url=server.url) as policy:
        for turns in range(150):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(policy, "2 + 2?")
                for _ in range(turns % 30):
                    await anyio.lowlevel.checkpoint()
                tasks.cancel_scope.cancel()
    gc.collect()  # what was left open warns, and fails the test
