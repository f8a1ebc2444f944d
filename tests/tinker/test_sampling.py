"""What policies ask of Tinker, and what they make of its answers."""

from __future__ import annotations

import copy
import pickle
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, assert_type

import anyio.to_thread
import numpy as np
import pytest

from processes import output_of
from rolloutlib import rollout
from rolloutlib.envs import ChatEnv
from rolloutlib.rollouts import BatchedPolicy, EpisodeTruncated, PolicyOutput
from rolloutlib.tinker import (
    AsyncTinkerPolicy,
    ChatTemplateRenderer,
    MissingTokensError,
    PolicyOptions,
    TinkerPolicy,
)
from rolloutlib.types import Message
from tinker_stub import Sampled, TinkerStub, made_by, sampler_of

if TYPE_CHECKING:
    import tinker


def asked_text(stub: TinkerStub, tokenizer: Any, index: int = -1) -> str:
    """The text of the prompt that was asked."""
    [chunk] = stub.received[index]["prompt"]["chunks"]
    return tokenizer.decode(chunk["tokens"])


def test_a_text_is_a_turn_of_the_user(stub: TinkerStub, sampler: Any, tokenizer: Any) -> None:
    answer = tokenizer.encode("hello<|im_end|>")
    stub.say(answer)
    policy = TinkerPolicy(sampler, max_tokens=10, version=3)
    output = policy("hello there", seed=5, step=0)
    prompt = tokenizer.encode("<|im_start|>user\nhello there<|im_end|>\n<|im_start|>assistant\n")
    [asked] = stub.received
    assert asked["prompt"]["chunks"] == [{"type": "encoded_text", "tokens": prompt}]
    assert output.action == "hello"
    assert output.prompt_tokens == prompt
    assert output.tokens == answer
    assert output.logprobs == pytest.approx([-0.6931472] * len(answer))
    assert (output.stop_reason, output.finish, output.version) == ("stop", "stop", 3)
    assert output.info == {
        "termination": "stop_sequence",
        "seed": asked["sampling_params"]["seed"],
        "usage": {
            "prompt_tokens": len(prompt),
            "completion_tokens": len(answer),
            "cached_tokens": 0,
        },
    }


def test_a_chat_is_rendered_with_its_tools_calls_and_results(
    stub: TinkerStub, sampler: Any, tokenizer: Any
) -> None:
    def add(a: int, b: int) -> int:
        """Add two numbers."""
        return a + b

    stub.say(tokenizer.encode("3<|im_end|>"))
    policy = TinkerPolicy(sampler, max_tokens=10, tools=[add])
    chat: list[Message] = [
        {"role": "user", "content": [{"type": "text", "text": "1 + 2?"}]},
        {
            "role": "assistant",
            "content": "",
            "tool_calls": [
                {"name": "add", "arguments": {"a": 1, "b": 2}, "id": "x"},
                {"name": "add", "arguments": {}, "malformed": '{"a": 1'},
            ],
        },
        {"role": "tool", "content": "3", "tool_call_id": "x"},
    ]
    output = policy(chat)
    assert output.action == {"role": "assistant", "content": "3"}
    head, _, rest = asked_text(stub, tokenizer).partition("<|im_end|>\n")
    assert '"name": "add"' in head
    assert rest == (
        "<|im_start|>user\n1 + 2?<|im_end|>\n"
        '<|im_start|>assistant\n\n<tool_call>\n{"name": "add", "arguments": {"a": 1, "b": 2}}\n'
        '</tool_call>\n<tool_call>\n{"name": "add", "arguments": {"a": 1}\n</tool_call><|im_end|>\n'
        "<|im_start|>tool\n3<|im_end|>\n<|im_start|>assistant\n"
    )


@pytest.mark.parametrize("kind", ["list", "tuple", "array", "prompt"])
def test_token_ids_are_the_prompt_as_they_are(stub: TinkerStub, sampler: Any, kind: str) -> None:
    import tinker  # noqa: PLC0415 - slow to import

    ids: Any = {
        "list": [5, 6],
        "tuple": (5, 6),
        "array": np.array([5, 6]),
        "prompt": tinker.ModelInput.from_ints([5, 6]),
    }[kind]
    policy = TinkerPolicy(sampler, max_tokens=10, actions="tokens")
    output = policy(ids)
    assert stub.received[0]["prompt"]["chunks"] == [{"type": "encoded_text", "tokens": [5, 6]}]
    assert output.prompt_tokens == [5, 6]
    assert output.action == [1]
    assert output.tokens == [1]


