"""A grader that grades nothing twice."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Generic, cast

import anyio
import anyio.lowlevel
from typing_extensions import TypeVar

from rolloutlib._calls import async_form, call, is_async
from rolloutlib.graders._cache import GradeCache
from rolloutlib.graders._criteria import Criterion
from rolloutlib.graders._fingerprints import KeyMaker, fingerprint_of
from rolloutlib.graders._flights import Flight
from rolloutlib.graders._reading import read_score
from rolloutlib.rollouts._codec import Encode
from rolloutlib.scores import Grader, Score, ScoreValue

InputT = TypeVar("InputT")
RubricT = TypeVar("RubricT")


class CachedGrader(Generic[InputT, RubricT]):
    """Asks a grader once for each input, and keeps the score.

    The same input, judged by the same rubric or criterion, by a grader of the same fingerprint, has
    the same score, also in a later process if the cache has a file. A criterion is the same whatever
    its weight and its gate are, which say how its score counts; so a rubric can be weighted anew for
    nothing if the graders of its criteria are cached, and not the composite. Inputs are told apart by
    their contents: texts, numbers, lists, dictionaries, arrays, dataclasses, pydantic models,
    trajectories, and whatever `encode` knows.

    Failures are not kept, nor are composite scores without the criteria that failed. Requests that
    come while the same one is being graded wait for its score; if it fails, the next of them tries.

    Args:
        grader: The grader.
        cache: Keeps the scores; may be shared with other graders.
        fingerprint: A text that tells the grader from others: what it is called, and all that its
            scores depend on, as a judge's on its prompt and its model. By default the grader's
            attribute `fingerprint`, or the full name of a function together with its `version`.
        version: Is added to the fingerprint; change it when the grader changes.
        encode: Turns values of types of your own into such that are known, as in
            `TrajectoryGroup.to_dict`.
        inline: In `ascore`, call a synchronous grader on the event loop, not on a worker thread.

    Raises:
        TypeError: The grader is not callable, or has neither a fingerprint nor a name and a version;
            or the cache is none.
    """

    def __init__(
        self,
        grader: Grader[InputT, RubricT],
        cache: GradeCache,
        *,
        fingerprint: str | None = None,
        version: str | None = None,
        encode: Encode | None = None,
        inline: bool = False,
    ) -> None:
        if not callable(grader):
            msg = f"grader must be callable, got {grader!r}"
            raise TypeError(msg)
        if not isinstance(cast("object", cache), GradeCache):
            msg = f"cache must be a GradeCache, got {cache!r}: say GradeCache(path) for a file"
            raise TypeError(msg)
        self._grader = grader
        self._cache = cache
        self._fingerprint = fingerprint_of(grader, fingerprint, version)
        self._keys = KeyMaker(self._fingerprint, encode)
        self._inline = inline

    @property
    def fingerprint(self) -> str:
        """What tells the grader from others."""
        return self._fingerprint

    def __call__(self, input: InputT, rubric: RubricT, /) -> Score | Awaitable[Score]:
        """Return a score, or an awaitable of one if the grader is a coroutine function."""
        if is_async(self._grader):
            return self.ascore(input, rubric)
        return self.score(input, rubric)

    def score(self, input: InputT, rubric: RubricT, /) -> Score:
        """Return the score that is kept, or ask the grader.

        Args:
            input: What the grader takes.
            rubric: What it judges by.

        Raises:
            UnstorableError: The input or the rubric has no form that could be compared.
            TypeError: The grader is asynchronous, or returned something that is not a score.
            ValueError: The score is NaN or infinite, or not on the scale of the criterion.
            BaseException: What the grader raises.
        """
        cache = self._cache
        key = self._keys.key(input, rubric)
        while (score := cache.load(key)) is None:
            flight, is_ours = cache.flights.claim(key, blocking=True)
            if is_ours:
                return self._grade(input, rubric, key, flight)
            flight.wait()
        return score

    async def ascore(self, input: InputT, rubric: RubricT, /) -> Score:
        """Return the score that is kept, or ask the grader and await it.

        A grader with a method `ascore` is asked through it.

        Args:
            input: What the grader takes.
            rubric: What it judges by.

        Raises:
            UnstorableError: The input or the rubric has no form that could be compared.
            TypeError: The grader returned something that is not a score.
            ValueError: The score is NaN or infinite, or not on the scale of the criterion.
            BaseException: What the grader raises.
        """
        cache = self._cache
        key = self._keys.key(input, rubric)
        await anyio.lowlevel.checkpoint()
        while (score := await call(cache.load, key, inline=cache.in_memory)) is None:
            flight, is_ours = cache.flights.claim(key, blocking=False)
            if is_ours:
                return await self._agrade(input, rubric, key, flight)
            await flight.await_()
        return score

    def _grade(self, input: InputT, rubric: RubricT, key: str, flight: Flight) -> Score:
        """Ask the grader."""
        cache = self._cache
        with cache.flights.making(key, flight):
            score = cache.load(key, again=True)  # another may have landed in between
            if score is None:
                score = _read(self._grader(input, rubric), rubric)
                if _is_whole(score):
                    score = cache.save(key, self._fingerprint, score)
        return score

    async def _agrade(self, input: InputT, rubric: RubricT, key: str, flight: Flight) -> Score:
        """The asynchronous twin of `_grade`."""
        cache = self._cache
        in_memory = cache.in_memory  # what reads no file does not block
        with cache.flights.making(key, flight):
            score = await call(lambda: cache.load(key, again=True), inline=in_memory)
            if score is None:
                grader = async_form(self._grader)
                score = _read(await call(grader, input, rubric, inline=self._inline), rubric)
                if _is_whole(score):
                    with anyio.CancelScope(shield=True):  # it is paid for
                        score = await call(
                            cache.save, key, self._fingerprint, score, inline=in_memory
                        )
        return score


def _read(result: ScoreValue | Awaitable[ScoreValue], rubric: object) -> Score:
    if isinstance(rubric, Criterion):
        return read_score(result, f"the score of criterion {rubric.id!r}", rubric.scale)
    return read_score(result, "the score", None)


def _is_whole(score: Score) -> bool:
    """Tell whether no criterion of a composite, or of one in it, was left out since it failed."""
    return "num_failed_criteria" not in score.metadata and all(
        map(_is_whole, score.components.values())
    )
