"""Answers that are mathematical expressions."""

from __future__ import annotations

import functools
import re
from fractions import Fraction
from typing import Any

from rolloutlib.answers import extract_text, read_number
from rolloutlib.graders._matches._parts import trim
from rolloutlib.graders._matches._references import Match, Reference, match_score, read_references
from rolloutlib.graders._matches._requirements import check_num_workers, check_time_limit, require
from rolloutlib.graders._matches._workers import run_job
from rolloutlib.scores import Score

_WORKER = "_math_worker.py"
_CHECK_SECONDS = 30.0
_MAX_LENGTH = 2000  # of an expression; no answer is longer

_SPAN = re.compile(
    r"(?<!\\)\$\$(?P<dollars>[^$]+)(?<!\\)\$\$|(?<![\\$])\$(?P<dollar>[^$]+)(?<!\\)\$"
    r"|\\\((?P<inline>.+?)\\\)|\\\[(?P<display>.+?)\\\]",
    re.DOTALL,
)
_DELIMITER = re.compile(r"(?<!\\)(?:\$|\\[()\[\]])|\\(?:boxed|fbox)(?![a-zA-Z])")
_TEXT = re.compile(r"\\(?:text|mathrm|operatorname|mbox)\s?\{[^{}]*\}|\\[a-zA-Z]+")
_LETTER = re.compile(r"(?<![a-zA-Z])(?!e[+-]?[0-9])[a-zA-Z](?![a-zA-Z])")
_PROSE = re.compile(r"[a-zA-Z]{2,},?\s+[a-zA-Z]{2,}")
_NEXT_SENTENCE = re.compile(r"[.!?]\s+(?=[A-Z])")


class MathMatch(Match[tuple[str, ...]]):
    """Accepts an answer that is mathematically equal to a reference, as `math-verify` judges it.

    The answer is what `rolloutlib.answers.extract_text` finds, a formula in it if it has one. What
    reads as the same number is equal without further ado, as for `NumericMatch`. Anything else is
    parsed and compared by math-verify: fractions, roots, polynomials, intervals, sets, matrices,
    equations; decimals count as equal if they agree to six places.

    An answer that leaves the work undone is refused, with the status "unevaluated": an integral, a
    sum, a limit or a derivative where the reference has none, and a calculation such as `2+3` where
    the reference is a number, or numbers. What cannot be parsed has the status "invalid", several formulas are
    "ambiguous".

    Each comparison runs in one of a few processes that are kept warm, since a symbolic engine can only
    be interrupted by ending its process. That works in any thread. A text that takes longer than the
    limit scores 0, with the status "timeout", and with "exhausted" if it takes too much memory. The
    first call waits until a process has started, which takes seconds.

    A reference is TeX or plain, with or without dollar signs, or a text whose final answer is boxed.
    For references that are words, `ExactMatch` and `ChoiceMatch` are the graders.

    Needs the extra `math`: `pip install "rolloutlib-graders[math]"`.

    Args:
        unevaluated: Accept what is equal though the work is undone.
        time_limit: How many seconds the comparison of one text may take, once it has a process.
        num_workers: How many processes there are at most, by default one for each processor and no
            more than 4. Graders that ask for the same number share them.

    Raises:
        ImportError: The extra is not installed.
        TypeError: A number is no number.
        ValueError: A number is not positive, or (when grading) math-verify cannot read a reference.
        RuntimeError: (When grading) no process can be started.
    """

    _options = ("unevaluated", "time_limit", "num_workers")
    _packages = ("math-verify", "sympy")

    def __init__(
        self,
        *,
        unevaluated: bool = False,
        time_limit: float = 5.0,
        num_workers: int | None = None,
    ) -> None:
        require("math_verify", extra="math", user="MathMatch")
        self._unevaluated = unevaluated
        self._time_limit = check_time_limit(time_limit)
        self._num_workers = check_num_workers(num_workers)

    def _golds(self, reference: Reference) -> tuple[str, ...]:
        return _read_golds(read_references(reference), self._num_workers)

    def _grade(self, text: str, golds: tuple[str, ...]) -> Score:
        found = extract_text(text)
        if found.status != "found":
            return match_score(found)
        target, status = _formula(found.text or "")
        if target is None:
            return match_score(found, status=status, reason=_REASONS[status])
        place = _same_number(target, golds)
        if place is not None:
            return match_score(found, place)
        job = {"golds": golds, "target": target, "unevaluated": self._unevaluated}
        reply = run_job(_WORKER, self._num_workers, job, self._time_limit)
        reason = reply.get("reason") or _REASONS.get(reply["status"])
        metadata = {"status": reply["status"], "reason": reason}
        return match_score(found, reply.get("matched"), **metadata)


_REASONS = {
    "ambiguous": "what is given is not one formula",
    "invalid": "it is no mathematical expression",
    "unevaluated": "it is equal, but the work is left undone",
}


@functools.lru_cache(maxsize=4096)
def _read_golds(references: tuple[str, ...], num_workers: int) -> tuple[str, ...]:
    """Return the formulas of references.

    Raises:
        ValueError: One is no formula that math-verify can read.
    """
    golds = [_gold(reference) for reference in references]
    unread = [gold for gold in golds if _number(gold) is None]
    reply: dict[str, Any] = {}
    if unread:
        job = {"golds": unread, "target": None, "unevaluated": False}
        reply = run_job(_WORKER, num_workers, job, _CHECK_SECONDS)
    if "status" in reply:
        msg = f"a reference in {references!r} cannot be calculated: {reply['reason']}"
        raise ValueError(msg)
    if reply:
        place: int = reply["unreadable"]
        reference = references[golds.index(unread[place])]
        msg = f"math-verify cannot read the reference {reference!r} as mathematics"
        raise ValueError(msg)
    return tuple(golds)


def _gold(reference: str) -> str:
    found = extract_text(reference)
    whole = found.text if found.rule in ("box", "marker") else reference
    gold, _ = _formula(whole or reference)
    if gold is None:
        msg = f"a reference must be one mathematical expression, got {reference!r}"
        raise ValueError(msg)
    return gold


def _formula(text: str) -> tuple[str | None, str]:
    """Return the one formula of an answer, without dollar signs, or None and the status."""
    if len(text) > _MAX_LENGTH:
        return None, "invalid"
    formulas = {_ended(span[span.lastgroup or 0]) for span in _SPAN.finditer(text)}
    if len(formulas) > 1:
        return None, "ambiguous"
    if formulas:
        if re.search(r"\d", _SPAN.sub("", text)):  # a number beside the formula
            return None, "ambiguous"
        [text] = formulas
    else:
        text = _ended(trim(_NEXT_SENTENCE.split(text)[0]))
        if read_number(text) is not None:
            return text.replace("$", ""), "found"
        if _PROSE.search(_TEXT.sub(" ", text)):
            return None, "invalid"
    if _DELIMITER.search(text):  # what would end the formula, and let another begin
        return None, "ambiguous"
    return (text, "found") if text else (None, "invalid")


def _ended(formula: str) -> str:
    return formula.strip().rstrip(".,;: \n")


def _same_number(target: str, golds: tuple[str, ...]) -> int | None:
    value = _number(target)
    if value is None:
        return None
    return next((place for place, gold in enumerate(golds) if _number(gold) == value), None)


def _number(formula: str) -> Fraction | None:
    """Return the value of a formula that is a number, and holds no letter that may be a variable."""
    return None if _LETTER.search(_TEXT.sub(" ", formula)) else read_number(formula)
