"""The two endpoints: how a prompt is written for each, and how its answers are read."""

from __future__ import annotations

import abc
import operator
from collections.abc import Mapping, Sequence
from typing import Any, Generic, TypeAlias, cast

from rolloutlib.openai._messages import write_chat
from rolloutlib.openai._options import PolicyOptions, check_options
from rolloutlib.openai._replies import Choice
from rolloutlib.rollouts import ActionT
from rolloutlib.tools import Tools, define_tools
from rolloutlib.types import Message

Prompt: TypeAlias = dict[str, Any]


class Endpoint(abc.ABC, Generic[ActionT]):
    """One of the endpoints, with what all requests of a policy to it have in common.

    Args:
        model: The name of the model.
        options: Those of the policy.

    Raises:
        TypeError: An option is unknown or has the wrong type.
        ValueError: One is out of its range.
    """

    path: str

    def __init__(self, model: str, options: PolicyOptions) -> None:
        check_options(model, options)
        self.model = model
        fields: dict[str, object] = {"model": model}
        for name, kind in (("max_tokens", int), ("temperature", float), ("top_p", float)):
            number = options.get(name)
            fields[name] = None if number is None else kind(number)  # a scalar of NumPy, say
        fields["stop"] = options.get("stop")
        if options.get("tokens"):  # vLLM and SGLang; llama.cpp
            fields |= {"return_token_ids": True, "return_tokens": True, "verbose": True}
        if options.get("logprobs"):
            fields |= self.logprobs
        self.fields: dict[str, object] = {
            name: value for name, value in fields.items() if value is not None
        }
        self.extra: Mapping[str, object] = options.get("extra_body") or {}

    @property
    @abc.abstractmethod
    def logprobs(self) -> dict[str, object]:
        """The fields that ask for log probabilities."""

    @abc.abstractmethod
    def prompt(self, observation: object) -> Prompt:
        """Return the fields that hold the prompt.

        Raises:
            TypeError: The observation is nothing that the endpoint takes.
            ValueError: It is wrong in its parts.
        """

    @abc.abstractmethod
    def act(self, choice: Choice) -> ActionT:
        """Return the action of a choice."""

    def body(self, fields: Mapping[str, object]) -> dict[str, object]:
        """Return the body of a request, from the fields that are its own."""
        return {**self.fields, **fields, **self.extra}


class ChatEndpoint(Endpoint[ActionT]):
    """Chat Completions.

    Args:
        model: The name of the model.
        options: Those of the policy.
        tools: What the model may call; with None, its actions are texts.

    Raises:
        TypeError: Something is no tool.
    """

    path = "/chat/completions"

    def __init__(self, model: str, options: PolicyOptions, tools: Tools | None) -> None:
        super().__init__(model, options)
        self._acts_by_message = tools is not None
        if definitions := define_tools(tools):
            self.fields["tools"] = definitions

    @property
    def logprobs(self) -> dict[str, object]:
        # Without a number llama.cpp tells 20 alternatives to each token, and with 0 nothing at all.
        return {"logprobs": True, "top_logprobs": 1}

    def prompt(self, observation: object) -> Prompt:
        return {"messages": write_chat(observation)}

    def act(self, choice: Choice) -> ActionT:
        said = choice.message
        if not self._acts_by_message:
            return cast("ActionT", said.text)
        message: Message = {"role": "assistant", "content": said.text}
        if calls := said.to_calls():
            message["tool_calls"] = calls
        return cast("ActionT", message)


class CompletionEndpoint(Endpoint[str]):
    """Completions: the prompt is a text, or token ids."""

    path = "/completions"

    @property
    def logprobs(self) -> dict[str, object]:
        return {"logprobs": 1}

    def prompt(self, observation: object) -> Prompt:
        if isinstance(observation, str):
            return {"prompt": observation}
        try:
            ids = [operator.index(token) for token in cast("Sequence[int]", observation)]
        except TypeError:
            msg = f"a completion policy must be shown a text or token ids, got {observation!r}"
            raise TypeError(msg) from None
        return {"prompt": ids}

    def act(self, choice: Choice) -> str:
        return choice.text
