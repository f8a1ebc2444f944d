"""The server for Tinker's API, for one process of tests at a time."""

from __future__ import annotations

import fcntl
from collections.abc import Generator
from contextlib import contextmanager

import pytest

from tinker_server import FOLDER, Setup


@contextmanager
def installed_server() -> Generator[Setup]:
    """Tell where the server is, and keep other workers from starting theirs meanwhile; skip without it."""
    setup = Setup(FOLDER)
    if not setup.is_installed:
        pytest.skip("needs a server: run scripts/tinker_server.py install")
    with (FOLDER / "tests.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)  # until the file is closed
        yield setup
