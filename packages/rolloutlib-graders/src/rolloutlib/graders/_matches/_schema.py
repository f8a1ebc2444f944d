"""Answers that are JSON of a given form."""

from __future__ import annotations

import functools
import json
import math
from typing import Any, NoReturn

from rolloutlib.graders._matches._blocks import extract_block
from rolloutlib.graders._matches._references import Match, Reference, match_score, read_references
from rolloutlib.graders._matches._requirements import check_num_workers, check_time_limit, require
from rolloutlib.graders._matches._workers import run_job
from rolloutlib.scores import Score

_WORKER = "_schema_worker.py"
_CHECK_SECONDS = 30.0


class SchemaMatch(Match[tuple[str, ...]]):
    """Accepts JSON that follows a reference, which is a JSON Schema, as text.

    The answer is the last code block that is marked as JSON, else the last that is not marked, else the
    whole text without the thinking. The JSON is read strictly: NaN, infinite numbers and repeated keys are refused, and
    what is no JSON scores 0, with the status "invalid" and a reason. JSON that does not follow the
    schema scores 0 too; the reason names the first place where it does not.

    For a Python type the schema is `json.dumps(pydantic.TypeAdapter(...).json_schema())`. A schema
    says by "$schema" which draft it follows, by default 2020-12. Nothing that it refers to is fetched.

    Validation runs in one of a few processes that are kept warm, since neither a regular expression
    nor a schema that refers to itself can be interrupted otherwise: text whose validation takes longer
    than the limit scores 0, with the status "timeout", and with "exhausted" if it takes too much
    memory.

    Needs the extra `schema`: `pip install "rolloutlib-graders[schema]"`.

    Args:
        time_limit: How many seconds the validation of one text may take, once it has a process.
        num_workers: How many processes there are at most, by default one for each processor and no
            more than 4. Graders that ask for the same number share them.

    Raises:
        ImportError: The extra is not installed.
        TypeError: A number is no number.
        ValueError: A number is not positive, or (when grading) a reference is no usable JSON Schema.
        RuntimeError: (When grading) no process can be started.
    """

    _options = ("time_limit", "num_workers")
    _packages = ("jsonschema", "referencing")

    def __init__(self, *, time_limit: float = 2.0, num_workers: int | None = None) -> None:
        require("jsonschema", "referencing", extra="schema", user="SchemaMatch")
        self._time_limit = check_time_limit(time_limit)
        self._num_workers = check_num_workers(num_workers)

    def _golds(self, reference: Reference) -> tuple[str, ...]:
        references = read_references(reference)
        _check_schemas(references, self._num_workers)
        return references

    def _grade(self, text: str, golds: tuple[str, ...]) -> Score:
        found, rule = extract_block(text, ("json", ""), bare=True)
        if found.status != "found" or found.text is None:
            return match_score(found, rule=rule)
        problem = _problem(found.text)
        if problem is not None:
            return match_score(found, rule=rule, status="invalid", reason=problem)
        job = {"schemas": golds, "document": found.text}
        reply = run_job(_WORKER, self._num_workers, job, self._time_limit)
        _refuse_unusable(reply, golds)
        return match_score(found, reply.get("matched"), rule=rule, **_told(reply))


@functools.lru_cache(maxsize=4096)
def _check_schemas(references: tuple[str, ...], num_workers: int) -> None:
    for place, reference in enumerate(references):
        problem = _problem(reference)
        if problem is not None:
            _refuse_unusable({"unusable": place, "reason": problem}, references)
    job = {"schemas": references, "document": None}
    reply = run_job(_WORKER, num_workers, job, _CHECK_SECONDS)
    if "status" in reply:
        msg = f"a schema in {references!r} cannot be read: {reply['reason']}"
        raise ValueError(msg)
    _refuse_unusable(reply, references)


def _refuse_unusable(reply: dict[str, Any], references: tuple[str, ...]) -> None:
    if "unusable" in reply:
        place: int = reply["unusable"]
        msg = f"the reference {references[place]!r} is no usable JSON Schema: {reply['reason']}"
        raise ValueError(msg)


def _told(reply: dict[str, Any]) -> dict[str, Any]:
    return {name: reply[name] for name in ("status", "reason") if name in reply}


def _problem(text: str) -> str | None:
    """Say why a text is no strict JSON, or return None."""
    try:
        json.loads(
            text,
            parse_constant=_refuse_number,
            parse_float=_read_float,
            object_pairs_hook=_read_object,
        )
    except RecursionError:
        return "it is nested too deeply"
    except ValueError as error:
        return f"it is no JSON: {error!s:.200}"
    return None


def _refuse_number(name: str) -> NoReturn:
    msg = f"{name} is no number of JSON"
    raise ValueError(msg)


def _read_float(digits: str) -> float:
    value = float(digits)
    if not math.isfinite(value):
        _refuse_number(f"{digits:.20}")
    return value


def _read_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in value if keys.count(key) > 1)
        msg = f"the key {twice!r:.100} stands there more than once"
        raise ValueError(msg)
    return value
