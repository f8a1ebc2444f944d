"""What tells the graders of answers from each other, where grades are kept."""

from __future__ import annotations

from typing import Any

import pytest

from rolloutlib.graders import (
    CachedGrader,
    ChoiceMatch,
    ExactMatch,
    GradeCache,
    MathMatch,
    NumericMatch,
    RegexMatch,
    SchemaMatch,
)

GRADERS: list[Any] = [
    ChoiceMatch(),
    ChoiceMatch(["Rome", "Bern"]),
    ExactMatch(),
    ExactMatch(ignore_case=True),
    MathMatch(),
    MathMatch(unevaluated=True),
    NumericMatch(),
    NumericMatch(relative=0.1),
    RegexMatch(),
    RegexMatch(search=True),
    SchemaMatch(),
    SchemaMatch(time_limit=9),
]


def test_grades_are_kept_apart_by_kind_and_options() -> None:
    assert len({grader.fingerprint for grader in GRADERS}) == len(GRADERS)
    with GradeCache() as cache:
        graders = [
            CachedGrader[str, str](grader, cache) for grader in (ExactMatch(), NumericMatch())
        ]
        for _ in range(2):
            assert [grader.score("The answer is 42.0.", "42").value for grader in graders] == [
                0.0,
                1.0,
            ]
        assert (cache.misses, cache.hits) == (2, 2)


def test_neither_the_object_nor_the_number_of_processes_matters() -> None:
    assert ExactMatch().fingerprint == ExactMatch().fingerprint
    assert MathMatch(num_workers=1).fingerprint == MathMatch(num_workers=2).fingerprint


def test_packages_that_grade_are_named_with_their_versions() -> None:
    assert "rolloutlib-graders 0." in ExactMatch().fingerprint
    assert "math-verify 0." in MathMatch().fingerprint


class Strict(ExactMatch):
    """A user's own grader."""


def test_a_subclass_needs_a_fingerprint_of_its_own() -> None:
    with GradeCache() as cache, pytest.raises(TypeError, match="needs a `fingerprint`"):
        CachedGrader(Strict(), cache)
