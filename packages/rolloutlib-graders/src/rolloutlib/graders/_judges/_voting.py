"""Several verdicts of one grader, combined into one."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Generic, Literal, TypeAlias, TypeVar, cast, get_args

import anyio

from rolloutlib._calls import async_form, call, check_count, is_async, read_concurrency
from rolloutlib._exceptions import add_note
from rolloutlib.graders._composite import DEFAULT_CONCURRENCY
from rolloutlib.graders._criteria import plain_metadata
from rolloutlib.graders._judges._many import amap_all, map_all
from rolloutlib.graders._judges._replies import VerdictError, sum_usage
from rolloutlib.graders._judges._usage import JudgeUsage
from rolloutlib.graders._reading import read_score, scale_by
from rolloutlib.graders._rubric import rubric_names
from rolloutlib.scores import Grader, Score

InputT = TypeVar("InputT")
RubricT = TypeVar("RubricT")

Combine: TypeAlias = Literal["mean", "median", "majority"]


class VotingGrader(Generic[InputT, RubricT]):
    """Asks a grader several times, and combines its verdicts.

    For a judge that is sampled at a temperature: several verdicts vary less than one ("self-consistency",
    Wang et al., 2022, arXiv:2203.11171). A verdict that fails is left out and counted, and is no vote.

    A score's metadata has under "votes" the `values` in the order in which they were asked for, their
    `mean`, `std` (the sample's, 0 for one vote), `min` and `max`, how many were `requested` and how many
    `failed`, and the `errors` by type; and under "judge" the sum of what the votes used. Its
    components are combined as the values are. Its feedback is that of the first vote nearest to it.

    Args:
        grader: Any grader, called `num_votes` times.
        num_votes: How many verdicts are asked for.
        combine: "mean", "median", or "majority": the value that is most frequent, and if several are,
            their mean.
        min_votes: How many verdicts there must be; by default more than half of `num_votes`.
        metadata: Goes into the metadata of each score, a copy of it.
        concurrency: How many verdicts each call of `ascore` asks for at once. A `CapacityLimiter` may be
            shared with others.
        inline: In `ascore`, call a synchronous grader on the event loop, if it never blocks.

    Raises:
        TypeError: The grader is not callable, or a number is none.
        ValueError: A number is out of range, or JSON cannot hold the metadata.
    """

    def __init__(
        self,
        grader: Grader[InputT, RubricT],
        *,
        num_votes: int = 5,
        combine: Combine = "mean",
        min_votes: int | None = None,
        metadata: Mapping[str, Any] | None = None,
        concurrency: int | anyio.CapacityLimiter = DEFAULT_CONCURRENCY,
        inline: bool = False,
    ) -> None:
        if not callable(cast("object", grader)):
            msg = f"grader must be callable, got {grader!r}"
            raise TypeError(msg)
        check_count("num_votes", num_votes)
        self._needed = num_votes // 2 + 1 if min_votes is None else min_votes
        check_count("min_votes", self._needed)
        if self._needed > num_votes:
            msg = f"min_votes cannot be more than num_votes, got {min_votes!r} and {num_votes!r}"
            raise ValueError(msg)
        if combine not in get_args(Combine):
            msg = f"combine must be one of {get_args(Combine)}, got {combine!r}"
            raise ValueError(msg)
        read_concurrency(concurrency, 1)  # refuses what is no bound
        self._grader = grader
        self._num_votes = num_votes
        self._combine = _COMBINE[combine]
        self._metadata = plain_metadata(metadata or {})
        self._concurrency = concurrency
        self._inline = inline

    def __call__(self, input: InputT, rubric: RubricT, /) -> Any:
        """Return a score, or an awaitable of one if the grader is a coroutine function.

        `score` and `ascore` are for callers who know which of the two they want.
        """
        return (self.ascore if is_async(self._grader) else self.score)(input, rubric)

    def score(self, input: InputT, rubric: RubricT, /) -> Score:
        """Ask for one verdict after another.

        Raises:
            VerdictError: There are fewer verdicts than there must be; its cause is the last failure.
            TypeError: The grader's verdicts have to be awaited.
        """
        if is_async(self._grader):
            msg = f"the grader is a coroutine function, {self._grader!r}: use ascore"
            raise TypeError(msg)

        scale = scale_by(rubric)

        def vote(_: int) -> Score:
            return read_score(self._grader(input, rubric), "a verdict", scale)

        return self._count(map_all(vote, range(self._num_votes), on_error="record"), rubric)

    async def ascore(self, input: InputT, rubric: RubricT, /) -> Score:
        """Ask for the verdicts at the same time.

        Raises:
            VerdictError: There are fewer verdicts than there must be; its cause is the last failure.
        """
        grade, scale = async_form(self._grader), scale_by(rubric)

        async def vote(_: int) -> Score:
            verdict = await call(grade, input, rubric, inline=self._inline)
            return read_score(verdict, "a verdict", scale)

        votes = await amap_all(
            vote, range(self._num_votes), on_error="record", concurrency=self._concurrency
        )
        return self._count(votes, rubric)

    def _count(self, votes: Sequence[Score | Exception], rubric: RubricT) -> Score:
        scores = [vote for vote in votes if isinstance(vote, Score)]
        failures = [vote for vote in votes if isinstance(vote, Exception)]
        used = sum_usage(votes)
        if len(scores) < self._needed:
            raise _too_few(len(scores), self._num_votes, self._needed, failures, used)
        values = [score.value for score in scores]
        value = self._combine(values)
        metadata = {
            **rubric_names(rubric),
            **self._metadata,
            "votes": {
                "values": values,
                "mean": statistics.fmean(values),
                "std": statistics.stdev(values) if len(values) > 1 else 0.0,
                "min": min(values),
                "max": max(values),
                "requested": self._num_votes,
                "failed": len(failures),
                "errors": dict(Counter([type(error).__qualname__ for error in failures])),
            },
        }
        if used != JudgeUsage():
            metadata["judge"] = used.to_dict()
        nearest = min(scores, key=lambda score: abs(score.value - value))
        return Score(value, self._components(scores), metadata, feedback=nearest.feedback)

    def _components(self, scores: Sequence[Score]) -> dict[str, Score]:
        names = [name for name in scores[0].components if all(name in s.components for s in scores)]
        return {
            name: Score(self._combine([score.components[name].value for score in scores]))
            for name in names
        }


def _too_few(
    got: int, requested: int, needed: int, failures: Sequence[Exception], used: JudgeUsage
) -> VerdictError:
    last = failures[-1]
    msg = (
        f"only {got} of {requested} verdicts could be had, and there must be {needed}; the last "
        f"failure was {type(last).__qualname__}: {last}"
    )
    error = VerdictError(msg)
    error.__cause__ = last
    error.usage = used
    for failure in failures[:-1]:
        add_note(error, f"another failure was {type(failure).__qualname__}: {failure!s:.200}")
    return error


def _majority(values: Sequence[float]) -> float:
    return statistics.fmean(statistics.multimode(values))


_COMBINE: dict[str, Callable[[Sequence[float]], float]] = {
    "mean": statistics.fmean,
    "median": statistics.median,
    "majority": _majority,
}
