"""One episode, in both kinds of rollout."""

from __future__ import annotations

import asyncio
import functools
import threading
from collections.abc import Callable
from typing import Any

import anyio
import anyio.to_thread
import gymnasium as gym
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.rollouts.scripted import AsyncScriptedEnv, ScriptedEnv, apolicy, policy
from rolloutlib import (
    Env,
    PolicyOutput,
    Score,
    Step,
    Trajectory,
    arollout,
    as_async,
    as_sync,
    rollout,
    rollout_group,
)
from rolloutlib.rollouts import EpisodeTruncated

pytestmark = pytest.mark.anyio


def test_an_episode_is_recorded_step_by_step() -> None:
    env = ScriptedEnv(length=2)
    trajectory = rollout(env, policy, seed=3, options={"a": 1}, metadata={"m": 1})
    assert trajectory.initial_observation == "o0"
    assert trajectory.initial_info == {"seed": 3, "options": {"a": 1}}
    assert trajectory.metadata == {"m": 1}
    assert trajectory.seed == 3
    assert trajectory.member is None
    assert (trajectory.terminated, trajectory.truncated) == (True, False)
    first = trajectory.steps[0]
    assert first == Step(
        "o0",
        "ao0",
        1.5,
        "o1",
        False,
        False,
        first.info,
        {"saw": "o0"},
        (111, 48),
        (-1.11, -0.48),
        "stop",
        (111,),
    )
    assert trajectory.actions == ("ao0", "ao1")
    assert env.log.events == ["reset", "step 0", "step 1"]
    assert env.log.closed == 0  # a rollout leaves its environment open


def test_a_raw_action_leaves_the_policy_fields_empty() -> None:
    [step] = rollout(ScriptedEnv(length=1), lambda observation: "a").steps
    assert step.action == "a"
    assert step.policy_info == {}
    assert step.policy_tokens is step.policy_logprobs is step.policy_stop_reason is None


@pytest.mark.parametrize(
    ("max_steps", "steps", "terminated", "truncated"),
    [
        (None, 3, True, False),
        (3, 3, True, False),
        (5, 3, True, False),
        (2, 2, False, True),
        (0, 0, False, True),
    ],
)
async def test_a_limit_on_steps_truncates(
    max_steps: int | None, steps: int, terminated: bool, truncated: bool
) -> None:
    trajectory = rollout(ScriptedEnv(length=3), policy, max_steps=max_steps)
    again = await arollout(AsyncScriptedEnv(length=3), apolicy, max_steps=max_steps)
    for record in (trajectory, again):
        assert len(record.steps) == steps
        assert (record.terminated, record.truncated) == (terminated, truncated)
        assert not any(step.truncated for step in record.steps)


@pytest.mark.parametrize("turn", [0, 1])
async def test_a_prompt_that_is_too_long_truncates_and_is_no_failure(turn: int) -> None:
    def overflow(observation: str) -> PolicyOutput[str]:
        if observation == f"o{turn}":
            msg = "the prompt has 9000 tokens, the context 8192"
            raise EpisodeTruncated(msg)
        return policy(observation)

    group = rollout_group("item", lambda _: ScriptedEnv(length=3), overflow, num_rollouts=2)
    for record in (
        rollout(ScriptedEnv(length=3), overflow, metadata={"m": 1}),
        await arollout(AsyncScriptedEnv(length=3), overflow, metadata={"m": 1}),
        *group.trajectories,
    ):
        assert len(record.steps) == turn
        assert (record.terminated, record.truncated) == (False, True)
        assert record.metadata["truncated_by"] == "the prompt has 9000 tokens, the context 8192"
    assert (group.num_truncated, group.num_failed) == (2, 0)


def test_a_step_may_end_the_episode_as_truncated_but_not_a_reset() -> None:
    reason = EpisodeTruncated("no more room")
    trajectory = rollout(ScriptedEnv(length=3, faults={"step 1": reason}), policy)
    assert trajectory.actions == ("ao0",)
    assert trajectory.truncated
    with pytest.raises(EpisodeTruncated) as caught:
        rollout(ScriptedEnv(faults={"reset": reason}), policy)
    assert caught.value is reason


@pytest.mark.parametrize(("bad", "error"), [(-1, ValueError), (1.5, TypeError), (True, TypeError)])
async def test_a_limit_that_is_none_is_refused(bad: Any, error: type[Exception]) -> None:
    env = ScriptedEnv()
    with pytest.raises(error, match=f"max_steps must .*{bad!r}"):
        rollout(env, policy, max_steps=bad)
    with pytest.raises(error, match=f"max_steps must .*{bad!r}"):
        await arollout(as_async(env, inline=True), policy, max_steps=bad)
    assert env.log.events == []


