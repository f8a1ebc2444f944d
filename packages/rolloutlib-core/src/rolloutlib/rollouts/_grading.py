"""Grading a whole group, for rewards that compare its episodes."""

from __future__ import annotations

import dataclasses
import functools
import time
from collections.abc import Callable, Coroutine, Iterable, Mapping
from typing import Any, cast

import anyio

from rolloutlib._calls import RefuseStrayCancellation, async_form, call, is_awaitable
from rolloutlib.rollouts._policies import ActionT, ObservationT
from rolloutlib.rollouts._run import Group, Run
from rolloutlib.rollouts._timeouts import Timer
from rolloutlib.rollouts._trajectories import ItemT, RolloutError
from rolloutlib.scores import Score


def grade(
    run: Run[ItemT, ObservationT, ActionT], group: Group[ItemT, ObservationT, ActionT]
) -> Group[ItemT, ObservationT, ActionT]:
    """Return the group with the scores that the run's grader gives it.

    Returns:
        The group as it is if there is no grader or no trajectory; if grading failed, all its
        episodes as failed, since their own scores are not what was asked for.

    Raises:
        BaseException: What the grader raises, if failures are to be raised, or an interrupt.
    """
    if run.grade_group is None or not group.trajectories:
        return group
    attempt = 0
    while True:
        try:
            return _graded(run, group, run.grade_group(group))
        except Exception as error:
            delay = run.retries.take(error, attempt)
            if delay is None:
                return _failed(run, group, error)
        time.sleep(delay)
        attempt += 1


async def agrade(
    run: Run[ItemT, ObservationT, ActionT], group: Group[ItemT, ObservationT, ActionT]
) -> Group[ItemT, ObservationT, ActionT]:
    """The asynchronous twin of `grade`."""
    if run.grade_group is None or not group.trajectories:
        return group
    attempt = 0
    while True:
        try:
            return _graded(run, group, await _ask(run, run.grade_group, group))
        except Exception as error:
            delay = run.retries.take(error, attempt)
            if delay is None:
                return _failed(run, group, error)
        await anyio.sleep(delay)
        attempt += 1


async def _ask(
    run: Run[Any, Any, Any], grader: Callable[[Any], Any], group: Group[Any, Any, Any]
) -> object:
    """Call the grader, or its method `ascore` if it has one, within its time."""
    ask = functools.partial(call, async_form(grader), inline=run.inline)
    with RefuseStrayCancellation(grader), anyio.CancelScope() as scope:
        if run.timeouts is not None:
            limits = dataclasses.replace(run.timeouts, episode=None)
            ask = Timer(limits, scope).timed("grade", ask)
        return await ask(group)
    raise AssertionError  # pragma: no cover


def _graded(
    run: Run[ItemT, ObservationT, ActionT],
    group: Group[ItemT, ObservationT, ActionT],
    values: object,
) -> Group[ItemT, ObservationT, ActionT]:
    scores = _read_scores(values, f"grade_group, item {group.item_id!r}")
    if len(scores) != len(group.trajectories):
        msg = (
            f"grade_group must return one score a trajectory: it gave {len(scores)} "
            f"for the {len(group.trajectories)} of item {group.item_id!r}"
        )
        raise ValueError(msg)
    run.grade_failures.reset()
    return dataclasses.replace(group, scores=scores)


def _read_scores(values: object, place: str) -> list[Score]:
    if is_awaitable(values):
        if isinstance(values, Coroutine):
            values.close()
        msg = f"{place}: it returned an awaitable: use arollout_group or acollect"
        raise TypeError(msg)
    # The keys of a mapping are no scores, and the elements of a set are in no order.
    if isinstance(values, (str, bytes, Mapping, set, frozenset)) or not isinstance(
        values, Iterable
    ):
        msg = f"{place}: it must return one score a trajectory, in their order, got {values!r}"
        raise TypeError(msg)
    scores: list[Score] = []
    for value in cast("Iterable[Any]", values):
        try:
            scores.append(Score.from_value(value))
        except (TypeError, ValueError) as error:
            msg = f"{place}, trajectory {len(scores)}: {error}"
            raise type(error)(msg) from error
    return scores


def _failed(
    run: Run[ItemT, ObservationT, ActionT],
    group: Group[ItemT, ObservationT, ActionT],
    error: Exception,
) -> Group[ItemT, ObservationT, ActionT]:
    if run.on_error == "raise":
        raise error
    record = RolloutError.from_exception(error, phase="grade")
    failures = [
        dataclasses.replace(
            record,
            index=trajectory.member,
            attempt=trajectory.attempt,
            seed=trajectory.seed,
            trajectory=trajectory,
        )
        for trajectory in group.trajectories
    ]
    if run.reporter is not None:
        for failure in failures:
            run.reporter.report(
                "failed",
                item_id=group.item_id,
                index=failure.index or 0,
                attempt=failure.attempt,
                seed=failure.seed or 0,
                error=failure,
            )
    run.grade_failures.add(error, count=len(failures))
    errors = sorted([*group.errors, *failures], key=lambda error: error.index or 0)
    return dataclasses.replace(group, trajectories=(), scores=(), errors=errors)
