"""Results that a synchronous call can use."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable
from typing import TypeVar

T = TypeVar("T")


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
    if inspect.iscoroutine(result):
        result.close()  # nobody will await it, and Python would warn of that
    msg = f"{name} has to be awaited: use ascore"
    raise TypeError(msg)