scripts = st.fixed_dictionaries(
    {
        "length": st.integers(1, 4),
        "ends": st.sampled_from(["terminated", "truncated", "both"]),
    }
)


@given(script=scripts, seed=st.integers(0, 2**31 - 1), max_steps=st.none() | st.integers(0, 4))
@settings(max_examples=25)
def test_all_ways_of_running_an_episode_give_the_same_record(
    script: dict[str, Any], seed: int, max_steps: int | None
) -> None:
    arguments: dict[str, Any] = {"seed": seed, "max_steps": max_steps, "options": {"x": [1]}}
    expected = rollout(ScriptedEnv(**script), policy, **arguments)

    async def main() -> None:
        threaded = as_async(ScriptedEnv(**script))
        ways = [
            await arollout(AsyncScriptedEnv(**script), apolicy, **arguments),
            await arollout(AsyncScriptedEnv(**script), policy, **arguments),
            await arollout(AsyncScriptedEnv(**script), policy, inline=True, **arguments),
            await arollout(as_async(ScriptedEnv(**script), inline=True), apolicy, **arguments),
            await arollout(threaded, policy, **arguments),
        ]
        await threaded.close()
        for record in ways:
            assert record == expected

    anyio.run(main)
    with as_sync(AsyncScriptedEnv(**script)) as env:
        assert rollout(env, policy, **arguments) == expected


class Returning(Env[Any, Any]):
    """Returns from `reset` and `step` what it is told."""

    action_space = observation_space = gym.spaces.Discrete(2)

    def __init__(self, reset: Any = (0, {}), step: Any = (0, 1.0, True, False, {})) -> None:
        self.results = (reset, step)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        return self.results[0]

    def step(self, action: Any) -> Any:
        return self.results[1]


@pytest.mark.parametrize(
    ("results", "error", "message"),
    [
        ({"reset": 5}, TypeError, r"reset\(\) must return \(observation, info\), got 5"),
        (
            {"reset": (0, 5)},
            TypeError,
            r"reset\(\) must return \(observation, info\), got \(0, 5\)",
        ),
        ({"step": (0, 1.0, True)}, TypeError, r", step 0: step\(\) must return"),
        ({"step": None}, TypeError, r", step 0: step\(\) must return .* got None"),
        ({"step": (0, np.nan, True, False, {})}, ValueError, r", step 0: reward must be finite"),
        ({"step": (0, "x", True, False, {})}, TypeError, r", step 0: reward must be a real number"),
        (
            {"step": (0, 1.0, 7, False, {})},
            TypeError,
            r", step 0: terminated must be a bool, got 7",
        ),
        ({"step": (0, 1.0, True, None, {})}, TypeError, r", step 0: truncated must be a bool"),
        ({"step": (0, 1.0, True, False, [])}, TypeError, r", step 0: info must be a dictionary"),
        (
            {"step": (0, 1.0, True, False, {"score": {"value": "x"}})},
            TypeError,
            r", step 0: score must be a real number, got 'x'",
        ),
        (
            {"step": (0, 1.0, True, False, {"score": {"value": 1, "points": 2}})},
            ValueError,
            r", step 0: a score has the keys",
        ),
    ],
)
async def test_what_breaks_the_contract_is_named_with_its_place(
    results: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=f"Returning.*{message}"):
        rollout(Returning(**results), lambda observation: 0)
    adapted = as_async(Returning(**results), inline=True)
    with pytest.raises(error, match=f"Returning.*{message}"):
        await arollout(adapted, lambda observation: 0)


async def test_scalars_of_every_library_become_python_values() -> None:
    env = Returning(step=(0, np.array([0.5]), np.bool_(True), 0, {"score": 17}))
    for trajectory in (
        rollout(env, lambda observation: 0),
        await arollout(as_async(env, inline=True), lambda observation: 0),
    ):
        [step] = trajectory.steps
        assert (step.reward, step.terminated, step.truncated) == (0.5, True, False)
        assert [type(x) for x in (step.reward, step.terminated, step.truncated)] == [
            float,
            bool,
            bool,
        ]
        assert trajectory.score == Score(0.5)  # 17 is the environment's own business