@pytest.mark.parametrize(
    ("wrong", "problem"),
    [
        (5, "messages, a text or token ids, got 5"),
        ([], "messages, a text or token ids"),
        ([1.5], "messages, a text or token ids"),
        (b"hello", "messages, a text or token ids"),
        ([1, -1], "token ids must not be negative"),
        ([{"role": "user"}], "message 0 is not as"),
        ([{"role": "user", "content": [{"type": "audio", "url": "x"}]}], "message 0 has a sound"),
        ([{"role": "user", "content": [{"type": "image", "url": "x"}]}], "data: URL of a PNG"),
    ],
)
def test_what_is_no_prompt_is_refused_before_it_is_sent(
    stub: TinkerStub, sampler: Any, wrong: Any, problem: str
) -> None:
    with pytest.raises((TypeError, ValueError), match=problem):
        TinkerPolicy(sampler, max_tokens=10)(wrong)
    assert stub.received == []


def test_requests_have_the_parameters_of_the_policy(
    stub: TinkerStub, sampler: Any, tokenizer: Any
) -> None:
    ten: Any = np.int64(10)
    policy = TinkerPolicy(
        sampler, max_tokens=ten, temperature=0.5, top_k=3, top_p=np.float64(0.9), stop=[9, 7]
    )
    policy([5, 6])
    ends = tokenizer.convert_tokens_to_ids(["<|im_end|>", "<|endoftext|>"])
    assert stub.received[0]["sampling_params"] == {
        "max_tokens": 10,
        "temperature": 0.5,
        "top_k": 3,
        "top_p": 0.9,
        "stop": [*ends, 9],
    }


def test_texts_that_end_an_answer_are_cut_from_it(
    stub: TinkerStub, sampler: Any, tokenizer: Any
) -> None:
    stub.say(tokenizer.encode("the hero. he"), tokenizer.encode("the<|im_end|>"))
    policy = TinkerPolicy(sampler, max_tokens=10, stop="hero")
    output = policy("hello")
    assert output.action == "the "
    assert tokenizer.decode(output.tokens) == "the hero. he"
    assert output.info["termination"] == "stop_sequence"
    assert policy("hello").action == "the"
    stop = stub.received[0]["sampling_params"]["stop"]
    assert stop == ["<|im_end|>", "<|endoftext|>", "hero"]


def test_an_id_that_ends_an_answer_is_cut_from_it_too(
    stub: TinkerStub, sampler: Any, tokenizer: Any
) -> None:
    answer = tokenizer.encode("the<|eot_id|>")
    stub.say(answer)
    output = TinkerPolicy(sampler, max_tokens=10, stop=answer[-1:])("hello")
    assert (output.action, output.info["termination"]) == ("the", "stop_sequence")
    assert output.tokens == answer


@pytest.mark.parametrize("rest", ["", " and so on"])
def test_a_text_that_ends_an_answer_may_be_that_of_a_call(
    stub: TinkerStub, sampler: Any, tokenizer: Any, rest: str
) -> None:
    stub.say(
        tokenizer.encode(f'So<tool_call>{{"name": "add", "arguments": {{}}}}</tool_call>{rest}')
    )
    output = TinkerPolicy(sampler, max_tokens=10, tools=[], stop="</tool_call>")("hello")
    assert output.info["termination"] == "stop_sequence"
    assert output.action == {
        "role": "assistant",
        "content": "So",
        "tool_calls": [{"name": "add", "arguments": {}}],
    }


def test_seeds_differ_by_episode_step_and_policy(stub: TinkerStub, sampler: Any) -> None:
    seeds: list[int] = []
    for own in (None, 1):
        policy = TinkerPolicy(sampler, max_tokens=10, seed=own)
        for seed in (3, 4):
            for step in (0, 1):
                seeds.append(policy([5], seed=seed, step=step).info["seed"])
                assert seeds[-1] == policy([5], seed=seed, step=step).info["seed"]
    assert len(set(seeds)) == 8
    assert "seed" not in TinkerPolicy(sampler, max_tokens=10)([5]).info
    assert "seed" not in TinkerPolicy(sampler, max_tokens=10, send_seed=False)([5], seed=1).info
    assert "seed" not in stub.received[-1]["sampling_params"]


@pytest.mark.parametrize(
    ("text", "reason", "action", "termination"),
    [
        ("hello<|im_end|>", "stop", "hello", "stop_sequence"),
        ("hello<|endoftext|>", "stop", "hello", "eos"),
        ("hello", "length", "hello", "length"),
        ("hello", "stop", "hello", "malformed"),
        ("<|im_end|>", "stop", "", "stop_sequence"),
        ("", "stop", "", "malformed"),
    ],
)
def test_how_an_answer_ended_is_told(
    stub: TinkerStub,
    sampler: Any,
    tokenizer: Any,
    text: str,
    reason: str,
    action: str,
    termination: str,
) -> None:
    stub.sample = lambda _: [Sampled(tokenizer.encode(text), stop_reason=reason)]
    output = TinkerPolicy(sampler, max_tokens=10)("hello")
    assert (output.action, output.stop_reason) == (action, reason)
    assert output.info["termination"] == termination
    assert output.logprobs is not None


