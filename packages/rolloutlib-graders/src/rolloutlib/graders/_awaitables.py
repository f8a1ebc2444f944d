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


def _close(awaitable: object) -> None:
    if inspect.iscoroutine(awaitable) or isinstance(awaitable, Later):
        awaitable.close()
