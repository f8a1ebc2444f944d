"""Scores by item: what statistics take, and what they refuse."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from rolloutlib.evals.statistics import group_scores, mean_score, pass_at_k


def test_two_arrays_become_scores_by_item() -> None:
    assert group_scores([1, 0, None], ["a", "b", "a"]) == {"a": [1, None], "b": [0]}
    grouped = group_scores(np.array([1.0, 0.5, 0.0]), np.array([7, 8, 7]))
    assert grouped == {7: [1.0, 0.0], 8: [0.5]}
    assert mean_score(grouped).value == 0.5


def test_two_arrays_of_different_lengths_are_refused() -> None:
    with pytest.raises(ValueError, match="got 2 scores and 1 ids"):
        group_scores([1, 0], ["a"])


@pytest.mark.parametrize(
    "scores",
    [
        {"a": [1, 0], "b": 1},
        {"a": (True, False), "b": [True]},
        {"a": np.array([1, 0]), "b": np.float32(1)},
        {"a": np.array([1.0, 0.0]), "b": np.array(1.0)},
        {"a": range(2), "b": np.array([1], dtype=np.uint8)},
    ],
)
def test_scores_come_as_numbers_flags_sequences_and_arrays(scores: Any) -> None:
    estimate = mean_score(scores)
    assert (estimate.value, estimate.num_items, estimate.num_samples) == (0.75, 2, 3)


def test_what_is_no_mapping_is_refused_with_the_remedy() -> None:
    with pytest.raises(TypeError, match=r"got list; group_scores\(scores, items\)"):
        mean_score([1.0, 0.0])  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("value", "error", "message"),
    [
        ([1, math.inf], ValueError, "score 1 of item 'a' must be finite, got inf"),
        ([1, "yes"], TypeError, "score 1 of item 'a' must be a real number, got 'yes'"),
        ("10", TypeError, "score 0 of item 'a' must be a real number, got '10'"),
        (b"10", TypeError, "score 0 of item 'a' must be a real number, got b'10'"),
        (np.array([1.0, np.inf]), ValueError, "score 1 of item 'a' must be finite, got inf"),
        ([], ValueError, "item 'a' has no samples; leave it out, or give None"),
    ],
)
def test_what_is_no_score_is_refused_by_item(
    value: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        mean_score({"a": value})


def test_failed_samples_count_zero_and_the_bounds_say_what_they_hide() -> None:
    estimate = mean_score({"a": [1, None], "b": [1, math.nan], "c": np.array([0.5, np.nan])})
    assert estimate.value == pytest.approx(2.5 / 6)
    assert estimate.bounds == pytest.approx((2.5 / 6, 5.5 / 6))
    assert (estimate.num_samples, estimate.num_failed, estimate.num_left_out) == (6, 3, 0)
    assert "3 failed: 0.4167 if they score 0, 0.9167 if 1" in str(estimate)


@pytest.mark.parametrize("width", [np.float16, np.float32, np.float64, float])
def test_nan_of_any_width_is_a_sample_that_failed(width: Any) -> None:
    column = np.array([1, np.nan, 0], dtype=width)
    for scores in (
        group_scores(column, ["a", "a", "b"]),
        {"a": [1, width("nan")], "b": column[2:]},
    ):
        estimate = mean_score(scores)
        assert (estimate.value, estimate.num_failed) == (0.25, 1)


def test_failed_samples_may_score_something_else_or_be_left_out() -> None:
    scores = {"a": [1, None], "b": [None, None]}
    assert mean_score(scores, failed=-1).value == -0.5
    left_out = mean_score(scores, failed=None)
    assert left_out.value == 1
    assert left_out.bounds == (0.25, 1)
    assert (left_out.num_items, left_out.num_left_out, left_out.num_failed) == (1, 1, 3)
    assert "1 items left out" in str(left_out)


def test_a_failed_sample_is_an_attempt_that_did_not_solve() -> None:
    estimate = pass_at_k({"a": [1, None, 0]}, 1)
    assert estimate.value == pytest.approx(1 / 3)
    assert estimate.bounds == pytest.approx((1 / 3, 2 / 3))
    assert pass_at_k({"a": [1, None, 0]}, 2, failed=None).value == 1


def test_a_name_says_what_is_not_usual() -> None:
    scores = {"a": [1, 0.5, None], "b": [0, 0, 0]}
    assert mean_score(scores, failed=None).name == "mean, failed left out"
    assert mean_score(scores, failed=-1).name == "mean, failed score -1"
    solved = pass_at_k(scores, 2, threshold=0.5, failed=None)
    assert solved.name == "pass@2, threshold 0.5, failed left out"
