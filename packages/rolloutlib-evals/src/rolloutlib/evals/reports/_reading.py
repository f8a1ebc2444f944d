"""Reading reports from files of groups."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, TypeAlias, cast

from rolloutlib.evals._log import read_log
from rolloutlib.evals._records import EvaluationRecord
from rolloutlib.evals._results import BenchmarkResult
from rolloutlib.evals.reports._report import Report
from rolloutlib.rollouts import RolloutError, Trajectory, TrajectoryGroup
from rolloutlib.rollouts._codec import Decode
from rolloutlib.scores import Score
from rolloutlib.storage import read_groups, read_settings

__all__ = ["read_report"]

ReportPath: TypeAlias = str | os.PathLike[str]


def read_report(
    path: ReportPath, *, baseline: ReportPath | None = None, decode: Decode | None = None
) -> Report:
    """Read the log of an evaluation, or a file of collected trajectories, as a report.

    Args:
        path: The file.
        baseline: The file of a run to compare with, on the items that both have.
        decode: Makes values of types of your own, as in `TrajectoryGroup.from_dict`. By default
            models and data classes come as dictionaries.

    Raises:
        FileNotFoundError: There is no such file.
        ValueError: It is no file of groups, a line is damaged, or the two runs have no item in common.
    """
    other = None if baseline is None else read_report(baseline, decode=decode)
    settings = read_settings(path) or {}
    title = Path(path).stem
    if "evaluation" in settings:
        log = read_log(path, decode=decode)
        return Report(log.result(), title=title, settings=log.header, baseline=other)
    groups = read_groups(path, decode=decode or (lambda name, value: value))
    records = [
        record for index, group in enumerate(groups) for record in member_records(index, group)
    ]
    result = BenchmarkResult.from_records(title, records)
    metadata: object = settings.get("metadata")
    if isinstance(metadata, Mapping):  # where the command keeps the model's name
        settings = {"model": cast("Mapping[str, Any]", metadata).get("model"), **settings}
    return Report(result, title=title, settings=settings, baseline=other)


def member_records(index: int, group: TrajectoryGroup[Any, Any, Any]) -> Iterator[EvaluationRecord]:
    """Yield a record for each member of a group, as if it were an evaluation's sample.

    Args:
        index: Which group of its file it is, from 0.
        group: The group.
    """
    for position, (trajectory, score) in enumerate(
        zip(group.trajectories, group.scores, strict=True)
    ):
        member = position if trajectory.member is None else trajectory.member
        yield _record(index, member, group, [trajectory], [score], [])
    for position, error in enumerate(group.errors, len(group.trajectories)):
        member = position if error.index is None else error.index
        yield _record(index, member, group, [], [], [error])


def _record(
    index: int,
    member: int,
    group: TrajectoryGroup[Any, Any, Any],
    trajectories: list[Trajectory[Any, Any]],
    scores: list[Score],
    errors: list[RolloutError],
) -> EvaluationRecord:
    sample = {"index": index, "epoch": member, "item": group.item}
    retried = [failure for failure in group.retried if failure.index == member]
    return EvaluationRecord.from_group(
        TrajectoryGroup(sample, group.item_id, trajectories, scores, errors, retried=retried)
    )
