"""What tinker-cookbook does with environments, in its first form and in a newer one.

Written after `tinker_cookbook/rl/types.py` and `rollouts.py` at commits 06a755a3 (first) and 30a5f559,
6ecd0093 and later (newer), which cannot be installed beside the rest.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import anyio
import tinker


@dataclass
class FirstStepResult:
    reward: float
    episode_done: bool
    next_observation: tinker.ModelInput
    next_stop_condition: list[str] | list[int]
    metrics: dict[str, float] = field(default_factory=dict[str, float])


@dataclass
class StepResult(FirstStepResult):
    logs: dict[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True)
class InitialObservationOverflow:
    reward: float


@dataclass
class Sampled:
    tokens: list[int]
    logprobs: list[float]
    stop_reason: str = "stop"


@dataclass
class Transition:
    ob: tinker.ModelInput
    ac: Sampled
    reward: float
    episode_done: bool
    metrics: dict[str, float]
    logs: dict[str, Any]


@dataclass
class Group:
    transitions: list[list[Transition]]
    final_rewards: list[float]
    metrics: list[dict[str, float]]

    @property
    def total_rewards(self) -> list[float]:
        return [
            sum(each.reward for each in episode) + final
            for episode, final in zip(self.transitions, self.final_rewards, strict=True)
        ]


class EnvGroupBuilder(ABC):
    """The newer abstract class, for those who derive from it."""

    @abstractmethod
    async def make_envs(self) -> Sequence[Any]: ...

    async def cleanup(self) -> None:
        raise AssertionError

    def added_later(self) -> str:
        return "a default of the cookbook's own"


Completer = Callable[[tinker.ModelInput, Any], Awaitable[Sampled]]


async def play_first(env: Any, policy: Completer) -> list[Transition]:
    transitions: list[Transition] = []
    observation, stop = await env.initial_observation()
    while True:
        sampled = await policy(observation, stop)
        step = await env.step(sampled.tokens)
        transitions.append(
            Transition(observation, sampled, step.reward, step.episode_done, step.metrics, {})
        )
        observation, stop = step.next_observation, step.next_stop_condition
        if step.episode_done:
            assert observation.length == 0
            return transitions


async def play(env: Any, policy: Completer) -> list[Transition]:
    transitions: list[Transition] = []
    observation, stop = await env.initial_observation()
    while True:
        sampled = await policy(observation, stop)
        extra = {"stop_reason": sampled.stop_reason}
        step = await env.step(sampled.tokens, extra=extra)
        transitions.append(
            Transition(
                observation, sampled, step.reward, step.episode_done, step.metrics, step.logs
            )
        )
        observation, stop = step.next_observation, step.next_stop_condition
        if step.episode_done:
            return transitions


async def play_group_first(builder: Any, policies: Sequence[Completer]) -> Group:
    played = await _gather(play_first, await builder.make_envs(), policies)
    graded = await builder.compute_group_rewards(played)
    return Group(played, *map(list, zip(*graded, strict=True)))


async def play_group(builder: Any, policies: Sequence[Completer]) -> Group:
    try:
        envs = await builder.make_envs()
        played = await _gather(play, envs, policies)
        graded = await builder.compute_group_rewards(played, envs)
        return Group(played, *map(list, zip(*graded, strict=True)))
    finally:
        await builder.cleanup()


async def _gather(play_one: Any, envs: Sequence[Any], policies: Sequence[Completer]) -> list[Any]:
    """Play all at once; the first error comes out as it is."""
    played: dict[int, Any] = {}

    async def play_into(index: int) -> None:
        played[index] = await play_one(envs[index], policies[index])

    try:
        async with anyio.create_task_group() as tasks:
            for index in range(len(envs)):
                tasks.start_soon(play_into, index)
    except BaseExceptionGroup as group:
        raise group.exceptions[0] from None
    return [played[index] for index in range(len(envs))]
