"""How long the parts of an episode may take."""

from __future__ import annotations

import math
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, fields
from typing import Any, Literal

import anyio

from rolloutlib._calls import is_awaitable, uncancelled
from rolloutlib._values import to_float
from rolloutlib.rollouts._policies import EpisodeTruncated


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeouts:
    """Limits on time, each in seconds; None means no limit.

    A call that takes longer fails with `TimeoutError`: the episode has failed, and its record keeps
    the steps before. An episode that takes longer is truncated, as by a limit on its steps, if its
    environment was reset in time.

    Attributes:
        reset: For making an environment, and for resetting it.
        policy: For each call of the policy.
        step: For each step of the environment.
        episode: For an episode from making its environment to its last step.
        grade: For grading a group.
        close: For closing an environment; as long a run that fails waits for those that are in a call
            on a thread.

    Raises:
        TypeError: A limit is not a number.
        ValueError: A limit is not positive.
    """

    reset: float | None = None
    policy: float | None = None
    step: float | None = None
    episode: float | None = None
    grade: float | None = None
    close: float | None = 30.0

    def __post_init__(self) -> None:
        for field in fields(self):
            seconds = getattr(self, field.name)
            if seconds is not None and seconds != math.inf:
                name = f"the timeout {field.name!r}"
                if to_float(seconds, name) <= 0:
                    msg = f"{name} must be positive, got {seconds!r}"
                    raise ValueError(msg)


class Timer:
    """The deadlines of one episode, or of grading a group, on one cancel scope around all of it.

    One scope whose deadline moves, since scopes have to be nested, and an environment may open some
    in `reset` that it leaves in `close`.

    Args:
        timeouts: The limits.
        scope: The scope, which has been entered.
    """

    def __init__(self, timeouts: Timeouts, scope: anyio.CancelScope) -> None:
        self._timeouts = timeouts
        self._scope = scope
        self._end = math.inf
        if timeouts.episode is not None:
            self._end = anyio.current_time() + timeouts.episode

    def timed(
        self, part: Literal["reset", "policy", "step", "grade"], function: Callable[..., Any]
    ) -> Callable[..., Coroutine[Any, Any, Any]]:
        """Return a function that runs within the time of a part, and of what is left of the episode.

        It raises `TimeoutError`, or `EpisodeTruncated` if the episode's time was over first.
        """
        seconds: float | None = getattr(self._timeouts, part)

        async def call(*args: Any, **kwargs: Any) -> Any:
            end = math.inf if seconds is None else anyio.current_time() + seconds
            deadline = self._scope.deadline = min(end, self._end)
            cause: BaseException | None = None
            try:
                try:
                    result = function(*args, **kwargs)
                    if is_awaitable(result):
                        result = await result
                finally:
                    self._scope.deadline = math.inf
                # What took no notice of a cancellation has failed all the same, and so has what held
                # up the event loop, which then had no chance to cancel it.
                if not self._scope.cancel_called and anyio.current_time() < deadline:
                    return result
            except BaseException as error:  # a function may make anything of its cancellation
                cause = uncancelled(error)
                if not self._scope.cancel_called or not isinstance(cause, Exception | None):
                    raise
            if end < self._end:
                msg = f"{part} took longer than {seconds} s"
                raise TimeoutError(msg) from cause
            msg = f"the episode took longer than {self._timeouts.episode} s"
            raise EpisodeTruncated(msg) from cause

        return call
