"""Ending a run in two stages: what is in flight goes on to its end, and then nothing does."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import threading
from collections import Counter
from collections.abc import Awaitable, Callable, Generator
from dataclasses import replace
from typing import Any

import anyio

from rolloutlib.evals._command._output import counted, tell
from rolloutlib.rollouts import AsyncPolicy, RolloutEvent


class Gate:
    """A policy before another, which lets no more episodes begin once Ctrl-C was pressed.

    Episodes that wait at the gate are cancelled when the others have ended, and leave no trace. So does
    the whole run if the first answer of the server shows that there will be none.

    Args:
        policy: The policy.
        on_event: Is told what happens.
        num_rollouts: How many episodes a group has: a group that has begun is finished.

    Attributes:
        is_closed: Whether no more episodes begin.
        refusal: The error that shows that the server answers nobody, or None.
    """

    def __init__(
        self,
        policy: AsyncPolicy[Any, Any],
        on_event: Callable[[RolloutEvent], object],
        *,
        num_rollouts: int = 1,
    ) -> None:
        self.is_closed = False
        self.refusal: Exception | None = None
        self._policy = policy
        self._told = on_event
        self._num_rollouts = num_rollouts
        self._answered = False
        self._scope: anyio.CancelScope | None = None
        self._started: Counter[str] = Counter()  # episodes of each item
        self._num_open = 0  # that have begun and not ended; once closed, that are to end
        self._missing: Counter[str] = Counter()  # members of groups that have begun, to begin yet
        self._late: set[int | None] = set()  # the seeds of episodes that came too late

    async def __call__(
        self, observation: Any, *, seed: int | None = None, step: int | None = None
    ) -> Any:
        """Ask the policy, or wait for the end of the run."""
        policy: Any = self._policy
        if seed in self._late:
            await anyio.sleep_forever()
        try:
            output = await policy(observation, seed=seed, step=step)
        except Exception as error:
            if not self._answered and _is_hopeless(error):
                self.refusal = self.refusal or error
                self._end()
                await anyio.sleep_forever()
            raise
        self._answered = True
        return output

    def on_event(self, event: RolloutEvent) -> None:
        """Take note of an event, and pass it on, unless it is of an episode that comes too late."""
        if event.kind == "started":
            self._begin(event)
        if event.seed in self._late:
            return
        if self._late:
            started = event.progress.started - len(self._late)
            event = replace(event, progress=replace(event.progress, started=started))
        self._told(event)
        if event.kind in ("finished", "failed"):
            self._num_open -= 1
            if self.is_closed and not self._num_open:
                # Not now: the run keeps the episode before it waits for anything.
                asyncio.get_running_loop().call_soon(self._end)

    def run(self, play: Callable[[], Awaitable[None]]) -> None:
        """Run a coroutine function in an event loop, until it ends or Ctrl-C ends it."""

        async def main() -> None:
            with anyio.CancelScope() as self._scope, _listening(self._interrupt):
                await play()

        anyio.run(main)

    def _interrupt(self) -> None:
        if self.is_closed:
            tell("stopping now; what had not ended is lost")
            self._end()
            return
        self.is_closed = True
        for item, count in self._started.items():
            self._missing[item] = -count % self._num_rollouts
        self._num_open += self._missing.total()
        if self._num_open:
            some = counted(self._num_open, "episode")
            tell(f"finishing {some} in flight; Ctrl-C again stops them")
        else:
            self._end()

    def _begin(self, event: RolloutEvent) -> None:
        if not self.is_closed:
            self._started[event.item_id] += 1
            self._num_open += 1
        elif self._missing[event.item_id]:
            self._missing[event.item_id] -= 1
        else:
            self._late.add(event.seed)

    def _end(self) -> None:
        if self._scope is not None:
            self._scope.cancel()


@contextlib.contextmanager
def _listening(interrupt: Callable[[], None]) -> Generator[None]:
    """Call a function on the event loop at the first and the second Ctrl-C; a third one kills."""
    loop = asyncio.get_running_loop()
    count = 0

    def handle(number: int, frame: object) -> None:
        nonlocal count
        count += 1
        if count == 2:
            signal.signal(signal.SIGINT, signal.SIG_DFL)
        loop.call_soon_threadsafe(interrupt)

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, handle)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _is_hopeless(error: Exception) -> bool:
    """Tell whether a model server will answer nobody: it is not there, or knows no such key or model."""
    status: object = getattr(error, "status_code", "unknown")
    return status in _HOPELESS or (status is None and isinstance(error, ConnectionError))


_HOPELESS = {401, 403, 404, 405, 501}
