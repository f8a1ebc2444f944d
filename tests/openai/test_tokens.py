"""Token ids and log probabilities in the forms of several servers, whole and with parts missing."""

from __future__ import annotations

from typing import Any

import pytest

from rolloutlib.openai import ChatPolicy, CompletionPolicy, MissingTokensError
from rolloutlib.rollouts import PolicyOutput, Retry
from scripted_server import ScriptedServer, respond

MESSAGE = {"role": "assistant", "content": "ok"}


def entries(*logprobs: float | None) -> dict[str, Any]:
    return {"content": [{"token": "x", "logprob": logprob} for logprob in logprobs]}


def ask(
    server: ScriptedServer, choice: dict[str, Any], options: dict[str, Any], **rest: Any
) -> PolicyOutput[str]:
    reply = {"choices": [{"message": MESSAGE, "finish_reason": "stop", **choice}], **rest}
    with ChatPolicy("m", base_url=server.plays(respond(reply)), **options) as policy:
        return policy("Hi")


BOTH: dict[str, Any] = {"tokens": True, "logprobs": True}
WHOLE = {
    "vLLM": (
        {"token_ids": [5, 6], "logprobs": entries(-0.5, -1)},
        {"prompt_token_ids": [1, 2, 3]},
    ),
    "SGLang": (
        {"token_ids": [5, 6], "prompt_token_ids": [1, 2, 3], "logprobs": entries(-0.5, -1)},
        {},
    ),
    "SGLang from 0.5.23": (
        {
            "response_token_ids": [5, 6],
            "prompt_token_ids": [1, 2, 3],
            "logprobs": entries(-0.5, -1),
        },
        {},
    ),
}


@pytest.mark.parametrize("kind", WHOLE)
def test_tokens_are_read_as_servers_tell_them(server: ScriptedServer, kind: str) -> None:
    choice, rest = WHOLE[kind]
    output = ask(server, choice, BOTH, **rest)
    assert output.prompt_tokens == [1, 2, 3]
    assert output.tokens == [5, 6]
    assert output.logprobs == [-0.5, -1]
    assert "incomplete" not in output.info
    body = server.received[0].body
    assert body["return_token_ids"] is body["return_tokens"] is body["logprobs"] is True


def test_completions_tell_log_probabilities_in_columns(server: ScriptedServer) -> None:
    choice = {"text": " ok", "logprobs": {"token_logprobs": [-0.5]}, "token_ids": [5]}
    reply = {"choices": [choice]}
    with CompletionPolicy("m", base_url=server.plays(respond(reply)), **BOTH) as policy:
        output = policy([1, 2])
    assert output.action == " ok"
    assert (output.prompt_tokens, output.tokens, output.logprobs) == ([1, 2], [5], [-0.5])


def test_hosted_servers_tell_log_probabilities_alone(server: ScriptedServer) -> None:
    output = ask(server, {"logprobs": entries(-0.5)}, {"logprobs": True})
    assert (output.tokens, output.logprobs) == (None, [-0.5])


def test_an_answer_without_tokens_is_whole(server: ScriptedServer) -> None:
    nothing = {"message": {"content": None}, "token_ids": [], "logprobs": None}
    output = ask(server, nothing, BOTH, prompt_token_ids=[1])
    assert (output.tokens, output.logprobs) == ([], [])


MISSING = {
    "no log probabilities": {"token_ids": [5, 6], "logprobs": None},
    "1 of 2 log probabilities missing": {"token_ids": [5, 6], "logprobs": entries(-0.5, None)},
    "2 of 2 log probabilities missing": {
        "token_ids": [5, 6],
        "logprobs": entries(float("nan"), float("-inf")),
    },
    "1 log probabilities for 2 tokens": {"token_ids": [5, 6], "logprobs": entries(-0.5)},
    "no ids of its tokens": {"logprobs": entries(-0.5, -1)},
}


