"""A grader made of one grader for each criterion of a rubric."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Generic, NamedTuple, TypeAlias, TypeVar, cast

import anyio
import anyio.lowlevel

from rolloutlib._calls import async_form, call, read_concurrency, run_workers
from rolloutlib._exceptions import add_note
from rolloutlib._values import to_float
from rolloutlib.graders._aggregators import Aggregator, check_aggregation, weighted_mean
from rolloutlib.graders._awaitables import at_once
from rolloutlib.graders._rubric import Criterion, Rubric, plain_metadata, rubric_label, rubric_names
from rolloutlib.scores import Grader, Score, ScoreValue

InputT = TypeVar("InputT")

DEFAULT_CONCURRENCY = 16


class CompositeGrader(Generic[InputT]):
    """Grades each criterion of a rubric by itself, and combines the scores into one.

    The composite score has the criteria's scores as its components, in the rubric's order, and the
    rubric's `id` and `fingerprint` in its metadata, as "rubric_id" and "rubric_fingerprint".

    A criterion's grader is called with the input and the criterion and returns a number or a
    `Score`, at once or when awaited. What one raises comes out as it is, with a note that names the
    criterion; there is no score then.

    One composite may grade any number of inputs at the same time, by the same rubric or by others.

    Args:
        grader: One grader for all criteria, or graders by criterion id. The latter may have more
            than a rubric asks for.
        overrides: Graders by criterion id that come before `grader`. One composite may serve many
            rubrics, so there may be more than a rubric has criteria.
        aggregate: Makes the value of the composite score from the rubric and the criteria's scores.
        metadata: Goes into the metadata of each composite score, a copy of it.
        concurrency: How many criteria each call of `ascore` grades at once; None means all. A
            `CapacityLimiter` may be shared with other calls and graders, and bounds them together;
            not with a composite that grades a criterion of this one, which would wait for ever.
        inline: In `ascore`, call synchronous graders on the event loop, for those that never block.
            By default each runs on a worker thread, so that they must bear to run at the same time.
            No event loop runs there: a grader that starts a task and returns it has to be a coroutine
            function, or inline.

    Raises:
        TypeError: A grader or the aggregation is not callable, or `concurrency` is no number.
        ValueError: There is no grader, `concurrency` is below 1, or JSON cannot hold the metadata.
    """

    def __init__(
        self,
        grader: Grader[InputT, Criterion] | Mapping[str, Grader[InputT, Criterion]],
        *,
        overrides: Mapping[str, Grader[InputT, Criterion]] | None = None,
        aggregate: Aggregator = weighted_mean,
        metadata: Mapping[str, Any] | None = None,
        concurrency: int | anyio.CapacityLimiter | None = DEFAULT_CONCURRENCY,
        inline: bool = False,
    ) -> None:
        self._default = None if isinstance(grader, Mapping) else grader
        named = dict(grader) if isinstance(grader, Mapping) else {}
        self._overrides = dict(overrides or {})
        self._named = {**named, **self._overrides}
        if self._default is None and not self._named:
            msg = "a composite grader needs at least one grader, got an empty mapping"
            raise ValueError(msg)
        for name, each in self._named.items():
            _check_callable(each, f"the grader of criterion {name!r}")
        if self._default is not None:
            _check_callable(self._default, "grader, unless it is a mapping,")
        _check_callable(aggregate, "aggregate")
        if concurrency is not None:
            read_concurrency(concurrency, 1)  # refuses what is no bound
        self._aggregate = aggregate
        self._metadata = plain_metadata(metadata or {})
        self._concurrency = concurrency
        self._inline = inline
        self._last: _Plan[InputT] | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """The ids of the criteria that have a grader of their own."""
        return tuple(self._named)

    def __call__(self, input: InputT, rubric: Rubric, /) -> Score:
        """Do the same as `score`."""
        return self.score(input, rubric)

    def score(self, input: InputT, rubric: Rubric, /) -> Score:
        """Grade the criteria one after another.

        Args:
            input: What the criteria's graders take.
            rubric: Whose criteria are graded.

        Raises:
            TypeError: A grader is asynchronous, or returned something that is not a score.
            ValueError: A criterion has no grader, or the aggregation cannot combine the rubric's
                criteria (both before any grader is called); or a score is NaN or infinite.
            BaseException: What a grader or the aggregation raises.
        """
        plan = self._plan(rubric)
        scores: dict[str, Score] = {}
        for criterion, grade, _, place in plan.parts:
            try:
                scores[criterion.id] = _read(grade(input, criterion), place)
            except Exception as error:
                _note(error, criterion, rubric)
                raise
        return self._combine(plan, scores)

    async def ascore(self, input: InputT, rubric: Rubric, /) -> Score:
        """Grade the criteria at the same time.

        A grader with a method `ascore` is asked through it. When one criterion fails the others are
        cancelled, and waited for. A synchronous grader that is blocked on its thread at that moment
        is left to run out, and its result is dropped.

        Args:
            input: What the criteria's graders take.
            rubric: Whose criteria are graded.

        Raises:
            TypeError: A grader returned something that is not a score.
            ValueError: A criterion has no grader, or the aggregation cannot combine the rubric's
                criteria (both before any grader is called); or a score is NaN or infinite.
            RuntimeError: A grader ended itself by a cancellation that nobody asked for.
            BaseException: What a grader or the aggregation raises, of several errors the first.
        """
        plan = self._plan(rubric)
        limiter, num_workers = read_concurrency(
            self._concurrency or len(plan.parts), len(plan.parts)
        )
        remaining = iter(plan.parts)
        scores: dict[str, Score] = {}
        failures: list[tuple[BaseException, Criterion]] = []

        async def work(scope: anyio.CancelScope) -> None:
            for criterion, _, grade, place in remaining:
                try:
                    async with limiter:
                        await anyio.lowlevel.checkpoint_if_cancelled()
                        result = await call(grade, input, criterion, inline=self._inline)
                    scores[criterion.id] = _read(result, place)
                except BaseException as error:  # comes out below, and not in an ExceptionGroup
                    failures.append((error, criterion))
                    scope.cancel()
                    if isinstance(error, anyio.get_cancelled_exc_class()):
                        raise
                    return

        await run_workers(work, num_workers)
        if failures:
            raise _first(failures, rubric)
        return self._combine(
            plan, {each.criterion.id: scores[each.criterion.id] for each in plan.parts}
        )

    def _plan(self, rubric: Rubric) -> _Plan[InputT]:
        """Check the rubric and find its graders, once for as long as it stays the same."""
        last = self._last
        if last is not None and last.rubric is rubric:
            return last
        if not isinstance(cast("object", rubric), Rubric):
            msg = f"a composite grader grades by a Rubric, got {rubric!r}"
            raise TypeError(msg)
        ids = [criterion.id for criterion in rubric.criteria]
        if self._default is None and (missing := [each for each in ids if each not in self._named]):
            msg = f"no grader for {missing} of {rubric_label(rubric)}; there are graders for {list(self._named)}"
            raise ValueError(msg)
        check_aggregation(self._aggregate, rubric)
        plan = _Plan(
            rubric,
            tuple([self._part(criterion) for criterion in rubric.criteria]),
            {**rubric_names(rubric), **self._metadata},
        )
        self._last = plan
        return plan

    def _part(self, criterion: Criterion) -> _Part[InputT]:
        default = self._default
        grade = (
            self._named[criterion.id] if default is None else self._named.get(criterion.id, default)
        )
        return _Part(
            criterion, grade, async_form(grade), f"the score of criterion {criterion.id!r}"
        )

    def _combine(self, plan: _Plan[InputT], scores: dict[str, Score]) -> Score:
        try:
            value = self._aggregate(plan.rubric, scores)
            return Score(to_float(value, "the aggregate"), scores, plan.metadata)
        except Exception as error:
            values = {name: score.value for name, score in scores.items()}
            add_note(error, f"while combining {values} by {rubric_label(plan.rubric)}")
            raise


_Grade: TypeAlias = Callable[[InputT, Criterion], ScoreValue | Awaitable[ScoreValue]]


class _Part(NamedTuple, Generic[InputT]):
    """A criterion and who grades it."""

    criterion: Criterion
    grade: _Grade[InputT]
    agrade: _Grade[InputT]
    place: str


class _Plan(NamedTuple, Generic[InputT]):
    """How a composite grades by one rubric."""

    rubric: Rubric
    parts: tuple[_Part[InputT], ...]
    metadata: dict[str, Any]


def _read(result: ScoreValue | Awaitable[ScoreValue], place: str) -> Score:
    if isinstance(result, Score):
        return result
    if type(result) is not float:
        result = at_once(result, place)
    return Score(to_float(result, place))


def _first(failures: list[tuple[BaseException, Criterion]], rubric: Rubric) -> BaseException:
    """Choose what to raise: an interrupt, else the first error, else a stray cancellation."""
    cancelled = anyio.get_cancelled_exc_class()
    error, criterion = min(
        failures,
        key=lambda failure: (isinstance(failure[0], cancelled), isinstance(failure[0], Exception)),
    )
    if isinstance(error, cancelled):
        msg = f"the grader of criterion {criterion.id!r} was cancelled, but not by the caller"
        stray, error = error, RuntimeError(msg)
        error.__cause__ = stray
    _note(error, criterion, rubric)
    return error


def _note(error: BaseException, criterion: Criterion, rubric: Rubric) -> None:
    add_note(error, f"while grading criterion {criterion.id!r} of {rubric_label(rubric)}")


def _check_callable(value: object, name: str) -> None:
    if not callable(value):
        msg = f"{name} must be callable, got {value!r}"
        raise TypeError(msg)
