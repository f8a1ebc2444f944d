"""Tables of numbers in plain text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from rolloutlib._exceptions import read_error
from rolloutlib.graders._judges._usage import JudgeUsage

Row = tuple[str, str, str]


def table(title: str, rows: Iterable[Row]) -> str:
    """Write rows of a name, a number and a remark in columns, under a title."""
    lines = list(rows)
    names, numbers = (max(len(row[column]) for row in lines) for column in (0, 1))
    body = [
        f"  {name:<{names}}  {number:>{numbers}}  {remark}".rstrip()
        for name, number, remark in lines
    ]
    return "\n".join([title, *body])


def rate(name: str, count: int, total: int) -> Row:
    """Return the row of a share, with its count and its denominator."""
    return name, decimals(count / total if total else None), f"{count} of {total}"


def decimals(number: float | None) -> str:
    """Write a number with three decimals, and "-" for what is not defined."""
    return "-" if number is None else f"{number:.3f}"


def count_errors(results: Sequence[object]) -> dict[str, int]:
    """Count the errors among results by their types."""
    return dict(
        Counter([type(each).__qualname__ for each in results if isinstance(each, Exception)])
    )


def last_error(results: Sequence[object]) -> str | None:
    """Return the type and the text of the last error among results."""
    errors = [each for each in results if isinstance(each, Exception)]
    return f"{type(errors[-1]).__qualname__}: {read_error(errors[-1], str)}" if errors else None


def failures(name: str, count: int, total: int, errors: Mapping[str, int]) -> Row:
    """Return the row of failures, with their types."""
    kinds = ", ".join([f"{number} {kind}" for kind, number in errors.items()])
    share, number, remark = rate(name, count, total)
    return share, number, f"{remark}: {kinds}" if kinds else remark


def costs(usage: JudgeUsage) -> list[Row]:
    """Return the rows of what was used, if a judge told."""
    if usage == JudgeUsage():
        return []
    tokens = f"{usage.prompt_tokens} + {usage.completion_tokens} tokens"
    untold = f", {usage.untold_calls} calls told none" if usage.untold_calls else ""
    return [("calls", str(usage.calls), f"{usage.retries} retries; {tokens}{untold}")]
