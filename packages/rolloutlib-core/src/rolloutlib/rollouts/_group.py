"""Groups of episodes of one item, in fresh environments that are always closed."""

from __future__ import annotations

import contextlib
import inspect
import math
from collections.abc import Awaitable, Callable, Generator, Mapping
from typing import Any, TypeAlias, cast

import anyio
import gymnasium as gym

from rolloutlib._calls import RefuseStrayCancellation, read_concurrency, run_workers
from rolloutlib._exceptions import add_note, attach, read_error
from rolloutlib.envs import AsyncEnv, as_async
from rolloutlib.rollouts._member import Member, OnError, Outcomes
from rolloutlib.rollouts._policies import ActionT, AsyncPolicy, ObservationT, Policy
from rolloutlib.rollouts._rollout import arun_episode, run_episode
from rolloutlib.rollouts._trajectories import ItemT, TrajectoryGroup

CLOSE_SECONDS = 30.0
"""How long the closing of an asynchronous environment may take."""


AnyEnv: TypeAlias = AsyncEnv[ObservationT, ActionT] | gym.Env[ObservationT, ActionT]
AsyncFactory: TypeAlias = Callable[
    [ItemT], AnyEnv[ObservationT, ActionT] | Awaitable[AnyEnv[ObservationT, ActionT]]
]


def rollout_group(
    item: ItemT,
    make_env: Callable[[ItemT], gym.Env[ObservationT, ActionT]],
    policy: Policy[ObservationT, ActionT],
    *,
    num_rollouts: int = 1,
    item_id: str | None = None,
    max_steps: int | None = None,
    metadata: Mapping[str, Any] | None = None,
    seed: int | None = None,
    options: dict[str, Any] | None = None,
    on_error: OnError = "record",
    snapshots: bool = True,
) -> TrajectoryGroup[ItemT, ObservationT, ActionT]:
    """Run several episodes of one item, one after another.

    Each has an environment of its own, which is closed whatever happens. If closing fails after an
    episode that ended well, the trajectory is kept, and its metadata tells of it as "close_error".

    Args:
        item: What the episodes are about.
        make_env: Makes an environment for a copy of the item.
        policy: Chooses an action for each observation.
        num_rollouts: How many episodes.
        item_id: The name of the item; by default one made from its contents and from the name of
            `make_env`, the same for equal items in every process.
        max_steps: After that many steps an episode is cut short.
        metadata: Goes into the group's record, a copy of it.
        seed: Fixes the seed of each member, `derive_seed(seed, item_id, member)`, which goes to its
            `reset` and into its record. By default one is drawn; the group's record tells it.
        options: Go to each `reset`, a copy of them.
        on_error: What to do when an episode fails: keep a `RolloutError` in the group and go on
            ("record"), or raise ("raise").
        snapshots: Give each member a copy of the item, and record copies of observations, actions
            and infos. Without, the objects themselves are used.

    Raises:
        TypeError: An argument has the wrong type.
        ValueError: An argument has no usable value.
        BaseException: With `on_error="raise"`, what failed; `TrajectoryGroup.from_exception` gives
            the work that was finished, also for a `KeyboardInterrupt`.
    """
    outcomes = Outcomes[ItemT, ObservationT, ActionT](
        item,
        make_env,
        num_rollouts=num_rollouts,
        item_id=item_id,
        max_steps=max_steps,
        metadata=metadata,
        seed=seed,
        on_error=on_error,
        snapshots=snapshots,
    )
    try:
        for index in range(num_rollouts):
            _run_member(outcomes.member(index), make_env, policy, options)
        return outcomes.group()
    except BaseException as error:
        attach(error, group=outcomes.group())
        raise


