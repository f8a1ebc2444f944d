"""Token ids, alone and in sequences."""

from __future__ import annotations

from typing import Any, cast

import gymnasium as gym
import numpy as np

from rolloutlib.spaces._sequence import SequenceSpace

__all__ = ["TokenSequenceSpace", "id", "sequence"]


class TokenSequenceSpace(SequenceSpace):
    """Sequences of token ids: lists, tuples, and arrays of integers in one dimension.

    Args:
        vocab_size: How many ids there are.
        start: The smallest id.
        stack: Draw samples as arrays, not as tuples.
        seed: Seeds the sampling.

    Raises:
        ValueError: The vocabulary is empty.
    """

    def __init__(
        self, vocab_size: int, *, start: int = 0, stack: bool = False, seed: int | None = None
    ) -> None:
        super().__init__(id(vocab_size, start=start), seed=seed, stack=stack)
        self._start = start
        self._stop = start + vocab_size

    def contains(self, x: Any) -> bool:
        """Tell whether a value is a sequence of ids; neither bools nor floats are ids."""
        try:
            if isinstance(x, (list, tuple)):
                return self._has_all(cast("list[Any]", x))
            return hasattr(x, "__array__") and self._has_array(np.asarray(x))
        except Exception:  # whatever a value does that is looked at
            return False

    def _has_all(self, ids: list[Any]) -> bool:
        # By the set of types, the least and the greatest: three passes in C are faster than one in
        # Python over as many tokens as a context holds.
        kinds = set(map(type, ids))
        return not ids or (
            all(kind is int or issubclass(kind, np.integer) for kind in kinds)
            and self._start <= min(ids)
            and max(ids) < self._stop
        )

    def _has_array(self, ids: np.ndarray[Any, Any]) -> bool:
        if ids.ndim != 1:
            return False
        return ids.size == 0 or (
            ids.dtype.kind in "iu" and self._start <= ids.min() and ids.max() < self._stop
        )

    def __repr__(self) -> str:
        return f"TokenSequenceSpace({self._stop - self._start}, start={self._start})"


def id(vocab_size: int, *, start: int = 0, seed: int | None = None) -> gym.spaces.Discrete:
    """Return the space of single token ids, from `start` to `start + vocab_size - 1`.

    Raises:
        TypeError: The size is not an integer.
        ValueError: The vocabulary is empty.
    """
    if isinstance(vocab_size, bool) or not isinstance(
        cast("object", vocab_size), (int, np.integer)
    ):
        msg = f"vocab_size must be an integer, got {vocab_size!r}"
        raise TypeError(msg)
    if vocab_size < 1:
        msg = f"vocab_size must be positive, got {vocab_size!r}"
        raise ValueError(msg)
    return gym.spaces.Discrete(vocab_size, seed=seed, start=start)


def sequence(
    vocab_size: int, *, start: int = 0, stack: bool = False, seed: int | None = None
) -> TokenSequenceSpace:
    """Return a `TokenSequenceSpace` of these arguments."""
    return TokenSequenceSpace(vocab_size, start=start, stack=stack, seed=seed)
