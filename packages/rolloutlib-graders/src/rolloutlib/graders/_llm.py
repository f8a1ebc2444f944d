"""A grader that asks a language model."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Generic, cast

from typing_extensions import TypeVar

from rolloutlib._calls import call, is_async
from rolloutlib._exceptions import add_note
from rolloutlib.graders._awaitables import Later, at_once
from rolloutlib.graders._criteria import UNIT, Criterion, Scale, check_scale, plain_metadata
from rolloutlib.graders._reading import read_score
from rolloutlib.graders._rubric import rubric_names
from rolloutlib.scores import Score, ScoreValue

InputT = TypeVar("InputT")
RubricT = TypeVar("RubricT")
PromptT = TypeVar("PromptT", default=Any)
ResponseT = TypeVar("ResponseT", default=Any)


class LLMGrader(Generic[InputT, RubricT, PromptT, ResponseT]):
    """Renders a prompt, samples a reply, and parses a score out of it.

    The model is a callable, so any backend fits. The score carries the `id` and `fingerprint` of a
    `Rubric` in its metadata, as "rubric_id" and "rubric_fingerprint". Graded by a `Criterion`, it is
    a criterion's grader for `CompositeGrader`.

    What `render`, `sample` or `parse` raises comes out as it is, with a note that tells which of them
    it was. A reply without a verdict is no score: let `parse` raise.

    Args:
        sample: Takes a prompt; returns the model's reply, of any type, at once or when awaited.
        render: Makes the prompt, of any type, from the input and the rubric.
        parse: Makes a number or a `Score` from the reply and the rubric.
        metadata: Goes into the metadata of each score, a copy of it; what `parse` puts there comes
            first.
        scale: The lowest and the highest value that a score may have, or None for any number. The
            scale of a `Criterion` that is judged comes before it.
        inline: In `ascore`, call a synchronous `sample` on the event loop, if it never blocks. By
            default it runs on a worker thread, where no event loop runs: one that starts a task has
            to be a coroutine function, or inline.

    Raises:
        TypeError: A part is not callable, or `render` or `parse` is asynchronous.
        ValueError: JSON cannot hold the metadata, or the scale is not a lower and a higher finite
            number.
    """

    def __init__(
        self,
        *,
        sample: Callable[[PromptT], ResponseT | Awaitable[ResponseT]],
        render: Callable[[InputT, RubricT], PromptT],
        parse: Callable[[ResponseT, RubricT], ScoreValue],
        metadata: Mapping[str, Any] | None = None,
        scale: Scale | None = UNIT,
        inline: bool = False,
    ) -> None:
        for name, part in (("sample", sample), ("render", render), ("parse", parse)):
            if not callable(cast("object", part)):
                msg = f"{name} must be callable, got {part!r}"
                raise TypeError(msg)
            if part is not sample and is_async(part):
                msg = f"{name} must be synchronous, got {part!r}: only sample may be awaited"
                raise TypeError(msg)
        if scale is not None:
            check_scale(scale)
        self._sample = sample
        self._render = render
        self._parse = parse
        self._metadata = plain_metadata(metadata or {})
        self._scale = scale
        self._inline = inline

    def __call__(self, input: InputT, rubric: RubricT, /) -> Score | Awaitable[Score]:
        """Return a score, or an awaitable of one if `sample` is asynchronous.

        `score` and `ascore` are for callers who know which of the two they want.
        """
        if is_async(self._sample):
            return self.ascore(input, rubric)
        prompt = self._prompt(input, rubric)
        with _Noting("sampling the model's reply"):
            response = self._sample(prompt)
        if isinstance(response, Awaitable):
            awaitable = cast("Awaitable[ResponseT]", response)
            return Later(awaitable, lambda: self._score_later(awaitable, rubric))
        return self._read(response, rubric)

    def score(self, input: InputT, rubric: RubricT, /) -> Score:
        """Ask the model and wait for its reply.

        Args:
            input: What `render` takes.
            rubric: What `render` and `parse` take.

        Raises:
            TypeError: `sample` is asynchronous, or `parse` returned something that is not a score.
            ValueError: The score is not on its scale.
            BaseException: What `render`, `sample` or `parse` raises.
        """
        prompt = self._prompt(input, rubric)
        with _Noting("sampling the model's reply"):
            response = at_once(self._sample(prompt), "the model's reply")
        return self._read(response, rubric)

    async def ascore(self, input: InputT, rubric: RubricT, /) -> Score:
        """Ask the model and await its reply.

        Args:
            input: What `render` takes.
            rubric: What `render` and `parse` take.

        Raises:
            TypeError: `parse` returned something that is not a score.
            ValueError: The score is not on its scale.
            BaseException: What `render`, `sample` or `parse` raises.
        """
        prompt = self._prompt(input, rubric)
        with _Noting("sampling the model's reply"):
            response = await call(self._sample, prompt, inline=self._inline)
        return self._read(response, rubric)

    async def _score_later(self, response: Awaitable[ResponseT], rubric: RubricT) -> Score:
        with _Noting("sampling the model's reply"):
            awaited = await response
        return self._read(awaited, rubric)

    def _prompt(self, input: InputT, rubric: RubricT) -> PromptT:
        with _Noting("rendering the prompt"):
            return self._render(input, rubric)

    def _read(self, response: ResponseT, rubric: RubricT) -> Score:
        with _Noting("parsing the model's reply", response):
            scale = rubric.scale if isinstance(rubric, Criterion) else self._scale
            score = read_score(self._parse(response, rubric), "the score", scale)
        metadata = {**rubric_names(rubric), **self._metadata, **score.metadata}
        if not metadata:
            return score
        return Score(score.value, score.components, metadata, feedback=score.feedback)


class _Noting:
    """Tells on an error where it arose, and on which reply, in a `with` block."""

    def __init__(self, stage: str, *replies: object) -> None:
        self._stage = stage
        self._replies = replies

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        if isinstance(error, Exception):
            replies = [f"{reply!r:.500}" for reply in self._replies]
            add_note(error, " ".join([f"while {self._stage}", *replies]))
