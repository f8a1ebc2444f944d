"""Criteria that cannot be graded: raised, or left out and counted; never a score of 0."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from rolloutlib.graders import (
    CompositeGrader,
    Criterion,
    Gate,
    Rubric,
    Score,
    all_pass,
    asymmetric_mean,
    weighted_sum,
)

pytestmark = pytest.mark.anyio

NAMES = ("a", "b", "c")


def make_rubric(**fields: Any) -> Rubric:
    """Return a rubric of three criteria; the fields are those of "b"."""
    return Rubric(
        id="R",
        criteria=tuple(
            Criterion(id=name, description="d", **(fields if name == "b" else {})) for name in NAMES
        ),
    )


RUBRIC = make_rubric()


class TroubleError(Exception):
    """A user's own error."""


class Broken:
    """Grades with 1.0, but fails for some criteria."""

    def __init__(self, *names: str, error: Callable[[], BaseException] | None = None) -> None:
        self.names = names
        self.error = error or partial(TroubleError, "no reply")

    def __call__(self, input: object, criterion: Criterion) -> float:
        if criterion.id in self.names:
            raise self.error()
        return 1.0


class AsyncBroken(Broken):
    async def __call__(self, input: object, criterion: Criterion) -> float:  # pyright: ignore[reportIncompatibleMethodOverride]
        await anyio.lowlevel.checkpoint()
        return super().__call__(input, criterion)


async def score_by_every_way(grader: Broken, rubric: Rubric, **options: Any) -> list[Score]:
    """Grade synchronously, on threads, inline and on the event loop; raise what all of them raise."""
    awaited = AsyncBroken(*grader.names, error=grader.error)
    ways: list[CompositeGrader[str]] = [
        CompositeGrader(grader, on_error="record", **options),
        CompositeGrader(grader, on_error="record", inline=True, **options),
        CompositeGrader(awaited, on_error="record", **options),
    ]
    outcomes: list[Score | BaseException] = []
    try:
        outcomes.append(ways[0].score("x", rubric))
    except Exception as error:
        outcomes.append(error)
    for way in ways:
        try:
            outcomes.append(await way.ascore("x", rubric))
        except Exception as error:
            outcomes.append(error)
    errors = [outcome for outcome in outcomes if isinstance(outcome, BaseException)]
    if errors:
        assert len(errors) == len(outcomes), outcomes
        raise errors[0]
    return [outcome for outcome in outcomes if isinstance(outcome, Score)]


async def test_a_recorded_failure_is_left_out_and_told() -> None:
    for score in await score_by_every_way(Broken("b"), RUBRIC):
        assert score.value == 1.0
        assert score.component_values == {"a": 1.0, "c": 1.0}
        assert score.metadata["num_failed_criteria"] == 1
        [(name, failure)] = score.metadata["failed_criteria"].items()
        assert name == "b"
        assert failure["error_type"].endswith("test_failures.TroubleError")
        assert failure["error_message"] == "no reply"
        assert score.metadata["rubric_fingerprint"] == RUBRIC.fingerprint
        assert Score.from_dict(score.to_dict()) == score


async def test_failures_are_told_in_the_order_of_the_rubric() -> None:
    for score in await score_by_every_way(Broken("c", "a"), RUBRIC):
        assert list(score.metadata["failed_criteria"]) == ["a", "c"]
        assert score.metadata["num_failed_criteria"] == 2


async def test_without_failures_nothing_is_told() -> None:
    for score in await score_by_every_way(Broken(), RUBRIC):
        assert score == CompositeGrader(Broken()).score("x", RUBRIC)


async def test_what_is_no_score_is_a_failure_too() -> None:
    grader = CompositeGrader[object](
        lambda text, criterion: 7.0 if criterion.id == "b" else 0.5, on_error="record"
    )
    for score in (grader.score("x", RUBRIC), await grader.ascore("x", RUBRIC)):
        assert score.value == 0.5
        assert score.metadata["failed_criteria"]["b"]["error_type"] == "ValueError"


async def test_when_all_criteria_fail_the_first_error_is_raised() -> None:
    with pytest.raises(TroubleError) as caught:
        await score_by_every_way(Broken(*NAMES), RUBRIC)
    assert caught.value.__notes__ == [
        "while grading criterion 'a' of rubric 'R'",
        "of which no criterion could be graded, 'b': TroubleError, 'c': TroubleError",
    ]


