"""Answers that choose one of several options."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from rolloutlib.answers import extract_text
from rolloutlib.graders._criteria import Criterion
from rolloutlib.graders._matches._options import Options, is_listed
from rolloutlib.graders._matches._references import Match, Reference, match_score, read_references
from rolloutlib.scores import Score


class Golds(NamedTuple):
    """The options, and the letters of those that are right."""

    options: Options
    letters: list[str]


class ChoiceMatch(Match[Golds]):
    """Accepts an answer that chooses the option of a reference, by its letter or by its text.

    `B`, `(b)`, `**B**`, `B. Rome`, `Option B` and, where the options' texts are known, `Rome` choose
    B. An answer that names two different options, as "A, B, C and D" does, a letter beside another
    option's text and a negation are ambiguous, and score 0. The words "A" and "I" are no letters
    before a word in small letters.

    A reference is the letter or the text of an option; what is both is read as the letter.

    Args:
        choices: How many options there are, which are called A, B, C and so on, or their texts. A
            `Criterion` may have texts of its own, as a list under "choices" in its metadata.

    Raises:
        TypeError: The choices are neither a number nor texts.
        ValueError: There are fewer than 2 or more than 26, one is empty, two have the same text, or (when
            grading) a reference is none of them.
    """

    _options = ("choices",)

    def __init__(self, choices: Sequence[str] | int = 5) -> None:
        self._choices = choices
        self._default = Options(choices)

    def _golds(self, reference: Reference) -> Golds:
        options = self._default
        if isinstance(reference, Criterion) and "choices" in reference.metadata:
            options = Options(reference.metadata["choices"])
        letters: list[str] = []
        for each in read_references(reference):
            letter = options.letter(each)
            if letter is None:
                msg = f"a reference must be one of the options {options}; got {each!r}"
                raise ValueError(msg)
            letters.append(letter)
        return Golds(options, letters)

    def _grade(self, text: str, golds: Golds) -> Score:
        found = extract_text(text)
        if found.status != "found":
            return match_score(found)
        status, letter = golds.options.choose(found.text or "")
        if found.rule == "line" and found.span is not None and is_listed(text, *found.span):
            status, letter = "ambiguous", None  # the question again, which ends with its options
        if letter is None:
            return match_score(found, status=status, extracted=None, reason=_REASONS[status])
        place = golds.letters.index(letter) if letter in golds.letters else None
        return match_score(found, place, extracted=letter)


_REASONS = {
    "none": "no option is named where the answer should stand",
    "ambiguous": "what is given is not one option",
}
