"""The built distributions: complete, disjoint, and working alone and together when installed.

They are built once and installed outside the checkout, with the versions of the dependencies that
the tests run with.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from email import message_from_bytes
from importlib.metadata import distributions
from itertools import combinations
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[1]
DISTRIBUTIONS = sorted(path.parent.name for path in ROOT.glob("packages/*/pyproject.toml"))
PARTS = {
    "rolloutlib-core": "",
    "rolloutlib-evals": "evals",
    "rolloutlib-graders": "graders",
    "rolloutlib-openai": "openai",
    "rolloutlib-tinker": "tinker",
}
ASSETS = (".css", ".html", ".js")


def run(*command: str | Path, cwd: Path) -> str:
    """Run a command that must succeed, and return what it prints."""
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="session")
def uv() -> str:
    found = os.environ.get("UV") or shutil.which("uv")
    if not found:
        pytest.skip("needs uv, to build and to install: pip install uv")
    return found


@pytest.fixture(scope="session")
def built(uv: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of all sdists, and of the wheels made from them."""
    folder = tmp_path_factory.mktemp("built")
    run(uv, "build", "--all-packages", "--out-dir", folder, cwd=ROOT)
    return folder


def only(folder: Path, pattern: str) -> Path:
    (found,) = folder.glob(pattern)
    return found


def wheel(folder: Path, distribution: str) -> Path:
    return only(folder, f"{distribution.replace('-', '_')}-[0-9]*.whl")


def wheel_files(path: Path) -> set[str]:
    with zipfile.ZipFile(path) as archive:
        return set(archive.namelist())


def source_files(distribution: str, *suffixes: str) -> set[str]:
    source = ROOT / "packages" / distribution / "src"
    return {
        path.relative_to(source).as_posix()
        for path in source.rglob("*")
        if path.suffix in suffixes and path.is_file()
    }


@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
def test_a_wheel_holds_its_sources_and_its_licence(built: Path, distribution: str) -> None:
    path = wheel(built, distribution)
    (code, info) = (set[str](), set[str]())
    for name in wheel_files(path):
        (info if ".dist-info/" in name else code).add(name)
    assert code == source_files(distribution, ".py", ".typed", *ASSETS)
    assert any(name.endswith("/licenses/LICENSE") for name in info)
    with zipfile.ZipFile(path) as archive:
        (name,) = (name for name in info if name.endswith("/METADATA"))
        metadata = message_from_bytes(archive.read(name))
    assert metadata["Metadata-Version"] == "2.4"
    assert metadata["License-Expression"] == "MIT"
    assert metadata["Requires-Python"] == ">=3.11"


@pytest.mark.parametrize("distribution", PARTS)
def test_a_wheel_says_that_it_is_typed(built: Path, distribution: str) -> None:
    marker = Path("rolloutlib", PARTS[distribution], "py.typed").as_posix()
    found = {name for name in wheel_files(wheel(built, distribution)) if name.endswith("py.typed")}
    assert found == {marker}


@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
def test_an_sdist_holds_the_package_and_nothing_else(built: Path, distribution: str) -> None:
    path = only(built, f"{distribution.replace('-', '_')}-[0-9]*.tar.gz")
    with tarfile.open(path) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    suffixes = (".py", ".pyi", ".typed", *ASSETS)
    sources = {f"src/{name}" for name in source_files(distribution, *suffixes)}
    own = {"CHANGELOG.md", "LICENSE", "PKG-INFO", "README.md", "pyproject.toml"}
    # hatchling always adds the .gitignore that it read, so that a build from the sdist honours it.
    assert names == sources | own | {".gitignore"}


def test_wheels_share_no_file(built: Path) -> None:
    for one, other in combinations(DISTRIBUTIONS, 2):
        assert not wheel_files(wheel(built, one)) & wheel_files(wheel(built, other))


