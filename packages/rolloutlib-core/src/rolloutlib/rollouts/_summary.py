"""What came of many groups, in numbers."""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from rolloutlib.rollouts._arrays import arrays_of
from rolloutlib.rollouts._recorded import count_tokens
from rolloutlib.rollouts._steps import to_columns
from rolloutlib.rollouts._trajectories import Trajectory, TrajectoryGroup


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """The counts of groups, and their mean reward. `requested` is the sum of the three after it.

    Attributes:
        groups: How many groups there are.
        requested: How many episodes were asked for.
        completed: How many reached the end of their task.
        truncated: How many were cut short.
        failed: How many failed for good.
        retried: How many attempts failed and were followed by another.
        mean_reward: The mean of the scores of completed and truncated episodes, or None without any.
        steps: How many steps were made, those of failed attempts included.
        tokens: How many tokens the policy sampled in them, and for steps that failed, as far as it told.
    """

    groups: int = 0
    requested: int = 0
    completed: int = 0
    truncated: int = 0
    failed: int = 0
    retried: int = 0
    mean_reward: float | None = None
    steps: int = 0
    tokens: int = 0


def summarize(groups: Iterable[TrajectoryGroup[Any, Any, Any]]) -> Summary:
    """Count what came of groups: those of a run, or those that `read_groups` reads from its file.

    Each group is looked at once and let go. The result does not depend on their order.

    Args:
        groups: The groups.
    """
    rewards = array("d")
    count = completed = truncated = failed = retried = steps = tokens = 0
    for group in groups:
        count += 1
        completed += group.num_completed
        truncated += group.num_truncated
        failed += group.num_failed
        retried += len(group.retried)
        rewards.extend(group.rewards)
        failures = (*group.errors, *group.retried)
        attempts = [*group.trajectories, *[error.trajectory for error in failures]]
        attempts = [attempt for attempt in attempts if attempt is not None]
        steps += sum([len(attempt.steps) for attempt in attempts])
        tokens += sum([_count_tokens(attempt) for attempt in attempts])
        tokens += sum([count_tokens(error.output) for error in failures])
    return Summary(
        groups=count,
        requested=completed + truncated + failed,
        completed=completed,
        truncated=truncated,
        failed=failed,
        retried=retried,
        mean_reward=math.fsum(rewards) / len(rewards) if rewards else None,
        steps=steps,
        tokens=tokens,
    )


def _count_tokens(trajectory: Trajectory[Any, Any]) -> int:
    arrays = arrays_of(to_columns(trajectory.steps).tokens)
    return sum([array.size for array in arrays if array is not None])
