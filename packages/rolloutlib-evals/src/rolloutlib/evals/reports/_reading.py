"""Reading reports from files of groups."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeAlias

from rolloutlib.evals._log import read_log
from rolloutlib.evals._records import EvaluationRecord
from rolloutlib.evals._results import BenchmarkResult
from rolloutlib.evals.reports._report import Report
from rolloutlib.rollouts import TrajectoryGroup
from rolloutlib.rollouts._codec import Decode
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
    return Report(result, title=title, settings=settings, baseline=other)


def member_records(index: int, group: TrajectoryGroup[Any, Any, Any]) -> Iterator[EvaluationRecord]:
    """Yield a record for each member of a group, as if it were an evaluation's sample.

    Args:
        index: Which group of its file it is, from 0.
        group: The group.
    """
    members = [
        *zip(group.trajectories, group.scores, [None] * len(group.trajectories), strict=True),
        *[(None, None, error) for error in group.errors],
    ]
    for position, (trajectory, score, error) in enumerate(members):
        number = error.index if trajectory is None and error else trajectory and trajectory.member
        member = position if number is None else number
        yield EvaluationRecord.from_group(
            TrajectoryGroup[Any, Any, Any](
                {"index": index, "epoch": member, "item": group.item},
                group.item_id,
                () if trajectory is None else [trajectory],
                () if score is None else [score],
                () if error is None else [error],
                retried=[failure for failure in group.retried if failure.index == member],
            )
        )