@pytest.mark.parametrize(
    ("fields", "options"),
    [
        ({"gate": Gate(threshold=1)}, {}),
        ({"kind": "bonus"}, {"aggregate": asymmetric_mean}),
        ({"kind": "penalty"}, {"aggregate": partial(asymmetric_mean, penalty_weight=2.0)}),
    ],
)
async def test_a_failure_that_nothing_can_stand_for_is_raised(
    fields: dict[str, Any], options: dict[str, Any]
) -> None:
    rubric = make_rubric(**fields)
    with pytest.raises(TroubleError) as caught:
        await score_by_every_way(Broken("b"), rubric, **options)
    assert "while grading criterion 'b' of rubric 'R'" in caught.value.__notes__
    for score in await score_by_every_way(Broken("a"), rubric, **options):
        assert list(score.metadata["failed_criteria"]) == ["a"]


async def test_a_mean_of_weights_of_0_is_not_taken() -> None:
    rubric = Rubric(
        criteria=tuple(
            Criterion(id=name, description="d", weight=float(name == "b")) for name in NAMES
        )
    )
    with pytest.raises(TroubleError):
        await score_by_every_way(Broken("b"), rubric)
    for score in await score_by_every_way(Broken("a"), rubric):
        assert score.value == 1.0


@pytest.mark.parametrize(("aggregate", "effect"), [(weighted_sum, "score 0"), (all_pass, "pass")])
def test_aggregations_that_cannot_leave_a_criterion_out_are_refused(
    aggregate: Any, effect: str
) -> None:
    for form in (aggregate, partial(aggregate)):
        with pytest.raises(ValueError, match=f"{aggregate.__name__} cannot do: .*{effect}"):
            CompositeGrader(Broken(), aggregate=form, on_error="record")


def test_a_custom_aggregation_is_given_the_criteria_that_are_left() -> None:
    def best(rubric: Rubric, scores: Any) -> float:
        assert [each.id for each in rubric.criteria] == list(scores) == ["a", "c"]
        return max(score.value for score in scores.values())

    grader = CompositeGrader(Broken("b"), aggregate=best, on_error="record")
    assert grader.score("x", RUBRIC).value == 1.0


@pytest.mark.parametrize("interrupt", [KeyboardInterrupt, SystemExit])
@pytest.mark.parametrize("timeout", [None, 60])
def test_interrupts_are_never_recorded(
    anyio_backend: str, interrupt: type[BaseException], timeout: float | None
) -> None:
    for broken in (Broken("b", error=interrupt), AsyncBroken("b", error=interrupt)):
        grader = CompositeGrader[str](broken, on_error="record", timeout=timeout)
        with pytest.raises(interrupt):
            anyio.run(grader.ascore, "x", RUBRIC, backend=anyio_backend)
    grader = CompositeGrader[str](Broken("b", error=interrupt), on_error="record", timeout=timeout)
    with pytest.raises(interrupt):
        grader.score("x", RUBRIC)


async def test_a_cancellation_is_never_recorded() -> None:
    waiting = anyio.Event()

    async def wait(input: object, criterion: Criterion) -> float:
        if criterion.id == "c":
            waiting.set()
        await anyio.sleep_forever()
        return 1.0

    scores: list[Score] = []

    async def run() -> None:
        grader = CompositeGrader(wait, on_error="record", timeout=60)
        scores.append(await grader.ascore("x", RUBRIC))

    with anyio.fail_after(10):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(run)
            await waiting.wait()
            tasks.cancel_scope.cancel()
    assert scores == []


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_a_cancellation_that_nobody_asked_for_is_recorded(anyio_backend: str) -> None:
    async def stray(input: object, criterion: Criterion) -> float:
        if criterion.id == "b":
            raise asyncio.CancelledError
        return 1.0

    for timeout in (None, 60):
        grader = CompositeGrader(stray, on_error="record", timeout=timeout)
        score = await grader.ascore("x", RUBRIC)
        assert score.metadata["failed_criteria"]["b"]["error_type"] == "RuntimeError"


@pytest.mark.parametrize("timeout", [None, 10.0])
def test_an_asynchronous_grader_in_synchronous_grading_is_a_mistake(timeout: float | None) -> None:
    grader = CompositeGrader[str](
        {"a": Broken(), "b": AsyncBroken(), "c": Broken()}, on_error="record", timeout=timeout
    )
    with pytest.raises(TypeError, match="criterion 'b' has to be awaited: use ascore"):
        grader.score("x", RUBRIC)
