"""Fixtures of the tests of rollouts."""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator

import pytest


@pytest.fixture
def threads_end() -> Generator[Callable[[], None]]:
    """Check that each thread that a test started comes to its end by itself, at the latest after it.

    Gives a function that waits for that, and so for what an abandoned call leaves to be done.
    """
    before = set(threading.enumerate())

    def wait() -> None:
        for thread in set(threading.enumerate()) - before:
            if thread.name.startswith("Trio thread"):
                continue  # trio keeps those a while for further calls
            thread.join(30)
            assert not thread.is_alive(), thread

    yield wait
    wait()
