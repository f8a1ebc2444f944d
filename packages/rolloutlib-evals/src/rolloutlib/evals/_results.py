"""The records of an evaluation run."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from rolloutlib._exceptions import add_note, attach, find
from rolloutlib._values import snapshot, to_bool
from rolloutlib.scores import Score

__all__ = ["BenchmarkResult", "Evaluation", "EvaluationRecord", "attach_results", "summarize"]

_NOTE = "BenchmarkResult.from_exception(error) returns what was finished"


@dataclass(frozen=True)
class Evaluation:
    """What evaluating one item gave.

    Attributes:
        score: The grade; a number becomes a score without parts.
        truncated: Whether the episode was cut short. Its score counts in a result's `score`, and not
            in its `score_completed`.
        metadata: Further facts, of which a copy is kept.

    Raises:
        TypeError: The score is neither a score nor a number, or `truncated` is no flag.
        ValueError: The score is a number but not finite.
    """

    score: Score
    truncated: bool = False
    metadata: Mapping[str, Any] = field(default_factory=dict[str, Any])

    def __post_init__(self) -> None:
        object.__setattr__(self, "score", Score.from_value(self.score))
        object.__setattr__(self, "truncated", to_bool(self.truncated, "truncated"))
        object.__setattr__(self, "metadata", _copied(self.metadata))


@dataclass(frozen=True)
class EvaluationRecord:
    """The outcome of one item: a score, or an error.

    Attributes:
        index: The item's position in its benchmark.
        item_id: What the benchmark's `item_id` gives, else the index as text; None if `item_id`
            failed.
        score: The grade, or None if the item failed.
        truncated: Whether the episode was cut short.
        metadata: What the evaluation said. A failed item has "error_type" and "traceback". Where
            closing the environment failed too, "close_error" says how.
        error: The error's message, or None.
    """

    index: int
    item_id: str | None = None
    score: Score | None = None
    truncated: bool = False
    metadata: Mapping[str, Any] = field(default_factory=dict[str, Any])
    error: str | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "metadata", _copied(self.metadata))


@dataclass(frozen=True)
class BenchmarkResult:
    """The figures of a run over one benchmark, and the records that they summarise.

    Attributes:
        name: The benchmark's name.
        score: The mean over all records, in which a failed item counts 0; NaN if there are none.
        score_completed: The mean over the items that neither failed nor were truncated, or None.
        components: For each component of the scores, its mean over the items whose score has it.
        num_examples: How many items have a record.
        num_scored: How many of them have a score.
        num_completed: How many of those were not truncated.
        num_errors: How many failed.
        num_truncated: How many have a score and were truncated.
        elapsed_seconds: The wall-clock time of the run.
        records: One record an item, in the order of the items.
        metadata: The benchmark's metadata.
        component_counts: Over how many items each mean in `components` was taken.
        num_remaining: How many items the run was stopped before it finished; 0 for a whole run.
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
    records: tuple[EvaluationRecord, ...]
    metadata: Mapping[str, Any] = field(default_factory=dict[str, Any])
    component_counts: Mapping[str, int] = field(default_factory=dict[str, int], kw_only=True)
    num_remaining: int = field(default=0, kw_only=True)

    @staticmethod
    def from_exception(error: BaseException) -> BenchmarkResult | None:
        """Return what was finished of the benchmark that an exception stopped.

            try:
                result = run_benchmark(benchmark, evaluate)
            except KeyboardInterrupt as error:
                result = BenchmarkResult.from_exception(error)

        Args:
            error: What `run_benchmark` or `run_benchmarks` raised.

        Returns:
            The result over the finished items, or None if the exception did not stop a run.
        """
        results = BenchmarkResult.all_from_exception(error)
        return results[next(reversed(results))] if results else None

    @staticmethod
    def all_from_exception(error: BaseException) -> dict[str, BenchmarkResult]:
        """Return, by name, the benchmarks that were finished and the one that was stopped, last."""
        return dict(cast("Mapping[str, BenchmarkResult]", find(error, "benchmarks") or {}))


def attach_results(error: BaseException, results: Mapping[str, BenchmarkResult]) -> None:
    """Let an exception carry what was finished, and say so where it is shown."""
    attach(error, benchmarks=dict(results))
    if _NOTE not in getattr(error, "__notes__", ()):
        add_note(error, _NOTE)


def summarize(
    name: str,
    records: Iterable[EvaluationRecord],
    *,
    elapsed_seconds: float,
    metadata: Mapping[str, Any],
    num_remaining: int = 0,
) -> BenchmarkResult:
    """Compute the figures of a run."""
    records = tuple(records)
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
        num_errors=len(records) - len(scored),
        num_truncated=len(scored) - len(completed),
        elapsed_seconds=elapsed_seconds,
        records=records,
        metadata=dict(metadata),
        component_counts={component: len(values) for component, values in parts.items()},
        num_remaining=num_remaining,
    )


def _mean(values: list[float]) -> float:
    return math.fsum(values) / len(values)


def _copied(metadata: Mapping[str, Any]) -> Mapping[str, Any]:
    if not isinstance(cast("object", metadata), Mapping):
        msg = f"metadata must be a mapping, got {metadata!r}"
        raise TypeError(msg)
    return snapshot(dict(metadata))
