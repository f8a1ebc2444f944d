"""The synchronous engine: one episode after another, in the caller's thread."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterator
from typing import Any

from rolloutlib._exceptions import add_end_note, attach
from rolloutlib.rollouts._batching import BatchedPolicy
from rolloutlib.rollouts._caller import Caller
from rolloutlib.rollouts._episodes import run_member
from rolloutlib.rollouts._grading import grade
from rolloutlib.rollouts._lockstep import run_members
from rolloutlib.rollouts._member import Outcomes
from rolloutlib.rollouts._policies import ActionT, ObservationT
from rolloutlib.rollouts._run import Group, Run
from rolloutlib.rollouts._sources import close
from rolloutlib.rollouts._stores import RunStore
from rolloutlib.rollouts._trajectories import ItemT


def run_group(
    run: Run[ItemT, ObservationT, ActionT],
    caller: Caller[ObservationT, ActionT],
    outcomes: Outcomes[ItemT, ObservationT, ActionT],
) -> Group[ItemT, ObservationT, ActionT]:
    """Play all members of a group, and finish the group.

    Raises:
        BaseException: The first failure, if failures are to be raised, or what interrupted the
            group; `TrajectoryGroup.from_exception` gives the work that was finished.
    """
    try:
        if isinstance(caller.policy, BatchedPolicy):
            run_members(run, caller.policy, outcomes)
        else:
            for index in range(run.num_rollouts):
                attempt = 0
                while (
                    delay := run_member(run, caller, outcomes.member(index, attempt))
                ) is not None:
                    time.sleep(delay)
                    attempt += 1
        return grade(run, outcomes.group())
    except BaseException as error:
        attach(error, group=outcomes.group())
        raise


def run_groups(
    run: Run[ItemT, ObservationT, ActionT],
    caller: Caller[ObservationT, ActionT],
    items: Iterator[ItemT],
    begin: Callable[[ItemT, int], Outcomes[ItemT, ObservationT, ActionT]],
) -> Generator[Group[ItemT, ObservationT, ActionT]]:
    """Play the groups of all items, one when each is asked for; a generator of items is closed.

    Raises:
        BaseException: As `run_group`, or what reading an item raises;
            `TrajectoryGroup.all_from_exception` gives the group that was not finished, unless it is empty.
    """
    store = run.store
    num_begun = 0
    playing: Outcomes[ItemT, ObservationT, ActionT] | None = None
    try:
        for position, item in enumerate(items):
            num_begun += 1
            playing = begin(item, position)
            group = None
            if store is not None:
                group = store.find(position, playing.item, playing.item_id, playing.seed)
            if group is None:
                group = run_group(run, caller, playing)
                if store is not None:
                    store.keep(position, group)
            playing = None
            yield group
        if store is not None:
            store.finish(num_begun)
    except BaseException as error:
        partial = None if playing is None else playing.group()
        attach(error, groups=(partial,) if partial and partial.num_requested else ())
        try:
            _end(items, store)
        except Exception as further:  # whatever items and stores raise
            if isinstance(error, GeneratorExit):  # the groups were left early
                raise
            add_end_note(error, further)
        raise
    _end(items, store)


def _end(items: Iterator[Any], store: RunStore | None) -> None:
    """Close a generator of items, and the store."""
    try:
        close(items)
    finally:
        if store is not None:
            store.close()
