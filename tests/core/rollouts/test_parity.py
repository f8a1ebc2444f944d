"""Every way to play gives equal records for equal scripts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import anyio
import anyio.lowlevel
import gymnasium as gym
from hypothesis import given, settings
from hypothesis import strategies as st

from rolloutlib import (
    AsyncEnv,
    Env,
    PolicyOutput,
    TrajectoryGroup,
    acollect,
    arollout,
    arollout_group,
    as_async,
    as_sync,
    collect,
    rollout,
    rollout_group,
)
from rolloutlib.rollouts import AsyncBatchedPolicy, BatchedPolicy, EpisodeTruncated, Timeouts


@dataclass(frozen=True)
class Turn:
    """What a script says about one step."""

    reward: Any
    terminated: Any
    truncated: Any
    output: str  # "action", "output", "tokens"
    fault: str | None  # where something is raised: "policy", "step"
    error: type[Exception]


@dataclass(frozen=True)
class Script:
    """One episode. After its turns the environment terminates it."""

    turns: tuple[Turn, ...]
    fault: str | None = None  # "make_env", "reset", "close"


class TurnError(Exception):
    """An error of the tests' own."""


turns = st.builds(
    Turn,
    reward=st.floats(-1e9, 1e9) | st.integers(-5, 5) | st.booleans(),
    terminated=st.sampled_from([False, False, False, True]),
    truncated=st.sampled_from([False, False, False, True]),
    output=st.sampled_from(["action", "output", "tokens"]),
    fault=st.sampled_from([None] * 6 + ["policy", "step"]),
    error=st.sampled_from([TurnError, KeyError, EpisodeTruncated]),
)
scripts = st.builds(
    Script,
    turns=st.lists(turns, max_size=4).map(tuple),
    fault=st.sampled_from([None] * 5 + ["make_env", "reset", "close"]),
)

Observation = tuple[int, int]  # which script, and which turn


class ScriptEnv(Env[Observation, str]):
    action_space: gym.Space[str] = gym.spaces.Text(99)
    observation_space: gym.Space[Any] = gym.spaces.MultiDiscrete([99, 99])

    def __init__(self, number: int, script: Script) -> None:
        self.number, self.script, self.turn = number, script, 0
        self.fail("make_env")

    def fail(self, event: str) -> None:
        if self.script.fault == event:
            raise TurnError(event)

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.fail("reset")
        return (self.number, 0), {"draw": int(self.np_random.integers(10**6))}

    def step(self, action: str) -> tuple[Observation, Any, Any, Any, dict[str, Any]]:
        index, self.turn = self.turn, self.turn + 1
        if index >= len(self.script.turns):
            return (self.number, index + 1), 0.0, True, False, {}
        turn = self.script.turns[index]
        if turn.fault == "step":
            raise turn.error(f"turn {index}")
        info = {"action": action, "draw": int(self.np_random.integers(10**6))}
        return (self.number, index + 1), turn.reward, turn.terminated, turn.truncated, info

    def close(self) -> None:
        self.fail("close")


class AsyncScriptEnv(AsyncEnv[Observation, str]):
    action_space: gym.Space[str] = gym.spaces.Text(99)
    observation_space: gym.Space[Any] = gym.spaces.MultiDiscrete([99, 99])

    def __init__(self, number: int, script: Script) -> None:
        self.twin = ScriptEnv(number, script)

    async def reset(
        self, *, seed: int | None = None, options: Any = None
    ) -> tuple[Any, dict[str, Any]]:
        await anyio.lowlevel.checkpoint()
        return self.twin.reset(seed=seed)

    async def step(self, action: str) -> tuple[Observation, Any, Any, Any, dict[str, Any]]:
        await anyio.lowlevel.checkpoint()
        return self.twin.step(action)

    async def close(self) -> None:
        await anyio.lowlevel.checkpoint()
        self.twin.close()


class Play:
    """The scripts of some items, as factories and policies of every kind."""

    def __init__(self, scripts: Sequence[Script]) -> None:
        self.scripts = scripts
        self.items = list(range(len(scripts)))

    def make_env(self, item: int) -> ScriptEnv:
        return ScriptEnv(item, self.scripts[item])

    def amake_env(self, item: int) -> AsyncScriptEnv:
        return AsyncScriptEnv(item, self.scripts[item])

    def make_adapted(self, item: int) -> Any:
        return as_sync(self.amake_env(item))

    async def make_later(self, item: int) -> AsyncScriptEnv:
        await anyio.lowlevel.checkpoint()
        return self.amake_env(item)

    def decide(self, observation: Observation, seed: int, step: int) -> Any:
        number, index = observation
        assert step == index
        if index >= len(self.scripts[number].turns):
            return "last"
        turn = self.scripts[number].turns[index]
        if turn.fault == "policy":
            raise turn.error(f"turn {index}")
        if turn.output == "action":
            return f"action {index}"
        tokens = None if turn.output == "output" else [seed % 1000, *range(index)]
        logprobs = None if tokens is None else [-0.5] * len(tokens)
        return PolicyOutput(
            f"action {index}",
            {"seed": seed},
            tokens=tokens,
            logprobs=logprobs,
            stop_reason="stop",
            prompt_tokens=tokens,
            version=index if index % 2 else None,
        )

    def policy(self, observation: Observation, *, seed: int = -1, step: int = -1) -> Any:
        return self.decide(observation, seed, step)

    async def apolicy(self, observation: Observation, *, seed: int = -1, step: int = -1) -> Any:
        await anyio.lowlevel.checkpoint()
        return self.decide(observation, seed, step)

    def batch(
        self, observations: Sequence[Any], *, seeds: Sequence[Any] = (), steps: Sequence[Any] = ()
    ) -> Any:
        answers: list[Any] = []
        for arguments in zip(observations, seeds, steps, strict=True):
            try:
                answers.append(self.decide(*arguments))
            except Exception as error:  # goes to the episode that it is about
                answers.append(error)
        return answers

    async def abatch(
        self, observations: Sequence[Any], *, seeds: Sequence[Any] = (), steps: Sequence[Any] = ()
    ) -> Any:
        await anyio.lowlevel.checkpoint()
        return self.batch(observations, seeds=seeds, steps=steps)