async def arollout_group(
    item: ItemT,
    make_env: AsyncFactory[ItemT, ObservationT, ActionT],
    policy: AsyncPolicy[ObservationT, ActionT],
    *,
    num_rollouts: int = 1,
    item_id: str | None = None,
    max_steps: int | None = None,
    concurrency: int | anyio.CapacityLimiter = 1,
    metadata: Mapping[str, Any] | None = None,
    seed: int | None = None,
    options: dict[str, Any] | None = None,
    on_error: OnError = "record",
    snapshots: bool = True,
    inline: bool = False,
) -> TrajectoryGroup[ItemT, ObservationT, ActionT]:
    """Run several episodes of one item at the same time: `rollout_group`'s asynchronous twin.

    When it returns or raises, none of its tasks is alive and every environment has been closed; an
    environment that is blocked in a call at that moment is closed as soon as the call returns.

    Args:
        item: What the episodes are about.
        make_env: Makes an environment for a copy of the item, at once or when awaited; it is called
            on the event loop. A `gymnasium.Env` is adapted with `as_async`.
        policy: Chooses an action for each observation. A policy that is not a coroutine function may
            block, so it is called on a worker thread, by several episodes at once if `concurrency`
            lets them; an awaitable that it returns is awaited on the event loop.
        num_rollouts: How many episodes.
        item_id: The name of the item; by default one made from its contents and from the name of
            `make_env`, the same for equal items in every process.
        max_steps: After that many steps an episode is cut short.
        concurrency: How many episodes may be open at once. A `CapacityLimiter` may be shared with
            other groups, and bounds them all together.
        metadata: Goes into the group's record, a copy of it.
        seed: Fixes the seed of each member, `derive_seed(seed, item_id, member)`, which goes to its
            `reset` and into its record. By default one is drawn; the group's record tells it.
        options: Go to each `reset`, a copy of them.
        on_error: What to do when an episode fails: keep a `RolloutError` in the group and go on
            ("record"), or cancel the others and raise ("raise").
        snapshots: Give each member a copy of the item, and record copies of observations, actions
            and infos. Without, the objects themselves are used.
        inline: Call a synchronous policy, and environments that `as_async` adapts, on the event
            loop, for those that never block.

    Raises:
        TypeError: An argument has the wrong type.
        ValueError: An argument has no usable value.
        BaseException: With `on_error="raise"`, what failed first; `TrajectoryGroup.from_exception`
            gives the work that was finished.
    """
    outcomes = Outcomes[ItemT, ObservationT, ActionT](
        item,
        make_env,
        num_rollouts=num_rollouts,
        item_id=item_id,
        max_steps=max_steps,
        metadata=metadata,
        seed=seed,
        on_error=on_error,
        snapshots=snapshots,
    )
    limiter, workers = read_concurrency(concurrency, num_rollouts)
    indices = iter(range(num_rollouts))
    failures: list[BaseException] = []

    async def work(scope: anyio.CancelScope) -> None:
        for index in indices:
            try:
                async with limiter:
                    member = outcomes.member(index)
                    await _arun_member(member, make_env, policy, options, inline=inline)
            except anyio.get_cancelled_exc_class():
                raise
            except BaseException as error:  # comes out below, as it is and not in an ExceptionGroup
                failures.append(error)
                scope.cancel()
                return

    try:
        await run_workers(work, workers)
        if failures:
            raise failures[0]
        return outcomes.group()
    except BaseException as error:
        attach(error, group=outcomes.group())
        raise


def _run_member(
    member: Member[ItemT, ObservationT, ActionT],
    make_env: Callable[[ItemT], gym.Env[ObservationT, ActionT]],
    policy: Policy[ObservationT, ActionT],
    options: dict[str, Any] | None,
) -> None:
    try:
        environment = make_env(member.item)
        if not isinstance(cast("object", environment), gym.Env):
            msg = f"make_env must return a gymnasium.Env, got {environment!r}"
            raise TypeError(msg)
        try:
            recorder = member.record(environment)
            member.keep(run_episode(environment, policy, recorder, options))
        except BaseException as error:
            with _noting(error, environment):
                environment.close()
            raise
    except BaseException as error:
        member.fail(error)
        return
    try:
        environment.close()
    except Exception as error:  # whatever an environment raises
        member.note_close_error(error)


async def _arun_member(
    member: Member[ItemT, ObservationT, ActionT],
    make_env: AsyncFactory[ItemT, ObservationT, ActionT],
    policy: AsyncPolicy[ObservationT, ActionT],
    options: dict[str, Any] | None,
    *,
    inline: bool,
) -> None:
    # Around all that happens, since an environment may open scopes and task groups of its own in
    # make_env or reset, and end them in close: scopes have to be nested.
    with anyio.CancelScope() as scope:
        try:
            with RefuseStrayCancellation(member):
                made = make_env(member.item)
                environment = as_async(
                    await made if inspect.isawaitable(made) else made, inline=inline
                )
                try:
                    recorder = member.record(environment)
                    member.keep(
                        await arun_episode(environment, policy, recorder, options, inline=inline)
                    )
                except BaseException as error:
                    with _noting(error, environment):
                        await _close(environment, scope)
                    raise
        except anyio.get_cancelled_exc_class():
            raise
        except BaseException as error:
            member.fail(error)
            return
        try:
            await _close(environment, scope)
        except Exception as error:  # whatever an environment raises
            member.note_close_error(error)


async def _close(environment: AsyncEnv[Any, Any], scope: anyio.CancelScope) -> None:
    """Close an environment inside a scope, also if the scope is in one that is being cancelled."""
    scope.shield, scope.deadline = True, anyio.current_time() + CLOSE_SECONDS
    try:
        with RefuseStrayCancellation(environment):
            await environment.close()
    except anyio.get_cancelled_exc_class() as error:
        if not scope.cancel_called:
            raise
        msg = f"closing {environment} took longer than {CLOSE_SECONDS} s"
        raise TimeoutError(msg) from error
    finally:
        scope.shield, scope.deadline = False, math.inf


@contextlib.contextmanager
def _noting(error: BaseException, environment: object) -> Generator[None]:
    """Turn a failure to close into a note on the error that came before it."""
    try:
        yield
    except Exception as close_error:  # whatever an environment raises
        add_note(error, f"closing {environment} failed too: {read_error(close_error, repr)}")
