"""What stands between a run and the user's functions: it takes notes, and lets one call fail."""

from __future__ import annotations

import contextlib
import math
import threading
from collections import Counter
from collections.abc import Awaitable, Callable, Generator, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import anyio

from rolloutlib._calls import is_awaitable
from rolloutlib.envs._threads import find_call_soon
from rolloutlib.testing._clock import LeapingClock
from rolloutlib.testing._faults import Episode, Fault, Function, InjectedError, Moment, Place
from rolloutlib.testing._suspensions import MOST_CANCELLATIONS, Suspensions

T = TypeVar("T")

_BLOCKED_SECONDS = 600.0
"""How long a thread waits for a release that something must have gone wrong to hold up."""


@dataclass
class Call:
    """A call of one of the user's functions.

    Attributes:
        place: Which one.
        on_loop: Whether it was made on the thread of the event loop.
        awaited: Whether what it returned was awaited.
        suspensions: How often it was suspended.
    """

    place: Place
    on_loop: bool
    awaited: bool = False
    suspensions: int = 0


class Probe:
    """The notes of one run, and its fault.

    Args:
        fault: What is to happen, or None.
        episodes: The episodes by their seeds.
        trigger: A call that fails before that, so that its episode is tried again.

    Attributes:
        calls: The calls, in the order in which they began.
        ended: The episodes that had ended, all but the closing, when the fault struck.
        home: The thread that runs the event loop, or the synchronous run.
        injected: The exception that is raised as the fault.
        first_failure: The exception that the trigger raises.
        lost: Environments that `make_env` made and did not hand over.
        num_running: How many calls are going on.
        on_stop: What a cancellation or an early close is, called on the event loop.
        problems: What went wrong, as far as calls show.
        returned: Whether the run is over.
        struck: Whether the fault has happened.
        turns: How many turns of the event loop there were.
    """

    def __init__(
        self, fault: Fault | None, episodes: Mapping[int, Episode], trigger: Place | None
    ) -> None:
        interrupt = fault is not None and fault.kind == "interrupt"
        self.fault = fault
        self.calls: list[Call] = []
        self.clock = LeapingClock()
        self.ended: frozenset[Episode] = frozenset()
        self.home = threading.get_ident()
        self.injected = (KeyboardInterrupt if interrupt else InjectedError)(f"injected: {fault}")
        self.first_failure = InjectedError("injected: the first attempt fails")
        self.lost: list[Any] = []
        self.num_running = 0
        self.on_stop: Callable[[], object] = lambda: None
        self.problems: list[str] = []
        self.returned = False
        self.struck = False
        self.turns = 0
        self._ending: set[Episode] = set()
        self._episodes = episodes
        self._trigger = trigger
        self._late: set[Episode | None] = set()
        self._lock = threading.Lock()
        self._numbers: Counter[tuple[Function, Episode | None]] = Counter()
        self._released = threading.Event()
        self._call_soon: Callable[..., object] | None = None
        self._others = 0  # episodes that run beside the hanging call, or, before it, all
        self._hanging = False

    def episode(self, seed: int | None) -> Episode | None:
        """Return the episode that has the seed."""
        return None if seed is None else self._episodes.get(seed)

    def enter_loop(self) -> None:
        """Take note of the present event loop."""
        self.home = threading.get_ident()
        self._call_soon = find_call_soon()

    def leave(self) -> None:
        """Take note that the run is over, and release what is blocked."""
        self.returned = True
        self._released.set()

    def turn(self) -> None:
        """Take note of a turn of the event loop."""
        fault = self.fault
        if fault is not None and fault.place is None and fault.moment == self.turns:
            self._mark()
            self.on_stop()
        self.turns += 1

    def count_running(self, count: int) -> None:
        """Take note of how many episodes are going on; called on the event loop."""
        self._others = count
        self._leap_if_alone()

    def begin(self, function: Function, episode: Episode | None) -> Call:
        """Take note of a call that begins."""
        thread = threading.get_ident()
        with self._lock:
            number = self._numbers[function, episode]
            self._numbers[function, episode] += 1
            if function == "make_env":
                self.home = thread
            call = Call(Place(function, number, episode), thread == self.home)
            self.calls.append(call)
            if function == "close" and episode is not None:
                self._ending.add(episode)
            late = self.returned and not self._may_be_late(call)
        if late:
            self.problems.append(f"{call.place} was called after the run had returned")
        return call

    def call(self, call: Call, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Make a call; what is awaitable comes back as an awaitable."""
        with self._during():
            self._strike(call, "before")
            result = function(*args, **kwargs)
            if not is_awaitable(result):
                with self._losing(call, result):
                    self._strike(call, "after")
                return result
        return self._await(call, result)

    async def acall(
        self,
        call: Call,
        function: Callable[..., Awaitable[Any]],
        *args: Any,
        **kwargs: Any,
    ) -> Any:
        """Make a call of a coroutine function."""
        call.awaited = True
        with self._during():
            await self._astrike(call, "before")
        return await self._await(call, function(*args, **kwargs))

    async def _await(self, call: Call, awaitable: Awaitable[T]) -> T:
        call.awaited = True
        at: list[int] = []  # where a cancellation is nobody's but ours

        def on_suspend(number: int) -> None:
            call.suspensions = number + 1
            if self._is_due(call, number):
                # A scope of the function's own may be about to end in a cancellation, or shield it.
                before = anyio.current_effective_deadline()
                self._stop()
                if before > anyio.current_effective_deadline() == -math.inf:
                    at.extend([number, number + 1])  # trio's checkpoint has a second suspension

        steps = Suspensions(awaitable, on_suspend)
        with self._during():
            try:
                result = await steps
            except anyio.get_cancelled_exc_class():
                if call.place.function == "close" and not self._is_hang():
                    self.problems.append(f"{call.place} was cancelled")
                if len(steps.cancelled_at) >= MOST_CANCELLATIONS:
                    self.problems.append(f"{call.place} goes on when it is cancelled")
                raise
            if set(at).intersection(steps.cancelled_at):
                self.problems.append(f"{call.place} swallowed the cancellation")
            with self._losing(call, result):
                await self._astrike(call, "after")
            return result

    def _is_due(self, call: Call, moment: Moment) -> bool:
        fault = self.fault
        if fault is None or fault.place != call.place or fault.moment != moment:
            return False
        self._mark()
        return True

    def _mark(self) -> None:
        self.struck = True
        triggered = None if self._trigger is None else self._trigger.episode
        self.ended = frozenset(self._ending - {triggered})

    def _strike(self, call: Call, moment: Moment) -> None:
        if call.place == self._trigger and moment == "before":
            raise self.first_failure
        if not self._is_due(call, moment) or self.fault is None:
            return
        if self.fault.kind in ("exception", "interrupt"):
            raise self.injected
        if self.fault.kind == "hang":
            self._on_loop(self._hang)
            self._released.wait(_BLOCKED_SECONDS)
        else:
            self._stop()

    async def _astrike(self, call: Call, moment: Moment) -> None:
        if self._is_hang() and self._is_due(call, moment):
            self._hang()
            await anyio.sleep_forever()
        else:
            self._strike(call, moment)

    def _is_hang(self) -> bool:
        return self.fault is not None and self.fault.kind == "hang"

    def _hang(self) -> None:
        self._hanging = True
        self._leap_if_alone()

    def _leap_if_alone(self) -> None:
        """Let the time-out pass, once it is that of no other episode."""
        if self._hanging and self._others <= 1:
            self._hanging = False
            self.clock.leap()

    def _stop(self) -> None:
        self._on_loop(self.on_stop)

    def _on_loop(self, function: Callable[[], object]) -> None:
        """Call a function on the event loop, and wait until it has returned."""
        if threading.get_ident() == self.home or self._call_soon is None:
            function()
            return
        done = threading.Event()

        def run() -> None:
            function()
            done.set()

        self._call_soon(run)
        done.wait(_BLOCKED_SECONDS)

    def _may_be_late(self, call: Call) -> bool:
        """Tell whether a call may begin after the run, when its episode was left on a thread.

        Its thread may have been about to make one call, and closes the environment after it.
        """
        fault = self.fault
        if call.on_loop or fault is None or (fault.kind == "exception" and not fault.raises):
            return False
        if call.place.function == "close":
            return True
        first = call.place.episode not in self._late
        self._late.add(call.place.episode)
        return first

    @contextlib.contextmanager
    def _during(self) -> Generator[None]:
        with self._lock:
            self.num_running += 1
        try:
            yield
        finally:
            with self._lock:
                self.num_running -= 1

    @contextlib.contextmanager
    def _losing(self, call: Call, result: object) -> Generator[None]:
        try:
            yield
        except BaseException:
            if call.place.function == "make_env":
                self.lost.append(result)
            raise