def test_a_prompt_beyond_the_context_truncates_the_episode_before_it_is_sent(
    stub: TinkerStub, sampler: Any
) -> None:
    policy = TinkerPolicy(sampler, max_tokens=10, max_context=12)
    policy([5] * 2)
    policy([5] * 11)
    assert [asked["sampling_params"]["max_tokens"] for asked in stub.received] == [10, 1]
    with pytest.raises(EpisodeTruncated, match="context_overflow: the prompt has 12 tokens"):
        policy([5] * 12)
    entries = policy.batch([[5] * 12, [5]])
    assert [type(entry) for entry in entries] == [EpisodeTruncated, PolicyOutput]
    assert len(stub.received) == 3


@pytest.mark.parametrize(
    ("logprobs", "problem"),
    [
        (None, "no log probabilities"),
        ([-1.0], "1 log probabilities for 2 tokens"),
        ([-1.0, float("nan")], "1 of 2 log probabilities missing"),
    ],
)
def test_log_probabilities_that_are_missing_are_an_error_and_not_made_up(
    stub: TinkerStub, sampler: Any, logprobs: Any, problem: str
) -> None:
    stub.sample = lambda _: [Sampled([5, 1], logprobs)]
    with pytest.raises(MissingTokensError, match=problem):
        TinkerPolicy(sampler, max_tokens=10)("hello")
    policy = TinkerPolicy(sampler, max_tokens=10, max_incomplete=1)
    output = policy("hello")
    assert (output.tokens, output.logprobs) == ((5, 1), None)
    assert problem in output.info["incomplete"]
    assert policy.num_incomplete == 1
    with pytest.raises(MissingTokensError, match="max_incomplete=1"):
        policy("hello")


def test_other_weights_are_recorded_with_their_version(stub: TinkerStub, sampler: Any) -> None:
    policy = TinkerPolicy(sampler, max_tokens=10, version=1)
    later = policy.with_sampler(sampler_of(stub), version=2)
    assert (policy.version, later.version) == (1, 2)
    assert (policy("hello").version, later("hello").version) == (1, 2)


def test_the_future_of_a_client_is_waited_for(stub: TinkerStub, sampler: Any) -> None:
    future: Future[Any] = Future()
    future.set_result(sampler)
    assert TinkerPolicy(future, max_tokens=10)([5]).tokens == [1]
    lost: Future[Any] = Future()
    with pytest.raises(TimeoutError, match=r"no sampling client in 0\.01 seconds"):
        TinkerPolicy(lost, max_tokens=10, timeout=0.01)


def test_the_future_of_a_client_is_waited_for_by_all_at_the_same_time(
    stub: TinkerStub, sampler: Any
) -> None:
    meeting = threading.Barrier(2, timeout=20)

    class Made:
        def future(self) -> Future[Any]:
            meeting.wait()
            made: Future[Any] = Future()
            made.set_result(sampler)
            return made

    made: Any = Made()
    policy = TinkerPolicy(sampler, max_tokens=10).with_sampler(made)
    with ThreadPoolExecutor() as threads:
        assert [output.tokens for output in threads.map(policy, ["hello", "there"])] == [(1,)] * 2


@pytest.mark.anyio
async def test_the_sdk_s_own_future_of_a_client_is_waited_for_without_its_warning(
    stub: TinkerStub,
) -> None:
    def make() -> Any:  # before 0.38 a client, later a future of one
        made = made_by(stub).create_sampling_client(base_model=stub.base_model)
        if hasattr(type(made), "future"):
            made.future().add_done_callback(lambda done: stub.samplers.append(done.result()))
        else:
            stub.samplers.append(made)
        return made

    policy = AsyncTinkerPolicy(await anyio.to_thread.run_sync(make), max_tokens=10)
    assert (await policy("hello")).tokens == (1,)
    later = policy.with_sampler(await anyio.to_thread.run_sync(make), version=1)
    assert (await later("hello")).version == 1


def test_what_is_no_client_is_refused_at_once() -> None:
    wrong: Any = "Qwen/Qwen3-8B"
    with pytest.raises(TypeError, match=r"sampler must be a tinker\.SamplingClient or"):
        TinkerPolicy(wrong, max_tokens=10)