class Installation:
    """A fresh environment outside the checkout."""

    def __init__(self, uv: str, folder: Path, built: Path, *names: str) -> None:
        self.folder = folder
        versions = {
            found.metadata["Name"]: found.version
            for found in distributions()
            if not found.metadata["Name"].startswith("rolloutlib")
        }
        constraints = folder / "constraints.txt"
        constraints.write_text("".join(f"{key}=={value}\n" for key, value in versions.items()))
        run(uv, "venv", "--python", sys.executable, folder / "venv", cwd=folder)
        self.python = only(folder / "venv", "[bS]*") / "python"
        wheels = [wheel(built, name) for name in DISTRIBUTIONS]
        overrides = folder / "overrides.txt"
        overrides.write_text(
            "".join(f"{n} @ {w.as_uri()}\n" for n, w in zip(DISTRIBUTIONS, wheels, strict=True))
        )
        install = (uv, "pip", "install", "--python", self.python)
        run(*install, "-c", constraints, "--override", overrides, *names, cwd=folder)

    def evaluate(self, code: str) -> str:
        return run(self.python, "-I", "-W", "error", "-c", code, cwd=self.folder).strip()

    def parts(self) -> list[str]:
        """Which siblings can be imported."""
        code = f"""
import importlib.util, json, rolloutlib
names = {[part for part in PARTS.values() if part]}
print(json.dumps([n for n in names if importlib.util.find_spec("rolloutlib." + n)]))
"""
        return json.loads(self.evaluate(code))


SETS: dict[str, tuple[list[str], list[str]]] = {
    "core": (["rolloutlib-core"], []),
    "graders": (["rolloutlib-graders"], ["graders"]),
    "evals": (["rolloutlib-evals"], ["evals"]),
    "openai": (["rolloutlib-openai"], ["openai"]),
    "tinker": (["rolloutlib-tinker"], ["tinker"]),
    "all": (
        ["rolloutlib", "rolloutlib-openai", "rolloutlib-tinker"],
        ["evals", "graders", "openai", "tinker"],
    ),
}


@pytest.fixture(scope="session", params=SETS)
def installed(
    request: pytest.FixtureRequest, uv: str, built: Path, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Installation, list[str]]:
    names, parts = SETS[request.param]
    return Installation(uv, tmp_path_factory.mktemp("installed"), built, *names), parts


def test_installed_parts_are_those_asked_for(installed: tuple[Installation, list[str]]) -> None:
    installation, parts = installed
    assert installation.parts() == parts


def test_installed_parts_import(installed: tuple[Installation, list[str]]) -> None:
    installation, parts = installed
    for part in ["types", "scores", "spaces", "envs", "rollouts", "datasets", *parts]:
        code = f"import rolloutlib; print(rolloutlib.{part}.__name__)"
        assert installation.evaluate(code) == f"rolloutlib.{part}"


def test_a_part_that_is_absent_says_what_to_install(
    installed: tuple[Installation, list[str]],
) -> None:
    installation, parts = installed
    for part in {"evals", "graders", "openai", "tinker"} - set(parts):
        code = f"""
import rolloutlib
try:
    rolloutlib.{part}
except AttributeError as error:
    print(error)
"""
        assert f"pip install rolloutlib-{part}" in installation.evaluate(code)


def test_every_public_name_is_typed(installed: tuple[Installation, list[str]]) -> None:
    installation, _ = installed
    check = (sys.executable, "-m", "pyright", "--outputjson", "--ignoreexternal")
    done = subprocess.run(
        (*check, "--verifytypes", "rolloutlib"),
        cwd=installation.folder,
        # The environment that pyright looks into is the first Python on PATH.
        env={**os.environ, "PATH": f"{installation.python.parent}{os.pathsep}{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=False,
    )
    found = json.loads(done.stdout)["typeCompleteness"]
    untyped = [
        f"{symbol['name']}: {symbol['diagnostics'][0]['message']}"
        for symbol in found["symbols"]
        if symbol["diagnostics"] and not symbol["isTypeKnown"]
    ]
    assert untyped == []
    assert found["completenessScore"] == 1
