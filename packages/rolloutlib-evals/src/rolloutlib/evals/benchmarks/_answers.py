"""Extracting and grading the answers of GSM8K and AIME."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from functools import lru_cache

from rolloutlib.answers import Extraction, extract, write_number
from rolloutlib.scores import Score

__all__ = [
    "extract_aime_answer",
    "extract_gsm8k_answer",
    "grade_aime",
    "grade_gsm8k",
    "read_aime_gold",
    "read_gsm8k_gold",
]


def extract_gsm8k_answer(response: str) -> str | None:
    """Return the final number in an answer to a GSM8K problem.

    Args:
        response: What the model wrote, thinking included.

    Returns:
        The number in one canonical form, "1234.5" for `$1,234.50` and "7/3" where no decimal number
        is exact, or None if the response gives no answer or more than one.
    """
    return _text(_gsm8k(response).value)


def extract_aime_answer(response: str) -> str | None:
    """Return the final integer in an answer to an AIME problem.

    Args:
        response: What the model wrote, thinking included.

    Returns:
        The integer without leading zeros, possibly outside 0 to 999, or None if the response gives
        no integer or more than one.
    """
    return _text(_aime(response).value)


def grade_gsm8k(response: str, expected: str) -> Score:
    """Score an answer to a GSM8K problem 1 if its number equals the expected one, else 0.

    Args:
        response: What the model wrote, thinking included.
        expected: The number, or a worked answer that ends in `#### number`.

    Returns:
        A score with the component "correct"; its metadata hold "expected", "extracted", and of the
        extraction its "status" ("found", "none", "ambiguous" or "truncated"), "rule", "span" and
        "reason".

    Raises:
        ValueError: The expected answer holds no number.
    """
    return _grade(_gsm8k(response), read_gsm8k_gold(expected))


def grade_aime(response: str, expected: str) -> Score:
    """Score an answer to an AIME problem 1 if its integer equals the expected one, else 0.

    Args:
        response: What the model wrote, thinking included.
        expected: An integer, with or without leading zeros. Outside 0 to 999 nothing equals it.

    Returns:
        A score as `grade_gsm8k` gives it.

    Raises:
        ValueError: The expected answer is no integer.
    """
    return _grade(_aime(response), read_aime_gold(expected), highest=999)


@lru_cache(maxsize=4096)
def read_gsm8k_gold(expected: str) -> Fraction:
    """Return the number of an expected answer.

    Raises:
        ValueError: It holds none.
    """
    value = _gsm8k(expected).value
    if value is None:
        msg = f"a GSM8K answer must be a number or end in '#### number', got {expected!r}"
        raise ValueError(msg)
    return value


@lru_cache(maxsize=4096)
def read_aime_gold(expected: str) -> Fraction:
    """Return the integer of an expected answer.

    Raises:
        ValueError: It is none.
    """
    value = _aime(expected).value
    if value is None:
        msg = f"an AIME answer must be an integer from 0 to 999, got {expected!r}"
        raise ValueError(msg)
    return value


def _gsm8k(response: str) -> Extraction:
    return extract(response, last_number=True)


def _aime(response: str) -> Extraction:
    found = extract(response)
    if found.value is not None and (found.value.denominator != 1 or not found.plain):
        reason = "the answer is no plain integer"
        return replace(found, status="none", value=None, reason=reason)
    return found


def _grade(found: Extraction, expected: Fraction, *, highest: int | None = None) -> Score:
    correct = float(found.value == expected and (highest is None or 0 <= expected <= highest))
    return Score(
        correct,
        {"correct": correct},
        {
            "expected": _text(expected),
            **found.as_metadata(),
        },
    )


def _text(value: Fraction | None) -> str | None:
    return None if value is None else write_number(value)
