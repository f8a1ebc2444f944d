"""New scores for episodes that were played and kept."""

from __future__ import annotations

from collections.abc import AsyncIterable, Callable, Generator, Iterable
from typing import TypeVar

import anyio

from rolloutlib.graders._regrade_engine import RegradeEngine
from rolloutlib.graders._regrading import (
    ActionT,
    ItemT,
    Members,
    ObservationT,
    Regrading,
    check_groups,
)
from rolloutlib.rollouts import AsyncCollector, Trajectory, TrajectoryGroup
from rolloutlib.rollouts._run import OnError
from rolloutlib.rollouts._sources import Items, open_source
from rolloutlib.scores import Grader

InputT = TypeVar("InputT")
RubricT = TypeVar("RubricT")


def regrade(
    groups: Iterable[TrajectoryGroup[ItemT, ObservationT, ActionT]],
    grader: Grader[InputT, RubricT],
    *,
    make_input: Callable[[ItemT, Trajectory[ObservationT, ActionT]], InputT],
    rubric: RubricT | None = None,
    make_rubric: Callable[[ItemT], RubricT] | None = None,
    on_error: OnError = "record",
    max_failures: int | None = 100,
) -> Generator[TrajectoryGroup[ItemT, ObservationT, ActionT]]:
    """Grade episodes anew, as those that `read_groups` reads from a file, and yield their groups.

    The new scores take the place of `TrajectoryGroup.scores`, and thereby of its rewards. The
    trajectories stay as they are: their steps' rewards and infos tell what happened. Episodes that
    failed stay so, but for those that could only not be graded: they are graded again.

    A group is read when it is asked for, so that there may be more of them than fit into memory.

    Args:
        groups: The groups. A generator is closed at the end.
        grader: Called with the input and the rubric; returns a number or a `Score`. A `CachedGrader`
            asks nothing twice.
        make_input: Makes the grader's input from an item and a trajectory.
        rubric: What the grader judges by.
        make_rubric: Makes it from the item, in place of `rubric`.
        on_error: What to do when an episode cannot be graded: make a `RolloutError` of it, in the
            phase "grade" and with its trajectory ("record"), or raise ("raise").
        max_failures: After so many failures in a row the rest is given up; None lets it go on.

    Raises:
        TypeError: An argument has the wrong type, or there is not one of `rubric` and `make_rubric`.
        ValueError: An argument has no usable value.
        StalledError: Too many episodes in a row could not be graded.
        BaseException: What reading the groups raises, or, with `on_error="raise"`, what failed.
    """
    regrading = Regrading[ItemT, ObservationT, ActionT](
        grader,
        make_input=make_input,
        rubric=rubric,
        make_rubric=make_rubric,
        on_error=on_error,
        max_failures=max_failures,
    )
    check_groups(groups, Iterable)
    return _regrade(groups, regrading)


def aregrade(
    groups: Items[TrajectoryGroup[ItemT, ObservationT, ActionT]],
    grader: Grader[InputT, RubricT],
    *,
    make_input: Callable[[ItemT, Trajectory[ObservationT, ActionT]], InputT],
    rubric: RubricT | None = None,
    make_rubric: Callable[[ItemT], RubricT] | None = None,
    concurrency: int | anyio.CapacityLimiter = 64,
    on_error: OnError = "record",
    max_failures: int | None = 100,
    inline: bool = False,
) -> AsyncCollector[ItemT, ObservationT, ActionT]:
    """Grade episodes anew, many at the same time: `regrade`'s asynchronous twin.

    The groups are taken from what it returns, in the order in which they are read:

        async with aregrade(read_groups(path), grader, rubric=rubric, make_input=...) as groups:
            async for group in groups:
                ...

    Episodes are graded between the calls too, but no further ahead than `concurrency` groups.

    Args:
        groups: The groups, asynchronous or not. What has no length may block, so it is read on a
            thread of its own. A generator is closed at the end.
        grader: Called with the input and the rubric; returns a number or a `Score`, at once or when
            awaited. A method `ascore` is preferred. A synchronous grader may block, so it is called
            on a worker thread.
        make_input: Makes the grader's input from an item and a trajectory; on the event loop.
        rubric: What the grader judges by.
        make_rubric: Makes it from the item, in place of `rubric`.
        concurrency: How many episodes are graded at once, over all groups. A `CapacityLimiter` may
            be shared, and bounds all together.
        on_error: As in `regrade`; an error that is raised cancels the others.
        max_failures: As in `regrade`.
        inline: Call a synchronous grader, and the groups, on the event loop.

    Raises:
        TypeError: An argument has the wrong type, or there is not one of `rubric` and `make_rubric`.
        ValueError: An argument has no usable value.
    """
    regrading = Regrading[ItemT, ObservationT, ActionT](
        grader,
        make_input=make_input,
        rubric=rubric,
        make_rubric=make_rubric,
        on_error=on_error,
        max_failures=max_failures,
        inline=inline,
    )
    check_groups(groups, Iterable, AsyncIterable)
    return AsyncCollector(RegradeEngine(regrading, open_source(groups, inline=inline), concurrency))


def _regrade(
    groups: Iterable[TrajectoryGroup[ItemT, ObservationT, ActionT]],
    regrading: Regrading[ItemT, ObservationT, ActionT],
) -> Generator[TrajectoryGroup[ItemT, ObservationT, ActionT]]:
    try:
        for group in groups:
            members = Members(regrading, group)
            for index in range(len(members)):
                members.grade(index)
            yield members.group()
    finally:
        if isinstance(groups, Generator):
            groups.close()
