"""The passes over all texts, and what they find."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection
from dataclasses import replace
from typing import Literal, TypeAlias, cast, get_args

from rolloutlib.testing._grader_calls import Caller, Outcome
from rolloutlib.testing._grader_questions import Question
from rolloutlib.testing._purity import RandomState, seed_all, unchanged

GraderProperty: TypeAlias = Literal[
    "total",
    "scale",
    "gold",
    "hostile",
    "pure",
    "idempotent",
    "deterministic",
    "order",
    "threads",
    "async",
]
"""What is asked of graders; `check_grader` says what each means."""

PROPERTIES: tuple[GraderProperty, ...] = get_args(GraderProperty)

_HUGE = "huge text"
_THREAD_ROUNDS = 5  # whether threads get into each other's way is a matter of luck


class Check:
    """A check of one grader.

    Args:
        caller: Calls the grader.
        questions: What it is asked.
        scale: The lowest and the highest score.
        properties: What to check.
    """

    def __init__(
        self,
        caller: Caller,
        questions: list[Question],
        scale: tuple[float, float],
        properties: Collection[GraderProperty],
    ) -> None:
        self.caller = caller
        self.questions = questions
        self.problems: dict[GraderProperty, list[str]] = {}
        self._scale = scale
        self._properties = properties
        self._first: dict[Question, Outcome] = {}

    def run(self, num_threads: int) -> tuple[GraderProperty, ...]:
        """Make all passes; return the properties that were checked."""
        caller = self.caller
        # Huge texts are graded in the first pass alone, for the sake of time.
        usual = [question for question in self.questions if question.name != _HUGE]
        caller.probe(replace(self.questions[0], text="The answer is"))
        caller.one_by_one(self._grade_first)
        caller.one_by_one(lambda grade: self._grade_again(grade, usual))
        skipped: set[GraderProperty] = set()
        if caller.kind == "async":
            skipped.add("threads")
        elif "threads" in self._properties:
            rounds = usual * _THREAD_ROUNDS
            for outcomes in caller.on_threads(rounds, num_threads):
                self._compare("threads", rounds, outcomes, f"with {num_threads} threads")
        if caller.kind == "sync":
            skipped.add("async")
        elif "async" in self._properties:
            for backend, outcomes in caller.on_loops(usual).items():
                self._compare("async", usual, outcomes, f"awaited under {backend}")
        return tuple(
            [name for name in PROPERTIES if name in self._properties and name not in skipped]
        )

    async def _grade_first(self, grade: Callable[..., Awaitable[Outcome]]) -> None:
        for question in self.questions:
            input, reference = question.arguments()
            before = question.arguments()
            state = RandomState()
            outcome = await grade(input, reference)
            self._first[question] = outcome
            self._judge(question, outcome)
            if not unchanged(before[0], input):
                self._report("pure", f"{question}: it changed its input")
            if not unchanged(before[1], reference):
                self._report("pure", f"{question}: it changed what it judges by")
            for name in state.changed():
                self._report("pure", f"{question}: it used the random numbers of {name}")
            again = await grade(input, reference)
            self._compare("idempotent", [question], [again], "graded again")

    async def _grade_again(
        self, grade: Callable[..., Awaitable[Outcome]], questions: list[Question]
    ) -> None:
        for name, row in (("deterministic", questions), ("order", questions[::-1])):
            if name not in self._properties:
                continue
            for place, question in enumerate(row):
                seed_all(place)
                outcome = await grade(*question.arguments())
                self._compare(cast("GraderProperty", name), [question], [outcome], "later")

    def _judge(self, question: Question, outcome: Outcome) -> None:
        if outcome.score is None:
            self._report("total" if outcome.raised else "scale", f"{question}: {outcome}")
            return
        value, (lowest, highest) = outcome.score.value, self._scale
        if not lowest <= value <= highest:
            self._report("scale", f"{question}: {value} is not from {lowest} to {highest}")
        expected = lowest if question.hostile else highest
        if value != expected:
            name: GraderProperty = "hostile" if question.hostile else "gold"
            self._report(name, f"{question}: it scored {value}, not {expected}")

    def _compare(
        self, name: GraderProperty, questions: list[Question], outcomes: list[Outcome], when: str
    ) -> None:
        for question, outcome in zip(questions, outcomes, strict=True):
            first = self._first[question]
            if outcome != first:
                self._report(name, f"{question}: at first {first}, {when} {outcome}")

    def _report(self, name: GraderProperty, problem: str) -> None:
        if name in self._properties:
            self.problems.setdefault(name, []).append(problem)
