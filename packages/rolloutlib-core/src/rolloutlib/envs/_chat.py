"""Chats of several turns, in which a model may call tools."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import Any, TypeAlias

import gymnasium as gym

from rolloutlib._calls import async_form, call, check_count
from rolloutlib.envs._conversation import Conversation, Messages
from rolloutlib.envs._core import AsyncEnv, Env
from rolloutlib.envs._single_turn import EvaluationResult, StepResult, read_evaluation
from rolloutlib.spaces import ChatSpace
from rolloutlib.tools import ReplySpace, Tool, Toolset
from rolloutlib.types import Chat, Reply

__all__ = ["AsyncChatEnv", "ChatEnv"]

Tools: TypeAlias = Toolset | Iterable[Tool[..., Any] | Callable[..., Any]]


class ChatEnv(Env[Chat, Reply]):
    """A conversation in which a model may call tools; it ends when the model answers without a call.

    An observation is the whole conversation, to which each step adds the model's reply and what
    follows it. Tools are called in the order of the calls. A call with which something is wrong, or
    a reply that is no message, is answered by a message that says what to mend.

    Episodes may also end in other ways: a tool returns an `EndEpisode`; `respond` speaks for a user,
    and returns None to end the conversation. The last step is graded, also one at which the episode
    is truncated by `max_turns`. The reward of all others is 0.

    Each info counts what has happened in the episode: "num_turns", "num_tool_calls", "num_mistakes"
    (of the model: unknown tools, arguments that do not fit, replies that cannot be read) and
    "num_tool_failures" (exceptions and time-outs of tools). That of `reset` has the definitions of
    the tools, as "tools".

    Everything may be passed, or be defined by a subclass, whose methods can be the tools:

        class Shop(ChatEnv):
            def __init__(self, item):
                super().__init__(item.question, tools=[self.price])

    Args:
        messages: What stands at the beginning: what the user says, or the messages. It is copied for
            each episode.
        tools: Functions with annotations, or tools.
        grade: Makes the reward of the episode, or a `Score`, from the conversation.
        respond: Says what the user answers to the conversation, or None to end it.
        max_turns: How many times the model may answer; after that the episode is truncated.

    Raises:
        TypeError: A tool is asynchronous, or cannot be made.
        ValueError: Two tools have the same name, or `max_turns` is less than 1.
    """

    observation_space: gym.Space[Chat] = ChatSpace(min_length=1)

    def __init__(
        self,
        messages: Messages | None = None,
        *,
        tools: Tools = (),
        grade: Callable[[Chat], EvaluationResult] | None = None,
        respond: Callable[[Chat], Messages | None] | None = None,
        max_turns: int | None = None,
    ) -> None:
        super().__init__()
        self.tools: Toolset = Toolset(tools)
        for tool in self.tools.values():
            tool.check_sync()
        if max_turns is not None:
            check_count("max_turns", max_turns)
        self.max_turns = max_turns
        self.action_space: gym.Space[Reply] = ReplySpace(self.tools)
        self._messages = messages
        self._grade = grade
        self._respond = respond
        self._conversation = Conversation()

    @property
    def chat(self) -> Chat:
        """The conversation so far: a copy."""
        return self._conversation.messages

    def initial_messages(self, *, options: dict[str, Any] | None = None) -> Messages:
        """Return what stands at the beginning of an episode; `np_random` is seeded by then."""
        return _given(self, self._messages)

    def respond(self, chat: Chat) -> Messages | None:
        """Return what the user answers when the model has called no tool, or None at the end."""
        return None if self._respond is None else self._respond(chat)

    def grade(self, chat: Chat) -> EvaluationResult:
        """Return the reward of the episode, or a `Score`, and possibly further facts for the info."""
        return 0.0 if self._grade is None else self._grade(chat)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Chat, dict[str, Any]]:
        """Begin an episode: seed `np_random`, then ask `initial_messages`."""
        super().reset(seed=seed)
        said = self.initial_messages(options=options)
        self._conversation.begin(said, self.observation_space, f"initial_messages() of {self}")
        return self.chat, {"tools": self.tools.definitions}

    def step(self, action: Reply) -> StepResult[Chat]:
        """Add the model's reply, and what tools and user answer.

        Raises:
            RuntimeError: There was no reset since the last episode.
            Exception: What a tool raises and does not catch.
        """
        conversation = self._conversation
        ended = False
        for tool_call in conversation.take(action, self):
            outcome = self.tools.call(tool_call)
            conversation.add_outcome(outcome)
            ended = ended or outcome.ends_episode
        if conversation.expects_words():
            said = self.respond(self.chat)
            ended = said is None
            if said is not None:
                conversation.add(said, self.observation_space, f"respond() of {self}")
        truncated = not ended and conversation.num_turns == self.max_turns
        if not (ended or truncated):
            return self.chat, 0.0, False, False, conversation.counts
        conversation.is_open = False
        reward, info = read_evaluation(self, self.grade(self.chat))
        return self.chat, reward, ended, truncated, {**conversation.counts, **info}


class AsyncChatEnv(AsyncEnv[Chat, Reply]):
    """The asynchronous twin of `ChatEnv`: the three methods to override are coroutines.

    Tools and what is passed may be asynchronous or not. What is not may block, so it is called on a
    worker thread.

    Args:
        messages: As for `ChatEnv`.
        tools: As for `ChatEnv`.
        grade: As for `ChatEnv`. One with a method `ascore` is asked through it.
        respond: As for `ChatEnv`.
        max_turns: As for `ChatEnv`.
        parallel_calls: Make the calls of one turn at the same time; the answers stand in the order of
            the calls.
        inline: Call what is not asynchronous on the event loop, not on a worker thread.

    Raises:
        TypeError: A tool cannot be made.
        ValueError: Two tools have the same name, or `max_turns` is less than 1.
    """

    observation_space: gym.Space[Chat] = ChatSpace(min_length=1)

    def __init__(
        self,
        messages: Messages | None = None,
        *,
        tools: Tools = (),
        grade: Callable[[Chat], EvaluationResult | Awaitable[EvaluationResult]] | None = None,
        respond: Callable[[Chat], Messages | Awaitable[Messages | None] | None] | None = None,
        max_turns: int | None = None,
        parallel_calls: bool = False,
        inline: bool = False,
    ) -> None:
        super().__init__()
        self.tools: Toolset = Toolset(tools)
        if max_turns is not None:
            check_count("max_turns", max_turns)
        self.max_turns = max_turns
        self.action_space: gym.Space[Reply] = ReplySpace(self.tools)
        self._messages = messages
        self._grade = grade
        self._respond = respond
        self._parallel_calls = parallel_calls
        self._inline = inline
        self._conversation = Conversation()

    @property
    def chat(self) -> Chat:
        """The conversation so far: a copy."""
        return self._conversation.messages

    async def initial_messages(self, *, options: dict[str, Any] | None = None) -> Messages:
        """Return what stands at the beginning of an episode; `np_random` is seeded by then."""
        return _given(self, self._messages)

    async def respond(self, chat: Chat) -> Messages | None:
        """Return what the user answers when the model has called no tool, or None at the end."""
        if self._respond is None:
            return None
        return await call(self._respond, chat, inline=self._inline)

    async def grade(self, chat: Chat) -> EvaluationResult:
        """Return the reward of the episode, or a `Score`, and possibly further facts for the info."""
        if self._grade is None:
            return 0.0
        return await call(async_form(self._grade), chat, inline=self._inline)

    async def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Chat, dict[str, Any]]:
        """Begin an episode: seed `np_random`, then ask `initial_messages`."""
        await super().reset(seed=seed)
        said = await self.initial_messages(options=options)
        self._conversation.begin(said, self.observation_space, f"initial_messages() of {self}")
        return self.chat, {"tools": self.tools.definitions}

    async def step(self, action: Reply) -> StepResult[Chat]:
        """Add the model's reply, and what tools and user answer.

        Raises:
            RuntimeError: There was no reset since the last episode.
            Exception: What a tool raises and does not catch.
        """
        conversation = self._conversation
        ended = False
        calls = conversation.take(action, self)
        for outcome in await self.tools.acall_all(
            calls, inline=self._inline, parallel=self._parallel_calls
        ):
            conversation.add_outcome(outcome)
            ended = ended or outcome.ends_episode
        if conversation.expects_words():
            said = await self.respond(self.chat)
            ended = said is None
            if said is not None:
                conversation.add(said, self.observation_space, f"respond() of {self}")
        truncated = not ended and conversation.num_turns == self.max_turns
        if not (ended or truncated):
            return self.chat, 0.0, False, False, conversation.counts
        conversation.is_open = False
        reward, info = read_evaluation(self, await self.grade(self.chat))
        return self.chat, reward, ended, truncated, {**conversation.counts, **info}


def _given(env: object, messages: Messages | None) -> Messages:
    if messages is None:
        msg = f"{env} has nothing to begin with: pass messages, or override initial_messages()"
        raise ValueError(msg)
    return messages
