"""The server for tests is set up whole or not at all, and ends with whoever started it."""

from __future__ import annotations

import fcntl
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Generator
from pathlib import Path

import pytest

import skyrl_environment
from local_server import installed_server
from process_groups import running
from skyrl_environment import Setup, SetupError
from tinker_server import Server, run, serve, show

SCRIPT = Path(__file__).parents[1] / "scripts" / "tinker_server.py"


def test_it_is_not_set_up_where_the_disk_is_full(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(skyrl_environment, "ENVIRONMENT_GB", 1e9)
    with pytest.raises(SetupError, match=r"GB left, and 1000000000\.0 GB are needed: make room"):
        Setup(tmp_path).install()
    assert not Setup(tmp_path).is_installed


@pytest.fixture
def no_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let pip find nothing anywhere."""
    settings = {"PIP_NO_INDEX": "1", "PIP_CONFIG_FILE": os.devnull}
    for name, value in {**settings, "PIP_EXTRA_INDEX_URL": "", "PIP_FIND_LINKS": ""}.items():
        monkeypatch.setenv(name, value)


def fake_environment(setup: Setup) -> None:
    """Make what looks as if all had been installed."""
    setup.python.parent.mkdir(parents=True)
    setup.python.symlink_to(sys.executable)
    versions = (skyrl_environment.TORCH, skyrl_environment.SKYRL, *skyrl_environment.PACKAGES)
    (setup.folder / "environment" / "requirements.txt").write_text("\n".join((*versions, "")))


@pytest.mark.slow
def test_nothing_is_half_installed_when_a_package_is_not_found(
    tmp_path: Path, no_packages: None
) -> None:
    with pytest.raises(SetupError, match="No matching distribution found for torch"):
        Setup(tmp_path).install()
    assert {path.name for path in tmp_path.iterdir()} == {"install.log", "lock"}


def test_what_is_installed_stays_until_the_versions_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    setup = Setup(tmp_path)
    fake_environment(setup)
    monkeypatch.setattr(skyrl_environment, "ENVIRONMENT_GB", 1e9)
    setup.install()
    assert setup.is_installed
    monkeypatch.setattr(skyrl_environment, "TORCH", "torch==0.0.0")
    assert not setup.is_installed


def test_a_model_needs_the_server(tmp_path: Path) -> None:
    with pytest.raises(SetupError, match=r"run scripts/tinker_server\.py install"):
        Setup(tmp_path).make_model("tiny")


def test_an_environment_without_its_python_is_made_again(tmp_path: Path) -> None:
    setup = Setup(tmp_path)
    fake_environment(setup)
    assert setup.is_installed
    setup.python.unlink()
    setup.python.symlink_to(tmp_path / "a Python that was removed")
    assert not setup.is_installed


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_an_installation_that_is_broken_off_leaves_nothing(
    number: signal.Signals, tmp_path: Path, no_packages: None
) -> None:
    folder = tmp_path / "a folder"
    with socket.create_server(("127.0.0.1", 0)) as index:  # which never answers
        index.settimeout(60)
        with subprocess.Popen(
            [sys.executable, SCRIPT, "install", "--folder", folder],
            env={
                **os.environ,
                "PIP_NO_INDEX": "0",
                "PIP_INDEX_URL": f"http://127.0.0.1:{index.getsockname()[1]}",
            },
            stderr=subprocess.DEVNULL,
        ) as script:
            connection, _ = index.accept()
            script.send_signal(number)
            script.wait(timeout=60)
        if number == signal.SIGKILL:
            assert processes(str(folder)) == 1  # pip, which nobody could end
            with pytest.raises(SetupError, match="No matching distribution found for torch"):
                Setup(folder).install()
        else:
            assert not processes(str(folder))
        assert {path.name for path in folder.iterdir()} == {"install.log", "lock"}
        connection.close()
    wait_for_the_end(str(folder))


def test_a_second_installation_waits_for_the_first(tmp_path: Path) -> None:
    setup = Setup(tmp_path)
    fake_environment(setup)
    with (tmp_path / "lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        with subprocess.Popen(
            [sys.executable, SCRIPT, "install", "--folder", tmp_path],
            stderr=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            text=True,
        ) as second:
            try:
                assert second.stderr
                assert second.stderr.readline().startswith("waiting for another process")
                assert second.poll() is None
                fcntl.flock(file, fcntl.LOCK_UN)
                assert second.wait(timeout=60) == 0
            finally:
                second.kill()


def test_a_folder_that_cannot_be_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(
        SetupError, match=r"cannot write to .*/folder: Not a directory; name another"
    ):
        Setup(tmp_path / "file" / "folder").install()


@pytest.fixture
def server(tmp_path: Path) -> Generator[Server]:
    """Not a server, but something that runs until its input ends, and then fails."""
    (tmp_path / "log").write_text("what went wrong")
    with running(
        [sys.executable, "-c", "input()"], stderr=subprocess.DEVNULL, stdin=subprocess.PIPE
    ) as process:
        yield Server(process, "http://127.0.0.1:0", tmp_path, tmp_path / "log")


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("import os; raise SystemExit(len(os.environ['TINKER_BASE_URL']))", 18),
        ("import os, signal; os.kill(os.getpid(), signal.SIGTERM)", 128 + signal.SIGTERM),
    ],
)
def test_a_commands_exit_code_is_passed_on(server: Server, code: str, expected: int) -> None:
    assert run(server, [sys.executable, "-c", code]) == expected


@pytest.mark.parametrize("others", ["", "localhost"])
def test_a_command_reaches_the_server_without_a_proxy(
    server: Server, monkeypatch: pytest.MonkeyPatch, others: str
) -> None:
    for name, value in {"http_proxy": "http://127.0.0.1:9", "no_proxy": others}.items():
        monkeypatch.setenv(name, value)
        monkeypatch.setenv(name.upper(), value)
    code = "import urllib.request as it; raise SystemExit(not it.proxy_bypass('127.0.0.1'))"
    assert run(server, [sys.executable, "-c", code]) == 0


def test_a_command_that_is_not_there_is_told(server: Server) -> None:
    with pytest.raises(SetupError, match="cannot run 'no-such-command': No such file"):
        run(server, ["no-such-command"])


def test_a_command_ends_with_its_server_and_the_log_is_named(
    server: Server, tmp_path: Path
) -> None:
    code = f"import os, signal; os.kill({server.process.pid}, signal.SIGKILL); signal.pause()"
    with pytest.raises(
        SetupError, match=r"server ended with code -9; .*log tells all:\s+what went"
    ):
        run(server, [sys.executable, "-c", code, str(tmp_path)])
    assert not processes(str(tmp_path))


def test_the_script_says_when_its_server_has_ended(server: Server) -> None:
    assert server.process.stdin
    server.process.stdin.close()
    with pytest.raises(SetupError, match=r"server ended with code 1; .*log tells all:\s+what went"):
        show(server)


@pytest.mark.slow
def test_a_port_that_is_taken_and_a_log_without_folder_are_told(tmp_path: Path) -> None:
    with (
        installed_server() as setup,
        socket.create_server(("127.0.0.1", 0)) as listener,
        pytest.raises(SetupError, match=r"cannot listen on port \d+ .*in use\); without --port"),
        serve(setup, "tiny", port=listener.getsockname()[1]),
    ):
        pass
    with (
        installed_server() as setup,
        pytest.raises(SetupError, match=r"cannot write .*x/log: No such file.* with --log"),
        serve(setup, "tiny", log=tmp_path / "x" / "log"),
    ):
        pass


@pytest.fixture
def hangups() -> Generator[None]:
    """Let what is started feel SIGHUP, also where `nohup` started the tests."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_server_and_engine_end_with_the_script(
    number: signal.Signals, tmp_path: Path, hangups: None
) -> None:
    with (
        installed_server(),
        subprocess.Popen(
            [sys.executable, SCRIPT, "run", "tiny", "--log", tmp_path / "server.log"],
            env={**os.environ, "TMPDIR": str(tmp_path)},  # both are told of a folder in it
            stderr=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            text=True,
        ) as script,
    ):
        try:
            assert script.stdout
            assert script.stdout.readline().startswith("TINKER_BASE_URL=http://127.0.0.1:")
            assert processes("skyrl_launcher.py", str(tmp_path)) == 2
            script.send_signal(number)
            code = script.wait(timeout=60)
        finally:
            script.kill()
        assert code == (-number if number == signal.SIGKILL else 128 + number)
        wait_for_the_end("skyrl_launcher.py", str(tmp_path))


