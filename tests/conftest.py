"""Fixtures shared by all tests."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# Ctrl-C is ignored in what a shell runs in the background; the tests of it need it.
signal.signal(signal.SIGINT, signal.default_int_handler)

# The tests start some hundred Pythons, and without compiled files each compiles all that it imports.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# Examples may take their time, and may be large and many: no test depends on timing. Fixtures of a test serve
# all its examples, as tests know that ask for them.
settings.register_profile(
    "rolloutlib",
    deadline=None,
    suppress_health_check=[
        HealthCheck.data_too_large,
        HealthCheck.function_scoped_fixture,
        HealthCheck.too_slow,
    ],
)
settings.load_profile("rolloutlib")


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
