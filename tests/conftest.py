"""Fixtures shared by all tests."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

# Ctrl-C is ignored in what a shell runs in the background; the tests of it need it.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    """Run each asynchronous test under both event loops."""
    return str(request.param)


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of real benchmark items and model answers that lies beside the project."""
    folder = Path(__file__).parents[2] / "shared" / "data"
    if not folder.is_dir():
        pytest.skip(f"needs the test data folder {folder}, which is not part of the project")
    return folder
