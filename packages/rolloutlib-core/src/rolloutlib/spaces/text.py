"""Text of any Unicode characters."""

from __future__ import annotations

from typing import Any

from rolloutlib.spaces._arguments import checked_lengths, length_problem
from rolloutlib.spaces._shapes import is_text
from rolloutlib.spaces._structured import StructuredSpace

__all__ = ["DEFAULT_ALPHABET", "TextSpace", "text"]

DEFAULT_ALPHABET = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 .,!?-_\n"
"""What samples are made of unless one says otherwise."""

_SAMPLE_MAX_LENGTH = 32


class TextSpace(StructuredSpace[str]):
    """All Unicode text of a certain length, whatever characters it is made of.

    A string with a lone surrogate, half of a character, is no Unicode text: UTF-8 cannot hold it.

    Args:
        min_length: The least number of characters.
        max_length: The greatest number of characters, or None for no limit.
        sample_max_length: The greatest length of samples; longer where `min_length` asks for it.
        sample_alphabet: The characters that samples are made of.
        seed: Seeds the sampling.

    Raises:
        TypeError: A length is not an integer, or the alphabet is not text.
        ValueError: The lengths contradict each other, or the alphabet is empty.
    """

    min_length: int
    max_length: int | None
    sample_max_length: int

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
        if not is_text(sample_alphabet):
            msg = f"sample_alphabet must be text, got {sample_alphabet!r}"
            raise TypeError(msg)
        if not sample_alphabet:
            msg = f"sample_alphabet must have a character, got {sample_alphabet!r}"
            raise ValueError(msg)
        self.sample_alphabet = sample_alphabet
        super().__init__(str, seed=seed)

    def _problem(self, value: Any) -> str | None:
        if not is_text(value):
            return f"expected text, got {value!r}"
        return length_problem(len(value), self.min_length, self.max_length, "characters")

    def _draw(self) -> str:
        length = self.np_random.integers(self.min_length, self.sample_max_length + 1)
        indices = self.np_random.integers(len(self.sample_alphabet), size=length)
        return "".join([self.sample_alphabet[index] for index in indices])

    def _settings(self) -> tuple[Any, ...]:
        return (self.min_length, self.max_length, self.sample_max_length, self.sample_alphabet)

    def __repr__(self) -> str:
        lengths = f"min_length={self.min_length}, max_length={self.max_length}"
        return f"{type(self).__name__}({lengths})"


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
