"""One episode: an environment and a policy in turn, and the record of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, cast

import anyio
import gymnasium as gym

from rolloutlib._calls import RefuseStrayCancellation, is_awaitable
from rolloutlib._values import snapshot
from rolloutlib.envs import AsyncEnv
from rolloutlib.rollouts._caller import AsyncCaller, Caller
from rolloutlib.rollouts._policies import (
    ActionT,
    AsyncPolicy,
    EpisodeTruncated,
    ObservationT,
    Policy,
)
from rolloutlib.rollouts._recorder import Recorder
from rolloutlib.rollouts._timeouts import Timeouts, Timer
from rolloutlib.rollouts._trajectories import Trajectory


def rollout(
    environment: gym.Env[ObservationT, ActionT],
    policy: Policy[ObservationT, ActionT],
    *,
    seed: int | None = None,
    options: dict[str, Any] | None = None,
    max_steps: int | None = None,
    metadata: Mapping[str, Any] | None = None,
    snapshots: bool = True,
) -> Trajectory[ObservationT, ActionT]:
    """Run one episode and record it. The environment is left open.

    Args:
        environment: Is reset, then stepped until it ends the episode.
        policy: Chooses an action for each observation.
        seed: Goes to `reset`, and into the record.
        options: Go to `reset`, a copy of them.
        max_steps: After that many steps the episode is cut short; the trajectory is truncated.
        metadata: Goes into the record, a copy of it.
        snapshots: Record copies of observations, actions and infos, so that an environment or
            policy which reuses such an object changes no record. Without, the record refers to the
            objects themselves.

    Raises:
        TypeError: An argument has the wrong type, or the environment or the policy returned
            something of the wrong type.
        ValueError: `max_steps` is negative, or a reward was NaN or infinite.
        BaseException: What the environment or the policy raises. `Trajectory.from_exception` gives
            the steps before it.
    """
    if not isinstance(cast("object", environment), gym.Env):
        msg = f"rollout needs a gymnasium.Env, got {environment!r}; for an AsyncEnv, see arollout"
        raise TypeError(msg)
    recorder = Recorder[ObservationT, ActionT](
        environment, seed=seed, max_steps=max_steps, metadata=metadata, snapshots=snapshots
    )
    return run_episode(environment, Caller(policy), recorder, options)


async def arollout(
    environment: AsyncEnv[ObservationT, ActionT],
    policy: AsyncPolicy[ObservationT, ActionT],
    *,
    seed: int | None = None,
    options: dict[str, Any] | None = None,
    max_steps: int | None = None,
    metadata: Mapping[str, Any] | None = None,
    snapshots: bool = True,
    inline: bool = False,
    timeouts: Timeouts | None = None,
) -> Trajectory[ObservationT, ActionT]:
    """Run one episode of an asynchronous environment: `rollout`'s asynchronous twin.

    Args:
        environment: Is reset, then stepped until it ends the episode.
        policy: Chooses an action for each observation. A policy that is not a coroutine function may
            block, so it is called on a worker thread; an awaitable that it returns is awaited on the
            event loop.
        seed: Goes to `reset`, and into the record.
        options: Go to `reset`, a copy of them.
        max_steps: After that many steps the episode is cut short; the trajectory is truncated.
        metadata: Goes into the record, a copy of it.
        snapshots: Record copies of observations, actions and infos, so that an environment or
            policy which reuses such an object changes no record. Without, the record refers to the
            objects themselves.
        inline: Call the policy on the event loop, whatever it is.
        timeouts: Limits on the time of each call and of the whole. What is blocked in a thread is
            left to run out there.

    Raises:
        TypeError: An argument has the wrong type, or the environment or the policy returned
            something of the wrong type.
        ValueError: `max_steps` is negative, or a reward was NaN or infinite.
        BaseException: What the environment or the policy raises. `Trajectory.from_exception` gives
            the steps before it.
    """
    if not isinstance(cast("object", environment), AsyncEnv):
        msg = f"arollout needs an AsyncEnv, got {environment!r}; adapt it with as_async()"
        raise TypeError(msg)
    recorder = Recorder[ObservationT, ActionT](
        environment, seed=seed, max_steps=max_steps, metadata=metadata, snapshots=snapshots
    )
    caller = AsyncCaller(policy, inline=inline)
    if timeouts is None:
        return await arun_episode(environment, caller, recorder, options)
    with anyio.CancelScope() as scope:  # which lets nothing out but what the timer makes of it
        timer = Timer(timeouts, scope)
        return await arun_episode(environment, caller, recorder, options, timer)
    raise AssertionError  # pragma: no cover


def run_episode(
    environment: gym.Env[ObservationT, ActionT],
    caller: Caller[ObservationT, ActionT],
    recorder: Recorder[ObservationT, ActionT],
    options: dict[str, Any] | None,
) -> Trajectory[ObservationT, ActionT]:
    """Run one episode into a recorder, and leave the record on any exception."""
    policy, step, record = caller.bind(recorder), environment.step, recorder.start()
    try:
        observation = record(environment.reset(seed=recorder.seed, options=snapshot(options)))
        while not recorder.ended:
            action = record(policy(observation))
            observation = record(step(action))
        return recorder.trajectory()
    except EpisodeTruncated as reason:
        return recorder.truncate(reason)
    except BaseException as error:
        recorder.leave(error)
        raise


async def arun_episode(
    environment: AsyncEnv[ObservationT, ActionT],
    caller: AsyncCaller[ObservationT, ActionT],
    recorder: Recorder[ObservationT, ActionT],
    options: dict[str, Any] | None,
    timer: Timer | None = None,
) -> Trajectory[ObservationT, ActionT]:
    """Run one episode into a recorder, and leave the record on any exception."""
    policy: Callable[..., Any] = caller.bind(recorder)
    reset, step, record = environment.reset, environment.step, recorder.start()
    if timer is not None:
        reset = timer.timed("reset", reset)
        policy = timer.timed("policy", policy)
        step = timer.timed("step", step)
    try:
        with RefuseStrayCancellation(environment):
            observation = record(await reset(seed=recorder.seed, options=snapshot(options)))
            while not recorder.ended:
                output = policy(observation)
                if is_awaitable(output):
                    output = await output
                action = record(output)
                observation = record(await step(action))
        return recorder.trajectory()
    except EpisodeTruncated as reason:
        return recorder.truncate(reason)
    except BaseException as error:
        recorder.leave(error)
        raise
