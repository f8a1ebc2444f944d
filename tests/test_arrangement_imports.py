"""What may import what: declared dependencies, sibling bounds, and the layers inside core."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import rolloutlib
from release import read_project, read_requirements, unmet_bounds

PACKAGES = Path(__file__).parents[1] / "packages"
CORE = "rolloutlib-core"


@dataclass(frozen=True)
class Import:
    """A module that a file imports; `optional` if it may do without it until it needs it."""

    file: Path
    line: int
    module: str
    optional: bool

    def __str__(self) -> str:
        return f"{self.file.relative_to(PACKAGES)}:{self.line}: {self.module}"


DISTRIBUTIONS = sorted(path.parent.name for path in PACKAGES.glob("*/pyproject.toml"))
WITH_CODE = [name for name in DISTRIBUTIONS if (PACKAGES / name / "src").is_dir()]
# Comes with a dependency, and is named for type checkers alone.
THROUGH_ANOTHER = {"rolloutlib-openai": {"httpx2"}}  # openai, from its version 3 on
INSTALLED = packages_distributions()  # reads the metadata of all that is installed, so once


def declared(distribution: str) -> set[str]:
    """What a package cannot do without."""
    lines = read_project(PACKAGES, distribution).get("dependencies", [])
    return {canonicalize_name(Requirement(line).name) for line in lines}


def visit(node: ast.AST, file: Path, *, optional: bool) -> Iterator[Import]:
    if isinstance(node, ast.Import):
        for alias in node.names:
            yield Import(file, node.lineno, alias.name, optional)
    elif isinstance(node, ast.ImportFrom):
        assert not node.level, f"{file}:{node.lineno}: a relative import"
        for alias in node.names:
            yield Import(file, node.lineno, f"{node.module}.{alias.name}", optional)
    elif (
        isinstance(node, ast.Call)
        and ast.unparse(node.func).endswith("import_module")
        and isinstance(node.args[0], ast.Constant)
    ):
        yield Import(file, node.lineno, str(node.args[0].value), optional)
    deferring = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Try)
    if isinstance(node, ast.If):
        deferring = ast.unparse(node.test).endswith("TYPE_CHECKING")
    for child in ast.iter_child_nodes(node):
        yield from visit(child, file, optional=optional or deferring)


def imports(distribution: str) -> list[Import]:
    found: list[Import] = []
    for file in sorted((PACKAGES / distribution / "src").rglob("*.py")):
        found += visit(ast.parse(file.read_text(encoding="utf-8")), file, optional=False)
    return found


def owner(module: str) -> str | None:
    """The distribution that a module comes from, None for the standard library."""
    top, _, rest = module.partition(".")
    if top in sys.stdlib_module_names:
        return None
    if top == "rolloutlib":
        part = rest.partition(".")[0]
        sibling = f"rolloutlib-{part}"
        return sibling if (PACKAGES / sibling / "src" / "rolloutlib" / part).is_dir() else CORE
    # A package of an extra need not be installed; its distribution is named like it.
    return canonicalize_name(INSTALLED.get(top, [top])[0])


@pytest.mark.parametrize("distribution", WITH_CODE)
def test_a_package_imports_only_what_it_declares(distribution: str) -> None:
    needed = declared(distribution)
    extra = {canonicalize_name(r.name) for r in read_requirements(PACKAGES, distribution)}
    extra |= THROUGH_ANOTHER.get(distribution, set())
    own = {distribution, None}
    undeclared = [
        str(found)
        for found in imports(distribution)
        if owner(found.module) not in own | (extra if found.optional else needed)
    ]
    assert undeclared == []


@pytest.mark.parametrize("distribution", WITH_CODE)
def test_a_package_declares_only_what_it_imports(distribution: str) -> None:
    used = {owner(found.module) for found in imports(distribution)}
    assert declared(distribution) - used == set()


def test_core_never_imports_a_sibling_and_siblings_not_each_other() -> None:
    allowed = {
        CORE: {CORE},
        "rolloutlib-evals": {
            CORE,
            "rolloutlib-evals",
            "rolloutlib-openai",
        },  # for the command alone
        "rolloutlib-graders": {CORE, "rolloutlib-graders"},
        "rolloutlib-openai": {CORE, "rolloutlib-openai"},
        "rolloutlib-tinker": {CORE, "rolloutlib-tinker"},
    }
    for distribution, ours in allowed.items():
        found = {owner(found.module) for found in imports(distribution)}
        assert {name for name in found if name and name.startswith("rolloutlib")} <= ours


@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
def test_sibling_bounds_admit_the_versions_of_the_workspace(distribution: str) -> None:
    assert list(unmet_bounds(PACKAGES, distribution)) == []
    for requirement in read_requirements(PACKAGES, distribution):
        if requirement.name in DISTRIBUTIONS and requirement.name != distribution:
            operators = {specifier.operator for specifier in requirement.specifier}
            assert operators == {">=", "<"}, str(requirement)


def test_the_version_in_the_code_is_that_of_core() -> None:
    assert rolloutlib.__version__ == read_project(PACKAGES, CORE)["version"]


MAY_IMPORT = {
    "private": set[str](),
    "types": {"private"},
    "scores": {"private"},
    "answers": set[str](),
    "spaces": {"private", "types", "scores"},
    "tools": {"private", "types", "spaces"},
    "envs": {"private", "types", "scores", "spaces", "tools"},
    "rollouts": {"private", "types", "scores", "spaces", "envs"},
    "testing": {"private", "scores", "envs", "rollouts"},
    "training": {"private", "types", "scores", "spaces", "envs", "rollouts"},
    "storage": {"private", "types", "scores", "spaces", "envs", "rollouts"},
    "datasets": set[str](),
}


def layer(parts: list[str]) -> str:
    """The layer of a dotted path inside core, given without the leading `rolloutlib`."""
    return "private" if parts[0].startswith("_") else parts[0]


def test_layers_of_core_point_one_way() -> None:
    root = PACKAGES / CORE / "src" / "rolloutlib"
    wrong: list[str] = []
    for found in imports(CORE):
        here = layer(list(found.file.relative_to(root).with_suffix("").parts))
        if found.file == root / "__init__.py" or found.module.partition(".")[0] != "rolloutlib":
            continue
        there = layer(found.module.split(".")[1:])
        if there != here and there not in MAY_IMPORT[here]:
            wrong.append(str(found))
    assert wrong == []


def test_all_brings_what_every_extra_of_every_package_brings() -> None:
    extras = read_project(PACKAGES, "rolloutlib")["optional-dependencies"]
    [everything] = map(Requirement, extras.pop("all"))
    assert (everything.name, everything.extras) == ("rolloutlib", set(extras))
    passed_on = {
        (requirement.name, extra)
        for lines in extras.values()
        for requirement in map(Requirement, lines)
        for extra in requirement.extras
    }
    assert passed_on == {
        (name, extra)
        for name in WITH_CODE
        for extra in read_project(PACKAGES, name).get("optional-dependencies", {})
    }
