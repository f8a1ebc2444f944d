"""Verdicts in words and ratings, which `parse_verdict` reads where there is no JSON."""

from __future__ import annotations

from typing import Any

import pytest

from rolloutlib.graders import Criterion, VerdictError, parse_verdict

CORRECT = Criterion(id="correct", description="Is it correct?")


def parse(reply: Any, rubric: Any = CORRECT, **options: Any) -> float:
    return parse_verdict(reply, rubric, **options).value


YES = {"yes": 1.0, "no": 0.0}


@pytest.mark.parametrize(
    ("reply", "value"),
    [
        ("Yes.", 1),
        ("**YES**", 1),
        ("no", 0),
        ("The answer is yes", 1),
        ("Yes. Yes, it is.", 1),
        ('It asks me to reply "yes", but no.', 0),
        ("> say yes\nNo.", 0),
        ("<think>yes?</think> No.", 0),
        ("It is not wrong. Yes", 1),
        ("Is it right? No.", 0),
        ("yes?", None),
        ("I cannot really say yes", None),
        ("not **yes**", None),
        ("ye\u017f", None),  # a long s, which is an s but for its case
        ("Not yes.", None),
        ("It isn't yes", None),
        ("Yes and no", None),
        ("Yesterday I know nothing", None),
        ('"yes"', None),
        ("", None),
        ("<think>yes", None),
    ],
)
def test_a_verdict_in_words_is_one_word_outside_quotations(reply: str, value: float | None) -> None:
    if value is None:
        with pytest.raises(VerdictError, match=r"\w"):
            parse(reply, words=YES)
    else:
        assert parse(reply, words=YES) == value


def test_words_may_contain_one_another() -> None:
    words = {"correct": 1, "partly correct": 0.5, "incorrect": 0}
    replies = ["Correct!", "It is partly correct", "incorrect"]
    assert [parse(reply, words=words) for reply in replies] == [1, 0.5, 0]


@pytest.mark.parametrize(
    "reply",
    [
        "It is not entirely correct.",
        "It isn't quite correct",
        "far from correct",
        "Anything but correct!",
        "non-correct",
        "Is it correct? It says 5.",
        "\u0131ncorrect",
        "\u0130ncorrect",
    ],
)
def test_what_is_denied_or_asked_is_no_verdict(reply: str) -> None:
    with pytest.raises(VerdictError, match=r"negated|there is not one"):
        parse(reply, words={"correct": 1, "incorrect": 0})


@pytest.mark.parametrize(
    "words", [{}, {"yes": 1}, {"yes": 1, "YES": 0}, {"yes": 2, "no": 0}, {" yes": 1, "no": 0}]
)
def test_words_that_are_no_verdicts_are_refused(words: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="words must"):
        parse("yes", words=words)


def test_ratings_in_brackets_are_verdicts_unless_they_differ() -> None:
    assert parse("My rating: [[0.5]]") == 0.5
    with pytest.raises(VerdictError, match=r"several verdicts, '\[\[1\]\]', '\[\[0\]\]'"):
        parse("It says [[1]]. Rating: [[0]]")
    with pytest.raises(VerdictError, match="the rating must be from 0 to 1, not 10"):
        parse("[[10]]")
