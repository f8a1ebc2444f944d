from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rolloutlib.graders import NumericMatch


@pytest.mark.parametrize(
    ("text", "reference"),
    [
        ("The answer is $1,234.50.", "1234.5"),
        (r"\boxed{\frac{7}{3}}", "7/3"),
        ("#### 42", "42.0"),
        ("Answer: 0.5", r"\frac{1}{2}"),
        ("Answer: 12 apples", "12"),
        ("Answer: 7", "Five and two are seven.\n#### 7"),
    ],
)
def test_equal_numbers_match(text: str, reference: str) -> None:
    assert NumericMatch()(text, reference).value == 1.0


@pytest.mark.parametrize(
    "text", ["42 or 43", "40 to 44", "not 42", "1 2 3 42", "between 41 and 43", "forty-two", "420"]
)
def test_other_answers_do_not(text: str) -> None:
    assert NumericMatch()(text, "42").value == 0.0


def test_comparison_is_exact_without_a_tolerance() -> None:
    assert NumericMatch()("Answer: 0.3333", "1/3").value == 0.0
    assert NumericMatch(relative=0.001)("Answer: 0.3333", "1/3").value == 1.0


def test_tolerances_are_the_decimal_numbers_that_are_written() -> None:
    # In binary 0.1 is a little more than a tenth.
    assert NumericMatch(absolute=0.1)("Answer: 1.1", "1").value == 1.0
    assert NumericMatch(absolute=0.1)("Answer: 1.10000000000000001", "1").value == 0.0
    assert NumericMatch(absolute=Fraction(1, 3))("Answer: 4/3", "1").value == 1.0


def test_the_larger_tolerance_counts() -> None:
    grader = NumericMatch(relative=0.01, absolute=0.5)
    assert grader("Answer: 101", "100").value == 1.0
    assert grader("Answer: 101.1", "100").value == 0.0
    assert grader("Answer: 1.5", "1").value == 1.0
    assert grader("Answer: 0.4", "0").value == 1.0


def test_the_last_number_counts_only_if_asked_for() -> None:
    text = "She has 3 apples and buys 4, which makes 7 apples."
    assert NumericMatch()(text, "7").value == 0.0
    assert NumericMatch(last_number=True)(text, "7").value == 1.0


@pytest.mark.parametrize("name", ["relative", "absolute"])
@pytest.mark.parametrize(
    ("value", "error"),
    [(-0.1, ValueError), (float("nan"), ValueError), (float("inf"), ValueError), ("0.1", TypeError),
     (True, TypeError), (None, TypeError)],
)  # fmt: skip
def test_unusable_tolerances_are_refused(name: str, value: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match=f"{name} must be"):
        NumericMatch(**{name: value})


@given(
    value=st.fractions(-1000, 1000, max_denominator=100),
    tolerance=st.fractions(0, 10, max_denominator=100),
    offset=st.fractions(-20, 20, max_denominator=100),
)
def test_a_number_matches_if_it_is_within_the_tolerance(
    value: Fraction, tolerance: Fraction, offset: Fraction
) -> None:
    score = NumericMatch(absolute=tolerance)(rf"\boxed{{{value + offset}}}", str(value))
    assert score.value == float(abs(offset) <= tolerance)
