"""Grading inside step."""

from __future__ import annotations

import threading
from collections.abc import Awaitable
from typing import Any

import anyio
import anyio.lowlevel
import gymnasium as gym
import pytest

from rolloutlib import AsyncGradingWrapper, Env, GradingWrapper, Score, as_async

pytestmark = pytest.mark.anyio


class Walk(Env[Any, Any]):
    """Three steps of reward 0.1, then the end."""

    action_space = gym.spaces.Discrete(5)
    observation_space = gym.spaces.Discrete(9)

    def __init__(self, end: str = "terminated") -> None:
        self.end = end
        self.position = 0
        self.info = {"kept": True}

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.position = 0
        return 0, {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.position += 1
        over = self.position == 3
        terminated, truncated = over and self.end == "terminated", over and self.end == "truncated"
        return self.position, 0.1, terminated, truncated, self.info


class Named:
    id = "walking"
    fingerprint = "f00d"


def position_grader(position: int, rubric: object) -> Score:
    return Score(position / 10, {"position": float(position)})


def make_input(env: Any, action: Any) -> Any:
    return env.get_wrapper_attr("position")


async def run_both(*, end: str = "terminated", **arguments: Any) -> list[tuple[Any, ...]]:
    """Run three steps in both wrappers, check that they agree, and return them."""
    arguments = {"rubric": "r", "grader": position_grader, "make_input": make_input, **arguments}
    env = GradingWrapper[Any, Any, Any, Any](Walk(end), **arguments)
    env.reset()
    results = [env.step(1) for _ in range(3)]
    async with AsyncGradingWrapper[Any, Any, Any, Any](as_async(Walk(end)), **arguments) as twin:
        await twin.reset()
        assert [await twin.step(1) for _ in range(3)] == results
    return results


@pytest.mark.parametrize("end", ["terminated", "truncated"])
async def test_the_step_that_ends_the_episode_is_graded(end: str) -> None:
    first, second, last = await run_both(end=end)
    assert first == (1, 0.1, False, False, {"kept": True})
    assert second == (2, 0.1, False, False, {"kept": True})
    score = Score(0.3, {"position": 3.0})
    assert last[1] == 0.3
    assert last[4] == {"kept": True, **score.as_info()}
    assert Score.from_info(last[4]) == score


async def test_when_and_how_is_the_callers_choice() -> None:
    results = await run_both(
        when=lambda *ended: not ended[0],
        combine_reward=lambda reward, score: reward + score.value,
    )
    assert [reward for _, reward, _, _, _ in results] == pytest.approx([0.2, 0.3, 0.1])
    assert ["score" in info for *_, info in results] == [True, True, False]


async def test_a_number_is_a_score_without_parts() -> None:
    *_, last = await run_both(grader=lambda *_: 1)
    assert Score.from_info(last[4]) == Score(1.0)


async def test_the_rubrics_name_goes_into_the_score() -> None:
    *_, last = await run_both(rubric=Named())
    assert last[4]["score"]["metadata"] == {
        "rubric_id": "walking",
        "rubric_fingerprint": "f00d",
    }
    *_, last = await run_both(
        rubric=Named(), grader=lambda *_: Score(1, metadata={"rubric_id": "own"})
    )
    assert last[4]["score"]["metadata"] == {"rubric_id": "own", "rubric_fingerprint": "f00d"}


async def test_the_environments_info_is_left_alone() -> None:
    walk = Walk()
    env = GradingWrapper(walk, rubric="r", grader=position_grader, make_input=make_input)
    env.reset()
    for _ in range(3):
        env.step(1)
    assert walk.info == {"kept": True}


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), "good", None])
async def test_a_bad_score_is_an_error_that_names_the_grader(bad: Any) -> None:
    def careless(position: int, rubric: object) -> Any:
        return bad

    with pytest.raises((TypeError, ValueError), match=r"the score of .*careless"):
        await run_both(grader=careless)


async def test_a_bad_combined_reward_is_an_error() -> None:
    with pytest.raises(ValueError, match="the combined reward of <GradingWrapper<Walk"):
        await run_both(combine_reward=lambda reward, score: float("inf"))


def test_an_asynchronous_grader_needs_the_asynchronous_wrapper() -> None:
    async def grade(position: int, rubric: object) -> float:
        return 1.0

    env = GradingWrapper(Walk(), rubric="r", grader=grade, make_input=make_input)
    env.reset()
    env.step(1)
    env.step(1)
    with pytest.raises(TypeError, match=r"grader .*grade.* is asynchronous: use AsyncGrading"):
        env.step(1)


async def test_asynchronous_graders_are_awaited() -> None:
    async def grade(position: int, rubric: object) -> float:
        await anyio.lowlevel.checkpoint()
        return 0.75

    class Both:
        def __call__(self, position: int, rubric: object) -> float:
            raise AssertionError

        async def ascore(self, position: int, rubric: object) -> float:
            return 0.75

    def delegate(position: int, rubric: object) -> Awaitable[float]:
        return grade(position, rubric)

    for grader in (grade, Both(), delegate):
        env = AsyncGradingWrapper(
            as_async(Walk(), inline=True), rubric="r", grader=grader, make_input=make_input
        )
        await env.reset()
        rewards = [(await env.step(1))[1] for _ in range(3)]
        assert rewards == [0.1, 0.1, 0.75]


async def test_a_blocking_grader_does_not_hold_up_the_event_loop() -> None:
    grading, go = threading.Event(), threading.Event()

    def block(position: int, rubric: object) -> float:
        grading.set()
        assert go.wait(30)
        return 1.0

    env = AsyncGradingWrapper(
        as_async(Walk(), inline=True),
        rubric="r",
        grader=block,
        make_input=make_input,
        when=lambda *ended: True,
    )
    await env.reset()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(env.step, 1)
        await anyio.to_thread.run_sync(grading.wait, 30)
        go.set()  # only a free event loop gets here


async def test_inline_grades_on_the_event_loop() -> None:
    threads: list[threading.Thread] = []

    def grade(position: int, rubric: object) -> float:
        threads.append(threading.current_thread())
        return 1.0

    for inline in (True, False):
        env = AsyncGradingWrapper(
            as_async(Walk(), inline=True),
            rubric="r",
            grader=grade,
            make_input=make_input,
            when=lambda *ended: True,
            inline=inline,
        )
        await env.reset()
        await env.step(1)
    assert threads[0] is threading.current_thread()
    assert threads[1] is not threading.current_thread()


def test_gymnasium_makes_the_wrapper_again_from_its_spec() -> None:
    gym.register("rolloutlib-test/Walk-v0", entry_point=lambda **_: Walk())
    try:
        env = GradingWrapper(
            gym.make("rolloutlib-test/Walk-v0", disable_env_checker=True),
            rubric="r",
            grader=position_grader,
            make_input=make_input,
        )
        assert env.spec is not None
        again = gym.make(env.spec)
        assert isinstance(again, GradingWrapper)
        again.reset()
        rewards = [again.step(1)[1] for _ in range(3)]
        assert rewards == [0.1, 0.1, 0.3]
    finally:
        del gym.registry["rolloutlib-test/Walk-v0"]
