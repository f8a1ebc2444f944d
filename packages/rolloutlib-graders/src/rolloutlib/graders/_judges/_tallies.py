"""Comparisons of candidates, and the share of wins that follows from many."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Literal, NamedTuple, TypeAlias

from rolloutlib.graders._judges._candidates import Candidate
from rolloutlib.graders._judges._replies import VerdictError, sum_usage
from rolloutlib.graders._judges._usage import JudgeUsage
from rolloutlib.scores import Score

Outcome: TypeAlias = Literal["first", "second", "tie"]


@dataclass(frozen=True, slots=True)
class Comparison:
    """What a judge said of two candidates, shown in both orders.

    Attributes:
        values: How the first candidate fared when it was shown first, and when it was shown second:
            1 if it was preferred, 0 if the other was, 0.5 for a tie.
        reasons: The judge's reasons, in the same order.
        usage: What the judge used for both.
    """

    values: tuple[float, float]
    reasons: tuple[str | None, str | None] = (None, None)
    usage: JudgeUsage = dataclasses.field(default_factory=JudgeUsage)

    @property
    def consistent(self) -> bool:
        """Whether the verdict is the same in both orders."""
        return self.values[0] == self.values[1]

    @property
    def value(self) -> float:
        """How the first candidate fared: 1, 0.5 or 0; 0.5, a tie, if the verdict depends on the order.

        The rule of Zheng et al., "Judging LLM-as-a-Judge with MT-Bench and Chatbot Arena" (2023,
        arXiv:2306.05685), section 3.4.
        """
        return self.values[0] if self.consistent else 0.5

    @property
    def outcome(self) -> Outcome:
        """Which candidate is better, by `value`."""
        return "tie" if self.value == 0.5 else "first" if self.value == 1.0 else "second"


class Asked(NamedTuple):
    """A question about two candidates, by their indices, in the order in which they are shown."""

    first: int
    second: int
    shown: Sequence[Candidate]

    @property
    def place(self) -> str:
        """What was being done, for a note on an error."""
        return f"while comparing candidate {self.first}, shown first, with candidate {self.second}"


def both_orders(candidates: Sequence[Candidate], first: int, second: int) -> list[Asked]:
    """Return the two questions about a pair."""
    pair = [candidates[first], candidates[second]]
    return [Asked(first, second, pair), Asked(second, first, pair[::-1])]


def all_pairs(candidates: Sequence[Candidate]) -> list[Asked]:
    """Return the questions about all pairs whose texts differ."""
    return [
        asked
        for first, second in combinations(range(len(candidates)), 2)
        if candidates[first].text != candidates[second].text
        for asked in both_orders(candidates, first, second)
    ]


def comparison(in_order: Score, swapped: Score) -> Comparison:
    """Put the verdicts of both orders together, each for the candidate that was shown first."""
    return Comparison(
        (in_order.value, 1.0 - swapped.value),
        (in_order.feedback, swapped.feedback),
        sum_usage([in_order, swapped]),
    )


@dataclass(slots=True)
class Tally:
    """How a candidate fared against the others."""

    wins: int = 0
    losses: int = 0
    ties: int = 0
    inconsistent: int = 0
    failed: int = 0
    last_error: Exception | None = None

    @property
    def share(self) -> float:
        """The mean of 1 for a win, 0.5 for a tie and 0 for a loss; 0.5 if it has no opponent.

        Raises:
            VerdictError: All comparisons failed.
        """
        compared = self.wins + self.losses + self.ties
        if compared:
            return (self.wins + self.ties / 2) / compared
        last = self.last_error
        if last is None:
            return 0.5
        msg = (
            f"all {self.failed} comparisons of a candidate failed, the last with "
            f"{type(last).__qualname__}: {last}"
        )
        raise VerdictError(msg) from last

    def to_dict(self) -> dict[str, int]:
        """Return the counts by name."""
        return {name: getattr(self, name) for name in _COUNTS}

    def add(self, value: float, *, consistent: bool) -> None:
        """Count a comparison: 1 if it was won, 0 if it was lost, 0.5 for a tie."""
        self.wins += value == 1.0
        self.losses += value == 0.0
        self.ties += value == 0.5
        self.inconsistent += not consistent


_COUNTS = ("wins", "losses", "ties", "inconsistent", "failed")


def tally(size: int, answers: Mapping[tuple[int, int], Score | Exception]) -> list[Tally]:
    """Count how each candidate fared.

    Args:
        size: How many candidates there are.
        answers: The verdicts or errors, by the indices of the candidates as they were shown. A pair that
            was not asked about is a tie.
    """
    tallies = [Tally() for _ in range(size)]
    for first, second in combinations(range(size), 2):
        one, two = answers.get((first, second)), answers.get((second, first))
        failure = one if isinstance(one, Exception) else two
        if isinstance(failure, Exception):
            for each in (tallies[first], tallies[second]):
                each.failed += 1
                each.last_error = failure
            continue
        compared = Comparison((0.5, 0.5))
        if isinstance(one, Score) and isinstance(two, Score):
            compared = comparison(one, two)
        tallies[first].add(compared.value, consistent=compared.consistent)
        tallies[second].add(1.0 - compared.value, consistent=compared.consistent)
    return tallies
