"""The majority vote of some attempts at an item."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from rolloutlib._calls import check_count
from rolloutlib.evals.statistics._estimates import Estimate, ItemEstimate, mean_of
from rolloutlib.evals.statistics._scores import Scores, is_missing, read_scores

__all__ = ["maj_at_k"]


def maj_at_k(
    answers: Mapping[Any, Sequence[Hashable] | NDArray[Any]],
    scores: Scores,
    k: int,
    *,
    clusters: Mapping[Any, Any] | None = None,
) -> Estimate:
    """Return the score of the answer that most of k attempts at an item give.

    This is the self-consistency of Wang et al., arXiv 2203.11171. It is the exact mean over all
    subsets of k of an item's samples, and nothing is drawn. Of answers that get equally many votes each
    wins with the same probability. A sample that failed or has no answer (None) does not vote; where
    nobody votes the score is 0.

    Args:
        answers: The answer of each item's samples, such as the number that a grader extracted; equal
            answers must compare equal ("73" and "073" do not). None, or NaN, where there is none.
        scores: The scores of the same samples, in the same order. An answer scores the mean of the
            samples that give it.
        k: How many attempts vote.
        clusters: From the id of an item to that of its cluster, if items are not independent.

    Returns:
        The estimate. Its bounds let all failed samples of an item vote for one answer that scores 0,
        or 1: the most frequent such answer, or a further one if there is none.

    Raises:
        TypeError: A score is no number, k no integer, or an item's answers are no sequence.
        ValueError: k is below 1 or above the number of an item's samples, answers and scores differ in
            their items or in the number of an item's samples, or as for `mean_score`.
    """
    check_count("k", k)
    samples = read_scores(scores)
    if not isinstance(cast("object", answers), Mapping):
        msg = f"answers must map the id of each item to its answers, got {type(answers).__name__}"
        raise TypeError(msg)
    differing = answers.keys() ^ samples.keys()
    if differing:
        msg = f"answers and scores must be of the same items, got {next(iter(differing))!r} in one alone"
        raise ValueError(msg)
    items = {item: _of_item(item, answers[item], samples[item], k) for item in samples}
    return Estimate(f"maj@{k}", items, clusters)


@dataclass(frozen=True)
class _Ballot:
    """How many samples gave each answer and what it scores, sorted, so that ballots may be equal."""

    answers: tuple[tuple[int, float], ...]
    num_samples: int

    def with_votes(self, votes: int, score: float) -> _Ballot:
        """Let further samples vote for the most frequent answer of this score, or for a new one."""
        if not votes:
            return self
        answers = list(self.answers)
        before = max((count for count, value in answers if value == score), default=0)
        if before:
            answers.remove((before, score))
        return _Ballot(tuple(sorted([*answers, (before + votes, score)])), self.num_samples)


def _of_item(
    item: Any, answers: Sequence[Hashable] | NDArray[Any], scores: NDArray[np.float64], k: int
) -> ItemEstimate:
    kind = cast("object", answers)
    if isinstance(kind, (str, bytes)) or not isinstance(kind, (Sequence, np.ndarray)):
        msg = f"item {item!r} must have a sequence of answers, one a sample, got {answers!r}"
        raise TypeError(msg)
    if len(answers) != len(scores):
        msg = f"item {item!r} must have one answer a score, got {len(answers)} and {len(scores)}"
        raise ValueError(msg)
    if len(scores) < k:
        msg = f"k = {k} needs as many samples of each item, and {item!r} has n = {len(scores)}"
        raise ValueError(msg)
    given: dict[Hashable, list[float]] = {}
    for answer, score in zip(answers, scores, strict=True):
        if not is_missing(answer) and not math.isnan(score):
            given.setdefault(answer, []).append(float(score))
    counted = sorted((len(same), mean_of(same)) for same in given.values())
    ballot = _Ballot(tuple(counted), len(scores))
    num_failed = int(np.isnan(scores).sum())
    return ItemEstimate(
        _expected_score(ballot, k),
        (
            _expected_score(ballot.with_votes(num_failed, 0.0), k),
            _expected_score(ballot.with_votes(num_failed, 1.0), k),
        ),
        len(scores),
        num_failed,
    )


@lru_cache(maxsize=4096)
def _expected_score(ballot: _Ballot, k: int) -> float:
    """The mean score of the winner over all subsets of k samples.

    Let every sample join the subset with probability k / n, independently; given that k joined, all
    subsets are equally likely. The votes of each answer are then binomial and independent. For each
    number v of votes that may win, `chance[t, s]` is the probability that the answers so far have s
    votes in all, t of them v votes each and the others fewer; `earned` is the same times the sum of
    the scores of those t. Answers that fewer than v samples give cannot have v votes, so that all of
    these are one binomial together.
    """
    n, total = ballot.num_samples, 0.0
    for v in range(1, min(k, max((votes for votes, _ in ballot.answers), default=0)) + 1):
        able = [(votes, score) for votes, score in ballot.answers if votes >= v]
        unable = _binomial(n - sum(votes for votes, _ in able), k, n)[: k + 1]
        most = min(k // v, len(able))
        tables = np.zeros((2, most + 1, k + 1))  # chance and earned
        tables[0, 0, : len(unable)] = unable
        for votes, score in able:
            probabilities = _binomial(votes, k, n)
            before = tables[:, :-1, :-v]
            tables = _shifted(tables, probabilities[:v])
            tables[:, 1:, v:] += probabilities[v] * before
            tables[1, 1:, v:] += probabilities[v] * score * before[0]
        total += float((tables[1, 1:, k] / np.arange(1, most + 1)).sum())
    # Rounded so that scores which are equal compare equal.
    return round(total / float(_binomial(n, k, n)[k]), 12)


def _shifted(tables: NDArray[np.float64], weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """The sum over u of the tables moved u columns to the right, times weight u."""
    *rows, width = tables.shape
    padded = np.zeros((*rows, len(weights) - 1 + width))
    padded[..., len(weights) - 1 :] = tables
    return np.lib.stride_tricks.sliding_window_view(padded, len(weights), axis=-1) @ weights[::-1]


@lru_cache(maxsize=4096)
def _binomial(count: int, k: int, n: int) -> NDArray[np.float64]:
    """The probabilities of 0 to `count` successes of `count` trials, each of probability k / n."""
    if k == n:
        return np.eye(count + 1)[count]
    log_p, log_q = math.log(k / n), math.log1p(-k / n)
    return np.array(
        [
            math.exp(
                math.lgamma(count + 1)
                - math.lgamma(u + 1)
                - math.lgamma(count - u + 1)
                + u * log_p
                + (count - u) * log_q
            )
            for u in range(count + 1)
        ]
    )
