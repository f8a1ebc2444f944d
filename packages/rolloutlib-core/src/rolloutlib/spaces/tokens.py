"""Token ids, alone and in sequences."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, cast

import gymnasium as gym
import numpy as np

from rolloutlib.spaces._seeding import state_with_stream
from rolloutlib.spaces._sequence import SequenceSpace

__all__ = ["TokenSequenceSpace", "TokenSpace", "id", "sequence"]


_INTEGERS = (int, np.integer)
_NO_IDS = (bool, np.timedelta64)
"""What Python and NumPy derive from integers."""


class TokenSpace(gym.spaces.Discrete):
    """Single token ids: Gymnasium's `Discrete`, without bools and with a total `contains`."""

    def contains(self, x: Any) -> bool:
        """Tell whether a value is an id; neither a bool nor a float is one."""
        try:
            return not isinstance(x, _NO_IDS) and bool(super().contains(x))
        except Exception:  # whatever a value does that is looked at
            return False

    def __getstate__(self) -> dict[str, Any]:
        return state_with_stream(self)


class TokenSequenceSpace(SequenceSpace):
    """Sequences of token ids: lists, tuples, and arrays of integers in one dimension.

    Args:
        vocab_size: How many ids there are.
        start: The smallest id.
        stack: Draw samples as arrays, not as tuples.
        seed: Seeds the sampling.

    Raises:
        TypeError: `vocab_size` or `start` is not an integer.
        ValueError: The vocabulary is empty.
    """

    def __init__(
        self, vocab_size: int, *, start: int = 0, stack: bool = False, seed: int | None = None
    ) -> None:
        super().__init__(id(vocab_size, start=start), seed=seed, stack=stack)
        self._start = int(start)
        self._stop = int(start) + int(vocab_size)

    def contains(self, x: Any) -> bool:
        """Tell whether a value is a sequence of ids; neither bools nor floats are ids."""
        try:
            if isinstance(x, (list, tuple)):
                return self._has_all(cast("list[Any]", x))
            return hasattr(x, "__array__") and self._has_array(np.asarray(x))
        except Exception:  # whatever a value does that is looked at
            return False

    def to_jsonable(self, sample_n: Iterable[Any]) -> list[list[Any]]:
        """Return sequences as lists of integers."""
        return [np.asarray(sample).tolist() for sample in sample_n]

    def from_jsonable(self, sample_n: list[list[Any]]) -> list[Any]:
        """Return the sequences that `to_jsonable` was given: arrays if stacked, else tuples."""
        arrays = [np.asarray(sample, np.int64) for sample in sample_n]
        return arrays if self.stack else [tuple(array) for array in arrays]

    def _has_all(self, ids: list[Any]) -> bool:
        # By the set of types, the least and the greatest: three passes in C are faster than one in
        # Python over as many tokens as a context holds.
        kinds = set(map(type, ids))
        return not ids or bool(
            all(issubclass(kind, _INTEGERS) and not issubclass(kind, _NO_IDS) for kind in kinds)
            and self._start <= min(ids)
            and max(ids) < self._stop
        )

    def _has_array(self, ids: np.ndarray[Any, Any]) -> bool:
        if ids.ndim != 1 or ids.dtype.kind not in "iu":
            return False
        return ids.size == 0 or bool(self._start <= ids.min() and ids.max() < self._stop)

    def __repr__(self) -> str:
        size = self._stop - self._start
        return f"TokenSequenceSpace({size}, start={self._start}, stack={self.stack})"


def id(vocab_size: int, *, start: int = 0, seed: int | None = None) -> TokenSpace:
    """Return the space of single token ids, from `start` to `start + vocab_size - 1`.

    Raises:
        TypeError: `vocab_size` or `start` is not an integer.
        ValueError: The vocabulary is empty.
    """
    for name, value in {"vocab_size": vocab_size, "start": start}.items():
        if isinstance(value, bool) or not isinstance(cast("object", value), (int, np.integer)):
            msg = f"{name} must be an integer, got {value!r}"
            raise TypeError(msg)
    if vocab_size < 1:
        msg = f"vocab_size must be positive, got {vocab_size!r}"
        raise ValueError(msg)
    return TokenSpace(vocab_size, seed=seed, start=start)


def sequence(
    vocab_size: int, *, start: int = 0, stack: bool = False, seed: int | None = None
) -> TokenSequenceSpace:
    """Return a `TokenSequenceSpace` of these arguments."""
    return TokenSequenceSpace(vocab_size, start=start, stack=stack, seed=seed)
