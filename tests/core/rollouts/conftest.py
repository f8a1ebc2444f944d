"""Fixtures of the tests of rollouts."""

from __future__ import annotations

import threading
from collections.abc import Generator

import pytest


@pytest.fixture
def threads_end() -> Generator[None]:
    """Check that each thread that a test started has come to its end, or does so by itself."""
    before = set(threading.enumerate())
    yield
    for thread in set(threading.enumerate()) - before:
        if thread.name.startswith("Trio thread"):
            continue  # trio keeps those a while for further calls
        thread.join(30)
        assert not thread.is_alive(), thread
