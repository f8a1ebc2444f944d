"""Policies over batch functions: episodes in lock step, and concurrent calls gathered."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Generic, Self, cast

import anyio
import anyio.abc
import anyio.lowlevel

from rolloutlib._calls import RefuseStrayCancellation, call, check_count, is_async
from rolloutlib.rollouts._batch_policies import (
    Answer,
    AsyncBatchPolicy,
    BatchFunction,
    BatchPolicy,
)
from rolloutlib.rollouts._policies import ActionT, ObservationT, PolicyOutput


class BatchedPolicy(Generic[ObservationT, ActionT]):
    """A synchronous policy over a batch function; `rollout_group` plays its members in lock step.

    Args:
        batch: The function. Called as a policy for one episode, it is given one observation.
        max_size: The most observations that it is given at once; by default there is no limit.

    Attributes:
        batch, max_size: As given.

    Raises:
        TypeError: An argument has the wrong type.
        ValueError: `max_size` is less than 1.
    """

    def __init__(
        self, batch: BatchPolicy[ObservationT, ActionT], *, max_size: int | None = None
    ) -> None:
        if max_size is not None:
            check_count("max_size", max_size)
        self.batch = batch
        self._function = BatchFunction[ObservationT, ActionT](batch)
        self.max_size = max_size

    @property
    def version(self) -> int | str | None:
        """The batch function's version, None if it has none."""
        return self._function.version

    def __call__(
        self, observation: ObservationT, /, *, seed: int | None = None, step: int | None = None
    ) -> ActionT | PolicyOutput[ActionT]:
        """Choose an action for one observation: a batch of one.

        Raises:
            TypeError: The batch function returned no sequence.
            ValueError: It did not return one entry.
            BaseException: What it raises, or its entry.
        """
        [answer] = self.decide_all([observation], seeds=[seed], steps=[step])
        if isinstance(answer, Exception):
            raise answer
        return answer

    def decide_all(
        self,
        observations: Sequence[ObservationT],
        *,
        seeds: Sequence[int | None] | None = None,
        steps: Sequence[int | None] | None = None,
    ) -> list[Answer[ActionT]]:
        """Choose an action for each observation, in as few batches as `max_size` allows.

        Args:
            observations: What the environments show.
            seeds: The seed of each episode.
            steps: The number of each episode's step, from 0.

        Returns:
            An entry for each observation, in the same order. What the batch function raises for a
            batch is the entry of each observation in it.

        Raises:
            TypeError: The batch function returned no sequence.
            ValueError: It returned another number of entries than it was given observations.
        """
        count = len(observations)
        seeds = [None] * count if seeds is None else seeds
        steps = [None] * count if steps is None else steps
        size = self.max_size or max(count, 1)
        answers: list[Answer[ActionT]] = []
        for start in range(0, count, size):
            part = slice(start, start + size)
            some = list(observations[part])
            try:
                version, function = self._function.prepare(seeds[part], steps[part])
                result = function(some)
            except Exception as error:  # whatever the user's function raises
                answers += [error] * len(some)
            else:
                answers += self._function.read(result, len(some), version)
        return answers


