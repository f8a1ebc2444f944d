"""Keeping the samples of a run as they end: as records, and in the run's log."""

from __future__ import annotations

import dataclasses
import datetime
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias, cast

import anyio.lowlevel
import gymnasium as gym

from rolloutlib._calls import is_awaitable
from rolloutlib.envs import AsyncEnv, as_async, as_sync
from rolloutlib.evals._header import read_versions
from rolloutlib.evals._plain import decode, encode
from rolloutlib.evals._records import EvaluationRecord
from rolloutlib.evals._results import BenchmarkResult
from rolloutlib.evals._samples import Sample, Samples
from rolloutlib.evals._stopping import Stopping
from rolloutlib.rollouts import TrajectoryGroup
from rolloutlib.storage import GroupStore

__all__ = ["ErrorBudgetError", "Recorder"]

AnyEnv: TypeAlias = AsyncEnv[Any, Any]
AnyGroup: TypeAlias = TrajectoryGroup[Any, Any, Any]


class ErrorBudgetError(RuntimeError):
    """Raised when more samples have failed than a run may have: its figures would mean little."""


class Recorder:
    """Makes a record of each sample that ends; to the engine it is the store of the run.

    Args:
        samples: The samples of the run.
        path: The log, or None.
        header: What the log is begun with.
        max_errors: How many samples may fail.
        stopping: Tells when the run may stop early.
        retry_failed: Whether the log's failed samples are to be played again.

    Attributes:
        records: The records by index and epoch.
        inline: That asynchronous runs call it on the event loop: writing a line takes less time than a
            change of threads.
        prepared: Whether all was found to be in order, and the run is about to begin.
    """

    def __init__(
        self,
        samples: Samples[Any],
        *,
        path: Path | None,
        header: Mapping[str, Any],
        max_errors: int | None,
        stopping: Stopping | None = None,
        retry_failed: bool = False,
    ) -> None:
        self.records: dict[tuple[int, int], EvaluationRecord] = {}
        self.inline = True
        self.prepared = False
        self._samples = samples
        self._path = path
        self._log = None if path is None else GroupStore(path, encode=encode, decode=decode)
        self._header = header
        self._max_errors = max_errors
        self._stopping = stopping
        self._retry_failed = retry_failed
        self._num_errors = 0
        self._begun: dict[tuple[int, int], tuple[datetime.datetime, float]] = {}
        self._since = self._until = time.perf_counter()

    def item_id(self, sample: Sample) -> str:
        """Return the name of a sample's item."""
        return self._samples.item_id(sample)

    def seed_of(self, sample: Sample) -> int:
        """Return a sample's seed."""
        return self._samples.seed_of(sample)

    def make_env(self, sample: Sample) -> Any:
        """Make the environment of a sample, for a run without an event loop."""
        made = self._make_env(sample)
        return as_sync(cast("AnyEnv", made)) if isinstance(made, AsyncEnv) else made

    async def amake_env(self, sample: Sample) -> Any:
        """The asynchronous twin of `make_env`."""
        await anyio.lowlevel.checkpoint()  # the only one of a sample where nothing else suspends
        made = self._make_env(sample)
        if is_awaitable(made):
            made = await made
        if self._samples.benchmark.inline and isinstance(made, gym.Env):
            return as_async(cast("gym.Env[Any, Any]", made), inline=True)
        return made

    @property
    def stoppings(self) -> Sequence[Stopping]:
        """What tells when the run may stop early, if anything does."""
        return () if self._stopping is None else (self._stopping,)

    @property
    def samples(self) -> Sequence[Sample] | _Needed:
        """The samples to play: all, or as many as it takes until the run may stop."""
        samples = self._samples.samples
        return samples if self._stopping is None else _Needed(samples, self._stopping)

    def results(self) -> dict[str, BenchmarkResult]:
        """Return the figures of the samples so far, by the name of the benchmark."""
        return {self._samples.benchmark.name: self._result()}

    def _result(self) -> BenchmarkResult:
        stopping = self._stopping
        records = list(self.records.values())
        if stopping is not None:
            records = stopping.kept(records)
        num_remaining = len(self._samples.samples) - len(records)
        return BenchmarkResult.from_records(
            self._samples.benchmark.name,
            records,
            elapsed_seconds=self._until - self._since,
            metadata=self._samples.benchmark.metadata,
            num_remaining=num_remaining,
            interval=None if stopping is None else stopping.interval,
            stopped_early=stopping is not None and stopping.is_over and num_remaining > 0,
        )

    def rescue(self, group: AnyGroup) -> None:
        """Record a sample that has ended and that an exception kept from being handed out.

        It goes into the log too, unless it failed, and the failure is what was raised.

        Raises:
            UnstorableError: The log cannot hold it.
            ValueError: The log is damaged.
            OSError: It cannot be written.
        """
        key = group.item["index"], group.item["epoch"]
        if key in self.records:
            return
        keys = ((sample["index"], sample["epoch"]) for sample in self._samples.samples)
        position = next(position for position, other in enumerate(keys) if other == key)
        group = self._noted(group, position=position)
        record = EvaluationRecord.from_group(group)
        self._keep(record)
        if self._log is not None and record.score is not None and not self._log.load(position):
            self._log.save(position, group)

    def read_rest(self) -> None:
        """Take what the log has of a run that was stopped before it asked for all of it.

        Raises:
            ValueError: The log is damaged.
            OSError: It cannot be read.
        """
        if self._log is None:
            return
        for position, sample in enumerate(self._samples.samples):
            if (sample["index"], sample["epoch"]) not in self.records:
                group = self._log.load(position)
                if group is not None:
                    self._keep(EvaluationRecord.from_group(group))

    def read_seed(self) -> int | None:
        """Return the seed of the run."""
        return self._samples.seed

    def prepare(self, settings: Mapping[str, Any]) -> None:
        """Begin the log, or check that it is one of this very run.

        Raises:
            ValueError: It is not; the message says what has changed.
        """
        del settings  # the header tells more
        if self._log is not None and self._path is not None:
            self._log.prepare({**self._header, "versions": read_versions(self._path)})
            if self._retry_failed:
                self._log.remove(lambda group: group.errors)
        self.prepared = True

    def check(self, value: object) -> None:
        """Refuse what the log cannot hold."""
        if self._log is not None:
            self._log.check(value)

    def load(self, position: int) -> AnyGroup | None:
        """Return a sample that the log has."""
        if not position:
            self._since = time.perf_counter()
        group = None if self._log is None else self._log.load(position)
        if group is not None:
            self._add(group)
        return group

    def save(self, position: int, group: AnyGroup) -> None:
        """Keep a sample that has ended.

        Raises:
            ErrorBudgetError: It is one failure too many.
        """
        group = self._noted(group, position=position)
        if self._log is not None:
            self._log.save(position, group)
        self._add(group)

    def finish(self, num_items: int) -> None:
        """Take note of the end of the samples."""
        over = self._stopping is not None and self._stopping.is_over
        if self._log is not None and not over:  # else the log may have samples beyond the last
            self._log.finish(num_items)

    def close(self) -> None:
        """Let go of the log."""
        if self._log is not None:
            self._log.close()

    def _keep(self, record: EvaluationRecord) -> None:
        """Take a record at the end of a run that was stopped."""
        self.records[record.index, record.epoch] = record
        if self._stopping is not None:
            self._stopping.add(record)

    def _make_env(self, sample: Sample) -> Any:
        """Make an environment, and remember when the first attempt at its sample began."""
        moment = datetime.datetime.now(datetime.UTC), time.perf_counter()
        self._begun.setdefault((sample["index"], sample["epoch"]), moment)
        return self._samples.make_env(sample)

    def _noted(self, group: AnyGroup, **facts: Any) -> AnyGroup:
        """Return a group with its times, if an environment was asked for, and further facts."""
        key = (group.item["index"], group.item["epoch"])
        begun = self._begun.pop(key, None)
        if begun is not None:
            facts["started"] = begun[0].isoformat()
            facts["seconds"] = time.perf_counter() - begun[1]
        return dataclasses.replace(group, metadata={**group.metadata, **facts})

    def _add(self, group: AnyGroup) -> None:
        record = EvaluationRecord.from_group(group)
        self.records[record.index, record.epoch] = record
        self._until = time.perf_counter()
        if self._stopping is not None:
            if self._stopping.is_over:
                return  # the log keeps it, and the result does not count it
            self._stopping.check(record)
            self._stopping.add(record)
        self._num_errors += record.score is None
        if self._max_errors is not None and self._num_errors > self._max_errors:
            name = self._samples.benchmark.name
            msg = (
                f"failed samples of benchmark {name!r}: {self._num_errors}, more than "
                f"max_errors={self._max_errors}; the last with "
                f"{record.metadata['error_type']}: {record.error}"
            )
            raise ErrorBudgetError(msg)


class _Needed:
    """Samples until a run may stop. They have a length, as what need not be read on a thread."""

    def __init__(self, samples: Sequence[Sample], stopping: Stopping) -> None:
        self._samples = samples
        self._stopping = stopping

    def __len__(self) -> int:
        return len(self._samples)

    def __iter__(self) -> Iterator[Sample]:
        for sample in self._samples:
            if self._stopping.is_over:
                return
            yield sample
