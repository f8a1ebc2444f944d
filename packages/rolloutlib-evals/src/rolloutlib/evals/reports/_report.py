"""A run as its readers look at it: figures, samples by name, and what it is compared with."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Mapping, Sequence
from functools import cached_property
from typing import Any, Literal, TypeAlias, get_args

from rolloutlib.evals._plain import to_text
from rolloutlib.evals._records import EvaluationRecord, Outcome
from rolloutlib.evals._results import BenchmarkResult
from rolloutlib.evals.reports._conversation import conversation, length
from rolloutlib.evals.statistics import Comparison, Estimate, Interval, compare, mean_score
from rolloutlib.rollouts import Step

__all__ = ["Change", "Report", "item_name", "named_samples"]

Change: TypeAlias = Literal["better", "worse", "equal"]
"""How an item fares against the baseline."""


class Report:
    """A run, and perhaps the one that it is compared with.

        report = Report(run_benchmark(benchmark, policy=policy))
        wrong = report.select(outcomes=["wrong"], text="per cent")

    Args:
        result: The figures of the run, and its records. Those of collected trajectories are the
            figures of an evaluation too: groups are items, and the members of a group are epochs.
        title: What the report is headed; by default the name of the result.
        settings: What is to be said about the run, such as the header of its log.
        baseline: The run to compare with, item by item.

    Attributes:
        result: The figures and records.
        title: The heading.
        settings: Facts about the run.
        baseline: The run it is compared with, or None.
        estimate: The mean score over items, with its standard error.
        interval: The confidence interval of it that fits: of a run that could stop early, that by which
            it was to stop.
        samples: The records by name, in the order of the result. The name is the item's, followed by
            `#` and the epoch if the run has several.
        comparison: The statistics of the comparison over the items that both runs have, or None.

    Raises:
        ValueError: The two runs have no item in common.
    """

    def __init__(
        self,
        result: BenchmarkResult,
        *,
        title: str | None = None,
        settings: Mapping[str, Any] | None = None,
        baseline: Report | None = None,
    ) -> None:
        self.result = result
        self.title: str = result.name if title is None else title
        self.settings: Mapping[str, Any] = dict(settings or {})
        self.baseline = baseline
        self.estimate: Estimate = mean_score(_item_scores(result))
        self.interval: Interval = result.interval or self.estimate.interval()
        self.samples: Mapping[str, EvaluationRecord] = named_samples(result.records)
        self.comparison: Comparison | None = None
        if baseline is not None:
            self.comparison = compare(baseline.estimate, self.estimate, on_common_items=True)

    def __repr__(self) -> str:
        return f"Report({self.title!r}, {len(self.samples)} samples)"

    @cached_property
    def groups(self) -> Mapping[tuple[int, str], list[str]]:
        """From the index and the name of each item to the names of its samples.

        A group of an item that was collected more than once stands alone.
        """
        groups: dict[tuple[int, str], list[str]] = {}
        for name, record in self.samples.items():
            groups.setdefault((record.index, item_name(record)), []).append(name)
        return groups

    @cached_property
    def changes(self) -> Mapping[str, Change]:
        """How each item that both runs have fares against the baseline."""
        if self.comparison is None:
            return {}
        differences = self.comparison.difference.item_values
        return {
            item: "better" if value > 0 else "worse" if value < 0 else "equal"
            for item, value in differences.items()
        }

    @cached_property
    def length_unit(self) -> Literal["tokens", "characters"]:
        """What `lengths` are counted in: tokens, unless no policy told of any."""
        steps = (step for record in self.samples.values() for step in _steps(record))
        return "tokens" if any(step.policy_tokens is not None for step in steps) else "characters"

    @cached_property
    def lengths(self) -> Mapping[str, int]:
        """How long the actions of each sample are together; samples of which that is unknown lack."""
        lengths: dict[str, int] = {}
        for name, record in self.samples.items():
            steps = _steps(record)
            if self.length_unit == "tokens":
                counts = [
                    len(step.policy_tokens) for step in steps if step.policy_tokens is not None
                ]
            else:
                counts = [length(step.action) for step in steps]
            if counts:
                lengths[name] = sum(counts)
        return lengths

    def sample(self, name: str) -> EvaluationRecord:
        """Return the sample of a name.

        Args:
            name: Its name, or that of an item which has only one sample.

        Raises:
            LookupError: There is none; the message has the nearest names.
        """
        if name in self.samples:
            return self.samples[name]
        mine = [each for each, record in self.samples.items() if item_name(record) == name]
        if len(mine) == 1:
            return self.samples[mine[0]]
        near = mine or difflib.get_close_matches(name, self.samples)
        hint = f"; did you mean {', '.join(map(repr, near[:5]))}?" if near else ""
        msg = f"there is no sample {name!r} in {self.title!r}{hint}"
        raise LookupError(msg)

    def select(
        self,
        *,
        outcomes: Collection[Outcome] = (),
        text: str | None = None,
        min_score: float | None = None,
        max_score: float | None = None,
        changes: Collection[Change] = (),
    ) -> dict[str, EvaluationRecord]:
        """Return the samples that meet all conditions, by name.

        Args:
            outcomes: They have one of these outcomes; by default any.
            text: It is found in their names, in what was said, or in their errors; the case of
                letters does not matter.
            min_score: They have a score, of at least this.
            max_score: They have a score, of at most this.
            changes: Their items fare in one of these ways against the baseline; by default any.

        Raises:
            ValueError: There is no such outcome or change, or `changes` is given and there is no
                baseline.
        """
        _check("outcomes", outcomes, get_args(Outcome))
        _check("changes", changes, get_args(Change))
        if changes and self.baseline is None:
            msg = f"changes={list(changes)!r} needs a report with a baseline"
            raise ValueError(msg)
        wanted = None if text is None else text.casefold()
        low = float("-inf") if min_score is None else min_score
        high = float("inf") if max_score is None else max_score
        scored = min_score is not None or max_score is not None
        return {
            name: record
            for name, record in self.samples.items()
            if (not outcomes or record.outcome in outcomes)
            and (not scored or (record.score is not None and low <= record.score.value <= high))
            and (not changes or self.changes.get(item_name(record)) in changes)
            and (wanted is None or wanted in _said(name, record))
        }


def item_name(record: EvaluationRecord) -> str:
    """Return the name by which statistics know the item of a record."""
    return str(record.index) if record.item_id is None else record.item_id


def named_samples(records: Sequence[EvaluationRecord]) -> dict[str, EvaluationRecord]:
    """Return the samples of a result by the names that `Report.samples` tells of."""
    several = any(record.epoch for record in records)
    samples: dict[str, EvaluationRecord] = {}
    for record in records:
        name = f"{item_name(record)}#{record.epoch}" if several else item_name(record)
        while name in samples:  # items of a data set that is collected from may have one name
            name = f"{name}@{record.index}"
        samples[name] = record
    return samples


def _steps(record: EvaluationRecord) -> Sequence[Step[Any, Any]]:
    return () if record.trajectory is None else record.trajectory.steps


def _said(name: str, record: EvaluationRecord) -> str:
    """Return all that a search looks at, in folded case."""
    parts = [name, record.error or "", to_text(record.metadata.get("error_type", ""))]
    if record.trajectory is not None:
        for turn in conversation(record.trajectory):
            parts += [turn.text, turn.reasoning or ""]
            parts += [text for call in turn.calls for text in (call.name, call.arguments)]
    return "\n".join(parts).casefold()


def _item_scores(result: BenchmarkResult) -> dict[str, list[float | None]]:
    """Return the scores of each item; items of a data set that is collected from may have one name."""
    indices: dict[str, int] = {}
    scores: dict[str, list[float | None]] = {}
    for record in result.records:
        name = item_name(record)
        if indices.setdefault(name, record.index) != record.index:
            name = f"{name}@{record.index}"
        scores.setdefault(name, []).append(None if record.score is None else record.score.value)
    return scores


def _check(name: str, given: Collection[str], known: tuple[str, ...]) -> None:
    if isinstance(given, str) or not set(given) <= set(known):
        msg = f"{name} must be a collection of {', '.join(map(repr, known))}, got {given!r}"
        raise ValueError(msg)
