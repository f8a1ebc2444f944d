"""Chats with tools."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import anyio.lowlevel
import gymnasium.utils.env_checker
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rolloutlib import (
    AsyncChatEnv,
    ChatEnv,
    Env,
    Score,
    as_async,
    as_sync,
    check_async_env,
    check_env,
    rollout,
    spaces,
)
from rolloutlib.rollouts import arollout, arollout_group
from rolloutlib.testing import check_faults
from rolloutlib.tools import EndEpisode, Tool
from rolloutlib.types import Chat, Message, Reply

pytestmark = pytest.mark.anyio

STOCK = {"apple": 30, "pear": 45}
TASK = "What do an apple and a pear cost?"


def price(item: str) -> int:
    """Look up the price of an item, in cents."""
    return STOCK[item]


async def aprice(item: str) -> int:
    """Look up the price of an item, in cents."""
    await anyio.lowlevel.checkpoint()
    return STOCK[item]


def submit(total: int) -> EndEpisode:
    return EndEpisode(f"{total} it is.")


def grade(chat: Chat) -> Score:
    return Score(float("75" in str(chat[-1]["content"])), {"length": float(len(chat))})


async def agrade(chat: Chat) -> Score:
    await anyio.lowlevel.checkpoint()
    return grade(chat)


def calls(*asked: tuple[str, Any], content: Any = "") -> Any:
    named = [{"name": name, "arguments": arguments} for name, arguments in asked]
    return {"role": "assistant", "content": content, "tool_calls": named}


BOTH = calls(("price", {"item": "apple"}), ("price", {"item": "pear"}))
ONE = calls(("price", {"item": "pear"}))


def play(env: Env[Chat, Reply], *replies: Any) -> list[Any]:
    first = env.reset(seed=1)
    return [first, *[env.step(reply) for reply in replies]]


async def aplay(env: AsyncChatEnv, *replies: Any) -> list[Any]:
    first = await env.reset(seed=1)
    return [first, *[await env.step(reply) for reply in replies]]


async def play_each_way(*replies: Any, **settings: Any) -> list[Any]:
    """Play one script in a chat, and in its asynchronous twin: results are equal."""
    given_tools: list[Any] = settings.pop("tools", [price, submit])
    found = play(ChatEnv(TASK, tools=given_tools, **settings), *replies)
    twins = [Tool(aprice, name="price") if tool is price else tool for tool in given_tools]
    for tools in (given_tools, twins):
        for inline in (False, True):
            twin = AsyncChatEnv(TASK, tools=tools, inline=inline, parallel_calls=inline, **settings)
            assert await aplay(twin, *replies) == found
    with as_sync(AsyncChatEnv(TASK, tools=twins, **settings)) as adapted:
        assert play(adapted, *replies) == found
    for result in found:
        assert result[0] in spaces.messages.chat(min_length=1)
    return found


async def test_tools_are_called_until_the_model_answers() -> None:
    first, step, last = await play_each_way(BOTH, "75 cents.", grade=grade)
    user = {"role": "user", "content": TASK}
    assert first[0] == [user]
    assert [one["function"]["name"] for one in first[1]["tools"]] == ["price", "submit"]
    answers = [
        {"role": "tool", "name": "price", "content": "30"},
        {"role": "tool", "name": "price", "content": "45"},
    ]
    counts = {"num_turns": 1, "num_tool_calls": 2, "num_mistakes": 0, "num_tool_failures": 0}
    assert step == ([user, BOTH, *answers], 0.0, False, False, counts)
    chat = [user, BOTH, *answers, {"role": "assistant", "content": "75 cents."}]
    info = {**counts, "num_turns": 2, **Score(1.0, {"length": 5.0}).as_info()}
    assert last == (chat, 1.0, True, False, info)


async def test_a_tool_may_end_the_episode_but_a_mistake_with_it_does_not() -> None:
    wrong = calls(("submit", {"total": "many"}))
    right = calls(("submit", {"total": 75}), ("price", {"item": "apple"}))
    _, step, last = await play_each_way(wrong, right, grade=lambda chat: 0.5)
    assert step[1:4] == (0.0, False, False)
    assert last[1:4] == (0.5, True, False)
    assert [message["content"] for message in last[0][-2:]] == ["75 it is.", "30"]


async def test_a_chat_that_takes_too_many_turns_is_truncated_and_graded() -> None:
    _, step, last = await play_each_way(ONE, ONE, max_turns=2, grade=len)
    assert step[1:4] == (0.0, False, False)
    assert last[1:4] == (5.0, False, True)
    _, last = await play_each_way("75", max_turns=1, grade=grade)
    assert last[1:4] == (1.0, True, False)


async def test_a_user_may_answer() -> None:
    def respond(chat: Chat) -> Any:
        turn = sum(message["role"] == "assistant" for message in chat)
        said: list[Any] = ["Sure?", {"role": "system", "content": "Hurry."}, ["no"], None]
        return said[turn - 1] if turn != 3 else [{"role": "user", "content": "Last."}]

    found = await play_each_way("a", "b", "c", "d", respond=respond)
    assert [message["content"] for message in found[-1][0]] == [
        TASK, "a", "Sure?", "b", "Hurry.", "c", "Last.", "d",
    ]  # fmt: skip
    assert [result[2] for result in found[1:]] == [False, False, False, True]


async def test_mistakes_become_observations_and_are_counted() -> None:
    found = await play_each_way(
        calls(("prices", {}), ("price", '{"item": "ap'), ("price", {}), ("price", {"item": "x"})),
        "done",
    )
    problems = [message["content"] for message in found[1][0][2:]]
    assert all(problem.startswith("error: ") for problem in problems)
    assert found[1][4] == {
        "num_turns": 1,
        "num_tool_calls": 4,
        "num_mistakes": 3,
        "num_tool_failures": 1,
    }
    assert found[1][0][1]["tool_calls"][1]["malformed"] == '{"item": "ap'


@pytest.mark.parametrize(
    ("reply", "kept"),
    [
        (5, ""),
        (None, ""),
        ([], ""),
        ({}, ""),
        ({"role": "user", "content": "I am the user."}, "I am the user."),
        ({"role": "assistant", "content": "x", "thoughts": "y"}, "x"),
        ({"role": "assistant", "content": 5}, ""),
        ({"role": "assistant", "content": "x", "tool_calls": 5}, "x"),
        ({"role": "assistant", "content": "x", "tool_calls": [5, {"name": 3}]}, "x"),
        ({"role": "assistant", "content": "x", "tool_calls": [{"arguments": "{}"}, None]}, "x"),
    ],
)
async def test_a_reply_that_is_no_message_is_answered_too(reply: Any, kept: str) -> None:
    _, step, last = await play_each_way(reply, "sorry")
    told, error = step[0][1:]
    assert told == {"role": "assistant", "content": kept}
    assert error["role"] == "user"
    assert error["content"].startswith("error: ")
    assert step[1:4] == (0.0, False, False)
    assert step[4]["num_mistakes"] == 1
    assert last[2]


@pytest.mark.parametrize(
    ("reply", "message"),
    [
        ("", {"role": "assistant", "content": ""}),
        ("  a\n", {"role": "assistant", "content": "  a\n"}),
        ("\ud83d", {"role": "assistant", "content": "\ufffd"}),
        ({"role": "assistant", "content": None}, {"role": "assistant", "content": ""}),
        (
            {"role": "assistant", "content": "a", "tool_calls": None, "name": None},
            {"role": "assistant", "content": "a"},
        ),
        ({**ONE, "content": None}, ONE),
        (
            {"role": "assistant", "content": [{"type": "text", "text": "a"}]},
            {"role": "assistant", "content": [{"type": "text", "text": "a"}]},
        ),
    ],
)
async def test_what_is_absent_is_empty_and_all_else_is_kept(reply: Any, message: Message) -> None:
    found = await play_each_way(reply)
    assert found[1][0][1] == message


async def test_no_observation_is_changed_later_nor_changes_the_chat() -> None:
    given_messages: Chat = [{"role": "user", "content": TASK}]
    reply = copy.deepcopy(BOTH)

    def meddle(chat: Chat) -> None:
        chat[0]["content"] = "changed"

    def meddling_grade(chat: Chat) -> float:
        meddle(chat)
        return 0.0

    env = ChatEnv(given_messages, tools=[price], grade=meddling_grade, respond=meddle)
    for _ in range(2):
        observation, _ = env.reset()
        meddle(observation)
        first, *_ = env.step(reply)
        kept = copy.deepcopy(first)
        reply["tool_calls"][0]["arguments"]["item"] = "pear"
        second, *_ = env.step("75")
        assert first == kept
        assert second[: len(first)] == first
        assert second[0]["content"] == TASK
        assert second[1] == BOTH
        reply = copy.deepcopy(BOTH)
        meddle(env.chat)
        assert env.chat == second
    assert given_messages == [{"role": "user", "content": TASK}]


class Shop(ChatEnv):
    """One may also define all of it; the tools are methods, with the state of the episode."""

    def __init__(self, items: tuple[str, ...]) -> None:
        super().__init__(tools=[self.take], max_turns=5)
        self.items = items

    def initial_messages(self, *, options: dict[str, Any] | None = None) -> str:
        self.basket: list[str] = []
        return f"Take {' and '.join(self.np_random.permutation(self.items))}."

    def take(self, item: str) -> str | EndEpisode:
        """Take an item."""
        self.basket.append(item)
        return EndEpisode("Thanks!") if len(self.basket) == len(self.items) else "Go on."

    def grade(self, chat: Chat) -> float:
        return float(sorted(self.basket) == sorted(self.items))


class AsyncShop(AsyncChatEnv):
    def __init__(self, items: tuple[str, ...]) -> None:
        super().__init__(tools=[self.take], max_turns=5)
        self.twin = Shop(items)

    async def initial_messages(self, *, options: dict[str, Any] | None = None) -> str:
        self.twin.np_random = self.np_random
        return self.twin.initial_messages(options=options)

    async def take(self, item: str) -> str | EndEpisode:
        """Take an item."""
        return self.twin.take(item)

    async def grade(self, chat: Chat) -> float:
        return self.twin.grade(chat)


def shopper(chat: Chat) -> Reply:
    """Take the items in the order in which they are named."""
    words = str(chat[0]["content"]).removesuffix(".").split()[1::2]
    return calls(("take", {"item": words[len(chat) // 2]}))


async def test_a_class_may_define_all_of_it() -> None:
    items = ("apple", "pear", "plum")
    trajectory = rollout(Shop(items), shopper, seed=3)
    twin = await arollout(AsyncShop(items), shopper, seed=3)
    assert trajectory == twin
    assert trajectory.total_reward == 1.0
    assert trajectory.terminated
    assert [len(chat) for chat in trajectory.observations] == [1, 3, 5, 7]
    group = await arollout_group(items, Shop, shopper, num_rollouts=4, seed=3)
    assert group.rewards == (1.0,) * 4


async def test_it_passes_the_checks_of_environments() -> None:
    env = Shop(("apple",))
    gymnasium.utils.env_checker.check_env(env, skip_render_check=True)
    check_env(env)
    check_env(env, action=calls(("take", {"item": "apple"})))
    await check_async_env(AsyncShop(("apple",)))
    async with as_async(env) as adapted:
        await check_async_env(adapted)


@pytest.mark.slow
@pytest.mark.parametrize("make_env", [Shop, AsyncShop])
def test_runs_of_it_keep_all_promises(make_env: Callable[[tuple[str, ...]], Any]) -> None:
    check_faults(("apple",), make_env, shopper, kinds=["exception", "cancellation"])


def test_environments_can_be_copied() -> None:
    env = Shop(("apple", "pear"))
    env.reset()
    twin = copy.deepcopy(env)
    twin.step(calls(("take", {"item": "apple"})))
    assert (env.basket, twin.basket) == ([], ["apple"])
    assert env.action_space == Shop(()).action_space
    assert env.action_space != ChatEnv(TASK).action_space


async def test_an_episode_that_is_over_takes_no_step() -> None:
    message = r"the episode of <ChatEnv instance> is over or has not begun: call reset\(\)"
    env = ChatEnv(TASK)
    with pytest.raises(RuntimeError, match=message):
        env.step("too early")
    env.reset()
    env.step("last")
    with pytest.raises(RuntimeError, match=message):
        env.step("too late")
    with pytest.raises(RuntimeError, match="AsyncChatEnv"):
        await AsyncChatEnv(TASK).step("too early")


def test_an_asynchronous_tool_is_refused_before_anything_is_played() -> None:
    with pytest.raises(TypeError, match=r"Tool\('aprice'\) is asynchronous: use AsyncChatEnv"):
        ChatEnv(TASK, tools=[aprice])


async def test_what_others_say_must_be_messages() -> None:
    wrong: Any = [{"role": "user"}]
    with pytest.raises(TypeError, match=r"initial_messages\(\) of <ChatEnv .*'role': 'user'"):
        ChatEnv(wrong).reset()
    with pytest.raises(ValueError, match="must give at least one message"):
        ChatEnv([]).reset()
    odd: Any = 5
    with pytest.raises(TypeError, match=r"initial_messages\(\) of .* a message or several, got 5"):
        ChatEnv(odd).reset()
    with pytest.raises(ValueError, match="pass messages, or override"):
        await AsyncChatEnv().reset()
    env = ChatEnv(TASK, respond=lambda chat: wrong)
    env.reset()
    with pytest.raises(TypeError, match=r"respond\(\) of <ChatEnv"):
        env.step("hello")
    silent = ChatEnv(TASK, respond=lambda chat: [])
    silent.reset()
    with pytest.raises(ValueError, match=r"respond\(\) of .* must give at least one message"):
        silent.step("hello")
    with pytest.raises(ValueError, match="max_turns must be at least 1"):
        ChatEnv(TASK, max_turns=0)


async def test_graders_with_an_asynchronous_form_are_asked_through_it() -> None:
    class Judge:
        def __call__(self, chat: Chat) -> float:
            raise NotImplementedError

        async def ascore(self, chat: Chat) -> Score:
            return await agrade(chat)

    for judge in (Judge(), agrade, grade):
        [_, last] = await aplay(AsyncChatEnv(TASK, grade=judge), "75")
        assert last[1] == 1.0


async def test_a_wrong_reward_is_refused_by_name() -> None:
    env = ChatEnv(TASK, grade=lambda chat: float("nan"))
    with pytest.raises(ValueError, match="the reward of <ChatEnv"):
        play(env, "75")


def test_what_a_tool_does_not_catch_fails_the_step() -> None:
    env = ChatEnv(TASK, tools=[Tool(price, catch=())])
    with pytest.raises(KeyError, match="kiwi"):
        play(env, calls(("price", {"item": "kiwi"})))


@given(seed=st.integers(0, 2**32))
def test_its_space_describes_what_is_no_mistake(seed: int) -> None:
    env = ChatEnv(TASK, tools=[price, submit])
    env.action_space.seed(seed)
    reply = env.action_space.sample()
    assert reply in env.action_space
    *_, info = play(env, reply)[-1]
    assert info["num_mistakes"] == 0
    for wrong in (calls(("prices", {})), calls(("price", {})), {"role": "user", "content": ""}, 5):
        assert wrong not in env.action_space
    assert ONE not in ChatEnv(TASK).action_space
