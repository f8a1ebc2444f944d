"""Reading the log of an evaluation."""

from __future__ import annotations

import datetime
import os
from collections.abc import Iterable, Iterator, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeAlias

from rolloutlib.evals._header import LOG_VERSION
from rolloutlib.evals._records import EvaluationRecord
from rolloutlib.evals._results import BenchmarkResult
from rolloutlib.evals._rows import component_names, to_row
from rolloutlib.evals._stopping import Stopping
from rolloutlib.rollouts._codec import Decode
from rolloutlib.storage import read_groups, read_settings

__all__ = ["EvaluationLog", "read_log"]

LogPath: TypeAlias = str | os.PathLike[str]


class EvaluationLog:
    """The log of an evaluation, which is read a sample at a time.

        log = read_log("gsm8k.jsonl")
        wrong = [record for record in log if record.outcome == "wrong"]
        frame = pandas.DataFrame(log.rows())

    Iterating over it gives an `EvaluationRecord` a sample, in the order in which they ended. Of a run
    with `stop_when` that has stopped, the log may have samples beyond the last one that `result` counts.

    Args:
        path: The file.
        decode: Makes values of types of your own, as in `TrajectoryGroup.from_dict`. By default
            models and data classes come as dictionaries.

    Attributes:
        path: The file.
        header: What the log begins with: "benchmark", "benchmark_metadata", "dataset", "model",
            "seed", "epochs" and so on.
        decode: Makes values of other types.

    Raises:
        FileNotFoundError: There is no such file.
        ValueError: It is no log of an evaluation, or one of another version.
    """

    def __init__(self, path: LogPath, *, decode: Decode | None = None) -> None:
        self.path: Path = Path(path)
        self.header: Mapping[str, Any] = read_settings(path) or {}
        self.decode: Decode = decode or (lambda name, value: value)
        found = self.header.get("evaluation")
        if found is None:
            msg = (
                f"{os.fspath(path)!r} is no log of an evaluation, but of another run: its settings are "
                f"{sorted(self.header)}. `rolloutlib.storage.read_groups` reads it"
            )
            raise ValueError(msg)
        if found != LOG_VERSION:
            msg = (
                f"{os.fspath(path)!r} is a log of version {found!r}, written by rolloutlib-evals "
                f"{self.header.get('versions', {}).get('rolloutlib-evals')}; this one, "
                f"{version('rolloutlib-evals')}, reads version {LOG_VERSION}"
            )
            raise ValueError(msg)

    def __iter__(self) -> Iterator[EvaluationRecord]:
        for group in read_groups(self.path, decode=self.decode):
            yield EvaluationRecord.from_group(group)

    def __repr__(self) -> str:
        return f"EvaluationLog({os.fspath(self.path)!r})"

    def result(self, records: Iterable[EvaluationRecord] | None = None) -> BenchmarkResult:
        """Compute the figures, which equal those of the run but for `elapsed_seconds`.

        Args:
            records: The log's records after they were graded anew, in place of the log's own.
        """
        stopping = Stopping.from_header(self.header, self)
        if records is None:
            records = tuple(self)
            if stopping is not None:
                records = tuple(stopping.kept(records))
        elif stopping is None:
            records = tuple(records)
        else:  # the run has the samples that it had by its own scores
            records = tuple(stopping.kept(records))
            stopping = Stopping.from_header(self.header, records, graded_anew=True)
        num_remaining = self.header["num_samples"] - len(records)
        return BenchmarkResult.from_records(
            self.header["benchmark"],
            records,
            elapsed_seconds=_elapsed(records),
            metadata=self.header["benchmark_metadata"],
            num_remaining=num_remaining,
            interval=None if stopping is None else stopping.interval,
            stopped_early=stopping is not None and stopping.is_over and num_remaining > 0,
        )

    def rows(self) -> Iterator[dict[str, Any]]:
        """Yield one flat dictionary a sample, all with the same keys, for a table of any library.

            pandas.DataFrame(log.rows())
            polars.DataFrame(list(log.rows()), infer_schema_length=None)
            datasets.Dataset.from_list(list(log.rows()))

        The file is read twice, since all keys have to be known for the first row. The columns are
        told in the guide to evals. polars has to look at all rows for their types: the first error,
        say, may stand far below.
        """
        names = component_names(self)
        for record in self:
            yield to_row(record, names)


def read_log(path: LogPath, *, decode: Decode | None = None) -> EvaluationLog:
    """Open the log of an evaluation; its samples are read when they are asked for.

    Args:
        path: The file.
        decode: Makes values of types of your own, as in `TrajectoryGroup.from_dict`. By default
            models and data classes come as dictionaries.

    Raises:
        FileNotFoundError: There is no such file.
        ValueError: It is no log of an evaluation, or one of another version.
    """
    return EvaluationLog(path, decode=decode)


def _elapsed(records: tuple[EvaluationRecord, ...]) -> float:
    """Return the time in seconds from the beginning of the first sample to the end of the last."""
    spans = [
        (begin, begin + record.seconds)
        for record in records
        if record.started is not None and record.seconds is not None
        for begin in [datetime.datetime.fromisoformat(record.started).timestamp()]
    ]
    if not spans:
        return 0.0
    return max(end for _, end in spans) - min(begin for begin, _ in spans)
