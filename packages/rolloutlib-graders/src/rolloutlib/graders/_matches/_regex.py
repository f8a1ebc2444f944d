"""Answers of a form that a regular expression describes."""

from __future__ import annotations

import functools
import importlib
from typing import Any

from rolloutlib.graders._matches._parts import Part, check_part, read_part
from rolloutlib.graders._matches._references import Match, Reference, match_score, read_references
from rolloutlib.graders._matches._requirements import check_time_limit, require
from rolloutlib.scores import Score


class RegexMatch(Match[tuple[Any, ...]]):
    """Accepts an answer that matches a reference, which is a regular expression.

    Matching is bounded in time, in any thread: the `regex` package gives up at the limit, which
    Python's own `re` cannot. Patterns mean what they mean to `re`, but a literal `{` has to be
    escaped. A text whose matching takes longer scores 0, with the status "timeout"; that is for
    patterns that backtrack without end, so let the limit be far above what a match needs, and mend a
    pattern that ever meets it. `regex` counts the processor time of the whole process: while other
    threads compute the limit comes sooner, and on a busy machine later, than by the clock on the wall.

    Needs the extra `regex`: `pip install "rolloutlib-graders[regex]"`.

    Args:
        on: What is matched: "answer", the final answer; "visible", all but the thinking; "all", as for
            a format that includes the thinking.
        search: Accept a match anywhere; by default the whole part has to match. A pattern that is
            searched for is also found in a text that lists everything.
        time_limit: How many seconds of processor time the matching of one text may take.

    Raises:
        ImportError: The extra is not installed.
        ValueError: `on` names no part, the limit is no positive number, or (when grading) a reference
            is no regular expression.
    """

    _options = ("on", "search", "time_limit")
    _packages = ("regex",)

    def __init__(
        self, *, on: Part = "answer", search: bool = False, time_limit: float = 1.0
    ) -> None:
        require("regex", extra="regex", user="RegexMatch")
        self._on: Part = check_part(on)
        self._search = search
        self._time_limit = check_time_limit(time_limit)

    def _golds(self, reference: Reference) -> tuple[Any, ...]:
        return _compiled(read_references(reference))

    def _grade(self, text: str, golds: tuple[Any, ...]) -> Score:
        found, part = read_part(text, self._on)
        rule = found.rule if self._on == "answer" else self._on
        if found.status != "found":
            return match_score(found, rule=rule)
        for place, pattern in enumerate(golds):
            match = pattern.search if self._search else pattern.fullmatch
            try:
                # concurrent: other threads go on meanwhile, which is safe since text never changes.
                if match(part, timeout=self._time_limit, concurrent=True):
                    return match_score(found, place, rule=rule)
            except TimeoutError:
                reason = f"matching {pattern.pattern!r} took more than {self._time_limit} s"
                return match_score(found, rule=rule, status="timeout", reason=reason)
        return match_score(found, rule=rule)


@functools.lru_cache(maxsize=512)
def _compiled(references: tuple[str, ...]) -> tuple[Any, ...]:
    return tuple(map(_compile, references))


def _compile(reference: str) -> Any:
    regex: Any = importlib.import_module("regex")
    try:
        return regex.compile(reference)
    except (regex.error, RecursionError) as error:
        msg = f"the reference {reference!r} is no regular expression: {error}"
        raise ValueError(msg) from error
