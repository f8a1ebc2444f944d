"""Rows of episodes that were played, not written down: what the sampler saw is what is trained."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from typing import Any

import gymnasium as gym
import pytest

from rolloutlib import (
    AsyncEnv,
    Env,
    PolicyOutput,
    Score,
    TrajectoryGroup,
    arollout_group,
    as_async,
    rollout,
    rollout_group,
)
from rolloutlib.rollouts import AsyncBatchedPolicy, BatchedPolicy, EpisodeTruncated
from rolloutlib.training import assemble_rows, check_rows, group_mean

Chat = list[dict[str, Any]]

CALLS = ['{"tool": "add", "x": 1}', '{"tool": "add", "x"', " done \n"]
"""What the model says: a call, a call whose JSON is cut short, and an answer in white space."""


class ToolEnv(Env[Chat, str]):
    """A chat with tools; what is no call in JSON ends it, but a call cut short is answered."""

    action_space: gym.Space[str] = gym.spaces.Text(100)
    observation_space: Any = gym.spaces.Sequence(gym.spaces.Dict())

    def __init__(self, item: object = None) -> None:
        self.chat: Chat = []

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Chat, dict[str, Any]]:
        super().reset(seed=seed)
        self.chat = [{"role": "system", "content": ""}, {"role": "user", "content": " hi\t\n"}]
        return self.chat, {}

    def step(self, action: str) -> tuple[Chat, float, bool, bool, dict[str, Any]]:
        if not action.startswith("{"):
            self.chat.append({"role": "assistant", "content": action})
            return self.chat, 1.0, True, False, {}
        self.chat.append({"role": "assistant", "content": None, "tool_calls": [action]})
        try:
            result = f"got {json.loads(action)['x']} "
        except json.JSONDecodeError as error:
            result = f"error: {error}"
        self.chat.append({"role": "tool", "content": result})
        return self.chat, 0.0, False, False, {}


def render(chat: Chat, change: Callable[[str], str] = str) -> list[int]:
    """Encode a chat letter by letter, in a template that a conversation only grows in."""
    texts = [
        change(message["content"] or "".join(message.get("tool_calls", ()))) for message in chat
    ]
    return [ord(letter) for text in texts for letter in f"{text}|"]


def model(chat: Chat, change: Callable[[str], str] = str) -> PolicyOutput[str]:
    """Say the next thing, with its exact tokens, the end of the turn included."""
    said = sum(message["role"] == "assistant" for message in chat)
    tokens = [ord(letter) for letter in f"{CALLS[said]}|"]
    return PolicyOutput(
        CALLS[said],
        prompt_tokens=render(chat, change),
        tokens=tokens,
        logprobs=[-token / 64 for token in tokens],
        stop_reason="stop" if said == 2 else "tool_calls",
    )


def text(tokens: Any) -> str:
    return "".join(map(chr, tokens))


def test_white_space_and_empty_content_come_through_as_they_were_sampled() -> None:
    trajectory = rollout(ToolEnv(), model)
    assert trajectory.observations[-1][1]["content"] == " hi\t\n"
    assert trajectory.observations[-1][2]["content"] is None
    assert trajectory.actions[-1] == " done \n"
    [row], report = assemble_rows(trajectory)
    assert text(row.tokens).startswith("| hi\t\n|" + CALLS[0] + "|got 1 |" + CALLS[1] + "|error")
    assert [text(row.tokens[span.start : span.stop]) for span in row.spans] == [
        f"{call}|" for call in CALLS
    ]
    assert not report.breaks
    check_rows([row], trajectory)


def test_a_template_that_strips_content_breaks_rows_and_is_shown() -> None:
    trajectory = rollout(ToolEnv(), lambda chat: model(chat, lambda content: content.upper()))
    rows, report = assemble_rows(trajectory)
    assert len(rows) == 3
    first = report.breaks[0]
    assert (text(first.expected), text(first.found)) == ('tool": "', 'TOOL": "')
    assert first.extra_tokens == len(rows[0])
    check_rows(rows, trajectory)


def test_a_tool_call_cut_short_becomes_an_observation_and_is_trained() -> None:
    trajectory = rollout(ToolEnv(), model)
    assert trajectory.terminated
    assert trajectory.observations[2][-1]["content"].startswith("error: Expecting")
    [row], _ = assemble_rows(trajectory)
    assert len(row.spans) == 3
    assert [span.stop_reason for span in row.spans] == ["tool_calls", "tool_calls", "stop"]


@pytest.mark.anyio
async def test_all_ways_of_playing_give_the_same_rows() -> None:
    def batch(chats: Sequence[Chat]) -> list[PolicyOutput[str]]:
        return [model(chat) for chat in chats]

    async def amodel(chat: Chat) -> PolicyOutput[str]:
        return model(chat)

    def make_async(item: object) -> AsyncEnv[Chat, str]:
        return as_async(ToolEnv(), inline=True)

    arguments: dict[str, Any] = {"num_rollouts": 3, "item_id": "i", "seed": 1}
    several: dict[str, Any] = {**arguments, "concurrency": 3}
    async with AsyncBatchedPolicy(batch, max_size=3, max_wait=math.inf) as batched:
        played = [
            rollout_group(0, ToolEnv, model, **arguments),
            rollout_group(0, ToolEnv, BatchedPolicy(batch), **arguments),
            await arollout_group(0, ToolEnv, model, **several),
            await arollout_group(0, make_async, amodel, **several),
            await arollout_group(0, make_async, batched, **several),
        ]
    expected = assemble_rows(played[0], advantages=group_mean)
    assert expected[1].num_trained_steps == 9
    for group in played[1:]:
        assert assemble_rows(group, advantages=group_mean) == expected


@pytest.mark.parametrize("turn", [0, 1, 2])
def test_a_context_that_overflows_truncates_and_leaves_the_turns_before_it(turn: int) -> None:
    def short(chat: Chat) -> PolicyOutput[str]:
        if sum(message["role"] == "assistant" for message in chat) == turn:
            msg = "too long"
            raise EpisodeTruncated(msg)
        return model(chat)

    group = rollout_group(0, ToolEnv, short, num_rollouts=2)
    assert (group.num_truncated, group.num_failed) == (2, 0)
    rows, report = assemble_rows(group, advantages=group_mean)
    assert [len(row.spans) for row in rows] == [turn] * (2 if turn else 0)
    assert report.num_trained_steps == 2 * turn
    check_rows(rows, group)


def test_the_grader_sees_every_turn_that_is_trained() -> None:
    seen: list[int] = []

    def grade(group: TrajectoryGroup[Any, Any, Any]) -> list[Score]:
        seen.extend(len(trajectory.steps) for trajectory in group.trajectories)
        return [Score(float(index)) for index, _ in enumerate(group.trajectories)]

    group = rollout_group(0, ToolEnv, model, num_rollouts=2, grade_group=grade)
    rows, _ = assemble_rows(group, advantages=group_mean)
    assert seen == [3, 3]
    assert [len(row.spans) for row in rows] == [3, 3]
    assert [row.advantages is not None and row.advantages[-1] for row in rows] == [-0.5, 0.5]


def test_a_version_is_the_one_that_was_asked_though_weights_change_meanwhile() -> None:
    class Learner:
        version = 1

        def __call__(self, chat: Chat) -> PolicyOutput[str]:
            output = model(chat)
            self.version += 1  # a training step, while the answer was on its way
            return output

    [row], _ = assemble_rows(rollout(ToolEnv(), Learner()))
    assert [span.version for span in row.spans] == [1, 2, 3]
