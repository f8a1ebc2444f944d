"""What a grader is asked in a check."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, cast

from rolloutlib._values import snapshot
from rolloutlib.testing._grader_texts import GraderAttack, hostile_texts, short_form


@dataclass(frozen=True, eq=False)
class Question:
    """What is graded.

    Attributes:
        case: The number of the case.
        name: What kind of text it is.
        prompt: What the model was asked.
        text: The text.
        hostile: Whether it deserves the lowest score, or the highest.
        make_input: Makes the grader's input from prompt and text, which by default is the text.
        reference: What the grader judges by.
    """

    case: int
    name: str
    prompt: str
    text: str
    hostile: bool
    make_input: Callable[[str, str], Any] | None
    reference: Any

    def __str__(self) -> str:
        text = self.text if len(self.text) <= 60 else f"{self.text[:57]}..."
        return f"case {self.case}, the {self.name} {text!r}"

    def arguments(self) -> tuple[Any, Any]:
        """Return a new input and a new reference."""
        input = self.text if self.make_input is None else self.make_input(self.prompt, self.text)
        return snapshot(input), snapshot(self.reference)


def read_questions(
    cases: Iterable[tuple[str, Any, str]],
    make_input: Callable[[str, str], Any] | None,
    kinds: Collection[GraderAttack],
) -> list[Question]:
    """Return all questions about all cases.

    Args:
        cases: A prompt, a reference and a right answer for each.
        make_input: Makes the grader's input from a prompt and an answer, or None.
        kinds: Which hostile texts to take.

    Raises:
        TypeError: A case is none.
        ValueError: There is none.
    """
    rows = [_read_case(number, case) for number, case in enumerate(cases)]
    if not rows:
        msg = "cases must hold at least one (prompt, reference, right answer)"
        raise ValueError(msg)
    options = [short_form(reference, gold) for _, reference, gold in rows]
    listed = [option for option in options if option is not None]
    questions: list[Question] = []
    for number, (prompt, reference, gold) in enumerate(rows):
        texts = [("right answer", gold, False)]
        for kind, text in hostile_texts(prompt, gold, options[number], listed):
            if kind in kinds:
                texts.append((kind, text, True))
        questions += [
            Question(number, name, prompt, text, hostile, make_input, reference)
            for name, text, hostile in texts
        ]
    return questions


def _read_case(number: int, case: tuple[str, Any, str]) -> tuple[str, Any, str]:
    parts = tuple(cast("Any", case)) if isinstance(cast("object", case), Sequence) else ()
    if len(parts) != 3 or not isinstance(parts[0], str) or not isinstance(parts[2], str):
        msg = f"case {number} must be a prompt, a reference and a right answer, got {case!r}"
        raise TypeError(msg)
    return parts
