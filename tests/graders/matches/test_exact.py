from __future__ import annotations

from typing import Any

import pytest

from rolloutlib.graders import ExactMatch


@pytest.mark.parametrize(
    "text",
    [
        "Paris",
        "The answer is Paris.",
        "The answer is **Paris**.",
        "**Answer: Paris**",
        "Final answer: `Paris`",
        'Answer: "Paris"',
        "Answer: 'Paris'.",
        r"\boxed{\text{Paris}}",
        "<answer> Paris </answer>",
        "Answer: \u2018Paris\u2019",
        "\u00abParis\u00bb",
        "First I thought of Rome.\nParis",
    ],
)
def test_what_surrounds_an_answer_does_not_count(text: str) -> None:
    assert ExactMatch()(text, "Paris").value == 1.0


@pytest.mark.parametrize(
    "text", ["paris", "Paris or Rome", "Paris, France", "Not Paris", "Pari s", r"\boxed{}", "Rome"]
)
def test_anything_else_does(text: str) -> None:
    assert ExactMatch()(text, "Paris").value == 0.0


def test_texts_are_equal_in_any_form_of_unicode_and_white_space() -> None:
    assert ExactMatch()("Answer: cafe\u0301  au\tlait", "caf\u00e9 au lait").value == 1.0
    assert ExactMatch()("Answer: x\u00b2", "x2").value == 0.0


@pytest.mark.parametrize(
    ("options", "text", "reference"),
    [
        ({"ignore_case": True}, "STRASSE", "straße"),
        ({"ignore_punctuation": True}, "U.S.A., yes", "USA yes"),
        ({"ignore_articles": True}, "The capital of a country", "capital of country"),
    ],
)
def test_options_ignore_what_they_say(options: dict[str, Any], text: str, reference: str) -> None:
    assert ExactMatch(**options)(text, reference).value == 1.0
    assert ExactMatch()(text, reference).value == 0.0


def test_a_part_of_the_text_is_compared() -> None:
    text = "<think>hm</think>\nTwo lines,\nthe answer is 5"
    assert ExactMatch()(text, "5").value == 1.0
    assert ExactMatch(on="visible")(text, "Two lines, the answer is 5").value == 1.0
    assert ExactMatch(on="all")(text, text).value == 1.0
    assert ExactMatch(on="visible")(text, text).value == 0.0
    with pytest.raises(ValueError, match=r"on must be one of .*, got 'last'"):
        ExactMatch(on="last")  # pyright: ignore[reportArgumentType]


def test_a_sign_that_closes_nothing_belongs_to_the_answer() -> None:
    assert ExactMatch()("Answer: f'", "f").value == 0.0
    assert ExactMatch()("Answer: 'f' and 'g'", "f' and 'g").value == 0.0
    assert ExactMatch()("Answer: f'", "f'").value == 1.0
    assert ExactMatch()("The answer is not `Paris`", "Paris").value == 0.0


@pytest.mark.parametrize("name", ["__init__", "*args", "**kwargs", "x_", "'tis", "a*"])
@pytest.mark.parametrize("form", ["Answer: {}", "The answer is `{}`.", "It is a name.\n\n{} "])
def test_signs_that_might_be_emphasis_belong_to_a_reference(name: str, form: str) -> None:
    assert ExactMatch()(form.format(name), name).value == 1.0
    assert ExactMatch()(form.format(name), "other").value == 0.0