def test_none_stands_for_what_is_left_out(stub: TinkerStub, sampler: Any) -> None:
    names = set(PolicyOptions.__annotations__) - {"max_tokens", "max_incomplete"}
    for options in ({}, dict.fromkeys(names)):
        TinkerPolicy(sampler, max_tokens=10, **options)("hello", seed=1, step=0)
    left_out, none = (asked["sampling_params"] for asked in stub.received)
    assert none == left_out
    assert "seed" in none


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({}, "pass max_tokens="),
        ({"max_tokens": 0}, "max_tokens must be at least 1"),
        ({"max_tokens": 1, "temprature": 1}, "did you mean 'temperature'"),
        ({"max_tokens": 1, "temperature": -1}, "temperature must be at least 0"),
        ({"max_tokens": 1, "timeout": 0}, "timeout must be positive"),
        ({"max_tokens": 1, "stop": ["a", 1]}, "stop must be a text, texts, or ids"),
        ({"max_tokens": 1, "stop": 1}, "stop must be a text, texts, or ids"),
        ({"max_tokens": 1, "stop": ""}, "stop must have no empty text"),
        ({"max_tokens": 1, "stop": [5, -1]}, "stop must have .* no negative id"),
        ({"max_tokens": 1, "top_p": 1.5}, "top_p must be at most 1"),
        ({"max_tokens": 1, "seed": "1"}, "seed must be an integer"),
        ({"max_tokens": 1, "overrule": "all"}, "overrule must be"),
        ({"max_tokens": 1, "tools": "add"}, "tools must be a Toolset"),
        ({"max_tokens": 1, "actions": "ids"}, "actions must be 'tokens'"),
        ({"max_tokens": 1, "actions": "tokens", "tools": []}, "call no tools"),
        ({"max_tokens": 1, "renderer": object()}, "lacks build_generation_prompt"),
    ],
)
def test_what_no_request_could_have_is_refused_at_once(
    sampler: Any, options: dict[str, Any], problem: str
) -> None:
    with pytest.raises((TypeError, ValueError), match=problem):
        TinkerPolicy(sampler, **options)
    with pytest.raises((TypeError, ValueError), match=problem):
        AsyncTinkerPolicy(sampler, **options)


def types_of_a_real_client(trainer: tinker.TrainingClient, env: ChatEnv) -> None:
    """For the type checker alone."""
    sampler = trainer.save_weights_and_get_sampling_client()
    policy = TinkerPolicy(sampler, max_tokens=10, tools=env.tools)
    assert_type(policy, TinkerPolicy[Message])
    assert_type(policy.with_sampler(sampler.result()), TinkerPolicy[Message])
    rollout(env, policy)
    rollout(env, TinkerPolicy(sampler, max_tokens=10))
    rollout(env, BatchedPolicy(policy.batch))


def test_type_checkers_know_the_actions(sampler: Any) -> None:
    texts = TinkerPolicy(sampler, max_tokens=10)
    messages = TinkerPolicy(sampler, max_tokens=10, tools=[])
    tokens = TinkerPolicy(sampler, max_tokens=10, actions="tokens")
    assert_type(texts("hello"), PolicyOutput[str])
    assert_type(messages("hello"), PolicyOutput[Message])
    assert_type(tokens([5]), PolicyOutput[list[int]])
    assert_type(tokens.with_sampler(sampler), TinkerPolicy[list[int]])
    assert_type(AsyncTinkerPolicy(sampler, max_tokens=10), AsyncTinkerPolicy[str])
    assert_type(AsyncTinkerPolicy(sampler, max_tokens=10, tools=[]), AsyncTinkerPolicy[Message])


def test_a_policy_tells_its_model_and_version_and_is_not_copied(sampler: Any, model: str) -> None:
    policy = TinkerPolicy(sampler, max_tokens=10, version="a")
    assert repr(policy) == f"TinkerPolicy(sampling from {model!r}, version='a')"
    for make in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError, match="neither pickled nor copied"):
            make(policy)


def test_the_sdk_is_imported_by_the_first_policy_only() -> None:
    script = """
import sys
import rolloutlib.tinker
print(sorted({"tinker", "transformers", "torch", "jinja2"} & sys.modules.keys()))
"""
    assert output_of(script) == "[]\n"


def test_a_model_without_a_chat_template_takes_token_ids(
    stub: TinkerStub, sampler: Any, tokenizer: Any
) -> None:
    bare = copy.deepcopy(tokenizer)
    bare.chat_template = None

    class Bare:
        def sample(self, *args: Any) -> Any:
            return sampler.sample(*args)

        def get_tokenizer(self) -> Any:
            return bare

    stub.say(tokenizer.encode("hello<|endoftext|>"))
    client: Any = Bare()
    policy = TinkerPolicy(client, max_tokens=10)
    output = policy([5, 6])
    assert (output.action, output.info["termination"]) == ("hello", "eos")
    assert stub.received[0]["sampling_params"]["stop"] == [tokenizer.eos_token_id]
    with pytest.raises(ValueError, match="no chat template: pass renderer="):
        policy("hello")
    with pytest.raises(ValueError, match="no chat template: pass chat_template="):
        ChatTemplateRenderer(bare)
