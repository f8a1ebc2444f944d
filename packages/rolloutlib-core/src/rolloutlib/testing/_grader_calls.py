"""Calling a grader: at once, on threads, and on event loops."""

from __future__ import annotations

import sys
import threading
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias, TypeVar

import anyio

from rolloutlib._calls import async_form, call, is_async, is_awaitable
from rolloutlib._values import is_flag, to_float
from rolloutlib.scores import Score
from rolloutlib.testing._grader_questions import Question

T = TypeVar("T")

Kind: TypeAlias = Literal["sync", "async", "both"]


@dataclass(frozen=True)
class Outcome:
    """What came of a call: a score, or what else.

    Attributes:
        score: The score.
        problem: Why there is none.
        raised: The name of the exception that came out.
    """

    score: Score | None
    problem: str | None = field(default=None, compare=False)
    raised: str | None = None

    def __str__(self) -> str:
        return f"{self.problem if self.score is None else self.score!s:.300}"


class Caller:
    """Calls one grader, and counts the calls.

    Args:
        grader: The grader.
        backends: The event loops that it is called on.
    """

    def __init__(self, grader: Callable[[Any, Any], Any], backends: Sequence[str]) -> None:
        self.num_calls = 0
        self.kind: Kind = "sync"
        self._grader = grader
        self._agrader = async_form(grader)
        self._backends = backends
        if is_async(grader):
            self.kind = "async"
        elif self._agrader is not grader:
            self.kind = "both"

    def probe(self, question: Question) -> None:
        """Find out by a call whether what the grader returns has to be awaited."""
        if self.kind == "async":
            return
        try:
            result = self._grader(*question.arguments())
        except Exception:  # found out again by whoever calls it in earnest
            return
        if is_awaitable(result):
            self.kind = "async"
            close: Any = getattr(result, "close", None)
            if callable(close):
                close()

    def one_by_one(
        self, work: Callable[[Callable[..., Awaitable[Outcome]]], Coroutine[Any, Any, None]]
    ) -> None:
        """Run a coroutine function that is given a function to grade with, in the grader's own form."""
        if self.kind == "async":
            _run(self._backends[0], work, self._agrade)
            return
        steps = work(self._grade)
        try:
            steps.send(None)  # it awaits nothing but the calls, which return at once
        except StopIteration:
            return

    def on_loops(self, questions: Sequence[Question]) -> dict[str, list[Outcome]]:
        """Grade all questions at the same time, on each event loop."""
        return {backend: _run(backend, self._all_at_once, questions) for backend in self._backends}

    def on_threads(self, questions: Sequence[Question], num_threads: int) -> list[list[Outcome]]:
        """Grade all questions on each of several threads, no two of which begin with the same."""
        start = threading.Barrier(num_threads)
        rows: list[dict[int, Outcome]] = [{} for _ in range(num_threads)]

        def work(row: int) -> None:
            begin = row * len(questions) // num_threads
            start.wait()
            for place in [*range(begin, len(questions)), *range(begin)]:
                rows[row][place] = self._call(*questions[place].arguments())

        threads = [threading.Thread(target=work, args=[row]) for row in range(num_threads)]
        interval = sys.getswitchinterval()
        sys.setswitchinterval(1e-6)  # the more often threads take turns, the more comes to light
        try:
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        finally:
            sys.setswitchinterval(interval)
        return [[row[place] for place in range(len(questions))] for row in rows]

    async def _all_at_once(self, questions: Sequence[Question]) -> list[Outcome]:
        outcomes: dict[int, Outcome] = {}

        async def work(place: int) -> None:
            outcomes[place] = await self._agrade(*questions[place].arguments())

        async with anyio.create_task_group() as tasks:
            for place in range(len(questions)):
                tasks.start_soon(work, place)
        return [outcomes[place] for place in range(len(questions))]

    async def _agrade(self, input: Any, reference: Any) -> Outcome:
        self.num_calls += 1
        try:
            return _read(await call(self._agrader, input, reference, inline=True))
        except Exception as error:
            return _failed(error)

    async def _grade(self, input: Any, reference: Any) -> Outcome:
        return self._call(input, reference)

    def _call(self, input: Any, reference: Any) -> Outcome:
        self.num_calls += 1
        try:
            return _read(self._grader(input, reference))
        except Exception as error:
            return _failed(error)


def _run(backend: str, function: Callable[..., Coroutine[Any, Any, T]], *args: Any) -> T:
    """Run a coroutine function on an event loop of its own, even where another runs already."""
    with ThreadPoolExecutor(1) as threads:
        return threads.submit(anyio.run, function, *args, backend=backend).result()


def _read(result: object) -> Outcome:
    if isinstance(result, Score):
        return Outcome(result)
    if is_flag(result):
        return Outcome(None, f"it returned {result!r}, and a score is a number or a Score")
    try:
        return Outcome(Score(to_float(result, "a score")))
    except (TypeError, ValueError) as error:
        return Outcome(None, f"it returned {result!r}: {error}")


def _failed(error: Exception) -> Outcome:
    return Outcome(None, f"it raised {error!r}", raised=type(error).__name__)
