"""Results that may have to be awaited."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Generator
from typing import Any, TypeVar

T = TypeVar("T")
OutputT = TypeVar("OutputT", covariant=True)


class Later(Awaitable[OutputT]):
    """A coroutine that begins when it is awaited, and until then can be closed with its source.

    A plain coroutine, closed before it begins, would leave the source open.

    Args:
        source: The awaitable that the function awaits.
        function: Makes the coroutine.
    """

    def __init__(self, source: object, function: Callable[[], Awaitable[OutputT]]) -> None:
        self._source = source
        self._function = function

    def __await__(self) -> Generator[Any, Any, OutputT]:
        return self._function().__await__()

    def close(self) -> None:
        """Close the source: nobody will await it, and Python would warn of that."""
        _close(self._source)


class AwaitableError(TypeError):
    """Raised where a result would have to be awaited: a mistake of the caller, not a failure to grade."""


def at_once(result: T | Awaitable[T], name: str, remedy: str = "ascore") -> T:
    """Return a result that is there.

    Args:
        result: What a function returned.
        name: What it is, for the error message.
        remedy: What to call instead.

    Raises:
        AwaitableError: It would have to be awaited.
    """
    if not inspect.isawaitable(result):
        return result
    _close(result)
    msg = f"{name} has to be awaited: use {remedy}"
    raise AwaitableError(msg)


def _close(awaitable: object) -> None:
    if inspect.iscoroutine(awaitable) or isinstance(awaitable, Later):
        awaitable.close()
