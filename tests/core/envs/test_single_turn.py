"""Environments of one action."""

from __future__ import annotations

from typing import Any

import pytest

from rolloutlib import AsyncSingleTurnEnv, Score, SingleTurnEnv, rollout
from rolloutlib.envs import EvaluationResult
from rolloutlib.spaces import TextSpace

pytestmark = pytest.mark.anyio

SCORE = Score(0.5, {"length": 1.0}, feedback="fine")


class Question(SingleTurnEnv[str, str]):
    action_space = TextSpace()
    observation_space = TextSpace()

    def __init__(self, result: Any) -> None:
        self.result = result  # forgets super().__init__(), and works

    def initial_observation(
        self, *, options: dict[str, Any] | None = None
    ) -> tuple[str, dict[str, Any]]:
        return f"{self.np_random.integers(10**9)}?", {"options": options}

    def evaluate(self, action: str) -> EvaluationResult:
        return self.result

    def terminal_observation(self, action: str) -> str:
        return f"! {action}"


class AsyncQuestion(AsyncSingleTurnEnv[str, str]):
    action_space = TextSpace()
    observation_space = TextSpace()

    def __init__(self, result: Any) -> None:
        super().__init__()
        self.twin = Question(result)

    async def initial_observation(
        self, *, options: dict[str, Any] | None = None
    ) -> tuple[str, dict[str, Any]]:
        self.twin.np_random = self.np_random
        return self.twin.initial_observation(options=options)

    async def evaluate(self, action: str) -> EvaluationResult:
        return self.twin.evaluate(action)

    async def terminal_observation(self, action: str) -> str:
        return self.twin.terminal_observation(action)


@pytest.mark.parametrize(
    ("result", "reward", "info"),
    [
        (SCORE, 0.5, SCORE.as_info()),
        ((SCORE, {"why": "so"}), 0.5, {"why": "so", **SCORE.as_info()}),
        (0.25, 0.25, {}),
        ((0.25, {"why": "so"}), 0.25, {"why": "so"}),
        (True, 1.0, {}),
    ],
)
async def test_the_evaluation_becomes_reward_and_info(
    result: Any, reward: float, info: dict[str, Any]
) -> None:
    env, twin = Question(result), AsyncQuestion(result)
    first = env.reset(seed=3, options={"a": 1})
    assert first == await twin.reset(seed=3, options={"a": 1})
    assert first[1] == {"options": {"a": 1}}
    assert env.step("yes") == await twin.step("yes") == ("! yes", reward, True, False, info)


async def test_one_reset_allows_one_action() -> None:
    env, twin = Question(1.0), AsyncQuestion(1.0)
    message = r"Question.* takes one action an episode: call reset\(\) before step\(\)"
    for _ in range(2):
        with pytest.raises(RuntimeError, match=message):
            env.step("too early")
        with pytest.raises(RuntimeError, match=message):
            await twin.step("too early")
        env.reset()
        await twin.reset()
        env.step("in time")
        await twin.step("in time")


async def test_a_reward_that_is_none_is_refused_by_name() -> None:
    for bad in (float("nan"), "high", None):
        env, twin = Question(bad), AsyncQuestion(bad)
        env.reset()
        with pytest.raises((TypeError, ValueError), match=r"the reward of <Question"):
            env.step("yes")
        await twin.reset()
        with pytest.raises((TypeError, ValueError), match=r"the reward of <AsyncQuestion"):
            await twin.step("yes")


def test_a_rollout_of_it_keeps_the_whole_score() -> None:
    trajectory = rollout(Question(SCORE), lambda observation: observation.upper(), seed=1)
    assert trajectory.score == SCORE
    assert trajectory.rewards == (0.5,)
    assert trajectory.terminated


class Named:
    def __init__(self) -> None:
        self.name = "named"


@pytest.mark.parametrize("kind", [SingleTurnEnv, AsyncSingleTurnEnv])
def test_construction_goes_on_to_the_next_base(kind: Any) -> None:
    class Mixed(kind, Named):
        initial_observation = evaluate = terminal_observation = None

    assert Mixed().name == "named"
