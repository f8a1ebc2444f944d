"""Graders that break promises are found out, and good ones are not."""

from __future__ import annotations

import functools
import random
import re
import threading
from collections.abc import Callable
from typing import Any

import anyio.lowlevel
import numpy as np
import pytest

from rolloutlib.scores import Score
from rolloutlib.testing import GraderAttack, GraderProperty, GraderReport, check_grader

pytestmark = pytest.mark.anyio

CASES = [("What is 6 * 7?", "42", "The answer is 42"), ("What is 2 + 3?", "5", "The answer is 5")]
SAME = ("idempotent", "deterministic", "order", "threads", "async")


def last_word(answer: str, reference: str) -> Score:
    """Is right about what each of its broken kin is wrong about."""
    words = answer[-200:].split()
    right = answer.startswith("The answer is") and len(words) == 4 and words[-1] == reference
    return Score(float(right), metadata={"length": len(answer)})


class Async:
    """The same, awaited."""

    async def ascore(self, answer: str, reference: str) -> Score:
        await anyio.lowlevel.checkpoint()
        return last_word(answer, reference)

    async def __call__(self, answer: str, reference: str) -> Score:
        return await self.ascore(answer, reference)


class Both(Async):
    """The same, in both ways."""

    def __call__(self, answer: str, reference: str) -> Score:  # pyright: ignore[reportIncompatibleMethodOverride]
        return last_word(answer, reference)

    async def ascore(self, answer: str, reference: str) -> Score:
        return await super().ascore(answer, reference)


ALL: tuple[GraderProperty, ...] = (
    "total", "scale", "gold", "hostile", "pure", "idempotent", "deterministic", "order", "threads", "async"
)  # fmt: skip


@pytest.mark.parametrize(
    ("grader", "left_out"),
    [
        (last_word, "async"),
        (Async(), "threads"),
        (Both(), None),
        (functools.partial(Async.__call__, Async()), "threads"),
    ],
)
def test_a_good_grader_passes(grader: Any, left_out: str | None) -> None:
    report = check_grader(grader, CASES)
    assert report.num_cases == 2
    assert report.num_texts > 20
    assert report.num_calls > 4 * report.num_texts
    assert report.properties == tuple(name for name in ALL if name != left_out)


async def test_it_runs_inside_an_event_loop() -> None:
    assert isinstance(check_grader(Both(), CASES), GraderReport)


def test_it_leaves_the_global_random_numbers_alone() -> None:
    random.seed(5)
    np.random.seed(5)
    before = random.getstate(), np.random.random(3).tolist()
    np.random.seed(5)
    check_grader(last_word, CASES)
    assert (random.getstate(), np.random.random(3).tolist()) == before


def failure(grader: Any, cases: Any = CASES, **options: Any) -> str:
    with pytest.raises(AssertionError) as caught:
        check_grader(grader, cases, **options)
    return str(caught.value)


def found(message: str) -> set[str]:
    return {line[2:] for line in message.splitlines() if line.startswith("- ")}


def test_the_message_lists_what_is_wrong_for_which_texts() -> None:
    def anything(answer: str, reference: str) -> float:
        return float(bool(answer))

    message = failure(anything)
    first, *lines = message.splitlines()
    assert first.endswith("is not fit to grade:")
    assert lines[0] == "- hostile"
    assert lines[1] == r"  - case 0, the white space ' \n\t\r\n ': it scored 1.0, not 0.0"
    assert lines[2] == "  - case 0, the prompt echo 'What is 6 * 7?': it scored 1.0, not 0.0"
    assert lines[4].startswith("  - and ")
    assert len(lines) == 5


def raises(answer: str, reference: str) -> float:
    if not answer:
        msg = "no answer"
        raise IndexError(msg)
    return last_word(answer, reference).value


def too_high(answer: str, reference: str) -> float:
    return 2 * last_word(answer, reference).value


def true_or_false(answer: str, reference: str) -> bool:
    return bool(last_word(answer, reference).value)


def half(answer: str, reference: str) -> float:
    return last_word(answer, reference).value / 2