@pytest.mark.parametrize("place", ["reset", "step 0", "step 1"])
async def test_an_exception_comes_out_as_it_is_with_the_steps_before_it(place: str) -> None:
    steps = 1 if place == "step 1" else 0
    for make in (
        lambda env: functools.partial(rollout, env, policy),
        lambda env: functools.partial(
            anyio.run, functools.partial(arollout, as_async(env, inline=True), apolicy)
        ),
    ):
        error = KeyError(place)
        run = make(ScriptedEnv(length=3, faults={place: error}))
        with pytest.raises(KeyError) as caught:
            await anyio.to_thread.run_sync(run)
        assert caught.value is error
        partial = Trajectory.from_exception(error)
        if place == "reset":
            assert partial is None
        else:
            assert partial is not None
            assert len(partial.steps) == steps
            assert not partial.complete


def test_an_interrupt_comes_out_with_the_steps_before_it() -> None:
    def interrupted(observation: str) -> str:
        if observation == "o1":
            raise KeyboardInterrupt
        return "a"

    with pytest.raises(KeyboardInterrupt) as caught:
        rollout(ScriptedEnv(length=3), interrupted, seed=4)
    partial = Trajectory.from_exception(caught.value)
    assert partial is not None
    assert partial.actions == ("a",)
    assert partial.seed == 4
    assert Trajectory.from_exception(ValueError()) is None


def test_a_rollout_refuses_what_needs_the_other_kind() -> None:
    with pytest.raises(TypeError, match=r"rollout needs a gymnasium\.Env.*see arollout"):
        rollout(AsyncScriptedEnv(), policy)  # pyright: ignore[reportArgumentType]
    with pytest.raises(TypeError, match=r"step 0: the policy returned an awaitable.*use arollout"):
        rollout(ScriptedEnv(), apolicy)  # pyright: ignore[reportArgumentType]


async def test_an_arollout_refuses_a_synchronous_environment() -> None:
    with pytest.raises(TypeError, match=r"arollout needs an AsyncEnv.*as_async\(\)"):
        await arollout(ScriptedEnv(), policy)  # pyright: ignore[reportArgumentType]


class Callables:
    async def __call__(self, observation: str) -> PolicyOutput[str]:
        return await apolicy(observation)

    async def method(self, observation: str) -> PolicyOutput[str]:
        return await apolicy(observation)


async def apolicy_of(temperature: float, observation: str) -> PolicyOutput[str]:
    return await apolicy(observation)


@pytest.mark.parametrize(
    "way",
    [
        policy,
        apolicy,
        Callables(),
        Callables().method,
        functools.partial(apolicy_of, 0.5),
        lambda observation: apolicy(observation),  # noqa: PLW0108
    ],
)
@pytest.mark.parametrize("inline", [False, True])
async def test_every_kind_of_policy_is_called_and_awaited(
    way: Callable[[str], Any], inline: bool
) -> None:
    expected = rollout(ScriptedEnv(), policy, seed=1)
    assert await arollout(AsyncScriptedEnv(), way, seed=1, inline=inline) == expected


def test_a_policy_that_needs_the_event_loop_is_told_how_to_get_it() -> None:
    def schedule(observation: str) -> asyncio.Task[PolicyOutput[str]]:
        return asyncio.get_running_loop().create_task(apolicy(observation))

    with pytest.raises(RuntimeError, match="no running event loop") as caught:
        asyncio.run(arollout(AsyncScriptedEnv(), schedule))
    assert "or pass inline=True" in caught.value.__notes__[0]
    asyncio.run(arollout(AsyncScriptedEnv(), schedule, inline=True))


async def test_a_blocking_policy_does_not_hold_up_the_event_loop() -> None:
    asked, go = threading.Event(), threading.Event()

    def block(observation: str) -> str:
        asked.set()
        assert go.wait(30)
        return "a"

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(arollout, AsyncScriptedEnv(), block)
        await anyio.to_thread.run_sync(asked.wait, 30)
        go.set()  # only a free event loop gets here


async def test_a_deadline_is_honoured_while_a_policy_blocks() -> None:
    asked, go = threading.Event(), threading.Event()

    def block(observation: str) -> str:
        asked.set()
        assert go.wait(30)
        return "a"

    env = AsyncScriptedEnv()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(arollout, env, block)
        await anyio.to_thread.run_sync(asked.wait, 30)
        tasks.cancel_scope.cancel()
    assert env.twin.log.events == ["reset"]
    go.set()