class AsyncBatchedPolicy(Generic[ObservationT, ActionT]):
    """A policy that gathers concurrent calls into batches, for a local engine.

    Used in `async with`, and called in between by any tasks of the same event loop. A batch is begun
    when `max_size` calls wait, or `max_wait` seconds after the first of them came; one at a time,
    while further calls gather for the next. A call that is cancelled harms no other: it leaves the
    queue, or, if its batch has begun, its action is dropped. What the batch function raises is raised
    in all calls of that batch, and the next batch is begun. After `async with` nothing is alive; a
    synchronous function that is blocked at that moment runs out on its thread, to no effect.

    Args:
        batch: A coroutine function is called on the event loop. Any other may block, so it is called
            on a worker thread; an awaitable that it returns is awaited on the event loop.
        max_size: The most observations that it is given at once.
        max_wait: The longest that a call waits for others to join it, in seconds. With 0, those join
            that come before the event loop gets to begin the batch; with `math.inf`, only full
            batches are begun.
        inline: Call the function on the event loop, whatever it is.

    Attributes:
        is_open: Whether it takes calls.

    Raises:
        TypeError: An argument has the wrong type.
        ValueError: `max_size` is less than 1, or `max_wait` is negative or NaN.
    """

    def __init__(
        self,
        batch: AsyncBatchPolicy[ObservationT, ActionT],
        *,
        max_size: int = 64,
        max_wait: float = 0.005,
        inline: bool = False,
    ) -> None:
        check_count("max_size", max_size)
        if not max_wait >= 0:
            msg = f"max_wait must be at least 0 seconds, got {max_wait!r}"
            raise ValueError(msg)
        self.batch = batch
        self._function = BatchFunction[ObservationT, ActionT](batch)
        self._max_size = max_size
        self._max_wait = max_wait
        self._inline = inline or is_async(batch)  # which does not show once seeds are bound to it
        self._tasks: anyio.abc.TaskGroup | None = None
        self.is_open: bool = False
        self._interrupt: BaseException | None = None
        self._waiting: dict[_Call[ObservationT, ActionT], None] = {}  # an ordered set
        self._running: list[_Call[ObservationT, ActionT]] = []
        self._changed: anyio.Event

    @property
    def version(self) -> int | str | None:
        """The batch function's version now, None if it has none; each action tells its own."""
        return self._function.version

    async def __aenter__(self) -> Self:
        if self._tasks is not None:
            msg = f"{self!r} is in use: it cannot be entered a second time"
            raise RuntimeError(msg)
        tasks = anyio.create_task_group()
        await tasks.__aenter__()
        self._changed = anyio.Event()
        self._tasks, self.is_open, self._interrupt = tasks, True, None
        tasks.start_soon(self._serve, tasks.cancel_scope)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool | None:
        tasks = cast("anyio.abc.TaskGroup", self._tasks)
        self._close()
        tasks.cancel_scope.cancel()
        try:
            return await tasks.__aexit__(kind, error, traceback)
        except BaseExceptionGroup:  # of the error alone, which comes out as it is
            return False
        finally:
            self._tasks = None
            if self._interrupt is not None:
                raise self._interrupt from error

    async def __call__(
        self, observation: ObservationT, /, *, seed: int | None = None, step: int | None = None
    ) -> ActionT | PolicyOutput[ActionT]:
        """Choose an action for an observation, together with other calls.

        Raises:
            RuntimeError: The policy's `async with` is not entered, or was left meanwhile.
            TypeError: The batch function returned no sequence.
            ValueError: It returned another number of entries than it was given observations.
            BaseException: What it raises, or its entry for the observation.
        """
        if not self.is_open:
            msg = f"{self!r} takes calls only inside `async with`"
            raise RuntimeError(msg)
        waiting = self._waiting
        one = _Call[ObservationT, ActionT](
            observation, seed, step, due=anyio.current_time() + self._max_wait
        )
        waiting[one] = None
        if len(waiting) in (1, self._max_size):
            self._changed.set()
        try:
            await one.answered.wait()
        finally:
            waiting.pop(one, None)  # still there if it was cancelled
        answer = one.answer
        if isinstance(answer, Exception):
            raise answer.with_traceback(one.traceback)
        return answer

    def __repr__(self) -> str:
        return f"AsyncBatchedPolicy({self._function.batch!r})"

    async def _serve(self, scope: anyio.CancelScope) -> None:
        try:
            while True:
                # A function that is called inline lets no other task run.
                await anyio.lowlevel.checkpoint()
                calls = self._running = await self._gather()
                for one, answer in zip(calls, await self._decide(calls), strict=True):
                    one.settle(answer)
        except anyio.get_cancelled_exc_class():
            raise
        except BaseException as error:  # Ctrl-C, say, which ends the `async with`
            self._interrupt = error
            scope.cancel()
        finally:
            self._close()

    async def _gather(self) -> list[_Call[ObservationT, ActionT]]:
        """Wait until a batch is due, and take its calls out of the queue."""
        while True:
            due = next(iter(self._waiting)).due if self._waiting else math.inf
            if len(self._waiting) >= self._max_size or anyio.current_time() >= due:
                calls = list(itertools.islice(self._waiting, self._max_size))
                for one in calls:
                    del self._waiting[one]
                return calls
            self._changed = anyio.Event()
            with anyio.CancelScope(deadline=due):
                await self._changed.wait()

    async def _decide(
        self, calls: Sequence[_Call[ObservationT, ActionT]]
    ) -> Sequence[Answer[ActionT]]:
        try:
            with RefuseStrayCancellation(f"a batch of {self!r}"):
                version, function = self._function.prepare(
                    [one.seed for one in calls], [one.step for one in calls]
                )
                result = call(function, [one.observation for one in calls], inline=self._inline)
                return self._function.read(await result, len(calls), version)
        except Exception as error:  # whatever the user's function raises
            return [error] * len(calls)

    def _close(self) -> None:
        """Take no more calls, and answer those that there are."""
        self.is_open = False
        for one in (*self._running, *self._waiting):
            msg = f"{self!r} was closed while a call waited for its action"
            one.settle(RuntimeError(msg))
        self._running = []
        self._waiting.clear()


@dataclass(eq=False, slots=True)
class _Call(Generic[ObservationT, ActionT]):
    """A call that waits for its action, until `due` for others to join it."""

    observation: ObservationT
    seed: int | None
    step: int | None
    due: float
    answered: anyio.Event = field(default_factory=anyio.Event)
    answer: Answer[ActionT] = field(init=False)
    traceback: TracebackType | None = field(init=False, default=None)

    def settle(self, answer: Answer[ActionT]) -> None:
        """Answer the call, unless it has been answered."""
        if self.answered.is_set():
            return
        if isinstance(answer, Exception):
            # It may be raised in many calls: in each from here, not from where the others did.
            self.traceback = answer.__traceback__
        self.answer = answer
        self.answered.set()
