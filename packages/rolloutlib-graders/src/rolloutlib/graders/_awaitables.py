"""Results that may have to be awaited."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Generator
from typing import Any, Generic, TypeVar

T = TypeVar("T")
OutputT = TypeVar("OutputT")


def at_once(result: T | Awaitable[T], name: str) -> T:
    """Return a result that is there.

    Args:
        result: What a function returned.
        name: What it is, for the error message.

    Raises:
        TypeError: It would have to be awaited.
    """
    if not inspect.isawaitable(result):
        return result
    _close(result)
    msg = f"{name} has to be awaited: use ascore"
    raise TypeError(msg)


class Later(Awaitable[OutputT], Generic[T, OutputT]):
    """An awaitable of what a function makes of another awaitable's result.

    Unlike a coroutine that has not begun, it can be closed together with what it would await.

    Args:
        awaitable: Gives the result.
        convert: Takes the result; may fail as it likes.
        guard: Awaits the first for the second, so that errors can be told apart.
    """
