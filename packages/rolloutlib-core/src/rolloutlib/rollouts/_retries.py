"""Which failures are tried again, how often and when."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias, cast

from rolloutlib._calls import check_count
from rolloutlib._exceptions import add_note, read_error
from rolloutlib._values import to_float

Transient: TypeAlias = type[Exception] | tuple[type[Exception], ...] | Callable[[Exception], bool]


@dataclass(frozen=True, slots=True, kw_only=True)
class Retry:
    """A policy for failed episodes: each attempt begins anew, in a fresh environment.

    The wait before an attempt is drawn evenly from 0 to a bound that doubles with each attempt
    ("exponential back-off with full jitter", Brooker, AWS Architecture Blog, 2015), so that episodes
    which failed together do not come back together.

    Attributes:
        attempts: How many attempts an episode has, the first included.
        initial_delay: The bound of the first wait, in seconds.
        max_delay: The bound that no wait exceeds, in seconds.
        transient: The errors that may pass: exception types, or a function that tells. By default
            lost connections and time-outs.
        budget: How many further attempts all episodes of a run may have together; None means no
            bound. When it is spent, failures are final.

    Raises:
        TypeError: A field has the wrong type.
        ValueError: A number is out of its range.
    """

    attempts: int = 3
    initial_delay: float = 1.0
    max_delay: float = 60.0
    transient: Transient = (ConnectionError, TimeoutError)
    budget: int | None = None

    def __post_init__(self) -> None:
        check_count("attempts", self.attempts)
        if self.budget is not None and self.budget != 0:
            check_count("budget", self.budget)
        for name in ("initial_delay", "max_delay"):
            if to_float(getattr(self, name), name) < 0:
                msg = f"{name} must not be negative, got {getattr(self, name)!r}"
                raise ValueError(msg)
        transient: object = self.transient
        kinds = (
            cast("tuple[object, ...]", transient) if isinstance(transient, tuple) else (transient,)
        )
        if not all(callable(kind) for kind in kinds):
            msg = f"transient must be exception types or a function, got {transient!r}"
            raise TypeError(msg)

    def is_transient(self, error: Exception) -> bool:
        """Tell whether the error may pass."""
        transient = self.transient
        if isinstance(transient, (type, tuple)):
            return isinstance(error, cast("type[Exception]", transient))
        return bool(transient(error))

    def delay(self, attempt: int) -> float:
        """Draw the wait in seconds that follows the failure of an attempt, numbered from 0."""
        bound = min(self.max_delay, self.initial_delay * 2.0 ** min(attempt, 64))
        return random.uniform(0, bound)  # noqa: S311 - nothing depends on it being secret


class RetryBudget:
    """How much of a retry policy a run has used.

    Args:
        retry: The policy, or None for one attempt each.
    """

    def __init__(self, retry: Retry | None) -> None:
        self._retry = retry or Retry(attempts=1)
        self._left = self._retry.budget

    @property
    def possible(self) -> bool:
        """Whether anything is tried again at all."""
        return self._retry.attempts > 1

    def take(self, error: BaseException, attempt: int) -> float | None:
        """Return how many seconds to wait before the next attempt, or None if there is none.

        Args:
            error: What the attempt failed with; an interrupt is never tried again.
            attempt: Which attempt that was, from 0.
        """
        retry = self._retry
        if attempt + 1 >= retry.attempts or self._left == 0 or not isinstance(error, Exception):
            return None
        try:
            if not retry.is_transient(error):
                return None
        except Exception as failure:  # of the user's function that tells which errors may pass
            add_note(error, f"asking if it may pass failed too: {read_error(failure, repr)}")
            return None
        if self._left is not None:
            self._left -= 1
        return retry.delay(attempt)
