"""What must agree before a package is released, and the notes that the release shows."""

from __future__ import annotations

from pathlib import Path

import pytest

import release

PACKAGES = Path(__file__).parents[1] / "packages"
DISTRIBUTIONS = sorted(path.parent.name for path in PACKAGES.glob("*/pyproject.toml"))

CHANGELOG = """# Changelog

## 0.3.1 - 2026-12-24

### Fixed

- A judge that answers twice is asked again.

## 0.3.0 - 2026-11-29

- The first release.
"""


@pytest.fixture
def packages(tmp_path: Path) -> Path:
    """Two packages, of which graders is about to be released as 0.3.1."""
    write(tmp_path, "rolloutlib-core", 'version = "0.3.2"\n', "# Changelog\n")
    write(
        tmp_path,
        "rolloutlib-graders",
        'version = "0.3.1"\ndependencies = ["anyio>=4", "rolloutlib-core>=0.3,<0.4"]\n',
        CHANGELOG,
    )
    return tmp_path


def write(packages: Path, distribution: str, project: str, changelog: str) -> None:
    folder = packages / distribution
    folder.mkdir(exist_ok=True)
    (folder / "pyproject.toml").write_text(f'[project]\nname = "{distribution}"\n{project}')
    (folder / "CHANGELOG.md").write_text(changelog)


def run(packages: Path, action: str, tag: str) -> int:
    return release.main([action, tag, "--packages", str(packages)])


@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
def test_every_package_is_ready_for_release(distribution: str) -> None:
    version = release.read_project(PACKAGES, distribution)["version"]
    assert list(release.Release.from_tag(f"{distribution}-v{version}", PACKAGES).problems()) == []


def test_a_release_in_order_passes(packages: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(packages, "check", "rolloutlib-graders-v0.3.1") == 0
    assert "can be released" in capsys.readouterr().out


def test_notes_are_the_section_of_the_version(
    packages: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(packages, "notes", "rolloutlib-graders-v0.3.1") == 0
    assert capsys.readouterr().out == (
        "### Fixed\n\n- A judge that answers twice is asked again.\n"
    )


@pytest.mark.parametrize(
    ("tag", "reason"),
    [
        ("v0.3.1", "is not <distribution>-v<version>"),
        ("rolloutlib-judges-v0.3.1", "for one of rolloutlib-core, rolloutlib-graders"),
        ("rolloutlib-graders-0.3.1", "is not <distribution>-v<version>"),
        ("rolloutlib-graders-vnext", "'next', which is not a version"),
        ("rolloutlib-graders-v0.3.1-rc1", "should end in 0.3.1rc1"),
        ("rolloutlib-graders-v0.3.0", "has the version 0.3.1, not 0.3.0"),
        ("rolloutlib-graders-v0.4.0", "has no section '## 0.4.0 - <date>'"),
    ],
)
def test_a_wrong_tag_is_refused(
    packages: Path, capsys: pytest.CaptureFixture[str], tag: str, reason: str
) -> None:
    assert run(packages, "check", tag) == 1
    assert reason in capsys.readouterr().err


@pytest.mark.parametrize(
    ("section", "reason"),
    [
        ("## 0.3.1\n\n- A fix.\n", "must read '0.3.1 - YYYY-MM-DD'"),
        ("## 0.3.1 - soon\n\n- A fix.\n", "must read '0.3.1 - YYYY-MM-DD'"),
        ("## 0.3.1 - 2026-12-32\n\n- A fix.\n", "must read '0.3.1 - YYYY-MM-DD'"),
        ("## 0.3.1 - 2026-12-24\n\n## 0.3.0 - 2026-11-29\n\n- The first.\n", "is empty"),
        ("## 0.3.10 - 2026-12-24\n\n- Another.\n", "has no section '## 0.3.1 - <date>'"),
    ],
)
def test_a_changelog_that_does_not_tell_is_refused(
    packages: Path, capsys: pytest.CaptureFixture[str], section: str, reason: str
) -> None:
    (packages / "rolloutlib-graders" / "CHANGELOG.md").write_text(f"# Changelog\n\n{section}")
    assert run(packages, "check", "rolloutlib-graders-v0.3.1") == 1
    assert reason in capsys.readouterr().err


def test_a_bound_that_a_sibling_does_not_meet_is_refused(
    packages: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(packages, "rolloutlib-core", 'version = "0.4.0"\n', "# Changelog\n")
    assert run(packages, "check", "rolloutlib-graders-v0.3.1") == 1
    assert "but that is at 0.4.0" in capsys.readouterr().err


def test_bounds_of_extras_count_too(packages: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with (packages / "rolloutlib-graders" / "pyproject.toml").open("a") as file:
        file.write('[project.optional-dependencies]\nall = ["rolloutlib-core[parquet]>=0.9"]\n')
    assert run(packages, "check", "rolloutlib-graders-v0.3.1") == 1
    assert "rolloutlib-core[parquet]>=0.9, but that is at 0.3.2" in capsys.readouterr().err
