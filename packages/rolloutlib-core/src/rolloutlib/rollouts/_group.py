"""Groups of episodes of one item, in fresh environments that are always closed."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import anyio
import gymnasium as gym

from rolloutlib._exceptions import attach
from rolloutlib.rollouts._caller import AsyncCaller, Caller
from rolloutlib.rollouts._engine import Engine
from rolloutlib.rollouts._events import OnEvent
from rolloutlib.rollouts._lockstep import refuse_lock_step
from rolloutlib.rollouts._member import Outcomes
from rolloutlib.rollouts._policies import ActionT, AsyncPolicy, ObservationT, Policy
from rolloutlib.rollouts._portals import start_portal, try_in_loop
from rolloutlib.rollouts._retries import Retry
from rolloutlib.rollouts._run import (
    AsyncFactory,
    AsyncGroupGrader,
    Group,
    GroupGrader,
    OnError,
    Run,
)
from rolloutlib.rollouts._sequence import run_group
from rolloutlib.rollouts._sources import InlineSource
from rolloutlib.rollouts._timeouts import Timeouts
from rolloutlib.rollouts._trajectories import ItemT, TrajectoryGroup

GroupT = TypeVar("GroupT", bound=TrajectoryGroup[Any, Any, Any])

_logger = logging.getLogger("rolloutlib")


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
    retry: Retry | None = None,
    timeouts: Timeouts | None = None,
    grade_group: GroupGrader[ItemT, ObservationT, ActionT] | None = None,
    on_event: OnEvent | None = None,
    snapshots: bool = True,
) -> TrajectoryGroup[ItemT, ObservationT, ActionT]:
    """Run several episodes of one item, one after another.

    Each has an environment of its own, which is closed whatever happens. If closing fails after an
    episode that ended well, the trajectory is kept, and its metadata tells of it as "close_error".

    Args:
        item: What the episodes are about.
        make_env: Makes an environment for a copy of the item.
        policy: Chooses an action for each observation. A `BatchedPolicy` plays the episodes in lock
            step instead of one after another.
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
        retry: Which failures are followed by another attempt, in a fresh environment and with a seed
            of its own, `derive_seed(seed, item_id, member, attempt)`. By default none.
        timeouts: Limits on the time of calls and episodes. With them, environments and the policy run
            on other threads, since only there a call that blocks can be left.
        grade_group: Gives the scores of the group, one a trajectory, in place of the trajectories'
            own. If it fails, all episodes of the group have failed, in the phase "grade".
        on_event: Is told what happens, as it happens.
        snapshots: Give each member a copy of the item, and record copies of observations, actions
            and infos. Without, the objects themselves are used.

    Raises:
        TypeError: An argument has the wrong type.
        ValueError: An argument has no usable value.
        BaseException: With `on_error="raise"`, what failed; `TrajectoryGroup.from_exception` gives
            the work that was finished, also for a `KeyboardInterrupt`.
    """
    if timeouts is None:
        caller = Caller(policy)
    else:
        refuse_lock_step(policy)
        caller = AsyncCaller(policy, inline=False)
    run = Run[ItemT, ObservationT, ActionT](
        make_env,
        caller,
        num_rollouts=num_rollouts,
        max_steps=max_steps,
        metadata=metadata,
        seed=seed,
        options=options,
        on_error=on_error,
        retry=retry,
        timeouts=timeouts,
        grade_group=grade_group,
        on_event=on_event,
        snapshots=snapshots,
    )
    run.refuse_coroutines()
    outcomes = Outcomes(run, item, item_id, run.seed)
    if not isinstance(caller, AsyncCaller):
        return _warned(run_group(run, caller, outcomes))
    try:
        with start_portal() as portal:
            groups, failure = try_in_loop(portal, _arun_group, run, caller, outcomes, 1)
    except BaseException as error:  # Ctrl-C, say, which comes out here and not on the portal's loop
        attach(error, group=outcomes.group())
        raise
    if failure is not None:
        raise failure
    return _warned(groups[0])


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
    retry: Retry | None = None,
    timeouts: Timeouts | None = None,
    grade_group: AsyncGroupGrader[ItemT, ObservationT, ActionT] | None = None,
    on_event: OnEvent | None = None,
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
        retry: Which failures are followed by another attempt, in a fresh environment and with a seed
            of its own, `derive_seed(seed, item_id, member, attempt)`. By default none.
        timeouts: Limits on the time of calls and episodes. A call that blocks on a thread is left to
            run out there.
        grade_group: Gives the scores of the group, one a trajectory, in place of the trajectories'
            own, at once or when awaited; unless it is a coroutine function it is called on a worker
            thread. A grader with a method `ascore` is asked through it. If it fails, all episodes of the group have failed, in the phase "grade".
        on_event: Is told what happens, as it happens, on the event loop.
        snapshots: Give each member a copy of the item, and record copies of observations, actions
            and infos. Without, the objects themselves are used.
        inline: Call a synchronous policy or grader, and environments that `as_async` adapts, on the
            event loop, for those that never block.

    Raises:
        TypeError: An argument has the wrong type.
        ValueError: An argument has no usable value.
        BaseException: With `on_error="raise"`, what failed first; `TrajectoryGroup.from_exception`
            gives the work that was finished.
    """
    refuse_lock_step(policy)
    caller = AsyncCaller(policy, inline=inline)
    run = Run[ItemT, ObservationT, ActionT](
        make_env,
        caller,
        num_rollouts=num_rollouts,
        max_steps=max_steps,
        metadata=metadata,
        seed=seed,
        options=options,
        on_error=on_error,
        retry=retry,
        timeouts=timeouts,
        grade_group=grade_group,
        on_event=on_event,
        snapshots=snapshots,
        inline=inline,
    )
    outcomes = Outcomes(run, item, item_id, run.seed)
    return _warned(await _arun_group(run, caller, outcomes, concurrency))


async def _arun_group(
    run: Run[ItemT, ObservationT, ActionT],
    caller: AsyncCaller[ObservationT, ActionT],
    outcomes: Outcomes[ItemT, ObservationT, ActionT],
    concurrency: int | anyio.CapacityLimiter,
) -> Group[ItemT, ObservationT, ActionT]:
    # The group is taken at the end, so the engine must not wait for that to look for another item.
    engine = Engine(
        run,
        caller,
        InlineSource[Any]([None]),
        lambda _item, _position: outcomes,
        concurrency=concurrency,
        buffer=2,
    )
    try:
        await engine.run()
        group = await engine.take()
    except BaseException as error:
        attach(error, group=outcomes.group())
        raise
    assert group is not None  # noqa: S101 - the run has ended, and nothing failed
    return group


def _warned(group: GroupT) -> GroupT:
    """Log a warning if nothing came of a group, which its caller may not look at closely."""
    if group.errors and not group.trajectories:
        error = group.errors[0]
        _logger.warning(
            "no rollout of item %r ended: %d failed, the first in %s with %s: %s",
            group.item_id,
            len(group.errors),
            error.phase,
            error.error_type,
            error.error_message,
        )
    return group
