"""Runs that are begun, for the tests of going on with them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from core.rollouts.scripted import ScriptedEnv
from rolloutlib import TrajectoryGroup, collect
from rolloutlib.storage import GroupStore

AnyGroup = TrajectoryGroup[Any, Any, Any]


def make_env(item: object) -> ScriptedEnv:
    return ScriptedEnv()


class Factory:
    """Counts the environments that it makes."""

    def __init__(self) -> None:
        self.made: list[Any] = []

    def __call__(self, item: Any) -> ScriptedEnv:
        self.made.append(item)
        return ScriptedEnv()


class Interrupt(BaseException):
    """As Ctrl-C, but not for pytest."""


def interrupted_after(count: int, items: Any) -> Any:
    """Items whose reading is interrupted after some of them."""
    for number, item in enumerate(items):
        if number == count:
            raise Interrupt
        yield item


def begin(path: Path, items: Any, count: int, **arguments: Any) -> None:
    """Play the first groups of a run."""
    with pytest.raises(Interrupt):
        for _ in collect(interrupted_after(count, items), store=GroupStore(path), **arguments):
            pass
