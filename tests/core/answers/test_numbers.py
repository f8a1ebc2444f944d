"""Reading and writing single numbers."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rolloutlib.answers import read_number, write_number


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("42", 42), ("042", 42), ("+42", 42), ("-42", -42), ("\u221242", -42), ("42.", 42), (".5", Fraction(1, 2)),
        ("42.50", Fraction(85, 2)), ("$1,234.50", Fraction(2469, 2)), ("1 234", 1234), ("1'234", 1234),
        ("1.234.567", 1234567), ("1.234,5", Fraction(2469, 2)), ("\u20ac42", 42), ("42 \u20ac", 42), ("USD 42", 42),
        ("7/3", Fraction(7, 3)), ("2 1/2", Fraction(5, 2)), ("2\u00bd", Fraction(5, 2)), (r"\frac{7}{3}", Fraction(7, 3)),
        (r"-\frac12", Fraction(-1, 2)), (r"2\tfrac{1}{2}", Fraction(5, 2)), (r"{7 \over 3}", Fraction(7, 3)),
        ("7\u20443", Fraction(7, 3)), ("1.5e3", 1500), (r"1.5 \times 10^{-3}", Fraction(3, 2000)), ("1.5\u00d710\u00b3", 1500),
        ("42%", 42), (r"42\%", 42), ("3.5 million", 3_500_000), ("5 hundred thousand", 500_000), ("42 km/h", 42),
        (r"42\text{ cm}^2", 42), ("42\u00b0", 42), ("x = 42", 42), ("6 * 7 = 42", 42), ("(42)", 42), ("**42**", 42),
        ("\uff14\uff12", 42), ("\u0664\u0662", 42), ("\u0968", 2), ("4\u200b2", 42), ("$42$", 42), (r"\(42\)", 42),
    ],
)  # fmt: skip
def test_numbers_are_read_exactly(text: str, value: Fraction) -> None:
    assert read_number(text) == value


@pytest.mark.parametrize(
    "text",
    [
        "", " ", "forty", "4 2", "12,34", "3,5", "1,2345", "(1,234)", "1/0", "1/2/3", "3 7/2", "5-7", "5 to 7", "5 or 7",
        "3:30", "3 : 1", "5!", "5^2", "5\u00b2", r"\sqrt{25}", r"2\pi", "5x", "5i", "e", "inf", "nan", "0x2A", "5k", "$5M",
        "5 + 3", "6*7", "x > 5", "x != 5", "\u2265 5", "\u00b15", "5 feet 3 inches", "3h20", "42 is wrong", "1e400",
        "9" * 50, "9" * 5000, "\u2164", "\u2464", "4\u2464", "4\u03362\u0336", "x=5, y=3", "[42, 43]", "{42, 43}", "0.3...",
    ],
)  # fmt: skip
def test_what_is_not_one_number_has_no_value(text: str) -> None:
    assert read_number(text) is None


@given(st.fractions(max_denominator=10**6).filter(lambda value: abs(value) < 10**9))
def test_what_is_written_is_read_back(value: Fraction) -> None:
    assert read_number(write_number(value)) == value


def test_numbers_are_written_in_one_form() -> None:
    values = [Fraction(1234), Fraction(-5, 2), Fraction(7, 3), Fraction(1, 1000), Fraction(0)]
    assert [write_number(value) for value in values] == ["1234", "-2.5", "7/3", "0.001", "0"]
