"""Whatever a judge replies is a score on the scale, or an error, in bounded time."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rolloutlib.graders import Criterion, VerdictError, parse_verdict

CORRECT = Criterion(id="correct", description="Is it correct?")
ID = "qsdrtbqpgnhf"
OWN = f'{{"score": 0.5, "id": "{ID}"}}'


def parse(reply: Any, **options: Any) -> float:
    return parse_verdict(reply, CORRECT, **options).value


YES = {"yes": 1.0, "no": 0.0}

PIECES = st.sampled_from(
    [
        *'{}[]":,\\ \n1',
        *('"score"', '"id"', f'"{ID}"', '{"score": 1}', OWN),
        *("<think>", "</think>", "[[1]]", "yes", "no", "\ud800", "é"),
    ]
)


@given(
    reply=st.lists(PIECES).map("".join) | st.text(),
    options=st.sampled_from([{}, {"verdict_id": ID}, {"words": YES}, {"scale": (1, 10)}]),
)
def test_any_reply_is_a_score_on_the_scale_or_an_error(reply: str, options: Any) -> None:
    try:
        value = parse(reply, **options)
    except VerdictError:
        return
    assert 0 <= value <= 1


@given(before=st.lists(PIECES).map("".join), score=st.floats(0, 1))
def test_what_stands_before_a_verdict_does_not_change_it(before: str, score: float) -> None:
    try:
        value = parse(before + f'\n{{"score": {score!r}, "id": "{ID}"}}', verdict_id=ID)
    except VerdictError:  # it is part of something that is no object
        return
    assert value == score


@pytest.mark.parametrize("piece", [r"\frac{a}{b}", "{x | x > 0} ", '{"a": 1}', "{}", "{'a': 1}"])
def test_no_number_of_braces_before_a_verdict_hides_it(piece: str) -> None:
    for before in (piece * 5000, f"<think>{piece * 5000}</think>"):
        assert parse(before + OWN, verdict_id=ID) == 0.5


@pytest.mark.parametrize(
    "piece",
    [
        "{",
        '{"a":',
        '{"',
        '{"\\"',
        "{}",
        '{"a": 1}',
        "[[",
        "<think>",
        "</think>",
        '"',
        "\u201c",
        "`",
        "> ",
    ],
)
def test_long_hostile_replies_are_read_in_the_end(piece: str) -> None:
    for options in ({}, {"verdict_id": ID}, {"words": YES}):
        with pytest.raises(VerdictError, match=r"\w"):
            parse(piece * 50_000, **options)
