"""Conversations of several turns, whose prompts begin with the exact tokens of the turns before."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator, Sequence
from typing import Any

import anyio
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import chat_templates
from rolloutlib import rollout
from rolloutlib.envs import AsyncChatEnv, ChatEnv
from rolloutlib.rollouts import (
    BatchedPolicy,
    Trajectory,
    TrajectoryGroup,
    arollout_group,
    rollout_group,
)
from rolloutlib.tinker import AsyncTinkerPolicy, ChatTemplateRenderer, TinkerPolicy
from rolloutlib.training import assemble_rows
from rolloutlib.types import Chat, Message
from tinker_stub import Sampled, TinkerStub, sampler_of

END = "<|im_end|>"


def spelled(tokenizer: Any, text: str, draw: random.Random) -> list[int]:
    """Ids that spell a text, seldom those that the tokenizer gives for it."""
    cuts = sorted(draw.sample(range(len(text) + 1), min(3, len(text))))
    pieces = [text[start:stop] for start, stop in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    return [token for piece in pieces for token in tokenizer.encode(piece)]


def spell(stub: TinkerStub, tokenizer: Any, texts: Sequence[str]) -> None:
    """Sample these texts again and again, spelled otherwise each time."""
    draw = random.Random(1)  # noqa: S311 - nothing is secret

    def sample(body: Any) -> list[Sampled]:
        return [
            Sampled(spelled(tokenizer, draw.choice(texts), draw) + tokenizer.encode(END))
            for _ in range(body["num_samples"])
        ]

    stub.sample = sample


def talk(turns: int) -> Any:
    """Return what answers as a user until the model has had its turns."""

    def respond(chat: Chat) -> str | None:
        said = sum(message["role"] == "assistant" for message in chat)
        return None if said == turns else f"again {said}"

    return respond


def said(text: str) -> list[Message]:
    """Return what the model said, and what the user says then."""
    return [{"role": "assistant", "content": text}, {"role": "user", "content": "more"}]


def rows_of(source: Trajectory[Any, Any] | TrajectoryGroup[Any, Any, Any]) -> tuple[int, int]:
    rows, report = assemble_rows(source)
    assert report.num_trainable == sum(row.num_trainable for row in rows)
    return len(rows), len(report.breaks)


def test_the_tokens_of_earlier_turns_are_extended_though_they_spell_otherwise(
    stub: TinkerStub, sampler: Any, tokenizer: Any
) -> None:
    spell(stub, tokenizer, ["hello there"])
    policy = TinkerPolicy(sampler, max_tokens=20)
    trajectory = rollout(ChatEnv("hello", respond=talk(4)), policy, seed=1)
    before: list[int] = []
    canonical = 0
    for number, step in enumerate(trajectory.steps):
        prompt, tokens = list(step.policy_prompt_tokens or ()), list(step.policy_tokens or ())
        assert prompt[: len(before)] == before
        assert tokenizer.decode(prompt).count("hello there") == number
        canonical += tokenizer.encode(tokenizer.decode(prompt)) == prompt
        before = prompt + tokens
    assert canonical < 4  # rendering anew would have given other tokens
    assert rows_of(trajectory) == (1, 0)
    assert all("rewrite" not in step.policy_info for step in trajectory.steps)


def test_calls_of_tools_are_extended_as_they_were_written(
    stub: TinkerStub, sampler: Any, tokenizer: Any
) -> None:
    def add(a: int, b: int) -> int:
        """Add two numbers."""
        return a + b

    stub.say(
        tokenizer.encode(
            'I add.<tool_call>{"arguments":{"a":1,"b":2},"name":"add"}</tool_call>' + END
        ),
        tokenizer.encode('<tool_call>\n{"name": "add", "arguments": {"a": 1' + END),
        tokenizer.encode("It is 3" + END),
    )
    policy = TinkerPolicy(sampler, max_tokens=20, tools=[add])
    trajectory = rollout(ChatEnv("1 + 2?", tools=[add]), policy, seed=1)
    assert trajectory.actions == (
        {
            "role": "assistant",
            "content": "I add.",
            "tool_calls": [{"name": "add", "arguments": {"a": 1, "b": 2}}],
        },
        {
            "role": "assistant",
            "content": "",
            "tool_calls": [{"name": "add", "arguments": {}, "malformed": '{"a": 1'}],
        },
        {"role": "assistant", "content": "It is 3"},
    )
    results = [
        message for message in trajectory.steps[-1].next_observation if message["role"] == "tool"
    ]
    assert results[0]["content"] == "3"
    assert "error" in results[1]["content"]
    assert rows_of(trajectory) == (1, 0)


@settings(
    deadline=None,
    max_examples=20,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    texts=st.lists(
        st.lists(
            st.sampled_from(
                [
                    "hello",
                    " there",
                    "\n",
                    " ",
                    "é",
                    "🙂",
                    "<think>",
                    "</think>",
                    "<tool_call>",
                    "{",
                    '"',
                ]
            ),
            max_size=6,
        ).map("".join),
        min_size=1,
        max_size=3,
    ),
    ended=st.booleans(),
    seed=st.integers(0, 100),
)
def test_every_answer_is_extended(
    stub: TinkerStub, sampler: Any, tokenizer: Any, texts: list[str], ended: bool, seed: int
) -> None:
    draw = random.Random(seed)  # noqa: S311 - nothing is secret
    end = tokenizer.encode(END) if ended else []
    stub.say(*[spelled(tokenizer, text, draw) + end for text in texts])
    policy = TinkerPolicy(sampler, max_tokens=20, tools=[])
    trajectory = rollout(
        ChatEnv("hello", respond=talk(len(texts)), max_turns=len(texts)), policy, seed=seed
    )
    rows, report = assemble_rows(trajectory)
    assert report.breaks == ()
    assert len(rows) <= 1


def test_members_that_say_the_same_in_other_tokens_are_told_apart(
    stub: TinkerStub, sampler: Any, tokenizer: Any
) -> None:
    spell(stub, tokenizer, ["hello there"])
    policy = TinkerPolicy(sampler, max_tokens=20)
    group = rollout_group(
        1,
        lambda _: ChatEnv("hello", respond=talk(4)),
        BatchedPolicy(policy.batch),
        num_rollouts=8,
        seed=1,
    )
    assert len({trajectory.steps[0].policy_tokens for trajectory in group.trajectories}) > 1
    assert rows_of(group) == (8, 0)


@pytest.mark.anyio
async def test_episodes_that_run_at_once_are_told_apart(
    stub: TinkerStub, sampler: Any, tokenizer: Any
) -> None:
    spell(stub, tokenizer, ["hello there", "hello"])
    policy = AsyncTinkerPolicy(sampler, max_tokens=20)
    group = await arollout_group(
        1,
        lambda _: AsyncChatEnv("hello", respond=talk(3)),
        policy,
        num_rollouts=16,
        concurrency=16,
        seed=1,
    )
    assert rows_of(group) == (16, 0)


def test_threads_tell_episodes_apart(stub: TinkerStub, sampler: Any, tokenizer: Any) -> None:
    spell(stub, tokenizer, ["hello there", "hello"])
    policy = TinkerPolicy(sampler, max_tokens=20)
    found: list[tuple[int, int]] = []

    def play(seed: int) -> None:
        env = ChatEnv("hello", respond=talk(3))
        found.append(rows_of(rollout(env, policy, seed=seed)))

    threads = [threading.Thread(target=play, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [(1, 0)] * 8


def test_conversations_go_on_with_other_weights(
    stub: TinkerStub, sampler: Any, tokenizer: Any
) -> None:
    spell(stub, tokenizer, ["hello there"])
    policies: Iterator[TinkerPolicy[str]] = iter(
        [
            (old := TinkerPolicy(sampler, max_tokens=20, version=1)),
            old.with_sampler(sampler_of(stub), version=2),
            old.with_sampler(sampler_of(stub), version=3),
        ]
    )

    def policy(chat: Chat, *, seed: int | None = None, step: int | None = None) -> Any:
        return next(policies)(chat, seed=seed, step=step)

    trajectory = rollout(ChatEnv("hello", respond=talk(3)), policy, seed=1)
    assert [step.policy_version for step in trajectory.steps] == [1, 2, 3]
    assert rows_of(trajectory) == (1, 0)


@pytest.mark.parametrize("tools", [None, []])
def test_a_reply_that_the_environment_has_changed_is_read_as_it_is_shown(
    stub: TinkerStub, sampler: Any, tokenizer: Any, tools: Any
) -> None:
    stub.say(*[tokenizer.encode("the secret" + END)] * 3)
    policy = TinkerPolicy(sampler, max_tokens=20, tools=tools)
    chat: list[Message] = [{"role": "user", "content": "hello"}]
    policy(chat, seed=1, step=0)
    chat += said("the ***")
    output = policy(chat, seed=1, step=1)
    assert "message 1 is not what was said" in output.info["rewrite"]
    assert "secret" not in tokenizer.decode(output.prompt_tokens)
    chat += said(" the  secret\n")
    output = policy(chat, seed=1, step=2)
    assert output.prompt_tokens is not None
    assert "the secret<|im_end|>" in tokenizer.decode(output.prompt_tokens)


def test_a_reply_that_was_cut_at_a_text_is_extended_whole(
    stub: TinkerStub, sampler: Any, tokenizer: Any
) -> None:
    stub.sample = lambda _: [Sampled(tokenizer.encode("hello. he"))]
    policy = TinkerPolicy(sampler, max_tokens=20, stop=".")
    trajectory = rollout(ChatEnv("hello", respond=talk(3)), policy, seed=1)
    assert trajectory.actions == ("hello",) * 3
    assert rows_of(trajectory) == (1, 0)


def test_a_policy_that_is_called_without_a_step_extends_too(
    stub: TinkerStub, sampler: Any, tokenizer: Any
) -> None:
    spell(stub, tokenizer, ["hello there"])
    policy = TinkerPolicy(sampler, max_tokens=20)
    chat: list[Message] = [{"role": "user", "content": "hello"}]
    first = policy(chat)
    chat += said(first.action)
    again = policy(chat)
    assert again.prompt_tokens is not None
    before = (*(first.prompt_tokens or ()), *(first.tokens or ()))
    assert again.prompt_tokens[: len(before)] == before


def test_a_step_that_is_sampled_again_has_the_same_prompt(
    stub: TinkerStub, sampler: Any, tokenizer: Any
) -> None:
    texts = ["hello", "hello there", "there", "hello hello", "there there", "the hero"]
    stub.say(*[tokenizer.encode(text + END) for text in texts])
    policy = TinkerPolicy(sampler, max_tokens=20)

    def twice(chat: Chat, *, seed: int | None = None, step: int | None = None) -> Any:
        outputs = [policy(chat, seed=seed, step=step) for _ in range(2)]
        assert outputs[0].prompt_tokens == outputs[1].prompt_tokens
        return outputs[1]

    trajectory = rollout(ChatEnv("hello", respond=talk(3)), twice, seed=1)
    assert rows_of(trajectory) == (1, 0)
    assert all("rewrite" not in step.policy_info for step in trajectory.steps)


@pytest.mark.parametrize(("overrule", "rows"), [("everything", 1), ("whitespace", 3)])
def test_a_template_that_drops_thinking_is_overruled_unless_it_may_not_be(
    stub: TinkerStub, sampler: Any, tokenizer: Any, overrule: Any, rows: int
) -> None:
    stub.sample = lambda _: [Sampled(tokenizer.encode("<think>\nlet me\n</think>\n\n42" + END))]
    renderer = ChatTemplateRenderer(tokenizer, chat_template=chat_templates.DROPS_THINKING)
    policy = TinkerPolicy(sampler, max_tokens=20, renderer=renderer, overrule=overrule)
    trajectory = rollout(ChatEnv("hello", respond=talk(3)), policy, seed=1)
    assert rows_of(trajectory) == (rows, rows - 1)
    told = [step.policy_info.get("rewrite", "") for step in trajectory.steps]
    assert "thinking was dropped" in told[2]


def test_a_conversation_that_is_forgotten_is_rendered_anew_and_told(
    stub: TinkerStub, sampler: Any, tokenizer: Any
) -> None:
    spell(stub, tokenizer, ["hello there"])
    policy = TinkerPolicy(sampler, max_tokens=20, max_chats=1)
    other = TinkerPolicy(sampler, max_tokens=20)

    def interrupted(chat: Chat, *, seed: int | None = None, step: int | None = None) -> Any:
        output = policy(chat, seed=seed, step=step)
        policy("another conversation", seed=99, step=0)
        return output

    trajectory = rollout(ChatEnv("hello", respond=talk(2)), interrupted, seed=1)
    assert "tokens of earlier turns are not known" in trajectory.steps[1].policy_info["rewrite"]
    assert rows_of(rollout(ChatEnv("hello", respond=talk(2)), other, seed=1)) == (1, 0)


def test_conversations_go_on_from_one_event_loop_to_another(
    stub: TinkerStub, sampler: Any, tokenizer: Any
) -> None:
    spell(stub, tokenizer, ["hello there"])
    policy = AsyncTinkerPolicy(sampler, max_tokens=20)
    chat: list[Message] = [{"role": "user", "content": "hello"}]

    async def main() -> Any:
        return await policy(chat, seed=1, step=len(chat) // 2)

    before: tuple[int, ...] = ()
    for backend in ("asyncio", "trio", "asyncio"):
        output = anyio.run(main, backend=backend)
        assert output.prompt_tokens[: len(before)] == before
        before = (*output.prompt_tokens, *output.tokens)
        chat += said(output.action)
