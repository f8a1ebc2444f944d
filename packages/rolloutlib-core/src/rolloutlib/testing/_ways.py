"""The functions that make runs, each called in the way that its callers would."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import anyio

from rolloutlib.rollouts import (
    TrajectoryGroup,
    acollect,
    arollout_group,
    collect,
    rollout_group,
)
from rolloutlib.testing._faults import FaultKind
from rolloutlib.testing._subject import GROUPS, ITEM_ID, Request

Group: TypeAlias = TrajectoryGroup[Any, Any, Any]


@dataclass
class Outcome:
    """What came of a run.

    Attributes:
        groups: All groups, those that travelled with an exception included.
        error: What came out of it instead of a result.
        cancelled: Whether it ended because it was cancelled.
    """

    groups: list[Group] = field(default_factory=list[Group])
    error: BaseException | None = None
    cancelled: bool = False


@dataclass(frozen=True)
class Way:
    """A way to make a run.

    Attributes:
        name: The function that is called, and how.
        kinds: The faults that are tried with it.
        grouped: Whether the run has several groups.
        play: Makes a run, as a coroutine if it needs an event loop.
        backend: The event loop it runs on, or None if it needs none.
    """

    name: str
    kinds: frozenset[FaultKind]
    grouped: bool
    play: Callable[[Request, Outcome], Coroutine[Any, Any, None] | None]
    backend: str | None = None

    def __str__(self) -> str:
        return self.name if self.backend is None else f"{self.name} under {self.backend}"


def async_ways(backend: str) -> list[Way]:
    """Return the ways to make a run on an event loop."""
    all_kinds: frozenset[FaultKind] = frozenset(
        ("exception", "interrupt", "cancellation", "early close", "hang")
    )
    return [
        Way("arollout_group", all_kinds - {"early close"}, False, _play_group, backend),
        Way("acollect", all_kinds, True, _play_collector, backend),
        Way(
            "acollect without async with",
            frozenset(("interrupt", "cancellation")),
            True,
            _play_bare_collector,
            backend,
        ),
    ]


def sync_ways(*, lock_step: bool) -> list[Way]:
    """Return the ways to make a run in synchronous code.

    Args:
        lock_step: Whether the policy plays in lock step, which it does without concurrency only.
    """
    kinds: frozenset[FaultKind] = frozenset(("exception", "interrupt"))
    ways = [
        Way("rollout_group", kinds, False, _play_sync_group),
        Way("collect", kinds, True, _play_sync_collect),
    ]
    if not lock_step:
        ways.append(Way("collect with concurrency", kinds, True, _play_concurrent_collect))
    return ways


def _play_sync_group(request: Request, outcome: Outcome) -> None:
    try:
        outcome.groups = [rollout_group(request.subject.item, item_id=ITEM_ID, **request.arguments)]
    except BaseException as error:
        outcome.error = error
        outcome.groups = _partial(error)


def _play_sync_collect(request: Request, outcome: Outcome) -> None:
    _collect(request, outcome, concurrency=1)


def _play_concurrent_collect(request: Request, outcome: Outcome) -> None:
    _collect(request, outcome, concurrency=max(2, request.subject.num_rollouts))


def _collect(request: Request, outcome: Outcome, *, concurrency: int) -> None:
    items = [request.subject.item] * GROUPS
    try:
        for group in collect(
            items, get_item_id=_item_id, concurrency=concurrency, **request.arguments
        ):
            outcome.groups.append(group)
    except BaseException as error:
        outcome.error = error
        outcome.groups += TrajectoryGroup.all_from_exception(error)


async def _play_group(request: Request, outcome: Outcome) -> None:
    subject = request.subject
    with anyio.CancelScope() as scope:
        request.probe.on_stop = scope.cancel
        try:
            group = await arollout_group(
                subject.item,
                item_id=ITEM_ID,
                concurrency=subject.num_rollouts,
                inline=subject.inline,
                **request.arguments,
            )
            outcome.groups = [group]
        except BaseException as error:
            outcome.groups = _partial(error)
            _keep(error, outcome, scope)
    outcome.cancelled = scope.cancelled_caught


async def _play_collector(request: Request, outcome: Outcome) -> None:
    collector = _collector(request)
    closing = anyio.Event()

    async def close_early() -> None:
        await closing.wait()
        await collector.aclose()

    with anyio.CancelScope() as scope:
        async with anyio.create_task_group() as tasks:
            fault = request.probe.fault
            early = fault is not None and fault.kind == "early close"
            request.probe.on_stop = closing.set if early else scope.cancel
            tasks.start_soon(close_early)
            try:
                async with collector:
                    async for group in collector:
                        outcome.groups.append(group)
                    outcome.groups += collector.unclaimed
            except BaseException as error:
                outcome.groups += TrajectoryGroup.all_from_exception(error)
                _keep(error, outcome, scope)
            tasks.cancel_scope.cancel()
    outcome.cancelled = scope.cancelled_caught


async def _play_bare_collector(request: Request, outcome: Outcome) -> None:
    with anyio.CancelScope() as scope:
        request.probe.on_stop = scope.cancel
        try:
            async for group in _collector(request):
                outcome.groups.append(group)
        except BaseException as error:
            outcome.groups += TrajectoryGroup.all_from_exception(error)
            _keep(error, outcome, scope)
    outcome.cancelled = scope.cancelled_caught


def _collector(request: Request) -> Any:
    subject = request.subject
    return acollect(
        [subject.item] * GROUPS,
        # A time-out is that of all calls that go on, so a hanging call must be the only one.
        concurrency=1 if request.hangs else subject.num_rollouts,
        get_item_id=_item_id,
        inline=subject.inline,
        **request.arguments,
    )


def _keep(error: BaseException, outcome: Outcome, scope: anyio.CancelScope) -> None:
    """Take an exception, but let the scope have a cancellation that is its own."""
    if isinstance(error, anyio.get_cancelled_exc_class()) and scope.cancel_called:
        raise error
    outcome.error = error


def _partial(error: BaseException) -> list[Group]:
    group = TrajectoryGroup.from_exception(error)
    return [] if group is None else [group]


def _item_id(item: object) -> str:
    return ITEM_ID
