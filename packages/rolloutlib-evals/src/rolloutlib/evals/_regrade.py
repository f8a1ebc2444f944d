"""Grading the samples of a log anew, without the policy."""

from __future__ import annotations

import dataclasses
import os
import uuid
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, TypeAlias, cast

from rolloutlib._calls import is_async
from rolloutlib.evals._benchmark import Benchmark
from rolloutlib.evals._log import LogPath, read_log
from rolloutlib.evals._plain import encode, fingerprint, to_plain
from rolloutlib.evals._records import EvaluationRecord
from rolloutlib.evals._replay import OtherBenchmarkError, Replay
from rolloutlib.evals._results import BenchmarkResult
from rolloutlib.evals._samples import item_names
from rolloutlib.evals._stopping import Stopping
from rolloutlib.rollouts import (
    PolicyOutput,
    RolloutError,
    Step,
    Trajectory,
    TrajectoryGroup,
)
from rolloutlib.rollouts._codec import Decode
from rolloutlib.rollouts._identity import describe_function
from rolloutlib.scores import Score, ScoreValue
from rolloutlib.storage import GroupWriter, read_groups

__all__ = ["regrade_log"]

AnyGroup: TypeAlias = TrajectoryGroup[Any, Any, Any]
_Grade: TypeAlias = Callable[[EvaluationRecord], tuple[Trajectory[Any, Any], Score] | None]
"""Returns the trajectory and the score of a sample, or None if it has failed for good."""


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

    Those that failed in a step, after the policy had answered, are graded too: the judge was down, say.
    In an environment of the benchmark the answer has to end the episode, which then has that step;
    else the sample stays as it is, since only the policy could go on. A function is given the record
    of the failure, whose trajectory has the answer as its last step; what would have come of it
    nobody knows, so the sample counts as truncated. What fails again can be graded another time.

    Args:
        path: The log.
        benchmark: Its environments are given the actions of the log again. It has the items of the
            log, told by their names; answers and graders may have changed, prompts may not.
        grade: Returns the score of a sample, in place of a benchmark; `record.response` is its answer.
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
    log = read_log(path, decode=decode)
    regrade = _grader(benchmark, grade, max_steps=log.header["max_steps"])
    groups: Iterable[AnyGroup] = read_groups(path, decode=log.decode)
    stopping = Stopping.from_header(log.header, log)
    if stopping is not None:  # what the run does not count stays out
        groups = filter(lambda group: stopping.has(EvaluationRecord.from_group(group)), groups)
    groups = _regrade(groups, regrade)
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


def _grader(
    benchmark: object,
    grade: Callable[[EvaluationRecord], ScoreValue] | None,
    *,
    max_steps: int | None,
) -> _Grade:
    """Return what gives a sample its new score."""
    if (benchmark is None) == (grade is None):
        msg = "either `benchmark` is needed, or `grade`, a function of a record; not both"
        raise TypeError(msg)
    if grade is None:
        if not isinstance(benchmark, Benchmark):
            msg = f"expected a Benchmark, got {benchmark!r}"
            raise TypeError(msg)
        return Replay(cast("Benchmark[Any]", benchmark), max_steps=max_steps).grade
    if not callable(cast("object", grade)) or is_async(grade):
        msg = (
            f"grade must be a function that is not asynchronous, got {grade!r}: "
            "`rolloutlib.graders.aregrade` takes one that is"
        )
        raise TypeError(msg)
    return lambda record: (
        cast("Trajectory[Any, Any]", record.trajectory),
        Score.from_value(grade(record)),
    )


def _regraded(benchmark: Benchmark[Any] | None, grade: object) -> dict[str, str]:
    """Return what the header of a log says of how its samples were graded anew."""
    if benchmark is None:
        return {"grade": describe_function(cast("Callable[..., object]", grade))}
    items = map(to_plain, benchmark.items)
    return {
        "dataset": fingerprint(item_names(benchmark), items),
        "make_env": describe_function(benchmark.make_env),
    }


def _regrade(groups: Iterable[AnyGroup], grade: _Grade) -> Iterator[AnyGroup]:
    for group in groups:
        record = _gradable(group)
        if record is None:
            yield group
            continue
        try:
            graded = grade(record)
        except OtherBenchmarkError:
            raise
        except Exception as error:  # whatever environments and functions raise
            yield _failed(group, record, error)
        else:
            yield group if graded is None else _with_one(group, *graded)


def _gradable(group: AnyGroup) -> EvaluationRecord | None:
    """Return the record of a sample that can be graded, or None if it failed before.

    If it failed in a step, the trajectory has the policy's answer as its last step.
    """
    record = EvaluationRecord.from_group(group)
    trajectory = record.trajectory
    if not group.errors or trajectory is None:
        return record if not group.errors else None
    [error] = group.errors
    if error.phase == "grade":
        return EvaluationRecord.from_group(_with_one(group, trajectory))
    if error.output is None:
        return None
    why = f"the step failed with {error.error_type}: {error.error_message}"
    return dataclasses.replace(record, trajectory=_answered(trajectory, error.output, why))


def _with_one(
    group: AnyGroup, trajectory: Trajectory[Any, Any], score: Score | None = None
) -> AnyGroup:
    scores = () if score is None else (score,)
    return dataclasses.replace(group, trajectories=(trajectory,), scores=scores, errors=())


def _answered(
    trajectory: Trajectory[Any, Any], output: PolicyOutput[Any], why: str
) -> Trajectory[Any, Any]:
    """Return an episode that was cut short after an answer, of which nothing is known to have come."""
    observation = trajectory.observations[-1]
    step = Step(
        observation,
        output.action,
        0.0,
        observation,
        terminated=False,
        truncated=True,
        policy_info=output.info,
        policy_tokens=output.tokens,
        policy_logprobs=output.logprobs,
        policy_stop_reason=output.stop_reason,
        policy_prompt_tokens=output.prompt_tokens,
        policy_version=output.version,
    )
    return dataclasses.replace(
        trajectory,
        steps=(*trajectory.steps, step),
        truncated=True,
        metadata={**trajectory.metadata, "truncated_by": why},
    )


def _failed(group: AnyGroup, record: EvaluationRecord, error: Exception) -> AnyGroup:
    """Return a sample that could not be graded, with all that it takes to try again."""
    before = group.errors[0] if record.output is not None else None
    trajectory = cast("Trajectory[Any, Any]", record.trajectory)
    failure = RolloutError.from_exception(
        error,
        index=0,
        attempt=trajectory.attempt,
        phase="grade" if before is None else before.phase,
        seed=record.seed,
        trajectory=trajectory if before is None else before.trajectory,
        output=record.output,
    )
    return dataclasses.replace(group, trajectories=(), scores=(), errors=(failure,))


def _written(groups: Iterable[AnyGroup], writer: GroupWriter) -> Iterator[AnyGroup]:
    for group in groups:
        writer.append(group)
        yield group
