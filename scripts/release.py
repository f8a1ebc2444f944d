# /// script
# requires-python = ">=3.11"
# dependencies = ["packaging>=26"]
# ///
"""Check a release, or print its notes.

A tag such as `rolloutlib-graders-v0.3.1` releases one package. `check TAG` makes sure that the
package exists, that its version is the tag's, that its changelog has a dated section about it, and
that the bounds among the packages of this repository hold. `notes TAG` prints that section.
"""

from __future__ import annotations

import argparse
import re
import sys
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.version import InvalidVersion, Version

PACKAGES = Path(__file__).parents[1] / "packages"


class ReleaseError(Exception):
    """A release that must not be made; the message says why."""


@dataclass(frozen=True)
class Release:
    """One package at one version.

    Attributes:
        distribution: The name of the package, which is also that of its folder.
        version: Its version.
        packages: The folder of all packages.
    """

    distribution: str
    version: Version
    packages: Path

    @classmethod
    def from_tag(cls, tag: str, packages: Path) -> Release:
        """Read a tag `<distribution>-v<version>`.

        Raises:
            ReleaseError: The tag has another form, or there is no such package.
        """
        distribution, _, text = tag.rpartition("-v")
        known = sorted(path.parent.name for path in packages.glob("*/pyproject.toml"))
        if distribution not in known:
            msg = f"the tag {tag!r} is not <distribution>-v<version> for one of {', '.join(known)}"
            raise ReleaseError(msg)
        try:
            version = Version(text)
        except InvalidVersion as error:
            msg = f"the tag {tag!r} ends in {text!r}, which is not a version"
            raise ReleaseError(msg) from error
        if str(version) != text:
            msg = f"the tag {tag!r} should end in {version}, the normal form of its version"
            raise ReleaseError(msg)
        return cls(distribution, version, packages)

    def section(self) -> tuple[str, str]:
        """Return the heading and the text of the changelog's section about this version.

        Raises:
            ReleaseError: There is no such section.
        """
        path = self.packages / self.distribution / "CHANGELOG.md"
        for part in re.split(r"^## ", path.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]:
            heading, _, text = part.partition("\n")
            if heading.split()[:1] == [str(self.version)]:
                return heading, text.strip()
        msg = f"{self.distribution}/CHANGELOG.md has no section '## {self.version} - <date>'"
        raise ReleaseError(msg)

    def problems(self) -> Iterator[str]:
        """Yield what keeps this release from being made."""
        declared = read_project(self.packages, self.distribution)["version"]
        if declared != str(self.version):
            yield f"{self.distribution}/pyproject.toml has the version {declared}, not {self.version}"
        try:
            heading, text = self.section()
        except ReleaseError as error:
            yield str(error)
        else:
            place = f"the section {heading!r} of {self.distribution}/CHANGELOG.md"
            if not is_date(heading.removeprefix(f"{self.version} - ")):
                yield f"{place} must read '{self.version} - YYYY-MM-DD'"
            if not text:
                yield f"{place} is empty"
        yield from unmet_bounds(self.packages, self.distribution)


def read_project(packages: Path, distribution: str) -> dict[str, Any]:
    """Return the `[project]` table of a package."""
    with (packages / distribution / "pyproject.toml").open("rb") as file:
        return tomllib.load(file)["project"]


def read_requirements(packages: Path, distribution: str) -> list[Requirement]:
    """Return what a package depends on, extras included."""
    project = read_project(packages, distribution)
    lines: list[str] = list(project.get("dependencies", []))
    for extra in project.get("optional-dependencies", {}).values():
        lines += extra
    return [Requirement(line) for line in lines]


def unmet_bounds(packages: Path, distribution: str) -> Iterator[str]:
    """Yield the bounds of a package on its siblings that their versions do not meet."""
    for requirement in read_requirements(packages, distribution):
        if (packages / requirement.name / "pyproject.toml").is_file():
            version = read_project(packages, requirement.name)["version"]
            if not requirement.specifier.contains(version, prereleases=True):
                yield f"{distribution} requires {requirement}, but that is at {version}"


def is_date(text: str) -> bool:
    """Tell whether the text is a day in the form YYYY-MM-DD."""
    try:
        return date.fromisoformat(text).isoformat() == text
    except ValueError:
        return False


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("action", choices=["check", "notes"])
    parser.add_argument("tag", help="for example rolloutlib-graders-v0.3.1")
    parser.add_argument("--packages", type=Path, default=PACKAGES, help="the folder of packages")
    options = parser.parse_args(arguments)
    try:
        release = Release.from_tag(options.tag, options.packages)
        if options.action == "notes":
            print(release.section()[1])
            return 0
        found = list(release.problems())
    except ReleaseError as error:
        found = [str(error)]
    for problem in found:
        print(f"release: {problem}", file=sys.stderr)
    if not found:
        print(f"{options.tag} can be released")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
