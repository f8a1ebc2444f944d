"""Environments of one action: ask, answer, grade."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, TypeAlias

from rolloutlib._values import to_float
from rolloutlib.envs._core import ActT, AsyncEnv, Env, ObsT
from rolloutlib.scores import Score

__all__ = ["AsyncSingleTurnEnv", "EvaluationResult", "SingleTurnEnv"]

EvaluationResult: TypeAlias = float | Score | tuple[float | Score, dict[str, Any]]
"""What grading an action gives: a reward or a score, and possibly further facts for the info."""

StepResult: TypeAlias = tuple[ObsT, float, bool, bool, dict[str, Any]]


class SingleTurnEnv(Env[ObsT, ActT], ABC):
    """An environment that shows one observation, takes one action and grades it.

    Subclasses set the spaces and implement `initial_observation`, `evaluate` and
    `terminal_observation`. A `Score` that `evaluate` returns becomes the reward by its value, and
    stands whole under `info["score"]`.
    """

    _awaits_action: bool = False

    def __init__(self) -> None:
        """Leave the environment waiting for its first reset."""
        super().__init__()

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[ObsT, dict[str, Any]]:
        """Begin an episode: seed `np_random`, then ask `initial_observation`."""
        super().reset(seed=seed)
        self._awaits_action = False
        observation, info = self.initial_observation(options=options)
        self._awaits_action = True
        return observation, info

    def step(self, action: ActT) -> StepResult[ObsT]:
        """Grade the action and end the episode.

        Raises:
            RuntimeError: There was no reset since the last action.
        """
        _begin_step(self, self._awaits_action)
        self._awaits_action = False
        reward, info = read_evaluation(self, self.evaluate(action))
        return self.terminal_observation(action), reward, True, False, info

    @abstractmethod
    def initial_observation(
        self, *, options: dict[str, Any] | None = None
    ) -> tuple[ObsT, dict[str, Any]]:
        """Return what the policy is asked, and further facts; `np_random` is seeded by then."""

    @abstractmethod
    def evaluate(self, action: ActT) -> EvaluationResult:
        """Grade the action."""

    @abstractmethod
    def terminal_observation(self, action: ActT) -> ObsT:
        """Return what stands at the end of the episode."""


class AsyncSingleTurnEnv(AsyncEnv[ObsT, ActT]):
    """The asynchronous twin of `SingleTurnEnv`: the three methods to implement are coroutines."""

    _awaits_action: bool = False

    def __init__(self) -> None:
        """Leave the environment waiting for its first reset."""
        super().__init__()

    async def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[ObsT, dict[str, Any]]:
        """Begin an episode: seed `np_random`, then ask `initial_observation`."""
        await super().reset(seed=seed)
        self._awaits_action = False
        observation, info = await self.initial_observation(options=options)
        self._awaits_action = True
        return observation, info

    async def step(self, action: ActT) -> StepResult[ObsT]:
        """Grade the action and end the episode.

        Raises:
            RuntimeError: There was no reset since the last action.
        """
        _begin_step(self, self._awaits_action)
        self._awaits_action = False
        reward, info = read_evaluation(self, await self.evaluate(action))
        return await self.terminal_observation(action), reward, True, False, info

    @abstractmethod
    async def initial_observation(
        self, *, options: dict[str, Any] | None = None
    ) -> tuple[ObsT, dict[str, Any]]:
        """Return what the policy is asked, and further facts; `np_random` is seeded by then."""

    @abstractmethod
    async def evaluate(self, action: ActT) -> EvaluationResult:
        """Grade the action."""

    @abstractmethod
    async def terminal_observation(self, action: ActT) -> ObsT:
        """Return what stands at the end of the episode."""


def _begin_step(env: object, awaits_action: bool) -> None:
    if not awaits_action:
        msg = f"{env} takes one action an episode: call reset() before step()"
        raise RuntimeError(msg)


def read_evaluation(env: object, result: EvaluationResult) -> tuple[float, dict[str, Any]]:
    value, extra = result if isinstance(result, tuple) else (result, {})
    if isinstance(value, Score):
        return value.value, {**extra, **value.as_info()}
    return to_float(value, "the reward", env), dict(extra)
