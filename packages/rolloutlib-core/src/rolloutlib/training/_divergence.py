"""How far the policy that is trained is from the one that sampled."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rolloutlib.rollouts._array_reading import Numbers, to_array
from rolloutlib.training._sequences import TokenSequence


@dataclass(frozen=True, slots=True)
class KLEstimate:
    """The divergence of two policies, estimated from tokens that one of them sampled.

    Both estimates are in nats a token, and 0 if the policies agree.

    Attributes:
        k1: The mean of log q - log p, without bias. It may be negative by chance.
        k3: The mean of p/q - 1 - log(p/q), without bias too: never negative, and of less variance
            while the policies are close.
        max_difference: The largest |log q - log p| of a token, which tells whether a divergence is of
            all tokens or of a few.
        num_tokens: How many tokens were compared.
    """

    k1: float
    k3: float
    max_difference: float
    num_tokens: int


def estimate_kl(rows: Sequence[TokenSequence], logprobs: Iterable[Numbers[float]]) -> KLEstimate:
    """Estimate the divergence KL(q || p) of a policy p from the one that sampled the rows, q.

    With the log probabilities that a trainer computes of rows before it learns from them, it shows
    whether sampler and trainer are one policy. Next to 0 they are, but for rounding; more tells of a
    mistake, such as tokens in another context or at another temperature, or of older weights.

    Source: k1 and k3 of John Schulman, "Approximating KL Divergence", joschu.net/blog/kl-approx.html
    (2020), of the tokens that are to be trained.

    Args:
        rows: Rows with log probabilities, those of q.
        logprobs: The natural log probability by p of each token of each row, as arrays, lists or
            tensors of the lengths of the rows. What they say of tokens that are not to be trained is
            not read.

    Raises:
        ValueError: A row has no log probabilities, or there are not as many in as many rows; one of
            a token to be trained is not finite; or there is no such token.
    """
    others = [to_array(values) for values in logprobs]
    if len(others) != len(rows):
        msg = f"logprobs must be of one policy for {len(rows)} rows, got those of {len(others)}"
        raise ValueError(msg)
    if not any(row.num_trainable for row in rows):
        msg = f"there is no token to be trained in {len(rows)} rows"
        raise ValueError(msg)
    ratios = np.concatenate(
        [_log_ratios(number, *pair) for number, pair in enumerate(zip(rows, others, strict=True))]
    )
    with np.errstate(over="ignore"):  # infinite, if the policies have nothing in common
        k3 = float((np.expm1(ratios) - ratios).mean())
    return KLEstimate(
        k1=float(-ratios.mean()),
        k3=k3,
        max_difference=float(np.abs(ratios).max()),
        num_tokens=len(ratios),
    )


def _log_ratios(number: int, row: TokenSequence, values: NDArray[Any]) -> NDArray[np.float64]:
    """Return log p - log q of the tokens of a row that are to be trained."""
    if row.logprobs is None:
        msg = f"row {number} has no logprobs of its own"
        raise ValueError(msg)
    if values.shape != row.logprobs.shape:
        msg = (
            f"logprobs of row {number} must have the shape {row.logprobs.shape}, got {values.shape}"
        )
        raise ValueError(msg)
    pair = np.array([row.logprobs, values], np.float64)
    wrong = row.loss_mask & ~np.isfinite(pair).all(axis=0)
    if wrong.any():
        position = int(wrong.argmax())
        msg = (
            f"row {number}, token {position}: log probabilities must be finite, got "
            f"{pair[0, position]} of the row and {pair[1, position]} to compare"
        )
        raise ValueError(msg)
    return (pair[1] - pair[0])[row.loss_mask]
