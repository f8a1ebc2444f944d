"""`calibrate`: numbers checked by hand, and against published ones."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Callable, Iterable
from typing import Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rolloutlib.graders import (
    Calibration,
    CalibrationCase,
    Criterion,
    Judge,
    JudgeTemplate,
    JudgeUsage,
    VerdictError,
    acalibrate,
    calibrate,
)
from rolloutlib.types import Chat

pytestmark = pytest.mark.anyio

CORRECT = Criterion(id="correct", description="Is it correct?")


def cases(*golds: float) -> list[CalibrationCase[int, Criterion]]:
    return [CalibrationCase(index, CORRECT, gold) for index, gold in enumerate(golds)]


def scripted(*verdicts: Any) -> Callable[[int, object], Any]:
    """Make a grader that knows the verdict on each input; several come one after another."""
    lists = [iter(each if isinstance(each, list) else [each]) for each in verdicts]

    def grade(index: int, criterion: object) -> Any:
        verdict = next(lists[index])
        if isinstance(verdict, Exception):
            raise verdict
        return verdict

    return grade


async def both_ways(
    make: Callable[[], Any], known: Iterable[CalibrationCase[Any, Any]], **options: Any
) -> Calibration:
    known = list(known)
    one = calibrate(make(), known, **options)
    assert await acalibrate(make(), known, concurrency=1, **options) == one
    return one


async def test_kappa_is_that_of_a_published_table() -> None:
    # https://en.wikipedia.org/wiki/Cohen%27s_kappa: 50 proposals, of which both readers accept 20 and
    # refuse 15; p_o = 0.7, p_e = 0.5.
    counts = [(1, 1, 20), (1, 0, 5), (0, 1, 10), (0, 0, 15)]
    rows = [(mine, gold) for mine, gold, count in counts for _ in range(count)]
    golds = [gold for _, gold in rows]
    result = await both_ways(lambda: scripted(*[mine for mine, _ in rows]), cases(*golds))
    assert (result.num_agreeing, result.num_verdicts, result.accuracy) == (35, 50, 0.7)
    assert result.kappa == pytest.approx(0.4)
    assert (result.num_wrong, result.num_wrong_accepted) == (20, 5)
    assert (result.num_right, result.num_right_refused) == (30, 10)


async def test_rank_correlation_is_that_of_a_published_table() -> None:
    # https://en.wikipedia.org/wiki/Spearman%27s_rank_correlation_coefficient: rho = -29/165.
    iq = [106, 100, 86, 101, 99, 103, 97, 113, 112, 110]
    hours = [7, 27, 2, 50, 28, 29, 20, 12, 6, 17]
    result = await both_ways(lambda: scripted(*hours), cases(*iq))
    assert result.rank_correlation == pytest.approx(-29 / 165)


async def test_correlation_is_that_of_a_published_table() -> None:
    # Anscombe, "Graphs in statistical analysis" (1973), the first of its four sets: r = 0.816.
    x = [10, 8, 13, 9, 11, 14, 6, 4, 12, 7, 5]
    y = [8.04, 6.95, 7.58, 8.81, 8.33, 9.96, 7.24, 4.26, 10.84, 4.82, 5.68]
    result = await both_ways(lambda: scripted(*x), cases(*y))
    assert result.correlation == pytest.approx(0.816, abs=5e-4)


async def test_graded_scores_are_compared_by_error_and_correlation() -> None:
    result = await both_ways(lambda: scripted(1, 2, 2, 5), cases(1, 2, 4, 3), threshold=None)
    assert result.mean_absolute_error == 1  # 0, 0, 2, 2
    assert result.correlation == pytest.approx(3 / math.sqrt(9 * 5))  # by hand
    assert result.rank_correlation == pytest.approx(3 / math.sqrt(4.5 * 5))
    assert result.num_agreeing == 2
    # By hand: labels 1, 2, 2, 5 against 1, 2, 4, 3; p_o = 2/4, p_e = (1 + 2) / 16.
    assert result.kappa == pytest.approx((0.5 - 3 / 16) / (1 - 3 / 16))
    assert (result.num_wrong, result.num_right, result.threshold) == (0, 0, None)


async def test_repeats_show_how_far_verdicts_vary() -> None:
    verdicts = [[0.0, 1.0, 0.5], [1.0, 1.0, 0.9], [VerdictError("x"), 0.25, VerdictError("y")]]
    result = await both_ways(lambda: scripted(*verdicts), cases(0, 1, 0), repeats=3)
    assert (result.num_repeats, result.num_verdicts, result.num_failures) == (3, 7, 2)
    assert result.num_repeated == 2
    assert result.repeat_variance == pytest.approx((0.25 + 0.01 / 3) / 2)
    assert result.num_unanimous == 1
    assert result.values == ((0.0, 1.0, 0.5), (1.0, 1.0, 0.9), (0.25,))


async def test_failures_are_counted_and_are_no_verdicts() -> None:
    verdicts = [1, VerdictError("x"), ConnectionError("gone"), 0]
    result = await both_ways(lambda: scripted(*verdicts), cases(1, 1, 0, 1))
    assert (result.num_cases, result.num_verdicts, result.num_failures) == (4, 2, 2)
    assert result.num_unjudged == 2
    assert result.errors == {"VerdictError": 1, "ConnectionError": 1}
    assert result.accuracy == 0.5
    assert result.last_error == "ConnectionError: gone"
    assert "2 of 4: 1 VerdictError, 1 ConnectionError" in result.table()


async def test_numbers_that_are_not_defined_are_none() -> None:
    result = await both_ways(lambda: scripted(VerdictError("x")), cases(1))
    for name in ("accuracy", "kappa", "mean_absolute_error", "correlation", "repeat_variance"):
        assert getattr(result, name) is None
    constant = await both_ways(lambda: scripted(1, 1, 1), cases(1, 1, 1))
    assert (constant.accuracy, constant.kappa, constant.correlation) == (1.0, None, None)
    assert "Cohen's kappa" in constant.table()
    # A judge that always accepts agrees with no more than chance.
    accepting = await both_ways(lambda: scripted(1, 1, 1, 1), cases(1, 1, 1, 0))
    assert (accepting.accuracy, accepting.kappa) == (0.75, 0.0)


async def test_the_cost_of_a_judge_is_told() -> None:
    def make() -> Any:
        replies = iter(["?", '{"score": 1}', "?", "?"])
        return Judge(
            lambda chat: next(replies), template=JudgeTemplate(verdict_id=False), max_retries=1
        )

    known = [CalibrationCase("18", CORRECT, 1.0), CalibrationCase("19", CORRECT, 0.0)]
    result = await both_ways(make, known)
    used = JudgeUsage(verdicts=1, failures=1, calls=4, retries=2, untold_calls=4)
    assert result.usage == used
    form = json.loads(json.dumps(result.to_dict()))
    assert form["usage"] == used.to_dict()
    assert (form["num_failures"], form["accuracy"], form["values"]) == (1, 1.0, [[1.0], []])


async def test_a_table_shows_each_share_with_its_denominator() -> None:
    verdicts = [[1.0, 0.0], [0.0, 0.0], [0.8, 0.9], [1.0, VerdictError("x")]]
    result = await both_ways(lambda: scripted(*verdicts), cases(1, 0, 1, 0), repeats=2)
    assert result.table() == (
        "7 verdicts on 4 cases\n"
        "  failed                 0.125  1 of 8: 1 VerdictError\n"
        "  cases without verdict  0.000  0 of 4\n"
        "  agreement              0.714  5 of 7\n"
        "  Cohen's kappa          0.417\n"
        "  wrong, but accepted    0.333  1 of 3\n"
        "  right, but refused     0.250  1 of 4\n"
        "  mean absolute error    0.329\n"
        "  correlation            0.366  rank 0.227\n"
        "  repeat variance        0.168  over 3 cases\n"
        "  unanimous              0.667  2 of 3"
    )


async def test_verdicts_are_asked_for_at_the_same_time() -> None:
    running, most = 0, 0
    full = anyio.Event()

    async def grade(index: int, criterion: Criterion) -> float:
        nonlocal running, most
        running += 1
        most = max(most, running)
        if running == 3:
            full.set()
        await full.wait()
        running -= 1
        return float(index % 2)

    result = await acalibrate(grade, cases(0, 1, 0), repeats=2, concurrency=3)
    assert (result.accuracy, most) == (1.0, 3)
    with pytest.raises(TypeError, match="use acalibrate"):
        calibrate(grade, cases(0))


@pytest.mark.parametrize(
    ("arguments", "kind"),
    [
        ({"cases": []}, ValueError),
        ({"repeats": 0}, ValueError),
        ({"repeats": 1.5}, TypeError),
        ({"cases": [("x", CORRECT, 1.0)]}, TypeError),
    ],
)
async def test_what_cannot_be_measured_is_refused(arguments: Any, kind: Any) -> None:
    given_arguments: Any = {"cases": cases(1), **arguments}
    with pytest.raises(kind):
        calibrate(scripted(1), **given_arguments)
    with pytest.raises(kind):
        await acalibrate(scripted(1), **given_arguments)


@pytest.mark.parametrize("gold", ["1", None, float("nan")])
def test_a_gold_is_a_number(gold: Any) -> None:
    with pytest.raises((TypeError, ValueError), match="gold must be"):
        CalibrationCase("x", CORRECT, gold)


def test_a_case_may_be_made_of_stated_types() -> None:
    assert CalibrationCase[int, Criterion](0, CORRECT, 1.0) == CalibrationCase(0, CORRECT, 1.0)


def test_an_interrupt_is_no_failure() -> None:
    def interrupted(index: int, criterion: object) -> float:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        calibrate(interrupted, cases(1))


@given(pairs=st.lists(st.tuples(st.sampled_from([0, 1]), st.sampled_from([0, 1])), min_size=1))
def test_kappa_is_symmetric_and_at_most_one(pairs: list[tuple[int, int]]) -> None:
    mine, theirs = [one for one, _ in pairs], [two for _, two in pairs]
    forth = calibrate(scripted(*mine), cases(*theirs))
    back = calibrate(scripted(*theirs), cases(*mine))
    assert forth.kappa == back.kappa
    if forth.kappa is None:
        assert len({*mine, *theirs}) == 1
    else:
        assert -1 <= forth.kappa <= 1
        assert (forth.kappa == 1) == (mine == theirs)


@pytest.mark.parametrize("values", [[0.0, 1e-200], [0.0, 1e308], [-1e308, 1e308]])
async def test_no_finite_verdict_keeps_the_others_from_being_measured(values: list[float]) -> None:
    anything = Criterion(id="n", description="How many?", scale=None)
    known = [CalibrationCase(value, anything, index) for index, value in enumerate(values)]
    result = calibrate(lambda value, _: value, known, repeats=2, threshold=None)
    assert result.correlation == pytest.approx(1)
    assert result.rank_correlation == pytest.approx(1)
    assert result.repeat_variance == 0
    assert result.num_verdicts == 4


async def test_numbers_that_overflow_are_not_defined() -> None:
    verdicts = itertools.cycle([1e308, -1e308])
    anything = Criterion(id="n", description="How many?", scale=None)
    known = [CalibrationCase("x", anything, 1e308), CalibrationCase("x", anything, 0)]
    result = calibrate(lambda *_: next(verdicts), known, repeats=2)
    assert result.repeat_variance is None
    assert "repeat variance            -  over 2 cases" in result.table()


async def test_a_calibration_that_cannot_be_made_is_refused_and_no_failure() -> None:
    async def model(chat: Chat) -> str:
        raise NotImplementedError

    with pytest.raises(TypeError, match="a verdict has to be awaited: use acalibrate"):
        calibrate(Judge(model), [CalibrationCase("18", CORRECT, 1.0)])
    with pytest.raises(ValueError, match="threshold must be finite"):
        calibrate(lambda *_: 1.0, cases(1), threshold=math.nan)
