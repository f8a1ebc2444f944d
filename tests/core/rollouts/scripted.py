"""Environments and policies that do what a script says, for the tests of rollouts."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import anyio.lowlevel
import gymnasium as gym

from rolloutlib import AsyncEnv, Env, PolicyOutput


@dataclass
class Log:
    """What happened, in order, over all environments of a test."""

    events: list[str] = field(default_factory=list[str])
    open: int = 0
    most_open: int = 0
    opened: int = 0
    closed: int = 0

    def enter(self) -> None:
        self.opened += 1
        self.open += 1
        self.most_open = max(self.most_open, self.open)

    def leave(self) -> None:
        self.closed += 1
        self.open -= 1


class ScriptedEnv(Env[str, str]):
    """Shows "o0", "o1", ...; ends after `length` steps, and fails where `faults` says.

    Args:
        length: How many steps there are.
        faults: Exceptions by the event that they happen in: "reset", "step 0", "close", ...
        log: Where it writes down what happens.
        ends: What the last step says: "terminated", "truncated" or "both".
    """

    action_space: gym.Space[str] = gym.spaces.Text(20)
    observation_space: gym.Space[str] = gym.spaces.Text(20)

    def __init__(
        self,
        length: int = 2,
        faults: dict[str, BaseException] | None = None,
        log: Log | None = None,
        ends: str = "terminated",
    ) -> None:
        self.length = length
        self.faults = faults or {}
        self.log = log or Log()
        self.ends = ends
        self.steps = 0
        self.log.enter()

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[str, dict[str, Any]]:
        super().reset(seed=seed)
        self.steps = 0
        self._do("reset")
        return "o0", {"seed": seed, "options": options}

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        self._do(f"step {self.steps}")
        self.steps += 1
        over = self.steps >= self.length
        terminated = over and self.ends in ("terminated", "both")
        truncated = over and self.ends in ("truncated", "both")
        draw = int(self.np_random.integers(1000))
        return f"o{self.steps}", len(action) / 2, terminated, truncated, {"draw": draw}

    def close(self) -> None:
        self.log.leave()
        self._do("close")

    def _do(self, event: str) -> None:
        self.log.events.append(event)
        if event in self.faults:
            raise self.faults[event]


class AsyncScriptedEnv(AsyncEnv[str, str]):
    """The asynchronous twin, which lets other tasks run in each call."""

    action_space: gym.Space[str] = gym.spaces.Text(20)
    observation_space: gym.Space[str] = gym.spaces.Text(20)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.twin = ScriptedEnv(*args, **kwargs)

    async def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[str, dict[str, Any]]:
        await anyio.lowlevel.checkpoint()
        return self.twin.reset(seed=seed, options=options)

    async def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        await anyio.lowlevel.checkpoint()
        return self.twin.step(action)

    async def close(self) -> None:
        await anyio.lowlevel.checkpoint()
        self.twin.close()


def policy(observation: str) -> PolicyOutput[str]:
    """Answer with tokens, a function of the observation alone."""
    tokens = [ord(character) for character in observation]
    return PolicyOutput(
        f"a{observation}",
        {"saw": observation},
        tokens=tokens,
        logprobs=[-token / 100 for token in tokens],
        stop_reason="stop",
        prompt_tokens=tokens[:1],
    )


async def apolicy(observation: str) -> PolicyOutput[str]:
    """The same, asynchronously."""
    await anyio.lowlevel.checkpoint()
    return policy(observation)
