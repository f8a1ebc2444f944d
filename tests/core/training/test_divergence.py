"""Estimates of how far a trainer's policy is from the sampler's."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rolloutlib.training import KLEstimate, TokenSequence, estimate_kl

ROW = TokenSequence(
    np.array([1, 2, 3, 4]),
    np.array([False, True, True, False]),
    np.log(np.array([1, 0.5, 0.25, 1], np.float32)),
)


def row(token: int, logprob: float) -> TokenSequence:
    """A row of one sampled token."""
    numbers = np.array([0, logprob], np.float32)
    return TokenSequence(np.array([0, token]), np.array([False, True]), numbers)


def test_the_estimates_are_schulmans_k1_and_k3() -> None:
    estimate = estimate_kl([ROW], [np.log([0.9, 0.25, 0.75, 0.9])])
    ratios = [0.25 / 0.5, 0.75 / 0.25]
    assert estimate.k1 == pytest.approx(np.mean([-math.log(r) for r in ratios]))
    assert estimate.k3 == pytest.approx(np.mean([r - 1 - math.log(r) for r in ratios]))
    assert estimate.max_difference == pytest.approx(math.log(3))
    assert estimate.num_tokens == 2


def test_tokens_of_all_rows_count_alike() -> None:
    longer = replace(ROW, loss_mask=np.array([False, True, True, True]))
    estimate = estimate_kl([ROW, longer], [[0, -1, -1, 0], [0, -1, -1, -1]])
    assert ROW.logprobs is not None
    taken = [*ROW.logprobs[1:3], *ROW.logprobs[1:]]
    assert estimate.num_tokens == 5
    assert estimate.k1 == pytest.approx(np.mean([value + 1 for value in taken]))


def test_a_policy_does_not_diverge_from_itself_whatever_the_context_says() -> None:
    numbers = [math.nan, *np.asarray(ROW.logprobs)[1:3], -math.inf]
    assert estimate_kl([ROW], [numbers]) == KLEstimate(0, 0, 0, 2)


@given(st.data())
def test_both_estimate_the_true_divergence_without_bias(data: st.DataObject) -> None:
    # Rows of each token of a vocabulary, as often as q has it: the means are expectations then.
    counts = data.draw(st.lists(st.integers(1, 9), min_size=2, max_size=6))
    weights = data.draw(st.lists(st.integers(1, 9), min_size=len(counts), max_size=len(counts)))
    q, p = np.array(counts) / sum(counts), np.array(weights) / sum(weights)
    rows = [
        row(token, math.log(q[token])) for token, count in enumerate(counts) for _ in range(count)
    ]
    logprobs = [[0, math.log(p[token])] for token, n in enumerate(counts) for _ in range(n)]
    estimate = estimate_kl(rows, logprobs)
    truth = float((q * np.log(q / p)).sum())
    assert estimate.k1 == pytest.approx(truth, abs=1e-6)
    assert estimate.k3 == pytest.approx(truth, abs=1e-6)
    assert estimate.k3 >= 0


def test_policies_with_nothing_in_common_diverge_without_end() -> None:
    assert estimate_kl([row(1, -1000.0)], [[0, -0.5]]).k3 == math.inf


def test_what_cannot_be_compared_is_refused() -> None:
    with pytest.raises(ValueError, match="row 0 has no logprobs of its own"):
        estimate_kl([replace(ROW, logprobs=None)], [[0, 0, 0, 0]])
    with pytest.raises(ValueError, match=r"must be of one policy for 1 rows, got those of 2"):
        estimate_kl([ROW], [[0] * 4, [0] * 4])
    with pytest.raises(ValueError, match=r"row 0 must have the shape \(4,\), got \(3,\)"):
        estimate_kl([ROW], [[0, 0, 0]])
    with pytest.raises(ValueError, match=r"row 0, token 2: .* finite, got -1\.38.* and nan"):
        estimate_kl([ROW], [[0, -1, math.nan, 0]])
    with pytest.raises(ValueError, match="no token to be trained in 0 rows"):
        estimate_kl([], [])
