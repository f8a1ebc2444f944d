"""How far the verdicts of a grader can be trusted, by inputs whose grade is known."""

from __future__ import annotations

import dataclasses
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar, cast

import anyio

from rolloutlib._calls import async_form, call, check_count, is_async
from rolloutlib._values import to_float
from rolloutlib.graders._awaitables import at_once
from rolloutlib.graders._composite import DEFAULT_CONCURRENCY
from rolloutlib.graders._judges._agreement import (
    cohens_kappa,
    correlation,
    mean,
    mean_variance,
    rank_correlation,
)
from rolloutlib.graders._judges._many import amap_all, map_all, read_cases
from rolloutlib.graders._judges._replies import sum_usage
from rolloutlib.graders._judges._tables import (
    costs,
    count_errors,
    decimals,
    failures,
    last_error,
    rate,
    table,
)
from rolloutlib.graders._judges._usage import JudgeUsage
from rolloutlib.graders._reading import read_score
from rolloutlib.scores import Grader, Score

InputT = TypeVar("InputT")
RubricT = TypeVar("RubricT")


@dataclass(frozen=True)
class CalibrationCase(Generic[InputT, RubricT]):
    """An input whose grade is known.

    Attributes:
        input: What is graded.
        rubric: What it is graded by.
        gold: The right grade, on the scale of the grader's scores.

    Raises:
        TypeError: The gold is no number.
        ValueError: It is NaN or infinite.
    """

    input: InputT
    rubric: RubricT
    gold: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "gold", to_float(self.gold, "gold"))


@dataclass(frozen=True, slots=True)
class Calibration:
    """How the verdicts of a grader compare with the gold grades, and with one another.

    All but the numbers of cases are over verdicts: a failure is none, and counted. A number is None where
    it is not defined, as a correlation with something that does not vary, or too large for a float.

    Attributes:
        num_cases: How many cases there were.
        num_repeats: How many verdicts were asked for on each.
        num_verdicts: How many there were, which is what the shares below are of.
        num_failures: How many there should have been besides.
        num_unjudged: Cases without any verdict.
        errors: The failures, by type.
        last_error: The last of them, in words; None if there was none.
        threshold: From which grade on a case counts as accepted, or None if grades are labels.
        num_agreeing: Verdicts with the same label as the gold: accepted or not, or the grade itself.
        accuracy: Their share.
        kappa: Cohen's kappa of the labels: agreement beyond chance (Cohen, 1960).
        num_wrong: Verdicts on cases whose gold is not accepted; 0 without threshold.
        num_wrong_accepted: Those of them that accept.
        num_right: Verdicts on cases whose gold is accepted; 0 without threshold.
        num_right_refused: Those of them that do not accept.
        mean_absolute_error: The mean distance of verdicts from gold.
        correlation: Pearson's, of verdicts with gold.
        rank_correlation: Spearman's.
        num_repeated: Cases with two verdicts or more, which is what the next two are over.
        repeat_variance: The mean of the sample variances of their verdicts.
        num_unanimous: Those whose verdicts all have the same label.
        usage: What judges used for verdicts, and for replies without one. What came before an error of
            the model itself is counted by `Judge.usage` alone.
        values: The verdicts of each case.
    """

    num_cases: int
    num_repeats: int
    num_verdicts: int
    num_failures: int
    num_unjudged: int
    errors: Mapping[str, int]
    last_error: str | None
    threshold: float | None
    num_agreeing: int
    accuracy: float | None
    kappa: float | None
    num_wrong: int
    num_wrong_accepted: int
    num_right: int
    num_right_refused: int
    mean_absolute_error: float | None
    correlation: float | None
    rank_correlation: float | None
    num_repeated: int
    repeat_variance: float | None
    num_unanimous: int
    usage: JudgeUsage
    values: Sequence[Sequence[float]] = dataclasses.field(repr=False)

    def to_dict(self) -> dict[str, Any]:
        """Return the numbers by name, in a form that JSON can hold."""
        return dataclasses.asdict(self)

    def table(self) -> str:
        """Return the numbers as text, with what each share is of."""
        asked = self.num_cases * self.num_repeats
        rows = [
            failures("failed", self.num_failures, asked, self.errors),
            rate("cases without verdict", self.num_unjudged, self.num_cases),
            rate("agreement", self.num_agreeing, self.num_verdicts),
            ("Cohen's kappa", decimals(self.kappa), ""),
        ]
        if self.threshold is not None:
            rows += [
                rate("wrong, but accepted", self.num_wrong_accepted, self.num_wrong),
                rate("right, but refused", self.num_right_refused, self.num_right),
            ]
        rows += [
            ("mean absolute error", decimals(self.mean_absolute_error), ""),
            ("correlation", decimals(self.correlation), f"rank {decimals(self.rank_correlation)}"),
            ("repeat variance", decimals(self.repeat_variance), f"over {self.num_repeated} cases"),
            rate("unanimous", self.num_unanimous, self.num_repeated),
            *costs(self.usage),
        ]
        return table(f"{self.num_verdicts} verdicts on {self.num_cases} cases", rows)


