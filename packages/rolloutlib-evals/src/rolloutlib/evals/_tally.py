"""What a run's events tell of scores, failures and tokens, while it goes on."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, cast

from rolloutlib.evals._stopping import Stopping
from rolloutlib.evals._stopping_events import StoppingEvent
from rolloutlib.evals.statistics import Interval, mean_score
from rolloutlib.rollouts import Progress, RolloutEvent, Trajectory

__all__ = ["Tally", "short_name"]

_MOST_KINDS = 3
_FRESH = 1.01
"""The interval is computed anew when there are so many times as many scores: it changes slowly."""


class Tally:
    """Counts what events tell, on the thread of the run; the words may be asked for on another.

    Attributes:
        progress: The counts of the last event.
        num_kept: How many episodes were not played now, but kept by an earlier run.
    """

    def __init__(self) -> None:
        self.progress = Progress()
        self.num_kept = 0
        self._stepped: set[int] = set()  # the seeds of episodes in flight
        self._scores: dict[str, list[float | None]] = {}
        self._num_scores = 0
        self._failures: Counter[str] = Counter()
        self._stoppings: Sequence[Stopping] = ()
        self._usage = 0
        self._words: tuple[int, str | None] = (0, None)

    def add(self, event: RolloutEvent) -> None:
        """Take an event."""
        self.progress = event.progress
        if isinstance(event, StoppingEvent):
            self._stoppings = event.stoppings
        trajectory, error = event.trajectory, event.error
        if event.kind == "step":
            self._stepped.add(event.seed)
        elif self._is_kept(event):
            self.num_kept += 1
        elif trajectory is not None:
            self._usage += _usage(trajectory)
        elif error is not None and error.trajectory is not None and error.phase != "grade":
            self._usage += _usage(error.trajectory)
        if trajectory is not None:
            self._add_score(event.item_id, trajectory.score.value)
        if error is not None and event.kind == "failed":
            self._failures[short_name(error.error_type)] += 1
            if error.trajectory is not None and error.phase == "grade":
                self._scores[event.item_id].pop()  # it was taken when the episode finished
                self._num_scores -= 1
            self._add_score(event.item_id, None)

    @property
    def tokens(self) -> int:
        """How many tokens were sampled: those that policies tell, or else those that servers count."""
        return max(self.progress.tokens, self._usage)

    @property
    def failures(self) -> str:
        """The kinds of failures, the most frequent first; empty without any."""
        kinds = Counter(self._failures).most_common()
        told = [f"{count:,} {kind}" for kind, count in kinds[:_MOST_KINDS]]
        rest = sum(count for _, count in kinds[_MOST_KINDS:])
        return ", ".join([*told, f"{rest:,} of other kinds"] if rest else told)

    @property
    def score(self) -> str | None:
        """The mean score so far with its interval; None before the first.

        Of a run that may stop early it is the interval by which it does; of several such benchmarks at
        once there is none.
        """
        if self._stoppings:
            return _stopping_words(self._scores_by_item(), self._stoppings)
        count, words = self._words
        if self._num_scores >= _FRESH * count and self._num_scores != count:
            count = self._num_scores
            words = _score_words(self._scores_by_item())
            self._words = count, words
        return words

    def _scores_by_item(self) -> dict[str, list[float | None]]:
        return {item: list(each) for item, each in list(self._scores.items()) if each}

    def _is_kept(self, event: RolloutEvent) -> bool:
        """Tell whether an episode ends that has steps, of which none was told."""
        was_played = event.seed in self._stepped
        if event.kind != "started":
            self._stepped.discard(event.seed)
        error = event.error
        if error is not None and error.phase == "grade":
            return False  # it was counted when it finished
        trajectory = event.trajectory or (error and error.trajectory)
        return not was_played and trajectory is not None and len(trajectory.steps) > 0

    def _add_score(self, item_id: str, score: float | None) -> None:
        self._scores.setdefault(item_id, []).append(score)
        self._num_scores += 1


def short_name(kind: str) -> str:
    """Return the name of a kind of error without that of its module."""
    return kind.rpartition(".")[2]


def _score_words(scores: Mapping[str, list[float | None]]) -> str | None:
    if not scores:
        return None
    estimate = mean_score(scores)
    interval = estimate.interval()
    items = f"over {_items(estimate.num_items)}"
    if math.isnan(interval.low):
        return f"score {estimate.value:.3f} {items}"
    return f"score {estimate.value:.3f}, {_interval(interval)}, {items}"


def _stopping_words(
    scores: Mapping[str, list[float | None]], stoppings: Sequence[Stopping]
) -> str | None:
    """Return the score of a run that may stop early; the interval is of the first items, without gaps."""
    if not scores:
        return None
    estimate = mean_score(scores)
    words = f"score {estimate.value:.3f} over {_items(estimate.num_items)}"
    if len(stoppings) > 1:
        return words
    [stopping] = stoppings
    interval, first = _interval(stopping.interval), _items(stopping.num_items)
    return f"{words}, {interval} by the first {first}, stops at width {stopping.width:g}"


def _items(count: int) -> str:
    return f"{count:,} {'item' if count == 1 else 'items'}"


def _interval(interval: Interval) -> str:
    return f"{interval.confidence:.0%} interval {interval.low:.3f} to {interval.high:.3f}"


def _usage(trajectory: Trajectory[Any, Any]) -> int:
    """Return how many tokens a server says it has sampled in an episode."""
    count = 0
    for step in trajectory.steps:
        usage: object = step.policy_info.get("usage")
        if isinstance(usage, Mapping):
            tokens: object = cast("Mapping[str, object]", usage).get("completion_tokens")
            count += tokens if isinstance(tokens, int) else 0
    return count
