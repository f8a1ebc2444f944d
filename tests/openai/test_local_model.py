"""Policies over a real model: llama.cpp's server on loopback with SmolLM2-135M-Instruct."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any
from urllib.request import Request, urlopen

import anyio
import pytest

from rolloutlib import Score, SingleTurnEnv, acollect, rollout, spaces
from rolloutlib.envs import ChatEnv
from rolloutlib.evals import run_benchmark
from rolloutlib.evals.benchmarks import gsm8k
from rolloutlib.openai import (
    AsyncChatPolicy,
    AsyncCompletionPolicy,
    ChatPolicy,
    CompletionPolicy,
    MissingTokensError,
)
from rolloutlib.rollouts import BatchedPolicy, EpisodeTruncated, rollout_group
from rolloutlib.types import Chat

MODEL = "SmolLM2-135M-Instruct"
ANIMALS = "🐶🐱🐭"
END_OF_TURN = "<|im_end|>"


class SumEnv(SingleTurnEnv[str, str]):
    observation_space = spaces.text.text(min_length=1)
    action_space = spaces.text.text()

    def __init__(self, item: tuple[int, int]) -> None:
        super().__init__()
        self.a, self.b = item

    def initial_observation(self, *, options: dict[str, Any] | None = None) -> tuple[str, Any]:
        return f"What is {self.a} + {self.b}?", {}

    def evaluate(self, action: str) -> Score:
        return Score(float(str(self.a + self.b) in action))

    def terminal_observation(self, action: str) -> str:
        return action


def ask(url: str, path: str, body: dict[str, Any]) -> Any:
    request = Request(url.removesuffix("/v1") + path, json.dumps(body).encode())  # noqa: S310 - loopback
    with urlopen(request, timeout=60) as response:  # noqa: S310
        return json.load(response)


def spell(url: str, tokens: Sequence[int] | None) -> str:
    assert tokens is not None
    return ask(url, "/detokenize", {"tokens": list(tokens)})["content"]


def test_an_answer_comes_with_the_tokens_that_spell_it(llama_url: str) -> None:
    chat: Chat = [
        {"role": "system", "content": "You are terse."},
        {"role": "user", "content": "Say hi."},
    ]
    policy = ChatPolicy(MODEL, base_url=llama_url, max_tokens=40, tokens=True, logprobs=True)
    output = policy(chat, seed=1)
    end = END_OF_TURN if output.finish == "stop" else ""
    assert output.action
    assert spell(llama_url, output.tokens) == output.action + end
    rendered = ask(llama_url, "/apply-template", {"messages": chat})["prompt"]
    assert spell(llama_url, output.prompt_tokens) == rendered
    assert output.tokens is not None
    assert output.logprobs is not None
    assert len(output.tokens) == len(output.logprobs)
    assert all(logprob <= 0 for logprob in output.logprobs)
    usage = output.info["usage"]
    assert usage["completion_tokens"] == len(output.tokens)
    assert usage["prompt_tokens"] == len(output.prompt_tokens or ())


def test_the_stop_reason_tells_an_answer_that_was_cut_off(llama_url: str) -> None:
    policy = ChatPolicy(MODEL, base_url=llama_url, max_tokens=2)
    assert policy("Count to ten.").finish == "length"


def test_nothing_of_tokens_is_told_unless_it_is_asked_for(llama_url: str) -> None:
    output = ChatPolicy(MODEL, base_url=llama_url, max_tokens=2)("Hi")
    assert (output.tokens, output.logprobs, output.prompt_tokens) == (None, None, None)


def test_the_same_seeds_give_the_same_answer(llama_url: str) -> None:
    policy = ChatPolicy(MODEL, base_url=llama_url, max_tokens=12, temperature=1.5)
    once, again, elsewhere = (policy("Tell me a story.", seed=seed) for seed in (5, 5, 6))
    assert once.action == again.action != elsewhere.action
    assert once.info["seed"] == again.info["seed"] != elsewhere.info["seed"]


def test_a_prompt_of_token_ids_is_the_prompt_of_the_record(llama_url: str) -> None:
    ids = ask(llama_url, "/tokenize", {"content": "One, two, three,"})["tokens"]
    policy = CompletionPolicy(MODEL, base_url=llama_url, max_tokens=4, tokens=True, logprobs=True)
    of_ids, of_text = policy(ids, seed=1), policy("One, two, three,", seed=1)
    assert of_ids.prompt_tokens == of_text.prompt_tokens == ids
    assert of_ids.action == of_text.action == spell(llama_url, of_ids.tokens)


# llama.cpp gives no entry for a token after which the text ends within a character, and an emoji is of
# three tokens here.
def test_tokens_within_a_character_are_missed_and_not_made_up(llama_url: str) -> None:
    asked: Any = {
        "base_url": llama_url,
        "logprobs": True,
        "extra_body": {"grammar": f'root ::= "{ANIMALS}"'},
    }
    tolerant = ChatPolicy(MODEL, tokens=True, max_incomplete=None, **asked)
    output = tolerant("Name three animals.")
    assert output.action == ANIMALS
    assert spell(llama_url, output.tokens) == ANIMALS + END_OF_TURN
    assert output.logprobs is None
    num_tokens = len(output.tokens or ())
    problem = f"4 log probabilities for {num_tokens} tokens"
    assert problem in output.info["incomplete"]
    assert tolerant.num_incomplete == 1
    for asks_for_ids in (True, False):
        policy = ChatPolicy(MODEL, tokens=asks_for_ids, **asked)
        with pytest.raises(MissingTokensError, match=problem):
            policy("Name three animals.")


def test_a_prompt_beyond_the_context_truncates_the_episode(llama_url: str) -> None:
    policy = ChatPolicy(MODEL, base_url=llama_url)
    with pytest.raises(
        EpisodeTruncated, match=r"context_overflow: .*exceeds the available context"
    ):
        policy("hello " * 2000)
    texts = CompletionPolicy(MODEL, base_url=llama_url)
    trajectory = rollout(ChatEnv("hello " * 2000), policy)
    assert trajectory.truncated
    assert trajectory.metadata["truncated_by"].startswith("context_overflow")
    with pytest.raises(EpisodeTruncated):
        texts("hello " * 2000)


def test_the_members_of_a_group_are_samples_of_one_request(llama_url: str) -> None:
    policy = ChatPolicy(MODEL, base_url=llama_url, max_tokens=12, temperature=1.5, max_samples=2)
    group = rollout_group(
        (2, 3), SumEnv, BatchedPolicy(policy.batch), num_rollouts=4, seed=1, max_steps=1
    )
    assert [t.steps[0].policy_info["sample"] for t in group.trajectories] == [0, 1, 0, 1]
    answers = [trajectory.actions[0] for trajectory in group.trajectories]
    assert len(set(answers)) > 1
    told = [step.policy_info.get("response_id") for t in group.trajectories for step in t.steps]
    assert len(set(told)) == 2


def test_a_benchmark_takes_the_policy_as_it_is(llama_url: str) -> None:
    items = [{"question": f"What is {n} plus 1?", "answer": f"#### {n + 1}"} for n in range(3)]
    policy = ChatPolicy(MODEL, base_url=llama_url, max_tokens=24, temperature=0)
    result = run_benchmark(gsm8k(items), policy=policy, concurrency=2)
    assert result.num_completed + result.num_truncated == 3
    assert result.num_errors == 0


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def sum_with_call(a: int, b: int) -> Chat:
    return [
        {"role": "user", "content": f"What is {a} + {b}?"},
        {
            "role": "assistant",
            "content": "",
            "tool_calls": [{"name": "add", "arguments": {"a": a, "b": b}}],
        },
        {"role": "tool", "content": str(a + b)},
        {"role": "assistant", "content": f"It is {a + b}."},
    ]


def test_a_model_calls_a_tool_and_is_shown_what_it_gave(llama_url: str) -> None:
    chat = [*sum_with_call(4, 4), *sum_with_call(6, 3), *sum_with_call(2, 3)[:1]]
    env = ChatEnv(chat, tools=[add], max_turns=2)
    policy = ChatPolicy(
        MODEL,
        base_url=llama_url,
        tools=env.tools,
        temperature=0,
        max_tokens=60,
        tokens=True,
        logprobs=True,
    )
    first, second = rollout(env, policy).steps
    assert first.policy_finish == "tool_calls"
    assert isinstance(first.action, dict)
    assert first.action.get("tool_calls", [])[0]["arguments"] == {"a": 2, "b": 3}
    assert second.observation[-1]["content"] == "5"
    assert second.action == {"role": "assistant", "content": "It is 5."}
    assert spell(llama_url, second.policy_tokens) == f"It is 5.{END_OF_TURN}"
    assert len(second.policy_tokens or ()) == len(second.policy_logprobs or ())


@pytest.mark.anyio
async def test_episodes_of_many_items_are_played_at_once(llama_url: str) -> None:
    policy = AsyncChatPolicy(MODEL, base_url=llama_url, max_tokens=8, tokens=True, logprobs=True)
    items = [(1, 1), (2, 3)]
    async with acollect(items, SumEnv, policy, num_rollouts=2, concurrency=4, seed=1) as groups:
        collected = [group async for group in groups]
    steps = [step for group in collected for t in group.trajectories for step in t.steps]
    assert len(steps) == 4
    for step in steps:
        end = END_OF_TURN if step.policy_finish == "stop" else ""
        assert spell(llama_url, step.policy_tokens) == step.action + end


@pytest.mark.anyio
async def test_the_asynchronous_policy_answers_as_its_twin_does(llama_url: str) -> None:
    asked: Any = {"base_url": llama_url, "max_tokens": 6, "tokens": True, "logprobs": True}
    prompt = "One, two, three,"
    sync = CompletionPolicy(MODEL, **asked)(prompt, seed=3, step=1)
    output = await AsyncCompletionPolicy(MODEL, **asked)(prompt, seed=3, step=1)
    assert output.action == sync.action
    assert output.tokens == sync.tokens
    assert output.prompt_tokens == sync.prompt_tokens
    assert output.info["seed"] == sync.info["seed"]


def test_one_policy_serves_one_event_loop_after_the_other(llama_url: str) -> None:
    policy = AsyncChatPolicy(MODEL, base_url=llama_url, max_tokens=2)

    async def main() -> str:
        return (await policy("Hi")).action

    for backend in ("asyncio", "trio", "asyncio"):
        assert anyio.run(main, backend=backend)
