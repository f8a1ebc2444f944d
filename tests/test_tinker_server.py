"""The server for tests is set up whole or not at all, and ends with whoever started it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import skyrl_environment
from skyrl_environment import Setup, SetupError
from tinker_server import FOLDER

SCRIPT = Path(__file__).parents[1] / "scripts" / "tinker_server.py"


def test_it_is_not_set_up_where_the_disk_is_full(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(skyrl_environment, "ENVIRONMENT_GB", 1e9)
    with pytest.raises(SetupError, match=r"GB left, and 1000000000\.0 GB are needed: make room"):
        Setup(tmp_path).install()
    assert not Setup(tmp_path).is_installed


@pytest.mark.slow
def test_nothing_is_half_installed_when_a_package_is_not_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = {"PIP_NO_INDEX": "1", "PIP_CONFIG_FILE": os.devnull, "PIP_FIND_LINKS": ""}
    for name, value in settings.items():  # so that pip finds nothing anywhere
        monkeypatch.setenv(name, value)
    with pytest.raises(SetupError, match="No matching distribution found for torch"):
        Setup(tmp_path).install()
    assert not Setup(tmp_path).is_installed


def test_what_is_installed_stays_until_the_versions_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    setup = Setup(tmp_path)
    (tmp_path / "environment").mkdir()
    versions = (skyrl_environment.TORCH, skyrl_environment.SKYRL, *skyrl_environment.PACKAGES)
    (tmp_path / "environment" / "requirements.txt").write_text("\n".join((*versions, "")))
    monkeypatch.setattr(skyrl_environment, "ENVIRONMENT_GB", 1e9)
    setup.install()
    assert setup.is_installed
    monkeypatch.setattr(skyrl_environment, "TORCH", "torch==0.0.0")
    assert not setup.is_installed


def test_a_model_needs_the_server(tmp_path: Path) -> None:
    with pytest.raises(SetupError, match=r"run scripts/tinker_server\.py install"):
        Setup(tmp_path).make_model("tiny")


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_server_and_engine_end_with_the_script(number: signal.Signals, tmp_path: Path) -> None:
    if not Setup(FOLDER).is_installed:
        pytest.skip("needs a server: run scripts/tinker_server.py install")

    def processes() -> int:
        # Both are told of a folder for temporary files.
        listing = subprocess.run(
            ["ps", "-ww", "-eo", "args"],  # noqa: S607
            capture_output=True,
            check=True,
            text=True,
        )
        return sum(
            "skyrl_launcher.py" in line and str(tmp_path) in line
            for line in listing.stdout.splitlines()
        )

    with subprocess.Popen(
        [sys.executable, SCRIPT, "run", "tiny", "--log", tmp_path / "server.log"],
        env={**os.environ, "TMPDIR": str(tmp_path)},
        stderr=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
    ) as script:
        try:
            assert script.stdout
            assert script.stdout.readline().startswith("TINKER_BASE_URL=http://127.0.0.1:")
            assert processes() == 2
            script.send_signal(number)
            code = script.wait(timeout=60)
        finally:
            script.kill()
    assert code == (-number if number == signal.SIGKILL else 128 + number)
    end = time.monotonic() + 60
    while processes() and time.monotonic() < end:
        time.sleep(0.1)
    assert not processes()
