"""Reading the JSON object that ends a judge's reply."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any, NoReturn, cast

from rolloutlib.answers._characters import lower_case
from rolloutlib.answers._visible import THINKING
from rolloutlib.graders._judges._usage import JudgeUsage
from rolloutlib.scores import Score

# Each failure to read an object takes time in proportion to the text before it.
_MOST_FAILURES = 1000
# What else begins with a brace, as TeX in a judge's thinking does, is no object, and costs nothing.
_MAY_BEGIN = re.compile(r"""\{[ \t\n\r]*["}]""")


class VerdictError(ValueError):
    """Raised where a judge's reply has no verdict; the message tells the judge what is wrong.

    Attributes:
        usage: What the judge used for all its replies, or None if the error comes from the parser
            alone.
    """

    usage: JudgeUsage | None = None


def refuse(complaint: str) -> NoReturn:
    """Raise a `VerdictError`."""
    raise VerdictError(complaint)


def sum_usage(outcomes: Iterable[object]) -> JudgeUsage:
    """Return what the judges of scores, errors and comparisons used together."""
    used = JudgeUsage()
    for outcome in outcomes:
        own = JudgeUsage.of(outcome) if isinstance(outcome, Score) else getattr(outcome, "usage", 0)
        if isinstance(own, JudgeUsage):
            used += own
    return used


def answer_start(reply: str) -> int:
    """Return where the thinking of a reply ends, 0 if there is none.

    The chat template may have opened it, so that only the closing tag is in the reply. An opening tag
    counts at the beginning of the reply alone; elsewhere it may be quoted.

    Raises:
        TypeError: The reply is not text.
        VerdictError: It is all thinking.
    """
    if not isinstance(cast("object", reply), str):
        msg = f"a judge's reply must be text, got {reply!r}"
        raise TypeError(msg)
    tags = list(THINKING.finditer(lower_case(reply)))
    end = max((tag.end() for tag in tags if tag.lastgroup is not None), default=0)
    if tags and not end and not reply[: tags[0].start()].strip():
        refuse("the reply ends before its thinking does")
    return end


def read_object(reply: str, verdict_id: str | None, member: str) -> dict[str, Any]:
    """Return the last complete JSON object of a reply that may be the verdict.

    What is inside another object is none. With an id, all objects that do not carry it are passed
    over: they are quotations. It must be the last member, so that a quotation in the reason whose marks
    the judge did not escape cannot end the object before the judge's own score: either there are two
    scores then, or no id. Nor may it have other members than were asked for, where such a quotation could
    bring the score that the judge forgot. Without an id, nothing with a brace may follow the last object; with one, no
    object that the end of the reply cuts off, which may be another verdict.

    Args:
        reply: What the judge wrote.
        verdict_id: The value that the object must have under "id", as its last member, or None.
        member: The name of the member with the verdict, which it may have beside "reason" and "id".

    Raises:
        VerdictError: There is none, what follows may be another, or it is in the thinking.
    """
    start = answer_start(reply)
    objects, failure, cut = _objects(reply)
    if verdict_id is not None:
        ids = [each.get("id") for _, each in objects]
        objects = [pair for pair in objects if _is_id(pair[1].get("id"), verdict_id)]
        if not objects and ids:
            refuse(
                failure or f"no JSON object has the id {verdict_id!r}; the last has {ids[-1]!r:.60}"
            )
    if not objects:
        refuse(failure or "there is no JSON object")
    end, found = objects[-1]
    if end <= start:
        refuse("the verdict stands in the thinking, not after it")
    if verdict_id is not None and next(reversed(found)) != "id":
        refuse("the id must be the last member of the JSON object")
    if verdict_id is not None and (others := found.keys() - {"reason", member, "id"}):
        refuse(f"the JSON object has other members than it should, {sorted(others)!r:.200}")
    rest = reply[end:]
    if verdict_id is None and ("{" in rest or "}" in rest):
        refuse("what follows the JSON object has braces: it must be the last thing")
    if verdict_id is not None and (cut or (verdict_id in rest and "{" in rest)):
        refuse("after the JSON object another one begins, which has no end")
    return found


def number(value: object, name: str, scale: tuple[float, float]) -> float:
    """Return a number that is on a scale.

    Raises:
        VerdictError: It is not.
    """
    low, high = scale
    if isinstance(value, Twice):
        refuse(f"{name} is given twice")
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        refuse(f"{name} must be a number from {low:g} to {high:g}, not {value!r:.60}")
    if not low <= value <= high:
        refuse(f"{name} must be from {low:g} to {high:g}, not {value:g}")
    return float(value) + 0.0  # no -0.0


def reason(verdict: dict[str, Any]) -> str | None:
    """Return the reason that a verdict gives.

    Raises:
        VerdictError: It is given twice, or not as text.
    """
    given = verdict.get("reason")
    if given is not None and not isinstance(given, str):
        refuse(f"reason must be one text, not {given!r:.60}")
    return given


class Twice:
    """The value of a key that an object has more than once, which JSON leaves undefined."""

    def __repr__(self) -> str:
        return "two values"


def _is_id(value: object, verdict_id: str) -> bool:
    return isinstance(value, str) and value.strip() == verdict_id


def _objects(reply: str) -> tuple[list[tuple[int, dict[str, Any]]], str | None, bool]:
    """Return the outermost complete objects with where they end, and why what follows them is none.

    The last result tells whether it is because the reply ends.

    Where reading fails it goes on from the place of the failure, since what it has read is part of an
    object that has no end.
    """
    found: list[tuple[int, dict[str, Any]]] = []
    failure, cut = None, False
    last, failures = len(reply.rstrip()), 0
    position = reply.find("{")
    while position != -1:
        end, problem = position + 1, "Expecting property name enclosed in double quotes"
        if _MAY_BEGIN.match(reply, position):
            try:
                value, end = _DECODER.raw_decode(reply, position)
                found.append((end, value))
                problem = None
            except json.JSONDecodeError as error:
                end, problem = max(error.pos, end), error.msg
                failures += 1
            except RecursionError:
                refuse("the JSON object is nested too deeply")
        if failures > _MOST_FAILURES:
            refuse(f"there are more than {_MOST_FAILURES} broken JSON objects")
        failure, cut = None, False
        if problem is not None:
            failure = f"the JSON object is broken: {problem} at {reply[end : end + 20]!r}"
            cut = end >= last or problem.startswith("Unterminated string")
        position = reply.find("{", end)
    return found, failure, cut


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) < len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                members[key] = Twice()
            seen.add(key)
    return members


# Numbers of any length; NaN and Infinity, which are no JSON, become text and so no numbers.
_DECODER = json.JSONDecoder(object_pairs_hook=_pairs, parse_int=float, parse_constant=str)
