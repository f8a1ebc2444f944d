"""Wrappers that grade actions where the reward is made: inside `step`."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, Generic

import gymnasium as gym
from gymnasium.utils import RecordConstructorArgs
from typing_extensions import TypeVar

from rolloutlib._calls import async_form, call
from rolloutlib._values import to_float
from rolloutlib.envs._core import ActT, AsyncEnv, ObsT
from rolloutlib.envs._wrappers import AsyncWrapper
from rolloutlib.scores import Grader, Score, ScoreValue

__all__ = ["AsyncGradingWrapper", "GradingWrapper"]

InputT = TypeVar("InputT", default=Any)
RubricT = TypeVar("RubricT", default=Any)


def _terminal(terminated: bool, truncated: bool) -> bool:
    return terminated or truncated


def _replace_reward(reward: float, score: Score) -> float:
    return score.value


class GradingWrapper(
    gym.Wrapper[ObsT, ActT, ObsT, ActT],
    RecordConstructorArgs,
    Generic[ObsT, ActT, InputT, RubricT],
):
    """Grades steps of an environment; the score becomes the reward and stands in the info.

    `info["score"]` holds the dictionary form of the whole `Score`. If the rubric has an `id` or a
    `fingerprint`, the score's metadata tells them as "rubric_id" and "rubric_fingerprint".

    Args:
        env: The environment to wrap.
        rubric: What the grader is asked to judge by.
        grader: Called with the input and the rubric; returns a number or a `Score`.
        make_input: Makes the grader's input from the wrapped environment (after the step) and the
            action.
        when: Says from (terminated, truncated) whether a step is graded; by default each step that
            ends the episode is.
        combine_reward: Makes the reward from the environment's own and the score; by default the
            score's value replaces the reward.
    """

    def __init__(
        self,
        env: gym.Env[ObsT, ActT],
        *,
        rubric: RubricT,
        grader: Grader[InputT, RubricT],
        make_input: Callable[[gym.Env[ObsT, ActT], ActT], InputT],
        when: Callable[[bool, bool], bool] = _terminal,
        combine_reward: Callable[[float, Score], float] = _replace_reward,
    ) -> None:
        # Recorded so that gymnasium.make(wrapper.spec) builds the wrapper again.
        RecordConstructorArgs.__init__(
            self,
            _disable_deepcopy=True,
            rubric=rubric,
            grader=grader,
            make_input=make_input,
            when=when,
            combine_reward=combine_reward,
        )
        gym.Wrapper.__init__(self, env)  # pyright: ignore[reportUnknownMemberType]
        self.rubric = rubric
        self.grader = grader
        self.make_input = make_input
        self.when = when
        self.combine_reward = combine_reward

    def step(self, action: ActT) -> tuple[ObsT, float, bool, bool, dict[str, Any]]:
        """Act once; grade the step if `when` says so.

        Raises:
            TypeError: The grader returned an awaitable, or something that is not a score.
            ValueError: The score or the combined reward is NaN or infinite.
        """
        observation, reward, terminated, truncated, info = self.env.step(action)
        own = to_float(reward, "the reward", self.env)
        if not self.when(terminated, truncated):
            return observation, own, terminated, truncated, info
        result = self.grader(self.make_input(self.env, action), self.rubric)
        if inspect.isawaitable(result):
            if inspect.iscoroutine(result):
                result.close()
            msg = f"the grader {self.grader!r} of {self} is asynchronous: use AsyncGradingWrapper"
            raise TypeError(msg)
        score = _read_score(result, self.rubric, self.grader)
        combined = _combine(self, own, score)
        return observation, combined, terminated, truncated, {**info, **score.as_info()}


class AsyncGradingWrapper(
    AsyncWrapper[ObsT, ActT, ObsT, ActT], Generic[ObsT, ActT, InputT, RubricT]
):
    """The asynchronous twin of `GradingWrapper`.

    A grader with a method `ascore` is asked through it. A synchronous grader may block, so it is
    called on a worker thread.

    Args:
        env: The environment to wrap.
        rubric: What the grader is asked to judge by.
        grader: Called with the input and the rubric; returns a number or a `Score`, or an awaitable
            of either.
        make_input: Makes the grader's input from the wrapped environment (after the step) and the
            action.
        when: Says from (terminated, truncated) whether a step is graded; by default each step that
            ends the episode is.
        combine_reward: Makes the reward from the environment's own and the score; by default the
            score's value replaces the reward.
        inline: Call a synchronous grader on the event loop, not on a worker thread.
    """

    def __init__(
        self,
        env: AsyncEnv[ObsT, ActT],
        *,
        rubric: RubricT,
        grader: Grader[InputT, RubricT],
        make_input: Callable[[AsyncEnv[ObsT, ActT], ActT], InputT],
        when: Callable[[bool, bool], bool] = _terminal,
        combine_reward: Callable[[float, Score], float] = _replace_reward,
        inline: bool = False,
    ) -> None:
        super().__init__(env)
        self.rubric = rubric
        self.grader = grader
        self.make_input = make_input
        self.when = when
        self.combine_reward = combine_reward
        self._inline = inline

    async def step(self, action: ActT) -> tuple[ObsT, float, bool, bool, dict[str, Any]]:
        """Act once; grade the step if `when` says so.

        Raises:
            TypeError: The grader returned something that is not a score.
            ValueError: The score or the combined reward is NaN or infinite.
        """
        observation, reward, terminated, truncated, info = await self.env.step(action)
        own = to_float(reward, "the reward", self.env)
        if not self.when(terminated, truncated):
            return observation, own, terminated, truncated, info
        grading_input = self.make_input(self.env, action)
        result = await call(
            async_form(self.grader), grading_input, self.rubric, inline=self._inline
        )
        score = _read_score(result, self.rubric, self.grader)
        combined = _combine(self, own, score)
        return observation, combined, terminated, truncated, {**info, **score.as_info()}


def _read_score(result: ScoreValue, rubric: object, grader: object) -> Score:
    """Return a grader's result as a score that names its rubric, if the rubric has a name."""
    names = {
        f"rubric_{name}": value
        for name in ("id", "fingerprint")
        if isinstance(value := getattr(rubric, name, None), str)
    }
    if not isinstance(result, Score):
        return Score(to_float(result, "the score", grader), metadata=names)
    if names.items() <= result.metadata.items():
        return result
    metadata = {**names, **result.metadata}
    return Score(result.value, result.components, metadata, feedback=result.feedback)


def _combine(wrapper: Any, reward: float, score: Score) -> float:
    return to_float(wrapper.combine_reward(reward, score), "the combined reward", wrapper)