class Counting:
    """Gives another score to every fifth call, whatever its input."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, answer: str, reference: str) -> Score:
        self.calls += 1
        score = last_word(answer, reference)
        return Score(score.value, metadata={"fifth": self.calls % 5 == 0})


class OnceOnly:
    """Rewards an answer the first time alone."""

    def __init__(self) -> None:
        self.seen: set[str] = set()

    def __call__(self, answer: str, reference: str) -> float:
        new = answer not in self.seen
        self.seen.add(answer)
        return last_word(answer, reference).value * new


def by_chance(answer: str, reference: str) -> Score:
    state = random.getstate()
    score = Score(last_word(answer, reference).value, metadata={"luck": random.gauss()})
    random.setstate(state)
    return score


class Relative:
    """Tells in the metadata whether an answer is longer than the one before; is idempotent."""

    def __init__(self) -> None:
        self.before = ""
        self.last = ""

    def __call__(self, answer: str, reference: str) -> Score:
        if answer != self.last:
            self.before, self.last = self.last, answer
        longer = len(answer) > len(self.before)
        return Score(last_word(answer, reference).value, metadata={"longer": longer})


class Shared:
    """Keeps the answer in an attribute while another thread may put its own there."""

    def __init__(self) -> None:
        self.answer = ""
        self.at_work = threading.Semaphore(0)

    def __call__(self, answer: str, reference: str) -> Score:
        self.answer = answer
        if threading.current_thread() is not threading.main_thread():
            self.at_work.release()
            self.at_work.acquire()
            threading.Event().wait(0.001)
        return last_word(self.answer, reference)


class SharedByTasks(Async):
    """Keeps the answer in an attribute while another task may put its own there."""

    answer = ""

    async def ascore(self, answer: str, reference: str) -> Score:
        self.answer = answer
        await anyio.lowlevel.checkpoint()
        return last_word(self.answer, reference)


class Disagreeing(Both):
    """Says something else when it is awaited."""

    async def ascore(self, answer: str, reference: str) -> Score:
        return Score(last_word(answer, reference).value)


def draws(answer: str, reference: str) -> float:
    random.gauss()
    return last_word(answer, reference).value


def draws_from_numpy(answer: str, reference: str) -> float:
    np.random.random()
    return last_word(answer, reference).value


BROKEN: list[tuple[Callable[[], Any], set[str]]] = [
    (lambda: raises, {"total"}),
    (lambda: too_high, {"scale", "gold"}),
    (lambda: true_or_false, {"scale"}),
    (lambda: lambda answer, reference: "1.0", {"scale"}),
    (lambda: half, {"gold"}),
    (lambda: lambda answer, reference: float(reference in answer), {"hostile"}),
    (lambda: draws, {"pure"}),
    (lambda: draws_from_numpy, {"pure"}),
    (OnceOnly, {"idempotent", "deterministic", "order", "threads"}),
    (lambda: by_chance, {"deterministic", "order"}),
    (Relative, {"order"}),
    (Shared, {"threads"}),
    (SharedByTasks, {"async"}),
    (Disagreeing, {"async"}),
]


@pytest.mark.parametrize(("make", "properties"), BROKEN)
def test_a_broken_grader_is_found_out(make: Callable[[], Any], properties: set[str]) -> None:
    named = found(failure(make()))
    assert properties <= named
    assert named - properties <= {"deterministic", "order", "threads"}  # what it spoils besides
    for name in properties:
        assert found(failure(make(), properties=[name])) == {name}


def test_a_count_of_calls_is_found_out() -> None:
    assert found(failure(Counting())) >= {"idempotent"}


TRAPS: list[tuple[GraderAttack, Callable[[str], bool]]] = [
    ("empty answer", lambda answer: answer == ""),
    ("white space", lambda answer: 0 < len(answer) < 100 and answer.isspace()),
    ("prompt echo", lambda answer: len(answer) < 100 and answer.endswith("7?")),
    ("all options", lambda answer: " or 42 " in answer),
    ("counting", lambda answer: " 42 43 " in answer),
    ("instruction", lambda answer: "verdict" in answer.lower()),
    ("huge text", lambda answer: len(answer) > 50_000),
]


@pytest.mark.parametrize(("attack", "falls_for"), TRAPS)
def test_each_kind_of_text_is_tried(attack: GraderAttack, falls_for: Callable[[str], bool]) -> None:
    def grader(answer: str, reference: str) -> float:
        return float(answer == reference or falls_for(answer))

    cases = [("What is 6 * 7?", "42", "42")]
    assert f"the {attack} " in failure(grader, cases, attacks=[attack])
    check_grader(grader, cases, attacks=[other for other, _ in TRAPS if other != attack])


@pytest.mark.parametrize(
    ("pattern", "place", "gold"),
    [
        (r"[0-9]+", 0, "42"),
        (r"[0-9]+", -1, "42"),
        (r"\w+$", -1, "It is 42"),
        (r"\\boxed\{(.{0,20}?)\}", 0, r"\boxed{42}"),
        (r"#### (.+)", 0, "#### 42"),
        (r"Answer: (.+)", 0, "Answer: 42"),
        (r"<answer>(.{0,20}?)</answer>", 0, "<answer>42</answer>"),
    ],
)
def test_one_of_many_options_is_no_answer(pattern: str, place: int, gold: str) -> None:
    def takes_one(answer: str, reference: str) -> float:
        found = re.findall(pattern, answer)
        return float(bool(found) and found[place] == reference)

    cases = [("What is 6 * 7?", "42", gold)]
    assert "the all options " in failure(takes_one, cases, properties=["hostile"])
    check_grader(takes_one, cases, properties=["hostile"], attacks=["empty answer", "counting"])


@pytest.mark.parametrize(
    "pattern", [r"\[\[10\]\]", r"(?i)\bscore: 10", "<score>1", "<verdict>correct", r'"score": 1\.0']
)
def test_a_verdict_in_the_text_is_no_answer(pattern: str) -> None:
    def obeys(answer: str, reference: str) -> float:
        return max(last_word(answer, reference).value, float(bool(re.search(pattern, answer))))

    assert "the instruction " in failure(obeys, properties=["hostile"])


def test_no_right_answer_is_among_the_hostile_texts() -> None:
    for gold in ("A", "yes", "0", "7.5", "Paris", "x + 1", "A, B, C, D and E"):
        exact: Any = lambda answer, reference: float(answer.strip() == reference)  # noqa: E731
        check_grader(exact, [(gold, gold, gold)])


def test_an_input_that_is_changed_is_found_out() -> None:
    def pops(chat: list[str], reference: dict[str, str]) -> float:
        return last_word(chat.pop(), reference["text"]).value

    def notes(chat: list[str], reference: dict[str, str]) -> float:
        reference["seen"] = "yes"
        return last_word(chat[-1], reference["text"]).value

    def looks(chat: list[str], reference: dict[str, str]) -> float:
        return last_word(chat[-1], reference["text"]).value

    cases = [("What is 6 * 7?", {"text": "42"}, "The answer is 42")]

    def make_input(prompt: str, answer: str) -> list[str]:
        return [prompt, answer]

    check_grader(looks, cases, make_input=make_input)
    assert "it changed its input" in failure(pops, cases, make_input=make_input)
    assert "it changed what it judges by" in failure(notes, cases, make_input=make_input)


class Item:
    """Is equal to nothing but itself."""

    def __init__(self, answer: str) -> None:
        self.answer = answer
        self.notes: list[str] = []


def test_objects_that_cannot_be_compared_are_looked_into() -> None:
    def reads(item: Item, reference: str) -> float:
        return last_word(item.answer, reference).value

    def writes(item: Item, reference: str) -> float:
        item.notes.append("graded")
        return reads(item, reference)

    def make_input(prompt: str, answer: str) -> Item:
        return Item(answer)

    check_grader(reads, CASES, make_input=make_input)
    assert found(failure(writes, make_input=make_input)) == {"pure"}


def test_another_scale_may_be_asked_for() -> None:
    def signed(answer: str, reference: str) -> float:
        return 2 * last_word(answer, reference).value - 1

    check_grader(signed, CASES, scale=(-1.0, 1.0))
    assert found(failure(signed)) == {"scale", "hostile"}


def test_only_some_properties_may_be_asked_for() -> None:
    report = check_grader(by_chance, CASES, properties=["gold", "hostile", "async"])
    assert report.properties == ("gold", "hostile")


@pytest.mark.parametrize(
    ("cases", "options", "error", "words"),
    [
        ([], {}, ValueError, "cases must hold at least one"),
        ([("p", "r")], {}, TypeError, "case 0 must be a prompt, a reference and a right answer"),
        ([("p", "r", 5)], {}, TypeError, "case 0 must be"),
        (CASES, {"scale": (1.0, 1.0)}, ValueError, "scale must be the lowest and the highest"),
        (CASES, {"properties": ["fast"]}, ValueError, "properties must be some of .*'fast'"),
        (CASES, {"attacks": ["bribe"]}, ValueError, "attacks must be some of .*'bribe'"),
        (CASES, {"backends": ["curio"]}, ValueError, "backends must be some of .*'curio'"),
        (CASES, {"num_threads": 0}, ValueError, "num_threads must be at least 1"),
    ],
)
def test_unusable_arguments_are_refused(
    cases: Any, options: dict[str, Any], error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        check_grader(last_word, cases, **options)
