"""Episodes and their steps, as training sees them: what is trained, and why the rest is not."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Literal, NamedTuple, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from rolloutlib.rollouts import Trajectory, TrajectoryGroup
from rolloutlib.rollouts._arrays import arrays_of
from rolloutlib.rollouts._steps import StepColumns, to_columns
from rolloutlib.rollouts._stop_reasons import read_stop_reason
from rolloutlib.rollouts._versions import Version, Versions, version_runs
from rolloutlib.training._advantages import Rewards

Group: TypeAlias = Trajectory[Any, Any] | TrajectoryGroup[Any, Any, Any]
"""What is compared; a trajectory counts as a group of one."""

Source: TypeAlias = Group | Iterable[Group]
"""What rows are made from."""

Fate: TypeAlias = Literal["trained", "plain", "empty", "aborted", "missing"]
"""What becomes of a step."""


class Episode(NamedTuple):
    """An episode and its place."""

    item_id: str | None
    member: int
    trajectory: Trajectory[Any, Any]


class SampledStep(NamedTuple):
    """A step with its arrays, which may be None unless it is trained; `lacks` names what is missing.

    The prompt and the tokens of all trained steps of an episode have one type.
    """

    number: int
    fate: Fate
    lacks: str
    prompt: NDArray[Any]
    tokens: NDArray[Any]
    logprobs: NDArray[Any] | None
    versions: Versions | None
    stop_reason: str | None

    def runs(self) -> list[tuple[Version | None, int]]:
        """Return each version that sampled some of the tokens, and how many, in order."""
        return list(version_runs(self.versions, len(self.tokens)))


def groups_of(source: Source) -> Iterator[Group]:
    """Yield the groups of a source.

    Raises:
        TypeError: There is something else in it.
    """
    if isinstance(source, (Trajectory, TrajectoryGroup)):
        yield source
        return
    if not isinstance(cast("object", source), Iterable):
        msg = f"rows are made from a Trajectory, a TrajectoryGroup or groups, got {source!r}"
        raise TypeError(msg)
    for index, group in enumerate(source):
        if not isinstance(cast("object", group), (Trajectory, TrajectoryGroup)):
            msg = f"rows are made from TrajectoryGroups, but entry {index} is {group!r}"
            raise TypeError(msg)
        yield group


def episodes_of(group: Group, *, failed: bool) -> list[Episode]:
    """Return the episodes of a group, those that failed at the end if they are asked for."""
    if isinstance(group, Trajectory):
        return [Episode(None, group.member or 0, group)]
    episodes = [
        Episode(group.item_id, position if each.member is None else each.member, each)
        for position, each in enumerate(group.trajectories)
    ]
    if failed:
        episodes += [
            Episode(group.item_id, error.index or 0, error.trajectory)
            for error in group.errors
            if error.trajectory is not None
        ]
    return episodes


def rewards_of(
    group: Group, episodes: list[Episode], rewards: Rewards | None
) -> list[float | None]:
    """Return the reward of each episode of a group, None if it has none."""
    if rewards is not None:
        return [rewards(episode.trajectory) for episode in episodes]
    scored = () if isinstance(group, Trajectory) else group.rewards
    others = episodes[len(scored) :]
    return [*scored, *(episode.trajectory.score.value for episode in others)]


def sampled_steps(
    trajectory: Trajectory[Any, Any], *, logprobs: bool, aborted: bool
) -> list[SampledStep]:
    """Return the steps of an episode, each with what becomes of it."""
    columns: StepColumns[Any, Any] = to_columns(trajectory.steps)
    steps: list[SampledStep] = []
    for prompt, tokens, numbers, stop_reason, version in zip(
        *_alike(arrays_of(columns.prompt_tokens), arrays_of(columns.tokens)),
        arrays_of(columns.logprobs),
        columns.stop_reasons,
        columns.versions,
        strict=True,
    ):
        finish = read_stop_reason(stop_reason)
        fate: Fate = "trained"
        lacks = ""
        if finish in _BROKEN_OFF and (tokens is None or not aborted):
            fate = "aborted"
        elif tokens is None:
            if finish == "context_overflow":  # the prompt alone was too long
                fate = "empty"
            elif prompt is None and numbers is None and stop_reason is None:
                fate = "plain"
            else:
                fate, lacks = "missing", "tokens"
        elif not len(tokens):
            fate = "empty"
        elif prompt is None:
            fate, lacks = "missing", "prompt_tokens"
        elif numbers is None and logprobs:
            fate, lacks = "missing", "logprobs"
        steps.append(
            SampledStep(
                len(steps),
                fate,
                lacks,
                _NONE if prompt is None else prompt,
                _NONE if tokens is None else tokens,
                numbers,
                version,
                stop_reason,
            )
        )
    return steps


def _alike(*columns: list[NDArray[Any] | None]) -> Iterable[list[NDArray[Any] | None]]:
    """Return columns of integers of one type."""
    if len({array.dtype for column in columns for array in column if array is not None}) < 2:
        return columns
    return [
        [None if array is None else array.astype(np.int64) for array in column]
        for column in columns
    ]


_BROKEN_OFF = frozenset({"aborted", "timeout", "error"})
_NONE = np.empty(0, np.int32)
