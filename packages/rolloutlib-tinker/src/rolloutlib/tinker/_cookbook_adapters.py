"""Environments of tinker-cookbook in rollouts of ours."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, cast

from rolloutlib.envs import AsyncEnv
from rolloutlib.rollouts import EpisodeTruncated
from rolloutlib.spaces import tokens

if TYPE_CHECKING:
    import gymnasium as gym
    import tinker

TokenPrompt: TypeAlias = "list[int] | tinker.ModelInput"
"""Token ids, or a prompt in the SDK's form where not all of it is text."""


class CookbookEnvironment(Protocol):
    """An `Env` of tinker-cookbook, old or new."""

    def initial_observation(self) -> Awaitable[Any]:
        """Return the first prompt, and what ends an answer."""
        ...

    def step(self, action: list[int], /) -> Awaitable[Any]:
        """Return a `StepResult`."""
        ...


class AsyncFromCookbook(AsyncEnv[TokenPrompt, Sequence[int]]):
    """An environment of tinker-cookbook, for `arollout` and its kin.

    What it shows are prompts, and actions are the ids that were sampled, as `AsyncTinkerPolicy` has
    them with `actions="tokens"`. It has one episode, as the cookbook's environments do. They know no
    seeds.

    An info has what a step returned beside: "metrics" and "logs". An episode that the environment ends
    at a limit, by the metrics "stop/max_turns", "stop/max_tokens" and their like, is truncated. An
    answer is told to have been cut off (`extra`, of newer versions) if ids are to end it and none does.

    Source: tinker-cookbook, `tinker_cookbook/rl/types.py` at commits 06a755a3 and 30a5f559, and later
    with `StopReason`.

    Args:
        env: The environment, which no episode has used.

    Attributes:
        stop_condition: What is to end the next answer, texts or ids of tokens; None before `reset`. The
            policy is told by its own option `stop`.

    Raises:
        TypeError: `env` is no such environment.
    """

    def __init__(self, env: CookbookEnvironment) -> None:
        if not all(callable(getattr(env, name, None)) for name in ("initial_observation", "step")):
            msg = f"env must be an Env of tinker-cookbook, with initial_observation and step, got {env!r}"
            raise TypeError(msg)
        self.env = env
        space: Any = tokens.sequence(_MOST_IDS)
        self.observation_space: gym.Space[TokenPrompt] = space
        self.action_space: gym.Space[Sequence[int]] = space
        self.stop_condition: Any = None
        self._takes_extra = "extra" in inspect.signature(env.step).parameters
        self._is_fresh = True
        self._is_over = True

    async def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[TokenPrompt, dict[str, Any]]:
        """Begin the episode; the seed and the options are not told to the environment.

        Raises:
            RuntimeError: It was begun before.
            EpisodeTruncated: The first prompt is too long, which the environment tells by an
                `InitialObservationOverflow`: there is no episode.
        """
        await super().reset(seed=seed)
        if not self._is_fresh:
            msg = f"{self} has one episode, as tinker-cookbook's environments do: make another"
            raise RuntimeError(msg)
        self._is_fresh = False
        first = await self.env.initial_observation()
        if not isinstance(first, tuple):
            msg = f"context_overflow: {first!r}"
            raise EpisodeTruncated(msg)
        observation, self.stop_condition = cast("tuple[Any, Any]", first)
        self._is_over = False
        return _read_prompt(observation), {}

    async def step(
        self, action: Sequence[int]
    ) -> tuple[TokenPrompt, float, bool, bool, dict[str, Any]]:
        """Act once.

        Args:
            action: The ids that were sampled, with that which ended them.

        Raises:
            RuntimeError: The episode has not begun, or is over.
        """
        if self._is_over:
            msg = f"{self} has no episode that could go on"
            raise RuntimeError(msg)
        ids = [int(token) for token in action]
        extra = {"extra": {"stop_reason": self._stop_reason(ids)}} if self._takes_extra else {}
        result = await cast("Any", self.env).step(ids, **extra)
        self.stop_condition = result.next_stop_condition
        self._is_over = bool(result.episode_done)
        facts = {name: dict(getattr(result, name, None) or {}) for name in ("metrics", "logs")}
        truncated = self._is_over and any(facts["metrics"].get(name) for name in _LIMITS)
        return (
            _read_prompt(result.next_observation),
            result.reward,
            self._is_over and not truncated,
            truncated,
            {name: fact for name, fact in facts.items() if fact},
        )

    def _stop_reason(self, ids: list[int]) -> str:
        """Return what the cookbook's sampler says of an answer; a text that ends it is not looked for."""
        stops: list[Any] = list(self.stop_condition or ())
        if not stops or any(isinstance(stop, str) for stop in stops):
            return "stop"
        return "stop" if ids and ids[-1] in stops else "length"


def _read_prompt(prompt: tinker.ModelInput) -> TokenPrompt:
    try:
        return prompt.to_ints()
    except ValueError:  # not all of it is text
        return prompt


_MOST_IDS = 2**31
"""Ids are int32 on the wire; how many of them a model has, the environment does not tell."""
_LIMITS = [
    f"stop/{reason}"
    for reason in (
        "max_turns",
        "max_tokens",
        "max_sampled_tokens",
        "max_tool_calls",
        "context_overflow",
        "rollout_timeout",
    )
]
