"""avg@k, pass@k, pass^k and maj@k, against their definitions over all subsets."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rolloutlib.evals.statistics import (
    Estimate,
    Scores,
    avg_at_k,
    maj_at_k,
    mean_score,
    pass_at_k,
    pass_hat_k,
)

outcomes = st.lists(st.sampled_from([0.0, 1.0]), min_size=1, max_size=7)
of_k: list[Callable[[Scores, int], Estimate]] = [avg_at_k, pass_at_k, pass_hat_k]
every_estimator = pytest.mark.parametrize("estimator", of_k)


def over_subsets(values: Sequence[Any], k: int, of: Callable[[Sequence[Any]], float]) -> float:
    return float(np.mean([of(subset) for subset in itertools.combinations(values, k)]))


@given(outcomes, st.data())
def test_each_is_the_mean_over_all_subsets(scores: list[float], data: Any) -> None:
    k = data.draw(st.integers(1, len(scores)))
    assert avg_at_k({0: scores}, k).value == pytest.approx(over_subsets(scores, k, np.mean))
    assert pass_at_k({0: scores}, k).value == pytest.approx(over_subsets(scores, k, max))
    assert pass_hat_k({0: scores}, k).value == pytest.approx(over_subsets(scores, k, min))


def test_pass_at_k_is_the_formula_of_its_paper() -> None:
    # The numerically stable form that Chen et al. give in figure 3.
    for n, c, k in [(10, 3, 1), (10, 3, 5), (200, 7, 100), (200, 150, 100), (5, 0, 5), (5, 5, 2)]:
        stable = 1 - np.prod(1 - k / np.arange(n - c + 1, n + 1)) if n - c >= k else 1.0
        found = pass_at_k({0: [1] * c + [0] * (n - c)}, k).value
        assert found == pytest.approx(stable, rel=1e-12)


def test_many_samples_neither_overflow_nor_lose_small_chances() -> None:
    scores = [1] + [0] * 4999
    assert pass_at_k({0: scores}, 2500).value == 0.5
    assert pass_at_k({0: scores}, 1).value == 1 / 5000
    assert pass_hat_k({0: [1] * 4999 + [0]}, 2500).value == 0.5


@given(outcomes)
def test_one_attempt_is_the_mean(scores: list[float]) -> None:
    mean = pytest.approx(mean_score({0: scores}).value)
    assert [estimator({0: scores}, 1).value for estimator in of_k] == [mean] * 3


@given(outcomes)
def test_more_attempts_pass_more_often_at_least_once_and_less_often_always(
    scores: list[float],
) -> None:
    ks = range(1, len(scores) + 1)
    at_least_once = [pass_at_k({0: scores}, k).value for k in ks]
    always = [pass_hat_k({0: scores}, k).value for k in ks]
    assert at_least_once == sorted(at_least_once)
    assert always == sorted(always, reverse=True)
    assert all(0 <= low <= high <= 1 for low, high in zip(always, at_least_once, strict=True))


def test_they_are_means_over_items_with_errors_and_names() -> None:
    scores = {"a": [1, 0, 0], "b": [1, 1, 1, 0], "c": [0, 0]}
    estimate = pass_at_k(scores, 2)
    values = [2 / 3, 1, 0]
    assert list(estimate.item_values.values()) == pytest.approx(values)
    assert estimate.value == pytest.approx(np.mean(values))
    assert estimate.standard_error == pytest.approx(np.std(values, ddof=1) / math.sqrt(3))
    names = [estimator(scores, 2).name for estimator in of_k]
    assert names == ["avg@2", "pass@2", "pass^2"]


def test_the_threshold_says_what_solves() -> None:
    scores = {0: [0.9, 0.5, 0.2]}
    assert pass_at_k(scores, 1).value == 0
    assert pass_at_k(scores, 1, threshold=0.5).value == pytest.approx(2 / 3)
    assert pass_hat_k(scores, 2, threshold=0.5).value == pytest.approx(1 / 3)


@every_estimator
def test_more_attempts_than_samples_are_refused(estimator: Any) -> None:
    with pytest.raises(
        ValueError, match="k = 3 needs as many samples of each item, and 'b' has n = 2"
    ):
        estimator({"a": [1, 0, 1], "b": [1, 0]}, 3)
    with pytest.raises(ValueError, match=r"'a' has n = 1 \(1 failed ones left out\)"):
        estimator({"a": [1, None]}, 2, failed=None)
    with pytest.raises(ValueError, match="k must be at least 1, got 0"):
        estimator({"a": [1]}, 0)
    with pytest.raises(TypeError, match=r"k must be an integer, got 1\.0"):
        estimator({"a": [1]}, 1.0)


def vote(ballots: Sequence[tuple[str | None, float]]) -> float:
    """The expected score of the most frequent answer, ties broken by chance."""
    counts = Counter(answer for answer, _ in ballots if answer is not None)
    if not counts:
        return 0.0
    most = max(counts.values())
    scores = dict(ballots)
    return float(np.mean([scores[answer] for answer, count in counts.items() if count == most]))


SCORE = {"a": 1.0, "b": 0.0, "c": 0.5, "d": 0.0, None: 0.0}


@given(st.lists(st.sampled_from(["a", "b", "c", "d", None]), min_size=1, max_size=8), st.data())
def test_maj_at_k_is_the_mean_over_all_subsets(answers: list[str | None], data: Any) -> None:
    k = data.draw(st.integers(1, len(answers)))
    scores = [SCORE[answer] for answer in answers]
    expected = over_subsets(list(zip(answers, scores, strict=True)), k, vote)
    assert maj_at_k({0: answers}, {0: scores}, k).value == pytest.approx(expected)


def test_maj_at_k_of_many_samples_is_right_and_quick() -> None:
    # 40 of 64 samples agree on the right answer and the others on a wrong one: hypergeometric.
    answers = ["73"] * 40 + ["37"] * 24
    scores = [1] * 40 + [0] * 24
    k = 15
    subsets = math.comb(64, k)
    expected = sum(math.comb(40, c) * math.comb(24, k - c) for c in range(8, k + 1)) / subsets
    assert maj_at_k({0: answers}, {0: scores}, k).value == pytest.approx(expected, rel=1e-10)
    estimate = maj_at_k({0: list(range(64))}, {0: [1] + [0] * 63}, 32)  # every answer another
    assert estimate.value == pytest.approx(1 / 64)
    large = maj_at_k({0: [1] * 1200 + [0] * 800}, {0: [1] * 1200 + [0] * 800}, 3)
    assert large.value == pytest.approx(0.648, abs=1e-3)


def test_maj_at_k_is_as_exact_where_answers_have_a_long_tail() -> None:
    # One answer of two votes among 62 that differ: it wins if both of its votes are drawn.
    answers = ["73", "73", *range(62)]
    both = math.comb(62, 30) / math.comb(64, 32)
    one = 2 * math.comb(62, 31) / math.comb(64, 32)
    estimate = maj_at_k({0: answers}, {0: [1, 1] + [0] * 62}, 32)
    assert estimate.value == pytest.approx(both + one / 32, rel=1e-10)


def test_ties_go_to_each_answer_with_the_same_chance() -> None:
    assert maj_at_k({0: ["a", "b"]}, {0: [1, 0]}, 2).value == pytest.approx(0.5)
    assert maj_at_k({0: ["a", "a", "b", "b", "c"]}, {0: [1, 1, 0, 0, 0]}, 5).value == pytest.approx(
        0.5
    )


def test_samples_without_an_answer_do_not_vote() -> None:
    answers = ["a", None, None]
    assert maj_at_k({0: answers}, {0: [1, 0, 0]}, 3).value == pytest.approx(1)
    assert maj_at_k({0: answers}, {0: [1, 0, 0]}, 2).value == pytest.approx(2 / 3)
    assert maj_at_k({0: [None]}, {0: [0]}, 1).value == 0
    nan = float("nan")
    assert maj_at_k({0: np.array([nan, nan, 5])}, {0: [0, 0, 1]}, 3).value == 1
    assert maj_at_k({0: [nan, nan, 5]}, {0: [0, 0, 1]}, 3).value == 1


def test_failed_votes_are_bounded_by_answers_that_are_wrong_and_right() -> None:
    estimate = maj_at_k({0: ["a", "b", None, None]}, {0: [1, 0, None, None]}, 4)
    assert estimate.value == pytest.approx(0.5)
    assert estimate.bounds == pytest.approx((0, 1))
    assert (estimate.num_samples, estimate.num_failed, estimate.name) == (4, 2, "maj@4")
    joined = maj_at_k({0: ["a", "b", "b", None]}, {0: [1, 0, 0, None]}, 4)
    assert joined.bounds == (0, 0.5)  # with the one right vote there is, it ties


def test_votes_need_an_answer_for_each_score() -> None:
    with pytest.raises(ValueError, match="item 0 must have one answer a score, got 1 and 2"):
        maj_at_k({0: ["a"]}, {0: [1, 0]}, 1)
    with pytest.raises(ValueError, match="must be of the same items, got 1 in one alone"):
        maj_at_k({0: ["a"], 1: ["b"]}, {0: [1]}, 1)
    with pytest.raises(
        ValueError, match="k = 2 needs as many samples of each item, and 0 has n = 1"
    ):
        maj_at_k({0: ["a"]}, {0: [1]}, 2)
    wrong: Any
    for wrong in ("42", 42):
        with pytest.raises(TypeError, match=r"item 0 must have a sequence of answers, .* got '?42"):
            maj_at_k({0: wrong}, {0: [1, 0]}, 1)
    wrong = [["a"]]
    with pytest.raises(TypeError, match=r"answers must map the id of each item .*, got list"):
        maj_at_k(wrong, {0: [1]}, 1)


def failed_filled_in(
    answers: list[str | None], scores: list[float | None], k: int, pool: str
) -> list[float]:
    """What the estimate is for each way in which the failed samples might have answered."""
    lost = [index for index, score in enumerate(scores) if score is None]
    values: list[float] = []
    for filled in itertools.product(pool, repeat=len(lost)):
        given = dict(zip(lost, filled, strict=True))
        full = [given.get(index, answer) for index, answer in enumerate(answers)]
        right = [0.0 if answer is None else float(answer.isupper()) for answer in full]
        values.append(maj_at_k({0: full}, {0: right}, k).value)
    return values


@settings(max_examples=50)
@given(
    st.lists(st.tuples(st.sampled_from("ABcd "), st.booleans()), min_size=1, max_size=6).filter(
        lambda votes: sum(lost for _, lost in votes) <= 3
    ),
    st.data(),
)
def test_no_answers_of_failed_samples_lie_beyond_the_bounds(
    votes: list[tuple[str, bool]], data: Any
) -> None:
    answers = [None if answer == " " else answer for answer, _ in votes]
    scores = [
        None if lost else 0.0 if answer is None else float(answer.isupper())
        for answer, (_, lost) in zip(answers, votes, strict=True)
    ]
    k = data.draw(st.integers(1, len(votes)))
    low, high = maj_at_k({0: answers}, {0: scores}, k).bounds
    values = failed_filled_in(answers, scores, k, "ABXcdx")
    assert low - 1e-9 <= min(values)
    assert max(values) <= high + 1e-9
