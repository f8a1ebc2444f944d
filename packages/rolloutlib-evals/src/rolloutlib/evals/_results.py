"""The figures of an evaluation run."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from rolloutlib._exceptions import add_note, attach, find
from rolloutlib.evals._records import EvaluationRecord
from rolloutlib.evals.statistics import Interval

__all__ = ["BenchmarkResult", "attach_results"]

_NOTE = "BenchmarkResult.from_exception(error) returns what was finished"


@dataclass(frozen=True)
class BenchmarkResult:
    """The figures of a run over one benchmark, and the records that they summarise.

    A sample is an item in an epoch. `num_expected` is the sum of `num_credited`, `num_wrong`,
    `num_no_answer`, `num_truncated`, `num_errors` and `num_remaining`.

    Attributes:
        name: The benchmark's name.
        score: The mean over all records, in which a failed sample counts 0; NaN if there are none.
        score_completed: The mean over the samples that neither failed nor were truncated, or None.
        components: For each component of the scores, its mean over the samples whose score has it.
        num_examples: How many samples have a record.
        num_scored: How many of them have a score.
        num_completed: How many of those were not truncated.
        num_errors: How many failed.
        num_truncated: How many have a score and were truncated.
        elapsed_seconds: The wall-clock time of the run; of one that was read from its log, from the
            beginning of the first sample to the end of the last.
        records: One record a sample, in the order of the items and then of the epochs.
        metadata: The benchmark's metadata.
        component_counts: Over how many samples each mean in `components` was taken.
        num_remaining: How many samples are left out: the run was stopped before it finished them, or it
            stopped early and did not need them; 0 for a whole run.
        num_credited: How many samples scored more than 0, and were not truncated. Of a score with the
            component "correct" it is that which counts, here and for the next two: a scorer may give
            something for the form of a wrong answer.
        num_wrong: How many scored 0, and were not truncated, in spite of an answer.
        num_no_answer: How many scored 0, and were not truncated, for lack of a definite answer, as
            far as their scores tell it: those of the built-in benchmarks do.
        interval: Of a run with `stop_when`, the interval of its score, which is valid although the run
            may have stopped when it was narrow; else None.
        stopped_early: Whether that is so. The samples that were not needed are in `num_remaining`, those
            too that were in play by then and that the log has.
    """

    name: str
    score: float
    score_completed: float | None
    components: Mapping[str, float]
    num_examples: int
    num_scored: int
    num_completed: int
    num_errors: int
    num_truncated: int
    elapsed_seconds: float
    records: tuple[EvaluationRecord, ...] = field(repr=False)
    metadata: Mapping[str, Any] = field(default_factory=dict[str, Any])
    component_counts: Mapping[str, int] = field(default_factory=dict[str, int], kw_only=True)
    num_remaining: int = field(default=0, kw_only=True)
    num_credited: int = field(default=0, kw_only=True)
    num_wrong: int = field(default=0, kw_only=True)
    num_no_answer: int = field(default=0, kw_only=True)
    interval: Interval | None = field(default=None, kw_only=True)
    stopped_early: bool = field(default=False, kw_only=True)

    @staticmethod
    def from_records(
        name: str,
        records: Iterable[EvaluationRecord],
        *,
        elapsed_seconds: float = 0.0,
        metadata: Mapping[str, Any] | None = None,
        num_remaining: int = 0,
        interval: Interval | None = None,
        stopped_early: bool = False,
    ) -> BenchmarkResult:
        """Compute the figures of records.

        Args:
            name: The benchmark's name.
            records: The records, in any order.
            elapsed_seconds: The wall-clock time of the run.
            metadata: The benchmark's metadata.
            num_remaining: How many samples have no record.
            interval: The interval of the score of a run that could stop early.
            stopped_early: Whether it did.
        """
        records = tuple(sorted(records, key=lambda record: (record.index, record.epoch)))
        outcomes = Counter([record.outcome for record in records])
        scored = [(record, record.score) for record in records if record.score is not None]
        completed = [score.value for record, score in scored if not record.truncated]
        parts: dict[str, list[float]] = {}
        for _, score in scored:
            for component, value in score.component_values.items():
                parts.setdefault(component, []).append(value)
        total = math.fsum(score.value for _, score in scored)
        return BenchmarkResult(
            name=name,
            score=total / len(records) if records else math.nan,
            score_completed=_mean(completed) if completed else None,
            components={component: _mean(values) for component, values in parts.items()},
            num_examples=len(records),
            num_scored=len(scored),
            num_completed=len(completed),
            num_errors=outcomes["failed"],
            num_truncated=outcomes["truncated"],
            elapsed_seconds=elapsed_seconds,
            records=records,
            metadata=dict(metadata or {}),
            component_counts={component: len(values) for component, values in parts.items()},
            num_remaining=num_remaining,
            num_credited=outcomes["credited"],
            num_wrong=outcomes["wrong"],
            num_no_answer=outcomes["no_answer"],
            interval=interval,
            stopped_early=stopped_early,
        )

    @staticmethod
    def from_exception(error: BaseException) -> BenchmarkResult | None:
        """Return what was finished of the benchmark that an exception stopped.

            try:
                result = run_benchmark(benchmark, evaluate)
            except KeyboardInterrupt as error:
                result = BenchmarkResult.from_exception(error)

        Args:
            error: What a run of one or several benchmarks raised.

        Returns:
            The result over the finished items, or None if the exception did not stop a run.
        """
        results = BenchmarkResult.all_from_exception(error)
        return results[next(reversed(results))] if results else None

    @staticmethod
    def all_from_exception(error: BaseException) -> dict[str, BenchmarkResult]:
        """Return, by name, the benchmarks that were finished and the one that was stopped, last."""
        return dict(cast("Mapping[str, BenchmarkResult]", find(error, "benchmarks") or {}))

    def __str__(self) -> str:
        """Tell the score in a line, with what it is made of."""
        counts = ", ".join(
            f"{count} {what}"
            for count, what in (
                (self.num_credited, "credited"),
                (self.num_wrong, "wrong"),
                (self.num_no_answer, "no answer"),
                (self.num_truncated, "truncated"),
                (self.num_errors, "failed"),
            )
        )
        score = f"score {self.score:.4g}" if self.records else "no score"
        if self.num_errors:
            score += f" ({self.score_bounds[1]:.4g} if the failed ones scored 1)"
        if self.interval is not None:
            score += f", {self.interval}"
        return f"{self.name}: {score}; {self.num_examples} of {self.num_expected} samples: {counts}"

    @property
    def num_expected(self) -> int:
        """How many samples a whole run has."""
        return self.num_examples + self.num_remaining

    @property
    def is_over(self) -> bool:
        """Whether all samples have a record, or the run has stopped early."""
        return self.num_remaining == 0 or self.stopped_early

    @property
    def item_scores(self) -> dict[str, list[float | None]]:
        """The scores of each item, one an epoch, None where a sample failed.

        This is what `rolloutlib.evals.statistics` works on.

        Raises:
            ValueError: Two items have one id, which would make epochs of one item of them.
        """
        return {
            name: [None if record.score is None else record.score.value for record in records]
            for name, records in self._by_item().items()
        }

    @property
    def item_answers(self) -> dict[str, list[Any]]:
        """The answers of each item, one an epoch, None where a sample failed or gave none.

        They are what the scores' metadata hold as "extracted", as those of the built-in benchmarks
        do. This is what `maj_at_k` of `rolloutlib.evals.statistics` takes beside `item_scores`.

        Raises:
            ValueError: A score tells no answer, not even None, or two items have one id.
        """
        return {
            name: [_answer(record) for record in records]
            for name, records in self._by_item().items()
        }

    @property
    def score_bounds(self) -> tuple[float, float]:
        """What `score` is if each failed sample scores 0, as it does there, and if each scores 1."""
        most = self.score + self.num_errors / self.num_examples if self.records else math.nan
        return self.score, most

    def _by_item(self) -> dict[str, list[EvaluationRecord]]:
        grouped: dict[str, list[EvaluationRecord]] = {}
        for record in self.records:
            name = str(record.index) if record.item_id is None else record.item_id
            same = grouped.setdefault(name, [])
            if same and same[0].index != record.index:
                msg = (
                    f"the items {same[0].index} and {record.index} of {self.name!r} have one id, "
                    f"{name!r}, so that their samples cannot be told apart by it; group those of "
                    "`records` by their index"
                )
                raise ValueError(msg)
            same.append(record)
        return grouped


def attach_results(error: BaseException, results: Mapping[str, BenchmarkResult]) -> None:
    """Let an exception carry what was finished, and say so where it is shown."""
    attach(error, benchmarks=dict(results))
    if _NOTE not in getattr(error, "__notes__", ()):
        add_note(error, _NOTE)


def _answer(record: EvaluationRecord) -> Any:
    if record.score is None:
        return None
    if "extracted" not in record.score.metadata:
        msg = (
            f'the score of item {record.item_id!r} in epoch {record.epoch} has no "extracted" in its '
            "metadata, so that its answer is not known"
        )
        raise ValueError(msg)
    return record.score.metadata["extracted"]


def _mean(values: list[float]) -> float:
    return math.fsum(values) / len(values)
