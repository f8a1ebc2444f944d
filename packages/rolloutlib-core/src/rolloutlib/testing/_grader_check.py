"""The check of graders that users call."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar, overload

import anyio

from rolloutlib._calls import check_count
from rolloutlib.scores import Grader
from rolloutlib.testing._grader_calls import Caller
from rolloutlib.testing._grader_passes import PROPERTIES, Check, GraderProperty
from rolloutlib.testing._grader_questions import read_questions
from rolloutlib.testing._grader_texts import ATTACKS, GraderAttack
from rolloutlib.testing._purity import RandomState

InputT = TypeVar("InputT")
RubricT = TypeVar("RubricT")

_MAX_SHOWN = 3


@dataclass(frozen=True, slots=True)
class GraderReport:
    """What a check has tried.

    Attributes:
        num_cases: How many cases there were.
        num_texts: How many texts were graded.
        num_calls: How many times the grader was called.
        properties: What holds. "threads" is left out for a grader that has to be awaited, and "async"
            for one that cannot be.
    """

    num_cases: int
    num_texts: int
    num_calls: int
    properties: tuple[GraderProperty, ...]


@overload
def check_grader(
    grader: Grader[str, RubricT],
    cases: Iterable[tuple[str, RubricT, str]],
    *,
    scale: tuple[float, float] = (0.0, 1.0),
    properties: Collection[GraderProperty] = PROPERTIES,
    attacks: Collection[GraderAttack] = ATTACKS,
    num_threads: int = 4,
    backends: Sequence[str] | None = None,
) -> GraderReport: ...
@overload
def check_grader(
    grader: Grader[InputT, RubricT],
    cases: Iterable[tuple[str, RubricT, str]],
    *,
    make_input: Callable[[str, str], InputT],
    scale: tuple[float, float] = (0.0, 1.0),
    properties: Collection[GraderProperty] = PROPERTIES,
    attacks: Collection[GraderAttack] = ATTACKS,
    num_threads: int = 4,
    backends: Sequence[str] | None = None,
) -> GraderReport: ...
def check_grader(
    grader: Grader[Any, Any],
    cases: Iterable[tuple[str, Any, str]],
    *,
    make_input: Callable[[str, str], Any] | None = None,
    scale: tuple[float, float] = (0.0, 1.0),
    properties: Collection[GraderProperty] = PROPERTIES,
    attacks: Collection[GraderAttack] = ATTACKS,
    num_threads: int = 4,
    backends: Sequence[str] | None = None,
) -> GraderReport:
    """Check that a grader can be trusted with the reward of a training run.

    The grader is asked about a right answer to each case, and about texts that are no answer:

    - "empty answer" and "white space";
    - "prompt echo": the prompt again;
    - "all options": every answer that there could be, the right one first, last or among them, in a
      sentence or each in a box or behind a marker;
    - "counting": the answer is 1 2 3 4 and so on;
    - "instruction": a judge is told to give the highest score, or finds a verdict in the text;
    - "huge text": 100,000 characters of digits, brackets, spaces and the like.

    It is asked again and again, and these properties have to hold:

    - "total": no text makes it raise;
    - "scale": each score is a number or a `Score` whose value lies on the scale;
    - "gold": a right answer scores the highest value;
    - "hostile": what is no answer scores the lowest;
    - "pure": it changes neither its input nor what it judges by, and uses no global random numbers;
    - "idempotent": the same input again, at once, has the same score, metadata included;
    - "deterministic": so has an equal input later, whatever the global random numbers;
    - "order": so has it when the texts come in reverse order;
    - "threads": so has it when several threads grade at the same time;
    - "async": so has it when all are awaited at the same time, by the grader's method `ascore` if it
      has one, under each event loop.

    Args:
        grader: The grader.
        cases: A prompt, what is right (what the grader judges by), and a right answer as a model would
            write it, for each.
        make_input: Makes the grader's input from a prompt and an answer; by default the answer is it.
        scale: The lowest and the highest score.
        properties: Which to check, by default all. What draws on chance by nature, as a model judge
            does, is checked without those that ask for the same score.
        attacks: Which texts to try, by default all.
        num_threads: How many threads grade at the same time.
        backends: The event loops to run on; by default "asyncio", and "trio" if it is installed.

    Returns:
        What was tried.

    Raises:
        AssertionError: Something does not hold; the message lists what, for which texts.
        TypeError: An argument has the wrong type.
        ValueError: An argument has no usable value.
    """
    lowest, highest = scale
    if not lowest < highest:
        msg = f"scale must be the lowest and the highest score, got {scale!r}"
        raise ValueError(msg)
    check_count("num_threads", num_threads)
    _check_names("properties", properties, PROPERTIES)
    _check_names("attacks", attacks, ATTACKS)
    check = Check(
        Caller(grader, _read_backends(backends)),
        read_questions(cases, make_input, attacks),
        (lowest, highest),
        properties,
    )
    state = RandomState()
    try:
        checked = check.run(num_threads)
    finally:
        state.restore()
    if check.problems:
        raise AssertionError(_message(grader, check.problems))
    num_cases = len({question.case for question in check.questions})
    return GraderReport(num_cases, len(check.questions), check.caller.num_calls, checked)


def _read_backends(backends: Sequence[str] | None) -> Sequence[str]:
    if backends is None:
        trio = importlib.util.find_spec("trio")
        return ("asyncio",) if trio is None else ("asyncio", "trio")
    _check_names("backends", backends, anyio.get_all_backends())
    return backends


def _check_names(name: str, values: Collection[str], known: Sequence[str]) -> None:
    for value in values:
        if value not in known:
            msg = f"{name} must be some of {tuple(known)}, got {value!r}"
            raise ValueError(msg)


def _message(grader: object, problems: dict[GraderProperty, list[str]]) -> str:
    lines = [f"{grader!r} is not fit to grade:"]
    for name in PROPERTIES:
        found = problems.get(name, [])
        if found:
            lines.append(f"- {name}")
            lines += [f"  - {problem}" for problem in found[:_MAX_SHOWN]]
        if len(found) > _MAX_SHOWN:
            lines.append(f"  - and {len(found) - _MAX_SHOWN} more")
    return "\n".join(lines)