@pytest.mark.parametrize("problem", MISSING)
def test_tokens_that_are_missing_are_an_error_and_not_made_up(
    server: ScriptedServer, problem: str
) -> None:
    with pytest.raises(MissingTokensError, match=problem) as caught:
        ask(server, MISSING[problem], BOTH, prompt_token_ids=[1])
    assert not Retry().is_transient(caught.value)
    output = ask(server, MISSING[problem], {**BOTH, "max_incomplete": 1}, prompt_token_ids=[1])
    assert output.info["incomplete"] == problem
    whole_ids = MISSING[problem].get("token_ids")
    assert output.tokens == whole_ids
    assert output.logprobs == (None if whole_ids else [-0.5, -1])


@pytest.mark.parametrize("told", [{}, {"prompt_token_ids": []}])
def test_ids_of_the_prompt_are_missed_too(server: ScriptedServer, told: dict[str, Any]) -> None:
    with pytest.raises(MissingTokensError, match="no ids of the prompt's tokens"):
        ask(server, {"token_ids": [5]}, {"tokens": True}, **told)


SAID = [{"content": "ok"}, {"content": None, "reasoning": "hm"}, {"tool_calls": [{"function": {}}]}]


@pytest.mark.parametrize("said", SAID)
def test_no_ids_for_an_answer_that_has_some_are_missed_too(
    server: ScriptedServer, said: dict[str, Any]
) -> None:
    with pytest.raises(MissingTokensError, match="no ids of its tokens"):
        ask(server, {"message": said, "token_ids": []}, {"tokens": True}, prompt_token_ids=[1])


def test_answers_that_lack_tokens_are_counted_up_to_a_bound(server: ScriptedServer) -> None:
    url = server.plays(respond({"choices": [{"message": MESSAGE}]}))
    with ChatPolicy("m", base_url=url, logprobs=True, max_incomplete=2) as policy:
        assert [policy("Hi").info["incomplete"] for _ in range(2)] == ["no log probabilities"] * 2
        with pytest.raises(MissingTokensError, match="max_incomplete=2"):
            policy("Hi")
        assert policy.num_incomplete == 3


def test_usage_is_told_by_kinds_of_tokens(server: ScriptedServer) -> None:
    usage = {
        "prompt_tokens": 9,
        "completion_tokens": 7,
        "total_tokens": 16,
        "prompt_tokens_details": {"cached_tokens": 4},
        "completion_tokens_details": {"reasoning_tokens": 5},
    }
    output = ask(server, {}, {}, usage=usage, model="m-2026", id="r1")
    assert output.info == {
        "model": "m-2026",
        "response_id": "r1",
        "usage": {
            "prompt_tokens": 9,
            "completion_tokens": 7,
            "cached_tokens": 4,
            "reasoning_tokens": 5,
        },
    }


@pytest.mark.parametrize("reason", ["stop", "length", "tool_calls", "content_filter", None])
def test_the_stop_reason_is_in_the_server_s_words(
    server: ScriptedServer, reason: str | None
) -> None:
    assert ask(server, {"finish_reason": reason}, {}).stop_reason == reason


@pytest.mark.parametrize("page", ["<h1>Hello</h1>", {"detail": "Hello"}, {"tokens": None}])
def test_a_page_in_place_of_llama_cpp_s_ids_leaves_those_of_the_prompt_out(
    server: ScriptedServer, page: Any
) -> None:
    reply = {
        "choices": [{"message": MESSAGE, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 2},
        "__verbose": {"prompt": "Hi", "tokens": [5, 6]},
    }
    server.plays(respond(reply), respond(page))
    with ChatPolicy("m", base_url=server.url, tokens=True, max_incomplete=None) as policy:
        output = policy("Hi")
    assert server.received[1].path == "/tokenize"
    assert (output.tokens, output.prompt_tokens) == ([5, 6], None)
    assert output.info["incomplete"] == "no ids of the prompt's tokens"