def calibrate(
    grader: Grader[InputT, RubricT],
    cases: Iterable[CalibrationCase[InputT, RubricT]],
    *,
    repeats: int = 1,
    threshold: float | None = 0.5,
) -> Calibration:
    """Compare the verdicts of a grader with gold grades, one call after another.

    Args:
        grader: Any grader: a judge, say.
        cases: Inputs whose grade is known.
        repeats: How many times each is graded: twice or more shows how far verdicts vary.
        threshold: From which grade on a case counts as accepted, for the agreement. None compares
            the grades themselves, for scales of a few steps.

    Returns:
        The numbers. What the grader raises is a failure, and counted.

    Raises:
        TypeError: The grader's verdicts have to be awaited, a case is none, or the threshold is no number.
        ValueError: There are no cases, fewer than one repeat, or the threshold is not finite.
    """
    if is_async(grader):
        msg = f"the grader is a coroutine function, {grader!r}: use acalibrate"
        raise TypeError(msg)
    known, work = _work(cases, repeats, threshold)

    def grade(case: CalibrationCase[InputT, RubricT]) -> Score:
        verdict = at_once(grader(case.input, case.rubric), "a verdict", "acalibrate")
        return read_score(verdict, "a verdict", None)

    return _measure(known, repeats, threshold, map_all(grade, work, on_error="record"))


async def acalibrate(
    grader: Grader[InputT, RubricT],
    cases: Iterable[CalibrationCase[InputT, RubricT]],
    *,
    repeats: int = 1,
    threshold: float | None = 0.5,
    concurrency: int | anyio.CapacityLimiter = DEFAULT_CONCURRENCY,
    inline: bool = False,
) -> Calibration:
    """Compare the verdicts of a grader with gold grades, several calls at a time.

    Args:
        grader: Any grader; one with a method `ascore` is asked through it.
        cases: Inputs whose grade is known.
        repeats: How many times each is graded.
        threshold: As for `calibrate`.
        concurrency: How many calls there are at once.
        inline: Call a synchronous grader on the event loop, if it never blocks.

    Raises:
        TypeError: A case is none, or the threshold is no number.
        ValueError: There are no cases, the threshold is not finite, or a number is below 1.
    """
    known, work = _work(cases, repeats, threshold)
    agrader = async_form(grader)

    async def grade(case: CalibrationCase[InputT, RubricT]) -> Score:
        verdict = await call(agrader, case.input, case.rubric, inline=inline)
        return read_score(verdict, "a verdict", None)

    results = await amap_all(grade, work, on_error="record", concurrency=concurrency)
    return _measure(known, repeats, threshold, results)


def _work(
    cases: Iterable[CalibrationCase[InputT, RubricT]], repeats: int, threshold: float | None
) -> tuple[
    list[CalibrationCase[InputT, RubricT]],
    list[CalibrationCase[InputT, RubricT]],
]:
    """Return the cases, and what is to be graded: each case as often as asked for, in a row."""
    check_count("repeats", repeats)
    if threshold is not None:
        to_float(threshold, "threshold")
    known = read_cases(cases, CalibrationCase, "cases")
    return known, [case for case in known for _ in range(repeats)]


def _measure(
    cases: Sequence[CalibrationCase[Any, Any]],
    repeats: int,
    threshold: float | None,
    results: Sequence[Score | Exception],
) -> Calibration:
    rows = [results[start : start + repeats] for start in range(0, len(results), repeats)]
    values = tuple([tuple([each.value for each in row if isinstance(each, Score)]) for row in rows])
    pairs = [(value, case.gold) for case, row in zip(cases, values, strict=True) for value in row]
    verdicts, golds = [value for value, _ in pairs], [gold for _, gold in pairs]

    def label(value: float) -> Hashable:
        return value if threshold is None else value >= threshold

    labels = [(label(value), label(gold)) for value, gold in pairs]
    agreeing = sum(mine == true for mine, true in labels)
    refusals = [mine for mine, true in labels if true is False]
    acceptances = [mine for mine, true in labels if true is True]
    repeated = [row for row in values if len(row) > 1]
    return Calibration(
        num_cases=len(cases),
        num_repeats=repeats,
        num_verdicts=len(pairs),
        num_failures=len(results) - len(pairs),
        num_unjudged=sum(not row for row in values),
        errors=count_errors(results),
        last_error=last_error(results),
        threshold=threshold,
        num_agreeing=agreeing,
        accuracy=agreeing / len(pairs) if pairs else None,
        kappa=cohens_kappa(*cast("Any", zip(*labels, strict=True))) if labels else None,
        num_wrong=len(refusals),
        num_wrong_accepted=sum(mine is True for mine in refusals),
        num_right=len(acceptances),
        num_right_refused=sum(mine is False for mine in acceptances),
        mean_absolute_error=mean([abs(value - gold) for value, gold in pairs]),
        correlation=correlation(verdicts, golds),
        rank_correlation=rank_correlation(verdicts, golds),
        num_repeated=len(repeated),
        repeat_variance=mean_variance(repeated),
        num_unanimous=sum(len({label(value) for value in row}) == 1 for row in repeated),
        usage=sum_usage(results),
        values=values,
    )
