"""Environments of tinker-cookbook in rollouts of ours."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import tinker

import cookbook
from rolloutlib import PolicyOutput, arollout, arollout_group
from rolloutlib.tinker import AsyncFromCookbook, AsyncTinkerPolicy, TokenPrompt, to_datums
from rolloutlib.training import assemble_rows, check_rows, group_mean
from tinker_stub import TinkerStub

pytestmark = pytest.mark.anyio


class Counting:
    """Shows numbers, and wants the next one; an environment of the cookbook's first form."""

    def __init__(self, target: int) -> None:
        self.seen = [target]
        self.actions: list[list[int]] = []

    async def initial_observation(self) -> Any:
        return tinker.ModelInput.from_ints(self.seen), [99]

    async def step(self, action: list[int]) -> Any:
        assert type(action) is list
        self.actions.append(action)
        right = action[0] == self.seen[-1] + 1
        self.seen = [*self.seen, *action, 7]
        return self.result(
            float(right), len(self.actions) == 2, tinker.ModelInput.from_ints(self.seen)
        )

    def result(self, reward: float, done: bool, shown: tinker.ModelInput) -> Any:
        return cookbook.FirstStepResult(reward, done, shown, [98], {"right": reward})


class NewerCounting(Counting):
    """One of a newer form, with logs, and a reason to stop."""

    def __init__(self, target: int, reason: str) -> None:
        super().__init__(target)
        self.reason = reason

    async def step(self, action: list[int], *, extra: Any = None) -> Any:
        return await super().step(action)

    def result(self, reward: float, done: bool, shown: tinker.ModelInput) -> Any:
        metrics = {f"stop/{self.reason}": 1.0} if done else {}
        return cookbook.StepResult(reward, done, shown, [98], metrics, {"said": "so"})


def count(observation: TokenPrompt) -> PolicyOutput[Sequence[int]]:
    """Says the number after the last, and ends."""
    assert isinstance(observation, list)
    tokens = [observation[-1] + 1, 99]
    action: Any = np.array(tokens)
    return PolicyOutput(action, tokens=tokens, logprobs=[-0.5, -0.25], prompt_tokens=observation)


async def test_an_episode_is_played_and_recorded() -> None:
    env = AsyncFromCookbook(Counting(3))
    assert env.stop_condition is None
    trajectory = await arollout(env, count, seed=5)
    assert trajectory.observations == ([3], [3, 4, 99, 7], [3, 4, 99, 7, 8, 99, 7])
    assert trajectory.rewards == (1, 1)
    assert (trajectory.terminated, trajectory.truncated) == (True, False)
    assert trajectory.steps[0].info == {"metrics": {"right": 1}}
    assert env.stop_condition == [98]
    assert trajectory.actions[0] in env.action_space
    assert trajectory.observations[0] in env.observation_space


@pytest.mark.parametrize(
    ("reason", "truncated"),
    [("completed", False), ("parse_error", False), ("max_turns", True), ("max_tokens", True)],
)
async def test_an_episode_that_ends_at_a_limit_is_truncated(reason: str, truncated: bool) -> None:
    trajectory = await arollout(AsyncFromCookbook(NewerCounting(3, reason)), count)
    assert (trajectory.truncated, trajectory.terminated) == (truncated, not truncated)
    assert trajectory.steps[1].info == {"metrics": {f"stop/{reason}": 1}, "logs": {"said": "so"}}


@pytest.mark.parametrize(
    ("stops", "tokens", "reason"),
    [
        ([99], [4, 99], "stop"),
        ([98, 99], [4, 99], "stop"),
        ([99], [4, 5], "length"),
        ([99], [], "length"),
        (["\n"], [4, 5], "stop"),  # which only a tokenizer could tell
        ([], [4, 5], "stop"),
    ],
)
async def test_a_newer_environment_is_told_of_an_answer_that_was_cut_off(
    stops: Any, tokens: list[int], reason: str
) -> None:
    class Told(NewerCounting):
        async def initial_observation(self) -> Any:
            return tinker.ModelInput.from_ints(self.seen), stops

        async def step(self, action: list[int], *, extra: Any = None) -> Any:
            self.extra = extra
            return self.result(0.0, True, tinker.ModelInput.empty())

    told = Told(3, "completed")
    env = AsyncFromCookbook(told)
    await env.reset()
    await env.step(tokens)
    assert told.extra == {"stop_reason": reason}


async def test_a_group_becomes_datums() -> None:
    async def make_env(target: int) -> AsyncFromCookbook:
        return AsyncFromCookbook(Counting(target))

    group = await arollout_group(3, make_env, count, num_rollouts=2)
    rows, report = assemble_rows(group, advantages=group_mean)
    check_rows(rows, group)
    assert not report.breaks
    assert [datum.model_input.to_ints() for datum in to_datums(rows)] == [[3, 4, 99, 7, 8]] * 2


async def test_a_policy_over_tinker_plays_it(stub: TinkerStub, sampler: Any) -> None:
    stub.say([4, 99], [4, 99])
    policy = AsyncTinkerPolicy(sampler, actions="tokens", max_tokens=5, stop=[99])
    trajectory = await arollout(AsyncFromCookbook(Counting(3)), policy)
    assert trajectory.rewards == (1, 0)
    assert trajectory.actions == ([4, 99], [4, 99])
    assert trajectory.steps[1].policy_prompt_tokens == [3, 4, 99, 7]


async def test_a_prompt_that_is_not_all_text_is_shown_as_it_is() -> None:
    class Showing(Counting):
        async def initial_observation(self) -> Any:
            image = tinker.types.ImageChunk(data=b"x", format="png", expected_tokens=4)
            return tinker.ModelInput(chunks=[image]), []

    observation, _ = await AsyncFromCookbook(Showing(3)).reset()
    assert isinstance(observation, tinker.ModelInput)
    assert observation.length == 4


async def test_an_environment_is_for_one_episode() -> None:
    env = AsyncFromCookbook(Counting(3))
    with pytest.raises(RuntimeError, match="has no episode that could go on"):
        await env.step([4])
    await arollout(env, count)
    with pytest.raises(RuntimeError, match="has no episode that could go on"):
        await env.step([4])
    with pytest.raises(RuntimeError, match=r"has one episode, .*: make another"):
        await env.reset()


async def test_a_first_prompt_that_is_too_long_says_so() -> None:
    class Overflowing(Counting):
        async def initial_observation(self) -> Any:
            return cookbook.InitialObservationOverflow(-0.1)

    group = await arollout_group(
        3, lambda target: AsyncFromCookbook(Overflowing(target)), count, num_rollouts=1
    )
    [error] = group.errors
    assert error.error_type.endswith("EpisodeTruncated")
    assert "context_overflow: InitialObservationOverflow(reward=-0.1)" in error.error_message


def test_what_is_no_environment_is_refused() -> None:
    env: Any = 3
    with pytest.raises(TypeError, match="must be an Env of tinker-cookbook"):
        AsyncFromCookbook(env)
