"""Stopping a run as soon as its score is sure enough."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from rolloutlib.evals._records import EvaluationRecord
from rolloutlib.evals.statistics import ConfidenceSequence, Interval
from rolloutlib.evals.statistics._estimates import mean_of

__all__ = ["ScoreRangeError", "StopWhen", "Stopping"]


@dataclass(frozen=True)
class StopWhen:
    """When a run is to stop early: as soon as the interval of its score is narrow enough.

    The interval is that of a `ConfidenceSequence`, which holds however often it is looked at. It takes
    the scores in the shuffled order of the items, not in that in which they end, so that what is quick
    does not count first; of an item with several epochs it takes the mean. A sample that failed counts
    `low` for the lower end and `high` for the upper one.

    A run has the samples up to the first item at which the interval is narrow enough, whatever else was
    in play. What ended beyond it stays in the log, and no figure counts it.

    Attributes:
        width: The width of the interval at which to stop, in units of the score.
        confidence: The probability with which the interval covers the mean of the population that the
            items are drawn from, between 0 and 1.
        low: The lowest score possible.
        high: The highest score possible.

    Raises:
        TypeError: An argument is no number.
        ValueError: As for `ConfidenceSequence`.
    """

    width: float
    confidence: float = 0.95
    low: float = 0.0
    high: float = 1.0

    def __post_init__(self) -> None:
        self.sequence()

    def sequence(self) -> ConfidenceSequence:
        """Return the intervals before the first score."""
        return ConfidenceSequence(self.width, self.confidence, low=self.low, high=self.high)


class ScoreRangeError(ValueError):
    """Raised where a score lies outside the range of a rule.

    Args:
        found: Which score of which sample it is.
        message: That, and what to do about it.
    """

    def __init__(self, found: str, message: str) -> None:
        super().__init__(message)
        self.found = found


class Stopping:
    """Takes the scores of a run in the order of its samples, whatever the order in which they end.

    Args:
        rule: When the run is to stop.
        epochs: How many samples in a row are of one item.
        can_stop: Whether the run stops where the rule says; not so if its samples were graded anew.

    Attributes:
        is_over: Whether the run is to stop.
        num_samples: How many samples the interval rests on, the first ones; if the run is to stop,
            these are those that it has.
    """

    def __init__(self, rule: StopWhen, epochs: int, *, can_stop: bool = True) -> None:
        self.is_over = False
        self.num_samples = 0
        self._rule = rule
        self._epochs = epochs
        self._can_stop = can_stop
        self._waiting: dict[int, float | None] = {}
        # With the failed samples at the lowest score, and at the highest.
        self._lowest, self._highest = rule.sequence(), rule.sequence()

    @property
    def settings(self) -> dict[str, float]:
        """The rule as a header has it."""
        return {name: float(value) for name, value in dataclasses.asdict(self._rule).items()}

    @property
    def width(self) -> float:
        """The width at which the run is to stop."""
        return self._rule.width

    @property
    def num_items(self) -> int:
        """How many items the interval rests on, the first ones."""
        return self.num_samples // self._epochs

    @property
    def interval(self) -> Interval:
        """The interval so far, valid whenever one looks at it."""
        low, high = self._lowest.interval, self._highest.interval
        return dataclasses.replace(low, high=high.high)

    def add(self, record: EvaluationRecord) -> None:
        """Take a sample that has ended, unless it comes after the one at which the run stops."""
        score = None if record.score is None else record.score.value
        if self.is_over or record.position is None:
            return
        if score is not None and not self._rule.low <= score <= self._rule.high:
            return  # as if it were not there: the interval ends before it
        self._waiting[record.position] = score
        while not self.is_over:
            item = range(self.num_samples, self.num_samples + self._epochs)
            if not all(position in self._waiting for position in item):
                return
            scores = [self._waiting.pop(position) for position in item]
            for sequence, failed in (
                (self._lowest, self._rule.low),
                (self._highest, self._rule.high),
            ):
                sequence.update(mean_of([failed if s is None else s for s in scores]))
            self.num_samples += self._epochs
            self.is_over = self._can_stop and self.interval.width <= self._rule.width

    def check(self, record: EvaluationRecord) -> None:
        """Refuse a score that lies outside the range of the rule.

        Raises:
            ScoreRangeError: It does.
        """
        low, high = self._rule.low, self._rule.high
        if record.score is not None and not low <= record.score.value <= high:
            found = f"item {record.item_id!r} scored {record.score.value!r} in epoch {record.epoch}"
            msg = (
                f"{found}, and stop_when needs scores from {low!r} to {high!r}: say "
                "StopWhen(..., low=, high=), and begin another log"
            )
            raise ScoreRangeError(found, msg)

    def has(self, record: EvaluationRecord) -> bool:
        """Tell whether the run has a sample: if it stops, one of those that the interval rests on."""
        if not self.is_over:
            return True
        return record.position is not None and record.position < self.num_samples

    def kept(self, records: Iterable[EvaluationRecord]) -> list[EvaluationRecord]:
        """Return the samples that the run has."""
        return [record for record in records if self.has(record)]

    @staticmethod
    def from_header(
        header: Mapping[str, Any],
        records: Iterable[EvaluationRecord],
        *,
        graded_anew: bool = False,
    ) -> Stopping | None:
        """Return what becomes of a run with the header of a log, or None if it could not stop early.

        Args:
            header: The header.
            records: The records of the log. They are only read if they are needed.
            graded_anew: Whether they were, since: then nothing stops by them.
        """
        if header.get("stop_when") is None:
            return None
        can_stop = not graded_anew and "regraded" not in header
        stopping = Stopping(StopWhen(**header["stop_when"]), header["epochs"], can_stop=can_stop)
        for record in records:
            stopping.add(record)
        return stopping
