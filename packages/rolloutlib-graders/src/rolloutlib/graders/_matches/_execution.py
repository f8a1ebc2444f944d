"""Answers that are programs, which a sandbox of the user's runs."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias, cast

from rolloutlib._calls import call, is_async
from rolloutlib._exceptions import add_note
from rolloutlib.answers import Extraction
from rolloutlib.graders._awaitables import Later, at_once
from rolloutlib.graders._criteria import UNIT, Criterion, Scale
from rolloutlib.graders._matches._blocks import extract_block
from rolloutlib.graders._matches._references import (
    Reference,
    check_text,
    match_score,
    read_references,
)
from rolloutlib.graders._reading import read_score
from rolloutlib.scores import Score, ScoreValue

Run: TypeAlias = Callable[[str, tuple[str, ...]], ScoreValue | Awaitable[ScoreValue]]
"""Runs a program against tests, and returns a score."""


class ExecutionTimeoutError(Exception):
    """Raised by a sandbox when the program did not end in time: the program's fault, which scores 0."""


class ExecutionGrader:
    """Hands the program in an answer to a sandbox, and makes a score of what comes of it.

    Nothing is executed here: `run` is a function of yours that takes the program and the tests, and
    calls a container, a virtual machine or a service. Never let it run the program in this process.

    The program is the last code block that names one of the languages, or else the last that names
    none. By these rules a score is made:

    - there is no program, or its block does not end: 0, without a call of `run`;
    - `run` returns a score, a bool or a number: that. It lies from 0 to 1, or on the scale of the
      criterion that is graded;
    - `run` raises `ExecutionTimeoutError`, since the program did not end: 0, with the status
      "timeout";
    - `run` raises anything else, a `TimeoutError` of the sandbox's connection for example: no score.
      The error comes out.

    The score's metadata hold "status", "extracted", "rule", "span" and "reason", as those of the other
    graders of text do.

    Args:
        run: Takes the program and the references, which are its tests; returns a score, at once or when
            awaited.
        languages: What may stand after the fence that opens a block, in small letters; "" is nothing.
        bare: Take an answer without any such block as a program as a whole.
        inline: In `ascore`, call a synchronous `run` on the event loop, if it never blocks. By default
            it runs on a worker thread.

    Raises:
        TypeError: `run` is not callable.
    """

    def __init__(
        self,
        run: Run,
        *,
        languages: tuple[str, ...] = ("python", "python3", "py", ""),
        bare: bool = False,
        inline: bool = False,
    ) -> None:
        if not callable(cast("object", run)):
            msg = f"run must be callable, got {run!r}"
            raise TypeError(msg)
        self._run = run
        self._languages = languages
        self._bare = bare
        self._inline = inline

    def __call__(self, text: str, reference: Reference, /) -> Score | Awaitable[Score]:
        """Return a score, or an awaitable of one if `run` is asynchronous.

        `score` and `ascore` are for callers who know which of the two they want.
        """
        if is_async(self._run):
            return self.ascore(text, reference)
        program = self._read(text, reference)
        if program.code is None:
            return program.score()
        try:
            result = self._run(program.code, program.tests)
        except Exception as error:
            return program.failed(error)
        if isinstance(result, Awaitable):
            return Later(result, lambda: program.settle(result))
        return program.ended(result)

    def score(self, text: str, reference: Reference, /) -> Score:
        """Run the program and wait for its end.

        Args:
            text: What the model wrote, thinking included.
            reference: The tests: a text, several texts, or a criterion's `references`.

        Raises:
            TypeError: `run` is asynchronous or returns no score, the text is no text, or the reference
                neither a criterion nor text.
            ValueError: There is no reference, or the score is NaN or not on its scale.
            BaseException: What `run` raises, but for `ExecutionTimeoutError`.
        """
        return at_once(self(text, reference), "the result of run")

    async def ascore(self, text: str, reference: Reference, /) -> Score:
        """Run the program and await its end.

        Args:
            text: What the model wrote, thinking included.
            reference: The tests: a text, several texts, or a criterion's `references`.

        Raises:
            TypeError: `run` returns no score, the text is no text, or the reference neither a
                criterion nor text.
            ValueError: There is no reference, or the score is NaN or not on its scale.
            BaseException: What `run` raises, but for `ExecutionTimeoutError`.
        """
        program = self._read(text, reference)
        if program.code is None:
            return program.score()
        result = call(self._run, program.code, program.tests, inline=self._inline)
        return await program.settle(result)

    def _read(self, text: str, reference: Reference) -> _Program:
        tests = read_references(reference)
        check_text(text)
        scale = reference.scale if isinstance(reference, Criterion) else UNIT
        return _Program(tests, scale, *extract_block(text, self._languages, bare=self._bare))


class _Program:
    """The program in an answer, and the scores for its ends."""

    def __init__(
        self, tests: tuple[str, ...], scale: Scale | None, found: Extraction, rule: str
    ) -> None:
        self.tests = tests
        self.code = found.text if found.status == "found" else None
        self._scale = scale
        self._found = found
        self._rule = rule

    def score(self, **metadata: Any) -> Score:
        return match_score(self._found, rule=self._rule, **metadata)

    async def settle(self, result: Awaitable[ScoreValue]) -> Score:
        try:
            value = await result
        except Exception as error:
            return self.failed(error)
        return self.ended(value)

    def failed(self, error: Exception) -> Score:
        if isinstance(error, ExecutionTimeoutError):
            return self.score(status="timeout", reason=str(error) or "the program did not end")
        add_note(error, "while running the program of an answer")
        raise error

    def ended(self, result: ScoreValue) -> Score:
        score = read_score(Score.from_value(result), "the result of run", self._scale)
        metadata = {**self.score().metadata, **score.metadata}
        return Score(score.value, score.components, metadata, feedback=score.feedback)
