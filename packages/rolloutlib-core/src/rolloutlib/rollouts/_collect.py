"""Groups of all items of a dataset, one after another or hundreds of episodes at a time."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping
from typing import Any, get_args

import anyio
import gymnasium as gym

from rolloutlib._calls import check_count
from rolloutlib.rollouts._caller import AsyncCaller, Caller
from rolloutlib.rollouts._collector import AsyncCollector, drain
from rolloutlib.rollouts._engine import Engine, Order
from rolloutlib.rollouts._events import OnEvent
from rolloutlib.rollouts._identity import derive_seed
from rolloutlib.rollouts._lockstep import refuse_lock_step
from rolloutlib.rollouts._member import Outcomes
from rolloutlib.rollouts._policies import ActionT, AsyncPolicy, ObservationT, Policy
from rolloutlib.rollouts._retries import Retry
from rolloutlib.rollouts._run import (
    AsyncFactory,
    AsyncGroupGrader,
    GroupGrader,
    OnError,
    Run,
)
from rolloutlib.rollouts._sequence import run_groups
from rolloutlib.rollouts._sources import Items, check_items, open_source
from rolloutlib.rollouts._stores import Store, run_settings
from rolloutlib.rollouts._timeouts import Timeouts
from rolloutlib.rollouts._trajectories import ItemT, TrajectoryGroup


def collect(
    items: Iterable[ItemT],
    make_env: Callable[[ItemT], gym.Env[ObservationT, ActionT]],
    policy: Policy[ObservationT, ActionT],
    *,
    num_rollouts: int = 1,
    concurrency: int = 1,
    order: Order = "completion",
    buffer: int | None = None,
    get_item_id: Callable[[ItemT], str] | None = None,
    max_steps: int | None = None,
    metadata: Mapping[str, Any] | None = None,
    seed: int | None = None,
    get_seed: Callable[[ItemT], int] | None = None,
    options: dict[str, Any] | None = None,
    on_error: OnError = "record",
    max_failures: int | None = 100,
    retry: Retry | None = None,
    timeouts: Timeouts | None = None,
    grade_group: GroupGrader[ItemT, ObservationT, ActionT] | None = None,
    on_event: OnEvent | None = None,
    snapshots: bool = True,
    store: Store | None = None,
) -> Generator[TrajectoryGroup[ItemT, ObservationT, ActionT]]:
    """Run several episodes of each item, and yield each item's group.

    An item is read when its group is begun, so the items may be endless. The generator may be closed
    early; nothing of it is alive then.

    Args:
        items: A dataset, or any other iterable. A generator is closed at the end.
        make_env: Makes an environment for a copy of an item; an `RLDataset` has one of that name.
        policy: Chooses an action for each observation. A `BatchedPolicy` plays the episodes of a
            group in lock step.
        num_rollouts: How many episodes of each item.
        concurrency: How many episodes may be open at once. By default one, and all is called in the
            caller's thread; with more, or with `timeouts`, `acollect` plays them on other threads.
        order: Yield groups in the order in which they are finished ("completion") or in that of the
            items ("dataset").
        buffer: No group is begun while so many finished ones wait to be taken; by default as many as
            fill `concurrency`.
        get_item_id: Names an item, for its record and for whoever watches; by default the dataset's
            own function of that name does, or else the name is made from the item's contents and from
            the name of `make_env`.
        max_steps: After that many steps an episode is cut short.
        metadata: Goes into each group's record, a copy of it.
        seed: Fixes the seed of each group, `derive_seed(seed, position)`, and with it those of its
            members. By default one is drawn.
        get_seed: Gives the seed of an item's group, where that must not depend on the position.
        options: Go to each `reset`, a copy of them.
        on_error: What to do when an episode fails: keep a `RolloutError` in its group and go on
            ("record"), or raise ("raise").
        max_failures: After so many failed episodes in a row, over all groups, the run is given up;
            None lets it go on for ever.
        retry: Which failures are followed by another attempt, in a fresh environment and with a seed
            of its own. By default none.
        timeouts: Limits on the time of calls and episodes.
        grade_group: Gives the scores of a group, one a trajectory, in place of the trajectories'
            own. If it fails, all episodes of the group have failed, in the phase "grade".
        on_event: Is told what happens, as it happens.
        snapshots: Give each member a copy of the item, and record copies of observations, actions
            and infos. Without, the objects themselves are used.
        store: Keeps each group when it is finished. Groups that it has already are yielded from it,
            and not played; its seed is the run's, if no seed is given.

    Raises:
        TypeError: An argument has the wrong type.
        ValueError: An argument has no usable value, or the store has groups of another run.
        UnstorableError: The store cannot keep an item, or what an episode is made of.
        StalledError: Too many episodes in a row failed.
        BaseException: What reading the items raises, or, with `on_error="raise"`, what failed.
            `TrajectoryGroup.all_from_exception` gives what was finished and not yielded.
    """
    check_count("concurrency", concurrency)
    _check_order(order, buffer)
    if concurrency == 1 and timeouts is None:
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
        max_failures=max_failures,
        retry=retry,
        timeouts=timeouts,
        grade_group=grade_group,
        on_event=on_event,
        snapshots=snapshots,
        store=store,
    )
    run.refuse_coroutines()
    items = check_items(items)
    begin = _beginner(run, items, get_item_id, get_seed)
    if run.store is not None:
        run.store.prepare(run_settings(run), items)
    if not isinstance(caller, AsyncCaller):
        return run_groups(run, caller, iter(items), begin)
    source = open_source(items, inline=False)
    engine: dict[str, Any] = {"concurrency": concurrency, "order": order, "buffer": buffer}
    return drain(lambda: AsyncCollector(Engine(run, caller, source, begin, **engine)))


def acollect(
    items: Items[ItemT],
    make_env: AsyncFactory[ItemT, ObservationT, ActionT],
    policy: AsyncPolicy[ObservationT, ActionT],
    *,
    num_rollouts: int = 1,
    concurrency: int | anyio.CapacityLimiter = 64,
    order: Order = "completion",
    buffer: int | None = None,
    get_item_id: Callable[[ItemT], str] | None = None,
    max_steps: int | None = None,
    metadata: Mapping[str, Any] | None = None,
    seed: int | None = None,
    get_seed: Callable[[ItemT], int] | None = None,
    options: dict[str, Any] | None = None,
    on_error: OnError = "record",
    max_failures: int | None = 100,
    retry: Retry | None = None,
    timeouts: Timeouts | None = None,
    grade_group: AsyncGroupGrader[ItemT, ObservationT, ActionT] | None = None,
    on_event: OnEvent | None = None,
    snapshots: bool = True,
    store: Store | None = None,
    inline: bool = False,
) -> AsyncCollector[ItemT, ObservationT, ActionT]:
    """Run several episodes of each item, many at the same time: `collect`'s asynchronous twin.

    The groups are taken from what it returns:

        async with acollect(dataset, make_env, policy, num_rollouts=8, concurrency=256) as groups:
            async for group in groups:
                ...

    Episodes are played between the calls too. An item is read when there is room for an episode of
    it, so the items may be endless.

    Args:
        items: A dataset, or any other iterable, asynchronous or not. One without a length may block,
            so it is read on a thread of its own. A generator is closed at the end.
        make_env: Makes an environment for a copy of an item, at once or when awaited; it is called on
            the event loop. A `gymnasium.Env` is adapted with `as_async`.
        policy: Chooses an action for each observation. A policy that is not a coroutine function may
            block, so it is called on a worker thread, by several episodes at once; an awaitable that
            it returns is awaited on the event loop.
        num_rollouts: How many episodes of each item.
        concurrency: How many episodes may be open at once, over all groups. A `CapacityLimiter` may
            be shared with other calls, and bounds them all together.
        order: Hand out groups in the order in which they are finished ("completion") or in that of
            the items ("dataset").
        buffer: No group is begun while so many finished ones wait to be taken; by default as many as
            fill `concurrency`.
        get_item_id: Names an item, for its record and for whoever watches; by default the dataset's
            own function of that name does, or else the name is made from the item's contents and from
            the name of `make_env`.
        max_steps: After that many steps an episode is cut short.
        metadata: Goes into each group's record, a copy of it.
        seed: Fixes the seed of each group, `derive_seed(seed, position)`, and with it those of its
            members. By default one is drawn.
        get_seed: Gives the seed of an item's group, where that must not depend on the position.
        options: Go to each `reset`, a copy of them.
        on_error: What to do when an episode fails: keep a `RolloutError` in its group and go on
            ("record"), or cancel the others and raise ("raise").
        max_failures: After so many failed episodes in a row, over all groups, the run is given up;
            None lets it go on for ever.
        retry: Which failures are followed by another attempt, in a fresh environment and with a seed
            of its own. By default none.
        timeouts: Limits on the time of calls and episodes. A call that blocks on a thread is left to
            run out there.
        grade_group: Gives the scores of a group, one a trajectory, in place of the trajectories'
            own, at once or when awaited; unless it is a coroutine function it is called on a worker
            thread. A grader with a method `ascore` is asked through it. If it fails, all episodes of the group have failed, in the phase "grade".
        on_event: Is told what happens, as it happens, on the event loop.
        snapshots: Give each member a copy of the item, and record copies of observations, actions
            and infos. Without, the objects themselves are used.
        store: Keeps each group when it is finished. Groups that it has already are handed out from
            it, and not played; its seed is the run's, if no seed is given.
        inline: Call a synchronous policy or grader, items, and environments that `as_async` adapts,
            on the event loop, for those that never block.

    Raises:
        TypeError: An argument has the wrong type.
        ValueError: An argument has no usable value, or the store has groups of another run.
        UnstorableError: The store cannot keep the metadata, the options or the first item.
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
        max_failures=max_failures,
        retry=retry,
        timeouts=timeouts,
        grade_group=grade_group,
        on_event=on_event,
        snapshots=snapshots,
        store=store,
        inline=inline,
    )
    _check_order(order, buffer)
    engine = Engine(
        run,
        caller,
        open_source(items, inline=inline),
        _beginner(run, items, get_item_id, get_seed),
        concurrency=concurrency,
        order=order,
        buffer=buffer,
    )
    if run.store is not None:  # last, since it may make a file
        run.store.prepare(run_settings(run), items)
    return AsyncCollector(engine)


def _beginner(
    run: Run[ItemT, ObservationT, ActionT],
    items: object,
    get_item_id: Callable[[ItemT], str] | None,
    get_seed: Callable[[ItemT], int] | None,
) -> Callable[[ItemT, int], Outcomes[ItemT, ObservationT, ActionT]]:
    """Return a function that makes the record of a group from its item and position."""
    get_item_id = get_item_id or getattr(items, "get_item_id", None)

    def begin(item: ItemT, position: int) -> Outcomes[ItemT, ObservationT, ActionT]:
        item_id = None if get_item_id is None else str(get_item_id(item))
        seed = derive_seed(run.seed, position) if get_seed is None else get_seed(item)
        return Outcomes(run, item, item_id, seed)

    return begin


def _check_order(order: Order, buffer: int | None) -> None:
    if order not in get_args(Order):
        msg = f"order must be one of {get_args(Order)}, got {order!r}"
        raise ValueError(msg)
    if buffer is not None:
        check_count("buffer", buffer)
