"""Steps that fail after the policy has answered: the answer is kept."""

from __future__ import annotations

import gc
import json
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import anyio
import numpy as np
import pytest

from core.rollouts.scripted import AsyncScriptedEnv, ScriptedEnv, apolicy, policy
from rolloutlib import (
    Env,
    PolicyOutput,
    RolloutError,
    Trajectory,
    TrajectoryGroup,
    acollect,
    arollout,
    arollout_group,
    collect,
    rollout,
    rollout_group,
)
from rolloutlib.envs import AsyncGradingWrapper, GradingWrapper
from rolloutlib.rollouts import AsyncBatchedPolicy, BatchedPolicy, Retry, Timeouts, summarize
from rolloutlib.training import assemble_rows

pytestmark = pytest.mark.anyio


def answer(observations: Sequence[str]) -> list[Any]:
    return [policy(observation) for observation in observations]


def failing(kind: Any, place: str = "step 1") -> Callable[[Any], Any]:
    return lambda item: kind(faults={place: ConnectionError("the judge is down")})


async def in_every_way(place: str, **arguments: Any) -> dict[str, TrajectoryGroup[Any, Any, Any]]:
    make_env, amake_env = failing(ScriptedEnv, place), failing(AsyncScriptedEnv, place)
    groups: dict[str, TrajectoryGroup[Any, Any, Any]] = {
        "sync": rollout_group("x", make_env, policy, **arguments),
        "lock step": rollout_group("x", make_env, BatchedPolicy(answer), **arguments),
        "threads": await arollout_group("x", make_env, policy, **arguments),
        "timed": await arollout_group("x", amake_env, policy, timeouts=Timeouts(), **arguments),
        "async": await arollout_group("x", amake_env, apolicy, **arguments),
    }
    async with AsyncBatchedPolicy[Any, Any](answer, max_wait=0) as batched:
        groups["batched"] = await arollout_group("x", amake_env, batched, **arguments)
    [groups["collect"]] = collect(["x"], make_env, policy, **arguments)
    async with acollect(["x"], amake_env, apolicy, **arguments) as collected:
        [groups["acollect"]] = [group async for group in collected]
    return groups


@pytest.mark.parametrize("number", [0, 1])
async def test_what_the_policy_answered_is_kept_whatever_the_kind_of_run(number: int) -> None:
    for way, group in (await in_every_way(f"step {number}", num_rollouts=2)).items():
        assert group.num_failed == 2, way
        for error in group.errors:
            assert error.phase == "step"
            assert error.output == policy(f"o{number}"), way
            assert error.trajectory is not None
            assert len(error.trajectory.steps) == number
            text = json.dumps(error.to_dict())
            assert RolloutError.from_dict(json.loads(text)) == error
        assert summarize([group]).steps == 2 * number
        assert summarize([group]).tokens == 2 * 2 * (number + 1)


@pytest.mark.parametrize("place", ["reset", "close"])
async def test_without_a_failed_step_there_is_none(place: str) -> None:
    for group in (await in_every_way(place)).values():
        assert [error.output for error in group.errors] == [None] * len(group.errors)


async def test_attempts_that_were_followed_by_another_keep_theirs() -> None:
    groups = await in_every_way("step 0", retry=Retry(attempts=2, initial_delay=0))
    for group in groups.values():
        outputs = [error.output for error in (*group.retried, *group.errors)]
        assert outputs == [policy("o0")] * 2


async def test_a_policy_that_fails_has_not_answered() -> None:
    def give_up(observation: str) -> PolicyOutput[str]:
        if observation == "o1":
            raise LookupError(observation)
        return policy(observation)

    [error] = rollout_group("x", lambda item: ScriptedEnv(), give_up).errors
    assert (error.phase, error.output) == ("policy", None)
    group = await arollout_group("x", lambda item: AsyncScriptedEnv(), give_up)
    assert [error.output for error in group.errors] == [None]


async def test_the_answer_travels_with_the_exception_of_an_episode() -> None:
    with pytest.raises(ConnectionError) as caught:
        rollout(failing(ScriptedEnv)(None), policy)
    with pytest.raises(ConnectionError) as acaught:
        await arollout(failing(AsyncScriptedEnv)(None), apolicy)
    for error in (caught.value, acaught.value):
        assert PolicyOutput.from_exception(error) == policy("o1")
        trajectory = Trajectory.from_exception(error)
        assert trajectory is not None
        assert len(trajectory.steps) == 1
    with pytest.raises(ConnectionError) as caught:
        rollout(failing(ScriptedEnv, "reset")(None), policy)
    assert PolicyOutput.from_exception(caught.value) is None


