"""One run, on a thread of its own, and what it left behind."""

from __future__ import annotations

import contextlib
import inspect
import threading
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from typing import Any

import anyio
from anyio.lowlevel import checkpoint

from rolloutlib.testing._faults import Fault, Place
from rolloutlib.testing._leaks import running_tasks, wait_for_threads
from rolloutlib.testing._probe import Probe
from rolloutlib.testing._subject import Request, Subject, episodes, make_request
from rolloutlib.testing._ways import Outcome, Way


@dataclass
class Run:
    """A run that is over.

    Attributes:
        request: What was asked for.
        outcome: What came of it.
        tasks: The names of the tasks that were left.
        threads: The names of the threads that were left.
        failure: What went wrong outside the function that makes runs.
        endless: Whether it did not come to an end.
    """

    request: Request
    outcome: Outcome = field(default_factory=Outcome)
    tasks: list[str] = field(default_factory=list[str])
    threads: list[str] = field(default_factory=list[str])
    failure: BaseException | None = None
    endless: bool = False


def play(
    way: Way,
    subject: Subject,
    fault: Fault | None,
    *,
    trigger: Place | None = None,
    patience: float,
    turns: bool = False,
) -> Run:
    """Make a run, and wait until all that it started has ended.

    Args:
        way: How to make it.
        subject: What to run.
        fault: What is to happen in it.
        trigger: A call that fails, to be tried again, so that the run has a retry policy.
        patience: How many seconds to wait for what should have ended.
        turns: Whether to count the turns of the event loop.
    """
    probe = Probe(fault, episodes(subject, grouped=way.grouped), trigger)
    request = make_request(
        subject,
        probe,
        grouped=way.grouped,
        retried=trigger is not None,
        lock_step=way.backend is None,
    )
    run = Run(request)
    before = set(threading.enumerate())

    def work() -> None:
        try:
            if way.backend is None:
                way.play(request, run.outcome)
                probe.leave()
                for environment in probe.lost:
                    environment.close()
            else:
                probe.clock.run(lambda: _run(way, run, turns), way.backend)
        except BaseException as error:  # reported by whoever wanted the run
            run.failure = error

    thread = threading.Thread(target=work, name="rolloutlib check_faults", daemon=True)
    thread.start()
    thread.join(patience)
    run.endless = thread.is_alive()
    probe.leave()
    if not run.endless:
        run.threads = wait_for_threads(before, patience, lambda: probe.num_running == 0)
    return run


async def _run(way: Way, run: Run, turns: bool) -> None:
    probe = run.request.probe
    probe.enter_loop()
    async with anyio.create_task_group() as tasks:
        if turns:
            tasks.start_soon(_count_turns, probe)
            await checkpoint()
        before = running_tasks()
        async with _entered(run.request.subject.policy):
            played: Any = way.play(run.request, run.outcome)
            await played
            probe.leave()
        run.tasks = [name for key, name in running_tasks().items() if key not in before]
        for environment in probe.lost:
            closing = environment.close()
            if inspect.isawaitable(closing):
                await closing
        tasks.cancel_scope.cancel()


async def _count_turns(probe: Probe) -> None:
    while True:
        probe.turn()
        await checkpoint()


@contextlib.asynccontextmanager
async def _entered(policy: Any) -> AsyncGenerator[None]:
    """Enter a policy that is an asynchronous context manager, as one that gathers batches is."""
    if hasattr(policy, "__aenter__"):
        async with policy:
            yield
    else:
        yield
