"""What a type checker infers of tools and chats; running the module shows that the calls are right."""

from __future__ import annotations

from typing import Any, assert_type

from rolloutlib import AsyncChatEnv, ChatEnv, PolicyOutput, Score, as_async, rollout
from rolloutlib.rollouts import Trajectory, rollout_group
from rolloutlib.tools import Tool, ToolOutcome, Toolset
from rolloutlib.types import Chat, Message, Reply, ToolDefinition


def double(number: int, *, twice: bool = False) -> int:
    return 4 * number if twice else 2 * number


async def adouble(number: int) -> int:
    return double(number)


@Tool
def half(number: int) -> float:
    return number / 2


def message_policy(chat: Chat) -> Message:
    return {"role": "assistant", "content": "4"}


def text_policy(chat: Chat) -> PolicyOutput[str]:
    return PolicyOutput("4")


def output_policy(chat: Chat) -> PolicyOutput[Message]:
    return PolicyOutput(message_policy(chat))


def reply_policy(chat: Chat) -> PolicyOutput[Reply]:
    return PolicyOutput(message_policy(chat))


def grade(chat: Chat) -> Score:
    return Score(float("4" in chat[-1]["content"]))


def make_env(item: str) -> ChatEnv:
    return ChatEnv(item, tools=[double, half], grade=grade)


def test_a_tool_is_called_as_its_function() -> None:
    assert_type(half(3), float)
    assert_type(Tool(double, timeout=3)(3, twice=True), int)
    with_error: Any = half
    assert with_error(number=4) == 2
    assert_type(half.definition, ToolDefinition)
    assert_type(Toolset([double, half])["half"], Tool[..., Any])
    assert_type(Toolset([double]).call({"name": "double", "arguments": {"number": 1}}), ToolOutcome)


def test_any_policy_of_texts_or_messages_plays_a_chat() -> None:
    env = make_env("2 + 2?")
    assert_type(env.reset(), tuple[Chat, dict[str, Any]])
    for policy in (message_policy, text_policy, output_policy, reply_policy):
        assert rollout(env, policy).total_reward == 1.0
    trajectory = rollout(env, reply_policy)
    assert_type(trajectory, Trajectory[Chat, Reply])
    group = rollout_group("2 + 2?", make_env, output_policy)
    assert group.rewards == (1.0,)


def test_a_chat_has_types_in_both_forms() -> None:
    chat = AsyncChatEnv("2 + 2?", tools=[double, adouble, half], respond=lambda chat: None)
    assert_type(chat.chat, Chat)
    assert as_async(chat) is chat
