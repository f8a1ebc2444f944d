"""Training rows: tokens as they were sampled, with what a loss needs to know of each."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rolloutlib.rollouts._array_reading import to_array, to_float32
from rolloutlib.rollouts._forms import same_fields


@dataclass(frozen=True, slots=True)
class TokenSpan:
    """Where the tokens of one sampled action stand in a row, and where they came from.

    An action during which the policy's weights changed has a span for each version.

    Attributes:
        start: The position of the first of them.
        stop: The position after the last.
        item_id: The name of the group's item, or None for a trajectory without a group.
        member: Which rollout of the group it was.
        step: Which step of the rollout, from 0.
        version: The version of the policy that sampled them, or None if unknown.
        stop_reason: Why sampling ended, in the sampler's own words, or None if unknown.
    """

    start: int
    stop: int
    item_id: str | None
    member: int
    step: int
    version: int | str | None = None
    stop_reason: str | None = None


@dataclass(frozen=True, slots=True)
class TokenSequence:
    """One row for a trainer: a context, and the actions that were sampled in it.

    The arrays are read-only and of one length; those that may be written to are copied.

    Attributes:
        tokens: The ids, of shape (n,), int32 or int64.
        loss_mask: Which of them are to be trained, of shape (n,), bool: those that the policy
            sampled, and none else.
        logprobs: The behaviour policy's natural log probability of each, of shape (n,), float32, 0
            where the token is not trained; or None if they were not asked for.
        advantages: The advantage of each, of shape (n,), float32, 0 where the token is not trained;
            or None if none were asked for.
        spans: One for each action that is trained, or for each version of the policy that sampled
            some of it, in order; together they cover the mask.

    Raises:
        ValueError: The arrays have more than one dimension, or differ in length, or the mask is
            neither 0 nor 1 somewhere.
    """

    tokens: NDArray[np.integer[Any]]
    loss_mask: NDArray[np.bool_]
    logprobs: NDArray[np.float32] | None = None
    advantages: NDArray[np.float32] | None = None
    spans: tuple[TokenSpan, ...] = ()

    def __post_init__(self) -> None:
        tokens = to_array(self.tokens)
        if tokens.ndim != 1:
            msg = f"tokens must be in one dimension, got the shape {tokens.shape}"
            raise ValueError(msg)
        for name in ("tokens", "loss_mask", "logprobs", "advantages"):
            values: Any = getattr(self, name)
            if values is None:
                continue
            array = to_array(values)
            if array.shape != tokens.shape:
                msg = f"{name} must have the shape {tokens.shape}, one entry a token, got {array.shape}"
                raise ValueError(msg)
            if name == "loss_mask" and array.dtype != np.bool_:
                array = _to_flags(array)
            elif name in ("logprobs", "advantages") and array.dtype != np.float32:
                array = to_float32(array)
            elif array.flags.writeable:
                array = array.copy()
            array.flags.writeable = False
            object.__setattr__(self, name, array)
        object.__setattr__(self, "spans", tuple(self.spans))

    def __len__(self) -> int:
        return len(self.tokens)

    def __eq__(self, other: object) -> bool:
        return same_fields(self, other)

    def __reduce__(self) -> tuple[Any, ...]:
        # Made anew where it is copied to: a copy of a read-only array may be written to.
        return type(self), tuple(getattr(self, field.name) for field in fields(self))

    @property
    def num_trainable(self) -> int:
        """How many tokens are to be trained."""
        return int(np.count_nonzero(self.loss_mask))


def _to_flags(array: NDArray[Any]) -> NDArray[np.bool_]:
    """Return a mask as bools, which would hide what is neither 0 nor 1.

    Raises:
        ValueError: It has something else in it.
    """
    flags = array.astype(np.bool_)
    odd = array != flags if array.dtype.kind in "iuf" else np.ones(array.shape, np.bool_)
    if odd.any():
        position = int(odd.argmax())
        msg = f"loss_mask must be 0 or 1, but entry {position} is {array.tolist()[position]!r}"
        raise ValueError(msg)
    return flags
