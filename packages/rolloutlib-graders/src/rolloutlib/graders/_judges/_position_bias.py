"""How far a judge's preferences depend on the order in which it is shown two candidates."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, get_args

import anyio

from rolloutlib.graders._composite import DEFAULT_CONCURRENCY
from rolloutlib.graders._judges._candidates import Candidate
from rolloutlib.graders._judges._many import amap_all, map_all, read_cases
from rolloutlib.graders._judges._pairwise import PairwiseJudge
from rolloutlib.graders._judges._replies import sum_usage
from rolloutlib.graders._judges._tables import (
    costs,
    count_errors,
    failures,
    last_error,
    rate,
    table,
)
from rolloutlib.graders._judges._tallies import Comparison, Outcome
from rolloutlib.graders._judges._usage import JudgeUsage
from rolloutlib.rollouts import Trajectory

Shown: TypeAlias = str | Candidate | Trajectory[Any, Any]


@dataclass(frozen=True, slots=True)
class PairCase:
    """Two candidates that a judge compares.

    Attributes:
        first: One candidate.
        second: The other.
        gold: Which is better, "first" or "second", or "tie"; None if that is not known.

    Raises:
        ValueError: The gold is none of these.
    """

    first: Shown
    second: Shown
    gold: Outcome | None = None

    def __post_init__(self) -> None:
        if self.gold is not None and self.gold not in get_args(Outcome):
            msg = f"gold must be one of {get_args(Outcome)} or None, got {self.gold!r}"
            raise ValueError(msg)


@dataclass(frozen=True, slots=True)
class PositionBias:
    """What becomes of preferences when the order is swapped.

    Each pair is consistent, leans to the first or the second place, or failed, as in Zheng et al.,
    "Judging LLM-as-a-Judge with MT-Bench and Chatbot Arena" (2023, arXiv:2306.05685), table 2.

    Attributes:
        num_pairs: How many pairs there were.
        num_consistent: Pairs with the same verdict in both orders.
        num_toward_first: Pairs where the candidate fared better when it was shown first.
        num_toward_second: Pairs where it fared better when it was shown second.
        num_failures: Pairs of which at least one order had no verdict.
        errors: The failures, by type.
        last_error: The last of them, in words; None if there was none.
        num_labelled: Pairs with a gold, and a verdict.
        num_agreeing: Those whose outcome is the gold; a pair that is not consistent is a tie.
        usage: What the judge used.
    """

    num_pairs: int
    num_consistent: int
    num_toward_first: int
    num_toward_second: int
    num_failures: int
    errors: Mapping[str, int]
    last_error: str | None
    num_labelled: int
    num_agreeing: int
    usage: JudgeUsage

    @property
    def consistency(self) -> float | None:
        """The share of consistent pairs among those with both verdicts."""
        judged = self.num_pairs - self.num_failures
        return self.num_consistent / judged if judged else None

    @property
    def accuracy(self) -> float | None:
        """The share of pairs whose outcome is the gold, among those that have both."""
        return self.num_agreeing / self.num_labelled if self.num_labelled else None

    def to_dict(self) -> dict[str, Any]:
        """Return the numbers by name, in a form that JSON can hold."""
        numbers = dataclasses.asdict(self)
        return {**numbers, "consistency": self.consistency, "accuracy": self.accuracy}

    def table(self) -> str:
        """Return the numbers as text, with what each share is of."""
        judged = self.num_pairs - self.num_failures
        rows = [
            failures("failed", self.num_failures, self.num_pairs, self.errors),
            rate("consistent", self.num_consistent, judged),
            rate("toward the first", self.num_toward_first, judged),
            rate("toward the second", self.num_toward_second, judged),
            rate("agreement", self.num_agreeing, self.num_labelled),
            *costs(self.usage),
        ]
        return table(f"{self.num_pairs} pairs in both orders", rows)


def position_bias(judge: PairwiseJudge[Any], pairs: Iterable[PairCase]) -> PositionBias:
    """Compare each pair in both orders, one after another.

    Args:
        judge: The judge.
        pairs: What it compares.

    Returns:
        The numbers. What the judge raises is a failure, and counted.

    Raises:
        TypeError: A pair is no `PairCase`.
        ValueError: There are no pairs.
    """
    known = read_cases(pairs, PairCase, "pairs")
    results = map_all(lambda pair: judge.compare(pair.first, pair.second), known, on_error="record")
    return _measure(known, results)


async def aposition_bias(
    judge: PairwiseJudge[Any],
    pairs: Iterable[PairCase],
    *,
    concurrency: int | anyio.CapacityLimiter = DEFAULT_CONCURRENCY,
) -> PositionBias:
    """Compare each pair in both orders, several pairs at a time.

    Args:
        judge: The judge.
        pairs: What it compares.
        concurrency: How many pairs are compared at once; both orders of a pair are too.

    Raises:
        TypeError: A pair is no `PairCase`.
        ValueError: There are no pairs, or `concurrency` is below 1.
    """
    known = read_cases(pairs, PairCase, "pairs")

    async def compare(pair: PairCase) -> Comparison:
        return await judge.acompare(pair.first, pair.second)

    results = await amap_all(compare, known, on_error="record", concurrency=concurrency)
    return _measure(known, results)


def _measure(pairs: Sequence[PairCase], results: Sequence[Comparison | Exception]) -> PositionBias:
    compared = [
        (pair, each)
        for pair, each in zip(pairs, results, strict=True)
        if isinstance(each, Comparison)
    ]
    leanings = [each.values[0] - each.values[1] for _, each in compared]
    labelled = [(pair.gold, each.outcome) for pair, each in compared if pair.gold is not None]
    return PositionBias(
        num_pairs=len(pairs),
        num_consistent=leanings.count(0.0),
        num_toward_first=sum(leaning > 0 for leaning in leanings),
        num_toward_second=sum(leaning < 0 for leaning in leanings),
        num_failures=len(pairs) - len(compared),
        errors=count_errors(results),
        last_error=last_error(results),
        num_labelled=len(labelled),
        num_agreeing=sum(gold == outcome for gold, outcome in labelled),
        usage=sum_usage(results),
    )
