"""The check that users call."""

from __future__ import annotations

import contextlib
import importlib.util
import logging
from collections import Counter
from collections.abc import Callable, Collection, Generator, Mapping, Sequence
from dataclasses import dataclass
from typing import get_args

import anyio

from rolloutlib._calls import check_count
from rolloutlib.rollouts import AsyncPolicy, BatchedPolicy, RolloutEvent
from rolloutlib.rollouts._policies import ActionT, ObservationT
from rolloutlib.rollouts._run import AsyncFactory, AsyncGroupGrader
from rolloutlib.rollouts._trajectories import ItemT
from rolloutlib.testing._faults import Fault, FaultKind, Place
from rolloutlib.testing._plan import list_faults
from rolloutlib.testing._runs import Run, play
from rolloutlib.testing._subject import Subject
from rolloutlib.testing._verdict import judge
from rolloutlib.testing._ways import Way, async_ways, sync_ways

KINDS: tuple[FaultKind, ...] = get_args(FaultKind)


@dataclass(frozen=True, slots=True)
class FaultReport:
    """What a check has tried.

    Attributes:
        num_places: How many calls of the user's functions it made fail, each way of running counted.
        num_runs: How many runs it made.
        faults: How many of them had a fault, by its kind.
    """

    num_places: int
    num_runs: int
    faults: Mapping[FaultKind, int]


def check_faults(
    item: ItemT,
    make_env: AsyncFactory[ItemT, ObservationT, ActionT],
    policy: AsyncPolicy[ObservationT, ActionT],
    *,
    num_rollouts: int = 2,
    max_steps: int | None = 3,
    grade_group: AsyncGroupGrader[ItemT, ObservationT, ActionT] | None = None,
    on_event: Callable[[RolloutEvent], object] | None = None,
    transient: Callable[[Exception], bool] | None = None,
    inline: bool = False,
    backends: Sequence[str] | None = None,
    kinds: Collection[FaultKind] = KINDS,
    patience: float = 60.0,
) -> FaultReport:
    """Let every call of a run fail in every way, and check what becomes of the run.

    A run is made again and again, each time with one fault:

    - "exception": a call raises, before it has done anything or after it has done its work, both with
      failures recorded and with failures raised;
    - "interrupt": a call raises `KeyboardInterrupt`;
    - "cancellation": whoever waits for the run is cancelled, before a call, after it, at each of its
      suspensions, and in each turn of the event loop;
    - "early close": the iterator over groups is closed, at the same moments;
    - "hang": a call does not return, and a time-out passes. The clock leaps there, so that nothing
      waits for it and no other call is too slow.

    Runs go through `arollout_group` and `acollect` on each event loop, with the episodes of a group at
    the same time, and, if nothing of the run is asynchronous, through `rollout_group` and `collect`.
    After each run is checked:

    - every episode has one outcome: it has ended, or it has failed by the fault, recorded in the right
      phase; if the run was interrupted or cancelled, that came out, and what had ended travels with it;
    - every environment that was opened was closed, once, and was not called after that, nor after the
      run had returned;
    - no task and no thread is alive that was not before, and no call is at work.

    Args:
        item: Goes to `make_env`.
        make_env: Makes an environment, as for `arollout_group`.
        policy: Chooses actions, as for `arollout_group`; one that is an asynchronous context manager
            is entered around each run. The same run must make the same calls each time.
        num_rollouts: How many episodes of the item each group has.
        max_steps: After that many steps an episode is cut short.
        grade_group: Grades a group, as for `arollout_group`.
        on_event: Is told what happens, as for `arollout_group`.
        transient: A function for `Retry.transient`. It is called, and made to fail, in runs in which
            an episode's first attempt fails; whatever it returns, there is a second one.
        inline: Call a synchronous policy, grader and environment on the event loop.
        backends: The event loops to run on; by default "asyncio", and "trio" if it is installed.
        kinds: Which faults to try, by default all.
        patience: After so many seconds what should have ended, a run for example, never does. It is
            waited for only if there is something wrong.

    Returns:
        What was tried.

    Raises:
        AssertionError: Something does not hold; the message names it, the fault, its place and the
            way of running. Also if the run fails without any fault.
        TypeError: An argument has the wrong type.
        ValueError: An argument has no usable value.
    """
    check_count("num_rollouts", num_rollouts)
    for kind in kinds:
        if kind not in KINDS:
            msg = f"kinds must be some of {KINDS}, got {kind!r}"
            raise ValueError(msg)
    for backend in backends or ():
        if backend not in anyio.get_all_backends():
            msg = f"backends must be some of {anyio.get_all_backends()}, got {backend!r}"
            raise ValueError(msg)
    if backends is None:
        trio = importlib.util.find_spec("trio")
        backends = ("asyncio",) if trio is None else ("asyncio", "trio")
    subject = Subject(
        item=item,
        make_env=make_env,
        policy=policy,
        num_rollouts=num_rollouts,
        max_steps=max_steps,
        grade_group=grade_group,
        on_event=on_event,
        transient=transient,
        inline=inline,
    )
    check = _Check(subject, kinds, patience)
    with _no_log():
        for backend in backends:
            for way in async_ways(backend):
                check.run_all(way)
        if check.synchronous:
            for way in sync_ways(lock_step=isinstance(policy, BatchedPolicy)):
                check.run_all(way)
    return FaultReport(check.num_places, check.num_runs, dict(check.faults))


class _Check:
    """The runs of one check, and their counts."""

    def __init__(self, subject: Subject, kinds: Collection[FaultKind], patience: float) -> None:
        self.num_places = 0
        self.num_runs = 0
        self.faults: Counter[FaultKind] = Counter()
        self.synchronous = True
        self._subject = subject
        self._kinds = kinds
        self._patience = patience

    def run_all(self, way: Way) -> None:
        """Make all runs of a way."""
        kinds = way.kinds.intersection(self._kinds)
        self._play(way, None)  # which may start threads that serve all later runs
        plain = self._play(way, None).request
        calls = plain.probe.calls
        if any(call.awaited for call in calls) or not plain.factory.synchronous:
            self.synchronous = False
        turns = 0
        if way.backend is not None and all(call.on_loop for call in calls):
            turns = self._play(way, None, turns=True).request.probe.turns
        self.num_places += len(calls)
        for fault in list_faults(calls, kinds, turns):
            self._play(way, fault, turns=fault.place is None)

        trigger = next(call.place for call in calls if call.place.function == "reset")
        known = {call.place for call in calls}
        retried = self._play(way, None, trigger=trigger).request.probe.calls
        new = [call for call in retried if call.place not in known]
        self.num_places += len(new)
        for fault in list_faults(new, kinds, 0):
            self._play(way, fault, trigger=trigger)

    def _play(
        self, way: Way, fault: Fault | None, *, trigger: Place | None = None, turns: bool = False
    ) -> Run:
        run = play(way, self._subject, fault, trigger=trigger, patience=self._patience, turns=turns)
        problems = judge(run)
        if problems:
            what = "no fault" if fault is None else str(fault)
            msg = f"{what} ({way}): {'; '.join(problems)}"
            raise AssertionError(msg) from (run.failure or run.outcome.error)
        self.num_runs += 1
        if fault is not None and run.request.probe.struck:
            self.faults[fault.kind] += 1
        return run


@contextlib.contextmanager
def _no_log() -> Generator[None]:
    """Keep the failures out of the log that are there on purpose."""
    logger = logging.getLogger("rolloutlib")
    logger.addFilter(_drop)
    try:
        yield
    finally:
        logger.removeFilter(_drop)


def _drop(record: logging.LogRecord) -> bool:
    return False
