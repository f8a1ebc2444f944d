"""A grader made of one grader for each criterion of a rubric."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any, Generic, Literal, TypeAlias, TypeVar, cast, get_args

import anyio
import anyio.lowlevel

from rolloutlib._calls import (
    RefuseStrayCancellation,
    async_form,
    call,
    read_concurrency,
    run_workers,
    uncancelled,
)
from rolloutlib.graders._aggregators import (
    Aggregator,
    check_aggregation,
    check_exclusion,
    weighted_mean,
)
from rolloutlib.graders._awaitables import AwaitableError
from rolloutlib.graders._criteria import Criterion, plain_metadata
from rolloutlib.graders._made_scores import plain_score
from rolloutlib.graders._plan import Part, Plan, make_part
from rolloutlib.graders._reading import read_score
from rolloutlib.graders._rubric import Rubric, rubric_label, rubric_names
from rolloutlib.graders._timeouts import acall_within, call_within, read_timeout
from rolloutlib.scores import Grader, Score, ScoreValue

InputT = TypeVar("InputT")

OnError: TypeAlias = Literal["raise", "record"]

DEFAULT_CONCURRENCY = 16


class CompositeGrader(Generic[InputT]):
    """Grades each criterion of a rubric by itself, and combines the scores into one.

    The composite score has the criteria's scores as its components, in the rubric's order, and the
    rubric's `id` and `fingerprint` in its metadata, as "rubric_id" and "rubric_fingerprint".

    A criterion's grader is called with the input and the criterion and returns a number or a
    `Score`, at once or when awaited; it lies on the criterion's scale. What one raises comes out as it
    is, with a note that names the criterion; there is no score then.

    With `on_error="record"`, a criterion whose grader fails is left out, and the others are combined.
    The score's metadata has their number as "num_failed_criteria" and, by criterion id, their
    "error_type" and "error_message" under "failed_criteria". The error is raised all the same if the
    criterion has a gate, since nobody knows whether it would hold, or if what is left cannot stand
    for the rubric: no criterion, or none with a weight, of each kind for `asymmetric_mean`.

    If the gate of a criterion fails, the total is at most the gate's cap. The score's metadata then
    has the total without it as "uncapped_value" and, by criterion id, the "value", "threshold" and
    "cap" under "failed_gates".

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
        timeout: How many seconds the grading of a criterion may take, from when it begins; more is a
            `TimeoutError`. A synchronous grader runs on a thread then, in `score` too; one that is
            blocked there is left to run out, and its result is dropped.
        on_error: What to do when a grader fails: raise ("raise"), or leave its criterion out and say
            so ("record").

    Raises:
        TypeError: A grader or the aggregation is not callable, or `concurrency` or `timeout` is no
            number.
        ValueError: There is no grader, `concurrency` or `timeout` is too low, JSON cannot hold the
            metadata, or failures are to be recorded and the aggregation is `weighted_sum` or
            `all_pass`, which cannot leave a criterion out.
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
        timeout: float | None = None,
        on_error: OnError = "raise",
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
        if on_error not in get_args(OnError):
            msg = f"on_error must be one of {get_args(OnError)}, got {on_error!r}"
            raise ValueError(msg)
        if on_error == "record":
            check_exclusion(aggregate)
        self._timeout = read_timeout(timeout)
        self._records = on_error == "record"
        self._aggregate = aggregate
        self._metadata = plain_metadata(metadata or {})
        self._concurrency = concurrency
        self._inline = inline
        self._last: Plan[InputT] | None = None

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
                criteria (both before any grader is called); or a score is not on its scale.
            TimeoutError: A grader took too long.
            BaseException: What a grader or the aggregation raises.
        """
        plan = self._plan(rubric)
        scores: dict[str, Score] = {}
        failed: dict[str, Exception] = {}
        for criterion, name, grade, _, low, high, place in plan.parts:
            try:
                result = grade(input, criterion)
                scores[name] = (
                    plain_score(result)
                    if type(result) is float and low <= result <= high
                    else read_score(result, place, criterion.scale)
                )
            except Exception as error:
                is_mistake = isinstance(error, AwaitableError)  # of the caller
                if is_mistake or not self._records or criterion.gate is not None:
                    plan.note(error, name)
                    raise
                failed[name] = error
        return plan.combine_rest(scores, failed) if failed else plan.combine(scores)

    async def ascore(self, input: InputT, rubric: Rubric, /) -> Score:
        """Grade the criteria at the same time.

        A grader with a method `ascore` is asked through it. When an error is to be raised, the other
        criteria are cancelled, and waited for. A synchronous grader that is blocked on its thread at
        that moment is left to run out, and its result is dropped.

        Args:
            input: What the criteria's graders take.
            rubric: Whose criteria are graded.

        Raises:
            TypeError: A grader returned something that is not a score.
            ValueError: A criterion has no grader, or the aggregation cannot combine the rubric's
                criteria (both before any grader is called); or a score is not on its scale.
            TimeoutError: A grader took too long.
            RuntimeError: A grader ended itself by a cancellation that nobody asked for.
            BaseException: What a grader or the aggregation raises, of several errors the first.
        """
        plan = self._plan(rubric)
        limiter, num_workers = read_concurrency(
            self._concurrency or len(plan.parts), len(plan.parts)
        )
        remaining = iter(plan.parts)
        scores: dict[str, Score] = {}
        failed: dict[str, Exception] = {}
        fatal: list[BaseException] = []  # come out below, and not in an ExceptionGroup

        async def work(scope: anyio.CancelScope) -> None:
            for criterion, name, _, grade, _, _, place in remaining:
                try:
                    async with limiter:
                        await anyio.lowlevel.checkpoint_if_cancelled()
                        result = await grade(input, criterion)
                    scores[name] = read_score(result, place, criterion.scale)
                except BaseException as caught:
                    error = uncancelled(caught)
                    if error is None:
                        raise
                    is_recorded = self._records and criterion.gate is None
                    if is_recorded and isinstance(error, Exception):
                        failed[name] = error
                        continue
                    plan.note(error, name)
                    fatal.append(error)
                    scope.cancel()
                    return

        await run_workers(work, num_workers)
        if fatal:  # an interrupt before the first error
            raise min(fatal, key=lambda error: isinstance(error, Exception))
        scores = {name: scores[name] for _, name, *_ in plan.parts if name in scores}
        return plan.combine_rest(scores, failed) if failed else plan.combine(scores)

    def _plan(self, rubric: Rubric) -> Plan[InputT]:
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
        parts = [self._part(criterion) for criterion in rubric.criteria]
        metadata = {**rubric_names(rubric), **self._metadata}
        plan = self._last = Plan(rubric, parts, self._aggregate, metadata)
        return plan

    def _part(self, criterion: Criterion) -> Part[InputT]:
        default = self._default
        grade = (
            self._named[criterion.id] if default is None else self._named.get(criterion.id, default)
        )
        ask = async_form(grade)

        async def agrade(input: InputT, criterion: Criterion) -> ScoreValue:
            with RefuseStrayCancellation(f"the grader of criterion {criterion.id!r}"):
                return await call(ask, input, criterion, inline=self._inline)
            raise AssertionError  # pragma: no cover

        if self._timeout is None:
            return make_part(criterion, grade, agrade)
        return make_part(
            criterion,
            functools.partial(call_within, self._timeout, grade),
            functools.partial(acall_within, self._timeout, agrade),
        )


def _check_callable(value: object, name: str) -> None:
    if not callable(value):
        msg = f"{name} must be callable, got {value!r}"
        raise TypeError(msg)