@pytest.mark.slow
def test_a_command_that_is_broken_off_cleans_up_with_all_that_it_started(tmp_path: Path) -> None:
    code = """if True:
        import subprocess, sys, time
        subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)", sys.argv[1]])
        try:
            print("it runs", flush=True)
            time.sleep(600)
        finally:
            print("it cleans up", flush=True)
    """
    command = ["--", sys.executable, "-c", code, tmp_path]
    with (
        installed_server(),
        subprocess.Popen(
            [sys.executable, SCRIPT, "run", "tiny", "--log", tmp_path / "log", *command],
            env={**os.environ, "TMPDIR": str(tmp_path)},
            stderr=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            text=True,
        ) as script,
    ):
        try:
            assert script.stdout
            assert script.stdout.readline() == "it runs\n"
            script.terminate()
            assert script.stdout.read() == "it cleans up\n"
            assert script.wait(timeout=60) == 128 + signal.SIGTERM
        finally:
            script.kill()
        assert not processes(str(tmp_path))


def processes(*words: str) -> int:
    """How many processes have these words in their command lines, and have not ended."""
    listing = subprocess.run(
        ["ps", "-ww", "-eo", "stat,args"],  # noqa: S607
        capture_output=True,
        check=True,
        text=True,
    )
    lines = [line for line in listing.stdout.splitlines() if not line.startswith("Z")]
    return sum(all(word in line for word in words) for line in lines)


def wait_for_the_end(*words: str) -> None:
    end = time.monotonic() + 60
    while processes(*words) and time.monotonic() < end:
        time.sleep(0.1)
    assert not processes(*words)
