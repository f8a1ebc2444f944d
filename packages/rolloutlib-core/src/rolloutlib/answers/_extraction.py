"""What became of looking for an answer."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal, TypeAlias

from rolloutlib.answers._numbers import write_number
from rolloutlib.answers._readings import Reading

__all__ = ["UNFINISHED", "Extraction", "Rule", "Status", "narrowed", "placed"]

Status: TypeAlias = Literal["found", "none", "ambiguous", "truncated"]
"""Whether an answer was found, or why it was not."""
Rule: TypeAlias = Literal["box", "marker", "output", "bold", "line", "sentence"]
"""What showed where the answer stands."""


@dataclass(frozen=True, slots=True)
class Extraction:
    r"""The answer in a text, or why there is none.

    Attributes:
        status: "found"; "none" where no answer is given; "ambiguous" where what is given is not one
            value; "truncated" where the text ends before the answer does.
        value: The exact value, where a number was looked for and found.
        rule: Which rule decided: "box" (`\boxed`, `\fbox`, `\framebox` or `<answer>`), "marker" (`####`,
            "the answer is" and the like), "output" (of a program), "bold", "line" (the final line) or
            "sentence" (the last number of the last sentence).
        span: Start and end, in the text, of the answer, or of what was read where it is none.
        text: What stands there, as it is written.
        reason: Why there is no answer, where there is none; one of a few sentences, to be counted.
        plain: Whether the value is a bare number, without percent sign or a word like "million".
    """

    status: Status
    value: Fraction | None = None
    rule: Rule | None = None
    span: tuple[int, int] | None = None
    text: str | None = None
    reason: str | None = None
    plain: bool = True

    @classmethod
    def of(cls, reading: Reading, rule: Rule, start: int, end: int) -> Extraction:
        """Say where something was read, and by which rule."""
        return cls(
            reading.status,
            reading.value,
            rule,
            (start, end),
            text=reading.written,
            reason=reading.reason,
            plain=reading.plain,
        )

    def as_metadata(self) -> dict[str, Any]:
        """Return what a score's metadata keep: "extracted", "status", "rule", "span" and "reason"."""
        extracted = self.text if self.value is None else write_number(self.value)
        return {
            "extracted": extracted if self.status == "found" else None,
            "status": self.status,
            "rule": self.rule,
            "span": self.span,
            "reason": self.reason,
        }


UNFINISHED = Extraction("truncated", reason="the thinking does not end")


def narrowed(found: Extraction, text: str) -> Extraction:
    """Leave of a span only the number in it, unless TeX or Markdown write it otherwise."""
    if found.span is None or found.text is None:
        return found
    start, end = found.span
    last = found.rule == "sentence" or "=" in text[start:end]
    find = text.rfind if last else text.find
    begin = find(found.text, start, end)
    stop = begin + len(found.text)
    if begin < 0 or text[max(start, begin - 1) : begin].isdigit() or text[stop:end][:1].isdigit():
        return found
    return _moved(found, begin, stop, found.text)


def placed(found: Extraction, text: str, cuts: Iterable[tuple[int, int]]) -> Extraction:
    """Tell where in the whole text an answer stands, and what stands there.

    Args:
        found: What was found in the text without some stretches.
        text: The whole text.
        cuts: Where these stretches start and end in it, in order.
    """
    if found.span is None:
        return found
    start, end = found.span
    for begin, stop in cuts:
        if begin > end:
            break
        if begin <= start:
            start += stop - begin
        if begin < end:
            end += stop - begin
    end = max(start, end)
    return _moved(found, start, end, text[start:end])


def _moved(found: Extraction, start: int, end: int, text: str) -> Extraction:
    # By hand, since `dataclasses.replace` would be a tenth of the time of an answer.
    return Extraction(
        found.status, found.value, found.rule, (start, end), text, found.reason, found.plain
    )
