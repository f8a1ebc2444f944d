"""Stopping when the interval is narrow: how often the interval is right, and what it costs."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rolloutlib.evals.statistics import ConfidenceSequence, mean_score


def taken(scores: list[float], width: float = 0.2) -> ConfidenceSequence:
    sequence = ConfidenceSequence(width)
    for score in scores:
        sequence.update(score)
    return sequence


def ever_wrong(chance: float, width: float, generator: np.random.Generator) -> bool:
    """Whether any interval missed the mean until the run stopped."""
    sequence, wrong = ConfidenceSequence(width), False
    while not sequence.is_narrow:
        sequence.update(float(generator.random() < chance))
        interval = sequence.interval
        wrong |= not interval.low <= chance <= interval.high
    return wrong


@pytest.mark.slow
@pytest.mark.parametrize("chance", [0.5, 0.9, 0.98])
def test_all_intervals_until_the_stop_hold_at_once(chance: float) -> None:
    generator = np.random.default_rng(0)
    wrong = [ever_wrong(chance, 0.2, generator) for _ in range(200)]
    # At most 5% are promised; three standard errors of 200 draws are 4.6%.
    assert sum(wrong) / 200 <= 0.05 + 0.046


def test_intervals_hold_for_scores_between_the_ends_too() -> None:
    generator = np.random.default_rng(1)
    wrong = 0
    for _ in range(60):
        sequence = ConfidenceSequence(0.1)
        missed = False
        for score in generator.beta(2, 3, 120):  # of mean 0.4
            sequence.update(score)
            missed |= not sequence.interval.low <= 0.4 <= sequence.interval.high
        wrong += missed
    assert wrong <= 6


def test_a_plain_interval_stopped_when_narrow_is_wrong_more_often_than_it_says() -> None:
    # What the sequence is for: at 98% solved, a t interval is soon narrow since all is solved so far.
    generator = np.random.default_rng(2)
    wrong = {"t": 0, "betting": 0}
    for _ in range(40):
        sequence, scores = ConfidenceSequence(0.2), list[float]()
        while not sequence.is_narrow:
            scores.append(float(generator.random() < 0.98))
            sequence.update(scores[-1])
        for n in range(2, len(scores) + 1):
            plain = mean_score(dict(enumerate(scores[:n]))).t_interval()
            if plain.width <= 0.2:
                wrong["t"] += not plain.low <= 0.98 <= plain.high
                break
        wrong["betting"] += not sequence.interval.low <= 0.98 <= sequence.interval.high
    assert wrong["t"] > 30
    assert wrong["betting"] <= 3


@pytest.mark.parametrize("chance", [0.5, 0.8])
def test_a_stop_takes_up_to_twice_the_items_of_a_plain_interval(chance: float) -> None:
    generator = np.random.default_rng(3)
    taken: list[int] = []
    for _ in range(5):
        sequence = ConfidenceSequence(0.1)
        while not sequence.is_narrow:
            sequence.update(float(generator.random() < chance))
        taken.append(sequence.num_items)
    plain = (2 * 1.96) ** 2 * chance * (1 - chance) / 0.1**2
    assert 1.3 * plain < np.mean(taken) < 2.1 * plain


def test_the_capital_is_that_of_the_published_process() -> None:
    scores, width, confidence = [1.0, 0.0, 1.0, 1.0, 0.25], 0.5, 0.9
    sequence = ConfidenceSequence(width, confidence)
    for score in scores:
        sequence.update(score)

    def capital(mean: float) -> float:
        higher = lower = 1.0
        for t in range(len(scores)):
            before = scores[:t]
            running = [(0.5 + sum(before[: i + 1])) / (i + 2) for i in range(t)]
            squares = sum((x - m) ** 2 for x, m in zip(before, running, strict=True))
            stake = width / (2 * (0.25 + squares) / (t + 1))
            higher *= 1 + min(stake, 0.5 / mean) * (scores[t] - mean)
            lower *= 1 - min(stake, 0.5 / (1 - mean)) * (scores[t] - mean)
        return max(higher, lower) / 2

    inside = [mean for mean in np.arange(0.0005, 1, 0.001) if capital(float(mean)) <= 10]
    assert sequence.interval.low == pytest.approx(max(inside[0] - 0.0015, 0))
    assert sequence.interval.high == pytest.approx(min(inside[-1] + 0.0015, 1))


@given(st.lists(st.sampled_from([0.0, 0.5, 1.0]), max_size=200), st.floats(0.05, 1))
def test_each_interval_lies_within_those_before(scores: list[float], width: float) -> None:
    sequence = ConfidenceSequence(width)
    for score in scores:
        before, was_narrow = sequence.interval, sequence.is_narrow
        sequence.update(score)
        assert before.low <= sequence.interval.low < sequence.interval.high <= before.high
        assert sequence.is_narrow or not was_narrow


def test_a_hundred_thousand_scores_are_taken_without_loss() -> None:
    scores = np.random.default_rng(4).random(100_000) < 0.7
    sequence = taken(scores.astype(float).tolist(), width=0.02)
    assert sequence.mean == pytest.approx(scores.mean(), abs=1e-12)
    assert sequence.interval.low < 0.7 < sequence.interval.high
    assert sequence.interval.width < 0.015


@given(st.lists(st.floats(0, 1), max_size=30))
def test_an_interval_lies_in_the_range_about_the_mean(scores: list[float]) -> None:
    sequence = taken(scores)
    assert 0 <= sequence.interval.low < sequence.interval.high <= 1
    assert sequence.num_items == len(scores)
    if scores:
        assert sequence.mean == pytest.approx(np.mean(scores))


@given(st.lists(st.sampled_from([0.0, 0.25, 1.0]), min_size=1, max_size=30))
def test_mirrored_scores_have_the_mirrored_interval(scores: list[float]) -> None:
    interval, mirrored = taken(scores).interval, taken([1 - score for score in scores]).interval
    assert (mirrored.low, mirrored.high) == pytest.approx((1 - interval.high, 1 - interval.low))


def test_another_range_is_the_same_on_its_scale() -> None:
    scores = [1.0, 0.0, 0.5, 1.0] * 10
    plain, scaled = ConfidenceSequence(0.2), ConfidenceSequence(2, low=-5, high=5)
    for score in scores:
        plain.update(score)
        scaled.update(10 * score - 5)
    assert scaled.mean == pytest.approx(10 * plain.mean - 5)
    assert scaled.interval.low == pytest.approx(10 * plain.interval.low - 5)
    assert scaled.interval.high == pytest.approx(10 * plain.interval.high - 5)


def test_nothing_taken_tells_nothing() -> None:
    sequence = ConfidenceSequence(0.1)
    assert (sequence.interval.low, sequence.interval.high) == (0, 1)
    assert math.isnan(sequence.mean)
    assert not sequence.is_narrow


def test_scores_that_drift_still_give_an_interval() -> None:
    sequence = taken([1.0] * 300 + [0.0] * 3000, width=0.05)
    assert sequence.interval.low < sequence.interval.high


def test_what_does_not_fit_is_refused_and_changes_nothing() -> None:
    sequence = ConfidenceSequence(0.1)
    with pytest.raises(ValueError, match=r"score must lie from 0\.0 to 1\.0, got 1\.5"):
        sequence.update(1.5)
    assert sequence.num_items == 0
    with pytest.raises(ValueError, match="low must be below high, got 1 and 1"):
        ConfidenceSequence(0.1, low=1, high=1)
    with pytest.raises(ValueError, match=r"width must be above 0 and within the range .*, got 0"):
        ConfidenceSequence(0)
    with pytest.raises(ValueError, match="confidence must lie between 0 and 1, got 95"):
        ConfidenceSequence(0.1, confidence=95)


def test_a_width_that_no_run_reaches_costs_no_more_than_others() -> None:
    sequence = ConfidenceSequence(1e-12)
    for score in (0.0, 1.0, 1.0):
        sequence.update(score)
    assert not sequence.is_narrow
    assert sequence.interval.low < 0.5 < sequence.interval.high
