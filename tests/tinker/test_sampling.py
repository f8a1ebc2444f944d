"""What policies ask of Tinker, and what they make of its answers."""

from __future__ import annotations

from typing import Any

import pytest

from rolloutlib.tinker import TinkerPolicy
from tinker_stub import Sampled, TinkerStub


def test_a_text_is_a_turn_of_the_user(stub: TinkerStub, sampler: Any, tokenizer: Any) -> None:
    answer = tokenizer.encode("hello<|im_end|>")
    stub.say(answer)
    policy = TinkerPolicy(sampler, max_tokens=10, version=3)
    output = policy("hello there", seed=5, step=0)
    [asked] = stub.received
    prompt = tokenizer.encode("<|im_start|>user\nhello there<|im_end|>\n<|im_start|>assistant\n")
    assert asked["prompt"]["chunks"] == [{"type": "encoded_text", "tokens": prompt}]
    assert output.action == "hello"
    assert output.prompt_tokens == prompt
    assert output.tokens == answer
    assert output.logprobs == pytest.approx([-0.6931472] * len(answer))
    assert (output.stop_reason, output.version) == ("stop", 3)
    assert output.info["termination"] == "stop_sequence"


def test_requests_carry_what_they_are_to(stub: TinkerStub, sampler: Any, tokenizer: Any) -> None:
    stub.sample = lambda body: [Sampled([1, 2], stop_reason="length")]
    policy = TinkerPolicy(sampler, max_tokens=10, temperature=0.5, top_k=3, top_p=0.9, stop=[7])
    output = policy([5, 6], seed=5, step=0)
    [asked] = stub.received
    params = asked["sampling_params"]
    ends = tokenizer.convert_tokens_to_ids(["<|im_end|>", "<|endoftext|>"])
    assert params.pop("seed") == output.info["seed"]
    assert params == {
        "max_tokens": 10,
        "temperature": 0.5,
        "top_k": 3,
        "top_p": 0.9,
        "stop": [*ends, 7],
    }
    assert output.info["termination"] == "length"
