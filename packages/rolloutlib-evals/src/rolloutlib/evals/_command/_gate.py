"""Ending a run in two stages: what is in flight goes on to its end, and then nothing does."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import threading
from collections import Counter
from collections.abc import Awaitable, Callable, Generator
from typing import Any

import anyio

from rolloutlib.evals._command._output import tell
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
        self._item_ids: dict[int | None, str] = {}  # by the seeds of first attempts
        self._started: Counter[str] = Counter()
        self._ended: Counter[str] = Counter()
        self._allowed: frozenset[str] = frozenset()
        self._scope: anyio.CancelScope | None = None

    async def __call__(
        self, observation: Any, *, seed: int | None = None, step: int | None = None
    ) -> Any:
        """Ask the policy, or wait for the end of the run."""
        policy: Any = self._policy
        item_id = self._item_ids.get(seed)
        if self.is_closed and not step and item_id is not None and item_id not in self._allowed:
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
        """Take note of an event, and pass it on."""
        self._told(event)
        if event.kind == "started":
            self._item_ids[event.seed] = event.item_id
            self._started[event.item_id] += 1
        elif event.kind in ("finished", "failed"):
            self._ended[event.item_id] += 1
            if self.is_closed and not self._num_open():
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
        self._allowed = frozenset(item for item in self._started if self._num_open(item))
        self.is_closed = True
        if left := self._num_open():
            some = "1 episode" if left == 1 else f"{left:,} episodes"
            tell(f"finishing {some} in flight; Ctrl-C again stops them")
        else:
            self._end()

    def _end(self) -> None:
        if self._scope is not None:
            self._scope.cancel()

    def _num_open(self, item: str | None = None) -> int:
        """Return how many episodes groups that have begun still need, that of one item or all."""
        items = self._allowed if item is None else (item,)
        return sum(
            -(-self._started[each] // self._num_rollouts) * self._num_rollouts - self._ended[each]
            for each in items
        )


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


_HOPELESS = {401, 403, 404}
