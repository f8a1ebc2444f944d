"""Run an open server that speaks Tinker's API on this machine's processor: SkyRL, without an account.

    uv run scripts/tinker_server.py install                 # once: 2 minutes, 2 GB
    uv run scripts/tinker_server.py run smollm2             # until Ctrl-C; prints address and key
    uv run scripts/tinker_server.py run smollm2 -- python examples/train_tinker.py

With a command, the server runs for as long as the command does, which finds it by the variables
TINKER_BASE_URL, TINKER_API_KEY and TINKER_MODEL; should the server end first, so does the command. What is
missing is set up first.

pip installs the server as its own configuration says. On Linux it finds by default a PyTorch for graphics
cards, which takes several gigabytes more; PyTorch's page "Get Started" tells the address of the builds for
the processor, for pip's variable PIP_EXTRA_INDEX_URL.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn, TextIO

from process_groups import running
from skyrl_environment import MODEL_GB, SCRIPTS, Setup, SetupError, tail

FOLDER = Path(os.environ.get("TINKER_SERVER_FOLDER") or SCRIPTS.parent / ".cache" / "tinker-server")
KEY = "tml-local"  # any that begins so will do
HOST = "127.0.0.1"
SIGNALS = (signal.SIGHUP, signal.SIGINT, signal.SIGTERM)
BACKENDS: dict[str, dict[str, int]] = {
    # Batches of few sizes, since for each new one the model is compiled.
    "tiny": {"max_lora_adapters": 16, "max_lora_rank": 8, "sample_max_num_sequences": 8},
    "smollm2": {
        "max_lora_adapters": 2,
        "max_lora_rank": 8,
        "sample_max_num_sequences": 8,
        "train_micro_batch_size": 16,
    },
}


@dataclass(frozen=True)
class Server:
    """A server that runs.

    Attributes:
        process: What it runs as.
        url: Its address.
        model: The folder of its model, which is also the model's name.
        log: The file of its output.
    """

    process: subprocess.Popen[Any]
    url: str
    model: Path
    log: Path

    def error(self, how: str) -> SetupError:
        """Say what became of it, with the end of its output."""
        code = self.process.poll()
        how = how if code is None else f"ended with code {code}"
        text = self.log.read_text(encoding="utf-8", errors="replace")
        return SetupError(f"the server {how}; {self.log} tells all:\n{tail(text)}")

    @property
    def variables(self) -> dict[str, str]:
        """The environment variables by which Tinker's SDK finds it."""
        others = os.environ.get("no_proxy") or os.environ.get("NO_PROXY")
        # A proxy would look for the server on its own machine.
        direct = f"{others},{HOST}" if others else HOST
        return {
            "TINKER_BASE_URL": self.url,
            "TINKER_API_KEY": KEY,
            "TINKER_MODEL": str(self.model),
            "TINKER_TELEMETRY": "0",
            "HF_HUB_OFFLINE": "1",  # the tokenizer is in the model's folder
            "NO_PROXY": direct,
            "no_proxy": direct,
        }


@contextmanager
def serve(
    setup: Setup, model: str, *, port: int = 0, log: Path | None = None, patience: float = 180
) -> Generator[Server]:
    """Run a server, and end its processes however the block ends, or this process.

    Args:
        setup: Where the environment and the model are, which must have been made.
        model: "tiny" or "smollm2".
        port: Where to listen; 0 takes a free one.
        log: The file of its output; by default one in the folder, named after the model and the port.
        patience: How many seconds it may take to begin.

    Raises:
        SetupError: The port is taken, the log cannot be written, or the server ended or did not answer
            in time.
    """
    path = setup.make_model(model)
    with (
        tempfile.TemporaryDirectory(prefix="tinker-server-") as scratch,
        socket.socket() as listener,
    ):
        port = _bind(listener, port)
        log = log or setup.folder / f"server-{model}-{port}.log"
        config: dict[str, Any] = {
            "base_model": str(path),
            "backend": "jax",
            "backend_config": BACKENDS[model],
            "checkpoints_base": f"{scratch}/checkpoints",
            "database_url": f"sqlite:///{scratch}/tinker.db",
            "session_timeout_sec": 60,
        }
        fd = listener.fileno()
        launcher = [str(setup.python), str(SCRIPTS / "skyrl_launcher.py"), "serve", str(fd)]
        with (
            _open(log) as output,
            running(
                [*launcher, json.dumps(config)],
                env={**os.environ, **_server_variables(setup)},
                pass_fds=[fd],
                stderr=output,
                stdin=subprocess.PIPE,  # by whose end the launcher knows of ours
                stdout=output,
            ) as process,
        ):
            listener.close()
            server = Server(process, f"http://{HOST}:{port}", path, log)
            _wait(server, port, patience)
            yield server