async def test_a_step_that_takes_too_long_loses_no_answer() -> None:
    class Stuck(AsyncScriptedEnv):
        async def step(self, action: str) -> Any:
            await anyio.sleep_forever()

    group = await arollout_group(
        "x", lambda item: Stuck(), apolicy, timeouts=Timeouts(step=0.01), retry=None
    )
    [error] = group.errors
    assert (error.phase, error.error_type) == ("step", "TimeoutError")
    assert error.output == policy("o0")


async def test_a_step_that_returns_what_it_may_not_loses_no_answer() -> None:
    class Unpaid(ScriptedEnv):
        def step(self, action: str) -> Any:
            return "o1", float("nan"), True, False, {}

    class Short(ScriptedEnv):
        def step(self, action: str) -> Any:
            return "o1", 1.0

    for kind in (Unpaid, Short):
        for group in (
            rollout_group("x", lambda item, kind=kind: kind(), policy),
            await arollout_group("x", lambda item, kind=kind: kind(), policy),
        ):
            assert [error.output for error in group.errors] == [policy("o0")]


class Reused(Env[Any, Any]):
    """Changes the action that it was given, then fails."""

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        return 0, {}

    def step(self, action: Any) -> Any:
        action["tool"] = "changed"
        msg = "no such tool"
        raise LookupError(msg)


def test_the_answer_is_a_snapshot_and_a_plain_action_is_one_too() -> None:
    info = {"calls": [1]}

    class Versioned:
        version = 7

        def __init__(self, plain: bool) -> None:
            self.plain = plain

        def __call__(self, observation: Any) -> Any:
            action = {"tool": "search", "scores": np.array([1.0, 2.0])}
            return action if self.plain else PolicyOutput(action, info, tokens=[3])

    kept: dict[str, Any] = {"tool": "search", "scores": np.array([1.0, 2.0])}
    [error] = rollout_group("x", lambda item: Reused(), Versioned(plain=True)).errors
    assert error.output == PolicyOutput(kept, version=7)
    [error] = rollout_group("x", lambda item: Reused(), Versioned(plain=False)).errors
    info["calls"].append(2)
    assert error.output == PolicyOutput(kept, {"calls": [1]}, tokens=[3], version=7)
    assert error != RolloutError("LookupError", "no such tool", output=PolicyOutput(kept))


async def test_a_judge_that_is_down_loses_no_answer() -> None:
    def judge(action: str, rubric: str) -> float:
        msg = "no judge"
        raise ConnectionError(msg)

    def make_env(item: Any, kind: Any = GradingWrapper, env: Any = ScriptedEnv) -> Any:
        return kind(env(length=1), rubric="", grader=judge, make_input=lambda env, action: action)

    for group in (
        rollout_group("x", make_env, policy),
        await arollout_group(
            "x", lambda item: make_env(item, AsyncGradingWrapper, AsyncScriptedEnv), apolicy
        ),
    ):
        assert [error.output for error in group.errors] == [policy("o0")]


def test_the_tokens_of_a_failed_step_are_not_trained() -> None:
    def speak(observation: str) -> PolicyOutput[str]:
        return PolicyOutput("a", tokens=[1, 2, 3], logprobs=[-1.0] * 3, prompt_tokens=[4])

    group = rollout_group("x", failing(ScriptedEnv), speak)
    rows, _ = assemble_rows([group], failed=True)
    assert [row.num_trainable for row in rows] == [3]  # of the finished step alone
    rows, report = assemble_rows([group])
    assert (rows, report.num_failed) == ([], 1)


def test_finished_episodes_leave_no_cycles_behind() -> None:
    class Weighty(str):
        __slots__ = ("__weakref__",)

    class Heavy(ScriptedEnv):
        def step(self, action: str) -> Any:
            _, *rest = super().step(action)
            observation = Weighty("o")
            seen.append(weakref.ref(observation))
            return observation, *rest

    seen: list[Any] = []
    gc.disable()
    try:
        trajectory = rollout(Heavy(), lambda _: "a", snapshots=False)
        assert all(reference() is not None for reference in seen)
        del trajectory
        assert [reference() for reference in seen] == [None, None]
    finally:
        gc.enable()