def outcomes(groups: Sequence[TrajectoryGroup[Any, Any, Any]]) -> list[Any]:
    """Return all there is in records but the lines of tracebacks, which differ."""
    return [
        (
            group.item,
            group.seed,
            group.trajectories,
            [
                (e.index, e.attempt, e.phase, e.error_type, e.error_message, e.seed, e.trajectory)
                for e in group.errors
            ],
        )
        for group in sorted(groups, key=lambda group: group.item)
    ]


def synchronous(play: Play, **arguments: Any) -> list[list[TrajectoryGroup[Any, Any, Any]]]:
    """Collect with all that is for synchronous code."""
    batched = BatchedPolicy[Any, Any](play.batch)
    return [
        list(collect(play.items, play.make_env, batched, **arguments)),
        list(
            collect(play.items, play.make_env, BatchedPolicy(play.batch, max_size=2), **arguments)
        ),
        list(collect(iter(play.items), play.make_env, play.policy, concurrency=3, **arguments)),
        list(collect(play.items, play.make_env, play.policy, timeouts=Timeouts(), **arguments)),
        list(collect(play.items, play.make_adapted, play.policy, **arguments)),
    ]


async def asynchronous(play: Play, **arguments: Any) -> list[list[TrajectoryGroup[Any, Any, Any]]]:
    """Collect with all that is for asynchronous code."""

    async def run(make_env: Any, policy: Any, **more: Any) -> None:
        async with acollect(play.items, make_env, policy, **arguments, **more) as groups:
            runs.append([group async for group in groups])

    runs: list[list[TrajectoryGroup[Any, Any, Any]]] = []
    await run(play.amake_env, play.apolicy)
    await run(play.amake_env, play.apolicy, concurrency=1)
    await run(play.make_later, play.apolicy, order="dataset", concurrency=3, buffer=1)
    await run(play.make_env, play.policy, concurrency=3)
    await run(play.make_env, play.policy, inline=True)
    await run(play.amake_env, play.policy, concurrency=anyio.CapacityLimiter(2))
    await run(
        lambda item: as_async(play.make_env(item)), play.apolicy, timeouts=Timeouts(step=3600)
    )
    batches: list[Any] = [play.abatch, play.batch]
    for batch in batches:
        async with AsyncBatchedPolicy[Any, Any](batch, max_size=3, max_wait=0) as policy:
            await run(play.amake_env, policy, concurrency=5)
    return runs


@given(
    scripts=st.lists(scripts, min_size=1, max_size=3),
    num_rollouts=st.integers(1, 2),
    max_steps=st.none() | st.integers(0, 4),
    snapshots=st.booleans(),
    seed=st.integers(0, 2**31 - 1),
)
@settings(max_examples=60)
def test_every_way_to_collect_gives_equal_groups(
    scripts: list[Script], num_rollouts: int, max_steps: int | None, snapshots: bool, seed: int
) -> None:
    play = Play(scripts)
    arguments: dict[str, Any] = {
        "num_rollouts": num_rollouts,
        "max_steps": max_steps,
        "snapshots": snapshots,
        "seed": seed,
        "get_item_id": str,
    }
    expected = outcomes(list(collect(play.items, play.make_env, play.policy, **arguments)))
    for number, groups in enumerate(synchronous(play, **arguments)):
        assert outcomes(groups) == expected, number
    for backend in ("asyncio", "trio"):
        main = anyio.run(_with(asynchronous, play, arguments), backend=backend)
        for number, groups in enumerate(main):
            assert outcomes(groups) == expected, (backend, number)


def _with(function: Any, play: Play, arguments: dict[str, Any]) -> Any:
    return lambda: function(play, **arguments)


@given(script=scripts, max_steps=st.none() | st.integers(0, 4), seed=st.integers(0, 2**31 - 1))
@settings(max_examples=60)
def test_groups_and_single_rollouts_give_equal_episodes(
    script: Script, max_steps: int | None, seed: int
) -> None:
    play = Play([script])
    arguments: dict[str, Any] = {"max_steps": max_steps}
    group = rollout_group(0, play.make_env, play.policy, seed=seed, item_id="x", **arguments)
    single: Any = None
    if group.trajectories and script.fault != "close":
        [trajectory] = group.trajectories
        single = rollout(play.make_env(0), play.policy, seed=trajectory.seed, **arguments)
        assert (single.steps, single.initial_info) == (trajectory.steps, trajectory.initial_info)
        assert (single.terminated, single.truncated, single.metadata) == (
            trajectory.terminated,
            trajectory.truncated,
            trajectory.metadata,
        )

    async def main() -> None:
        again = await arollout_group(
            0, play.amake_env, play.apolicy, seed=seed, item_id="x", **arguments
        )
        assert outcomes([again]) == outcomes([group])
        if single is not None:
            arguments["seed"] = single.seed
            assert await arollout(play.amake_env(0), play.apolicy, **arguments) == single
            arguments["timeouts"] = Timeouts(step=3600)
            adapted = as_async(play.make_env(0))
            assert await arollout(adapted, play.policy, **arguments) == single
            await adapted.close()

    for backend in ("asyncio", "trio"):
        arguments = {"max_steps": max_steps}
        anyio.run(main, backend=backend)
