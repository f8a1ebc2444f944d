"""Grading the samples of a log anew, without the policy."""

from __future__ import annotations

import dataclasses
import os
import uuid
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, TypeAlias, cast

import gymnasium as gym

from rolloutlib._calls import is_async
from rolloutlib._values import same, snapshot
from rolloutlib.envs import AsyncEnv, as_sync
from rolloutlib.evals._benchmark import Benchmark
from rolloutlib.evals._log import LogPath, read_log
from rolloutlib.evals._plain import encode, fingerprint, to_plain
from rolloutlib.evals._records import EvaluationRecord
from rolloutlib.evals._results import BenchmarkResult
from rolloutlib.evals._samples import item_names
from rolloutlib.rollouts import RolloutError, Trajectory, TrajectoryGroup, rollout
from rolloutlib.rollouts._codec import Decode
from rolloutlib.rollouts._identity import describe_function
from rolloutlib.scores import Score, ScoreValue
from rolloutlib.storage import GroupWriter, read_groups

__all__ = ["regrade_log"]

AnyGroup: TypeAlias = TrajectoryGroup[Any, Any, Any]


def regrade_log(
    path: LogPath,
    benchmark: Benchmark[Any] | None = None,
    *,
    grade: Callable[[EvaluationRecord], ScoreValue] | None = None,
    to: LogPath | None = None,
    decode: Decode | None = None,
) -> BenchmarkResult:
    """Grade the samples of a log anew, by the environments of a benchmark or by a function.

    The trajectories stay as they are, and so do the samples that failed, but for those that could
    only not be graded. A sample that cannot be graded now has failed, in the phase "grade".

    Args:
        path: The log.
        benchmark: Its environments are given the actions of the log again. It has the items of the
            log, told by their names; answers and graders may have changed, prompts may not.
        grade: Returns the score of a sample, in place of a benchmark.
        to: A log for the samples with their new scores; it must not be there yet, and is there when it
            is whole.
        decode: Makes values of types of your own, as in `read_log`.

    Returns:
        The figures with the new scores.

    Raises:
        FileExistsError: There is a file at `to`.
        TypeError: There is not one of `benchmark` and `grade`, or one of the wrong type, or `make_env`
            or `grade` is asynchronous.
        ValueError: The file is no log, or the benchmark has not its items or asks them otherwise.
    """
    score = _scorer(benchmark, grade)
    log = read_log(path, decode=decode)
    groups = _regrade(read_groups(path, decode=log.decode), score)
    if to is None:
        return log.result(map(EvaluationRecord.from_group, groups))
    if os.path.lexists(to):
        msg = f"there is a file {os.fspath(to)!r} already: give the new log another name"
        raise FileExistsError(msg)
    temporary = Path(to).with_name(f".{Path(to).name}.{uuid.uuid4().hex}.tmp")
    try:
        settings = {**log.header, "regraded": _regraded(benchmark, grade)}
        with GroupWriter(temporary, settings=settings, encode=encode) as writer:
            result = log.result(map(EvaluationRecord.from_group, _written(groups, writer)))
        temporary.replace(to)
    finally:
        temporary.unlink(missing_ok=True)
    return result


def _scorer(
    benchmark: object, grade: Callable[[EvaluationRecord], ScoreValue] | None
) -> Callable[[EvaluationRecord], ScoreValue]:
    """Return what gives a sample its new score."""
    if (benchmark is None) == (grade is None):
        msg = "either `benchmark` is needed, or `grade`, a function of a record; not both"
        raise TypeError(msg)
    if grade is None:
        if not isinstance(benchmark, Benchmark):
            msg = f"expected a Benchmark, got {benchmark!r}"
            raise TypeError(msg)
        return _Replay(cast("Benchmark[Any]", benchmark)).score
    if not callable(cast("object", grade)) or is_async(grade):
        msg = (
            f"grade must be a function that is not asynchronous, got {grade!r}: "
            "`rolloutlib.graders.aregrade` takes one that is"
        )
        raise TypeError(msg)
    return grade


def _regraded(benchmark: Benchmark[Any] | None, grade: object) -> dict[str, str]:
    """Return what the header of a log says of how its samples were graded anew."""
    if benchmark is None:
        return {"grade": describe_function(cast("Callable[..., object]", grade))}
    items = map(to_plain, benchmark.items)
    return {
        "dataset": fingerprint(item_names(benchmark), items),
        "make_env": describe_function(benchmark.make_env),
    }


def _regrade(
    groups: Iterable[AnyGroup], score: Callable[[EvaluationRecord], ScoreValue]
) -> Iterator[AnyGroup]:
    for group in groups:
        trajectory = _ended(group)
        if trajectory is None:
            yield group
            continue
        ended = dataclasses.replace(group, trajectories=(trajectory,), errors=())
        record = EvaluationRecord.from_group(ended)
        try:
            scores = (Score.from_value(score(record)),)
        except OtherBenchmarkError:
            raise
        except Exception as error:  # whatever environments and functions raise
            failure = RolloutError.from_exception(
                error, index=0, phase="grade", seed=record.seed, trajectory=trajectory
            )
            yield dataclasses.replace(ended, trajectories=(), scores=(), errors=(failure,))
        else:
            yield dataclasses.replace(ended, scores=scores)


def _ended(group: AnyGroup) -> Trajectory[Any, Any] | None:
    """Return the trajectory of a sample, or None if it failed before it could be graded."""
    for error in group.errors:
        return error.trajectory if error.phase == "grade" else None
    return group.trajectories[0]


def _written(groups: Iterable[AnyGroup], writer: GroupWriter) -> Iterator[AnyGroup]:
    for group in groups:
        writer.append(group)
        yield group


class OtherBenchmarkError(ValueError):
    """Raised when a log has samples that the benchmark does not have."""


class _Replay:
    """Scores samples by giving their actions to the environments of a benchmark again."""

    def __init__(self, benchmark: Benchmark[Any]) -> None:
        if is_async(benchmark.make_env):
            msg = f"make_env must be synchronous to grade a log anew, got {benchmark.make_env!r}"
            raise TypeError(msg)
        self._benchmark = benchmark
        self._items = dict(zip(item_names(benchmark), benchmark.items, strict=True))

    def score(self, record: EvaluationRecord) -> Score:
        name = self._benchmark.name
        if record.item_id not in self._items:
            msg = (
                f"benchmark {name!r} has no item {record.item_id!r}, of which the log has a sample"
            )
            raise OtherBenchmarkError(msg)
        trajectory = cast("Trajectory[Any, Any]", record.trajectory)
        environment = _sync(self._benchmark.make_env(snapshot(self._items[record.item_id])))
        try:
            actions = iter(trajectory.actions)

            def policy(observation: Any, *, step: int = 0) -> Any:
                if step == 0 and not same(observation, trajectory.initial_observation):
                    msg = (
                        f"item {record.item_id!r} of benchmark {name!r} begins with {observation!r}, "
                        f"and that of the log with {trajectory.initial_observation!r}: what the log "
                        "has is no answer to that"
                    )
                    raise OtherBenchmarkError(msg)
                return next(actions)

            return rollout(
                environment, policy, seed=record.seed, max_steps=len(trajectory.actions)
            ).score
        finally:
            environment.close()


def _sync(environment: Any) -> gym.Env[Any, Any]:
    if isinstance(environment, AsyncEnv):
        return as_sync(cast("AsyncEnv[Any, Any]", environment))
    return environment
