"""Text of any Unicode characters."""

from __future__ import annotations

import operator
from typing import Any

from rolloutlib.spaces._pydantic import StructuredSpace

__all__ = ["DEFAULT_ALPHABET", "TextSpace", "text"]

DEFAULT_ALPHABET = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 .,!?-_\n"
"""What samples are made of unless one says otherwise."""

_SAMPLE_MAX_LENGTH = 32


class TextSpace(StructuredSpace[str]):
    """All strings of a certain length, whatever characters they are made of.

    Args:
        min_length: The least number of characters.
        max_length: The greatest number of characters, or None for no limit.
        sample_max_length: The greatest length of samples; longer where `min_length` asks for it.
        sample_alphabet: The characters that samples are made of.
        seed: Seeds the sampling.

    Raises:
        TypeError: A length is not an integer.
        ValueError: The lengths contradict each other, or the alphabet is empty.
    """

    def __init__(
        self,
        *,
        min_length: int = 0,
        max_length: int | None = None,
        sample_max_length: int = _SAMPLE_MAX_LENGTH,
        sample_alphabet: str = DEFAULT_ALPHABET,
        seed: int | None = None,
    ) -> None:
        self.min_length, self.max_length, self.sample_max_length = checked_lengths(
            min_length, max_length, sample_max_length, default=_SAMPLE_MAX_LENGTH
        )
        if not sample_alphabet:
            msg = f"sample_alphabet must have a character, got {sample_alphabet!r}"
            raise ValueError(msg)
        self.sample_alphabet = sample_alphabet
        super().__init__(str, seed=seed)

    def _problem(self, value: Any) -> str | None:
        if not isinstance(value, str):
            return f"expected text, got {value!r}"
        return length_problem(len(value), self.min_length, self.max_length, "characters")

    def _draw(self) -> str:
        length = self.np_random.integers(self.min_length, self.sample_max_length + 1)
        indices = self.np_random.integers(len(self.sample_alphabet), size=length)
        return "".join([self.sample_alphabet[index] for index in indices])

    def _parts(self) -> tuple[Any, ...]:
        return (self.min_length, self.max_length, self.sample_max_length, self.sample_alphabet)

    def __repr__(self) -> str:
        return f"TextSpace(min_length={self.min_length}, max_length={self.max_length})"


def text(
    *,
    min_length: int = 0,
    max_length: int | None = None,
    sample_max_length: int = _SAMPLE_MAX_LENGTH,
    sample_alphabet: str = DEFAULT_ALPHABET,
    seed: int | None = None,
) -> TextSpace:
    """Return a `TextSpace` of these arguments."""
    return TextSpace(
        min_length=min_length,
        max_length=max_length,
        sample_max_length=sample_max_length,
        sample_alphabet=sample_alphabet,
        seed=seed,
    )


def checked_lengths(
    min_length: int, max_length: int | None, sample_max_length: int, *, default: int
) -> tuple[int, int | None, int]:
    """Check the bounds of a length, and fit the samples' bound, if it is the default, to them."""
    lengths = {"min_length": min_length, "max_length": max_length}
    for name, length in {**lengths, "sample_max_length": sample_max_length}.items():
        if length is None:
            continue
        try:
            operator.index(length)
        except TypeError:
            msg = f"{name} must be an integer, got {length!r}"
            raise TypeError(msg) from None
        if length < 0:
            msg = f"{name} must not be negative, got {length!r}"
            raise ValueError(msg)
    if max_length is not None and max_length < min_length:
        msg = f"max_length must be at least min_length, got {max_length!r} and {min_length!r}"
        raise ValueError(msg)
    if sample_max_length < min_length:
        if sample_max_length != default:
            msg = (
                "sample_max_length must be at least min_length, "
                f"got {sample_max_length!r} and {min_length!r}"
            )
            raise ValueError(msg)
        sample_max_length = min_length
    if max_length is not None:
        sample_max_length = min(sample_max_length, max_length)
    return min_length, max_length, sample_max_length


def length_problem(length: int, min_length: int, max_length: int | None, things: str) -> str | None:
    """Say what is wrong with a length, if anything is."""
    if length < min_length:
        return f"expected at least {min_length} {things}, got {length}"
    if max_length is not None and length > max_length:
        return f"expected at most {max_length} {things}, got {length}"
    return None
