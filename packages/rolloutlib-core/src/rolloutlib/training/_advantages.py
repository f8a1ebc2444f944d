"""Advantages of the episodes of a group, relative to each other."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from rolloutlib._values import to_float
from rolloutlib.rollouts import Trajectory

Estimator: TypeAlias = Callable[[Sequence[float]], Sequence[float] | NDArray[Any]]
"""From the rewards of a group's episodes to one advantage each, in the same order."""

Rewards: TypeAlias = Callable[[Trajectory[Any, Any]], float | None]
"""The reward of an episode, or None if it has none: then it is neither compared nor trained."""


def group_mean(rewards: Sequence[float]) -> NDArray[np.float64]:
    """Return each reward minus the mean of the group: the advantages of Dr. GRPO.

    `r_i - mean(r)`, from "Understanding R1-Zero-Like Training", arXiv 2503.20783, section 3.2, which
    leaves out GRPO's division by the standard deviation. Equal rewards, and a group of one, give 0.
    The order of the rewards changes no value.

    Args:
        rewards: One finite number an episode.

    Returns:
        The advantages, of shape (n,).

    Raises:
        TypeError: A reward is no number.
        ValueError: One is NaN or too large for a float32.
    """
    values = _checked(rewards)
    if _equal(values):
        return np.zeros(len(values))
    return np.array(values) - math.fsum(values) / len(values)


def group_normalized(rewards: Sequence[float], *, epsilon: float = 1e-4) -> NDArray[np.float64]:
    """Return each reward minus the mean, over the standard deviation: the advantages of GRPO.

    `(r_i - mean(r)) / (std(r) + epsilon)`, from "DeepSeekMath", arXiv 2402.03300, section 4.1.2. The
    deviation is that of a sample (n - 1 in its denominator), as TRL and verl compute it. Equal
    rewards, and a group of one, give 0. The order of the rewards changes no value.

    Args:
        rewards: One finite number an episode.
        epsilon: Keeps the quotient small where the deviation is; TRL has 1e-4, verl 1e-6.

    Returns:
        The advantages, of shape (n,).

    Raises:
        TypeError: A reward or epsilon is no number.
        ValueError: A reward is NaN or too large for a float32, or epsilon is NaN, infinite or
            negative.
    """
    if to_float(epsilon, "epsilon") < 0:
        msg = f"epsilon must not be negative, got {epsilon!r}"
        raise ValueError(msg)
    centred = group_mean(rewards)
    if not centred.any():
        return centred
    # The squares of the greatest and the smallest floats are none, but those of their quotients are.
    largest = float(np.abs(centred).max())
    relative = centred / largest
    variance = math.fsum(np.square(relative).tolist()) / (len(centred) - 1)
    return relative / (math.sqrt(variance) + epsilon / largest)


def leave_one_out(rewards: Sequence[float]) -> NDArray[np.float64]:
    """Return each reward minus the mean of the others: the advantages of RLOO.

    `r_i - sum(r_j for j != i) / (n - 1)`, from "Back to Basics: Revisiting REINFORCE Style
    Optimization for Learning from Human Feedback in LLMs", arXiv 2402.14740. Equal rewards give 0,
    and so does a group of one, which has nothing to be compared with. The order of the rewards
    changes no value.

    Args:
        rewards: One finite number an episode.

    Returns:
        The advantages, of shape (n,).

    Raises:
        TypeError: A reward is no number.
        ValueError: One is NaN or too large for a float32.
    """
    values = _checked(rewards)
    if _equal(values):
        return np.zeros(len(values))
    total = math.fsum(values)
    array = np.array(values)
    return array - (total - array) / (len(values) - 1)


def estimate(
    estimator: Estimator, rewards: Sequence[float | None], place: str
) -> list[float | None]:
    """Return the advantage of each episode, None where the reward is; `place` is for errors.

    Raises:
        TypeError: A reward or an advantage is no number, or the estimator returns no sequence.
        ValueError: One is not finite or too large for a float32, or there is not one advantage a
            reward.
    """
    values = [
        _to_float32(reward, f"{place}: reward {index}")
        for index, reward in enumerate(rewards)
        if reward is not None
    ]
    if not values:  # nothing to compare, and functions of nothing are seldom defined
        return [None] * len(rewards)
    result: Any = estimator(values)
    try:
        advantages: list[Any] = list(result)
    except TypeError as error:
        msg = f"{place}: {estimator!r} must return a sequence of advantages, got {result!r}"
        raise TypeError(msg) from error
    if len(advantages) != len(values):
        msg = (
            f"{place}: {estimator!r} must give one advantage a reward: "
            f"got {len(advantages)} for {len(values)}"
        )
        raise ValueError(msg)
    name = f"{place}: advantage by {estimator!r}"
    numbers = iter([_to_float32(value, name) for value in advantages])
    return [None if reward is None else next(numbers) for reward in rewards]


def _to_float32(value: object, name: str) -> float:
    """Return a number that rows can hold."""
    number = to_float(value, name)
    if abs(number) > _LARGEST:
        msg = f"{name} must fit into a float32, got {value!r}"
        raise ValueError(msg)
    return number


_LARGEST = float(np.finfo(np.float32).max)


def _checked(rewards: Sequence[float]) -> list[float]:
    return [_to_float32(reward, f"reward {index}") for index, reward in enumerate(rewards)]


def _equal(values: list[float]) -> bool:
    return not values or min(values) == max(values)