def _bind(listener: socket.socket, port: int) -> int:
    """Take a port, and return its number."""
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((HOST, port))
    except (OSError, OverflowError) as error:
        msg = f"cannot listen on port {port} ({error}); without --port a free one is taken"
        raise SetupError(msg) from error
    return int(listener.getsockname()[1])


def _open(log: Path) -> TextIO:
    try:
        return log.open("w", encoding="utf-8")
    except OSError as error:
        msg = f"cannot write {log}: {error.strerror}; name another file with --log"
        raise SetupError(msg) from error


def _server_variables(setup: Setup) -> dict[str, str]:
    return {
        "HF_HUB_OFFLINE": "1",
        "JAX_PLATFORMS": "cpu",
        "JAX_COMPILATION_CACHE_DIR": str(setup.folder / "jax"),
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
    }


def _wait(server: Server, port: int, patience: float) -> None:
    """Wait until the server is healthy."""
    end = time.monotonic() + patience
    while server.process.poll() is None and time.monotonic() < end:
        connection = http.client.HTTPConnection(HOST, port, timeout=5)
        try:
            connection.request("GET", "/api/v1/healthz")
            if connection.getresponse().status == http.HTTPStatus.OK:
                return
        except OSError:
            time.sleep(0.1)
        finally:
            connection.close()
    raise server.error(f"did not answer within {patience:g} s")


def run(server: Server, command: list[str]) -> int:
    """Run a command with the server's address, and return its exit code as a shell tells it.

    Raises:
        SetupError: There is no such command, or the server ended before it did.
    """
    try:
        # Python takes SIGINT for Ctrl-C, and cleans up.
        with running(
            command, first=signal.SIGINT, env={**os.environ, **server.variables}
        ) as process:
            while True:
                code = process.poll()
                if server.process.poll() is not None:
                    raise server.error("ended")
                if code is not None:
                    return code if code >= 0 else 128 - code
                time.sleep(0.1)
    except OSError as error:
        msg = f"cannot run {command[0]!r}: {error.strerror}"
        raise SetupError(msg) from error


def show(server: Server) -> NoReturn:
    """Print how to reach the server, and wait for its end or a signal."""
    for name, value in server.variables.items():
        print(f"{name}={value}", flush=True)
    print(f"output in {server.log}; Ctrl-C ends the server", file=sys.stderr, flush=True)
    server.process.wait()
    raise server.error("ended")


def _split(arguments: list[str]) -> tuple[list[str], list[str]]:
    """Return what comes before the first `--`, and after it."""
    at = arguments.index("--") if "--" in arguments else len(arguments)
    return arguments[:at], arguments[at + 1 :]


def end(number: int, frame: FrameType | None) -> NoReturn:
    """End this process, and what its blocks have begun, which takes its time."""
    for each in SIGNALS:
        signal.signal(each, signal.SIG_IGN)
    sys.exit(128 + number)


def main() -> None:
    """Do what the arguments say."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument(
        "--folder",
        type=Path,
        default=FOLDER,
        help="where all is kept; TINKER_SERVER_FOLDER, or %(default)s",
    )
    parts = parser.add_subparsers(dest="what", required=True)
    parts.add_parser("install", parents=[common], help="make the server's environment")
    for name, text in (("model", "make a model, print its folder"), ("run", "run the server")):
        part = parts.add_parser(name, parents=[common], help=text)
        part.add_argument(
            "model",
            choices=MODEL_GB,
            help="tiny: random weights, for tests; smollm2: SmolLM2-135M-Instruct",
        )
    part.add_argument("--port", type=int, default=0, help="by default a free one")
    part.add_argument("--log", type=Path, help="file of the server's output")
    part.epilog = "-- COMMAND ...: what to run meanwhile"
    own, command = _split(sys.argv[1:])
    arguments = parser.parse_args(own)
    if command and arguments.what != "run":
        parser.error(f"{arguments.what} runs no command: write run MODEL -- COMMAND")
    for number in SIGNALS:
        if signal.getsignal(number) != signal.SIG_IGN:  # as nohup has SIGHUP
            signal.signal(number, end)
    setup = Setup(arguments.folder.absolute())
    try:
        setup.install()
        if arguments.what == "install":
            print(f"the server is in {setup.folder}")
        if arguments.what == "model":
            print(setup.make_model(arguments.model))
        if arguments.what == "run":
            with serve(setup, arguments.model, port=arguments.port, log=arguments.log) as server:
                sys.exit(run(server, command) if command else show(server))
    except SetupError as error:
        sys.exit(f"tinker_server.py: {error}")


if __name__ == "__main__":
    main()
