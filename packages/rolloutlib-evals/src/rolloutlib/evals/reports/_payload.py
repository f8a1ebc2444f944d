"""What the page knows of each sample, as data that JSON can hold."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rolloutlib.evals._plain import to_text
from rolloutlib.evals._records import EvaluationRecord
from rolloutlib.evals.reports._conversation import Call, Highlight, Turn, conversation, marked
from rolloutlib.evals.reports._report import Report
from rolloutlib.evals.reports._text import laid_out, utf16_length
from rolloutlib.evals.reports._thinking import take_thinking
from rolloutlib.evals.reports._token_rows import token_rows
from rolloutlib.rollouts import Trajectory
from rolloutlib.scores import Score

__all__ = ["chunks", "script_json"]

_CHUNK = 400_000


def script_json(value: Any) -> str:
    """Return JSON, in ASCII, that may stand in a script element: nothing in it can end that."""
    return json.dumps(value, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")


def chunks(report: Report, *, tokens: bool) -> Iterator[tuple[int, str]]:
    """Yield the samples in pieces that the page reads one at a time, as JSON arrays.

    Args:
        report: The report.
        tokens: Whether token ids, log probabilities and masks are to be in it.

    Yields:
        The position of the first sample of a piece, and the piece.
    """
    forms: list[str] = []
    start = size = 0
    for record in report.samples.values():
        form = script_json(_payload(record, tokens=tokens))
        if forms and size + len(form) > _CHUNK:
            yield start, f"[{','.join(forms)}]"
            start, forms, size = start + len(forms), [], 0
        forms.append(form)
        size += len(form)
    if forms:
        yield start, f"[{','.join(forms)}]"


def _payload(record: EvaluationRecord, *, tokens: bool = True) -> dict[str, Any]:
    """Return all that the page shows of a sample; what is absent is left out."""
    trajectory, metadata = record.trajectory, dict(record.metadata)
    error: dict[str, Any] | None = None
    if record.error is not None:
        error = {
            "message": record.error,
            "type": to_text(metadata.pop("error_type", "error")),
            "phase": to_text(metadata.pop("phase", None) or ""),
            "traceback": to_text(metadata.pop("traceback", None) or ""),
        }
    steps = [] if trajectory is None else _steps(trajectory)
    payload = {
        "turns": [] if trajectory is None else _turns(trajectory, record.score),
        "steps": steps,
        "score": None if record.score is None else _score(record.score),
        "error": error,
        "facts": _facts(record),
        "item": None if record.item is None else laid_out(record.item),
        "metadata": laid_out(metadata) if metadata else None,
        "rows": token_rows(trajectory) if tokens and trajectory is not None else [],
    }
    return {key: value for key, value in payload.items() if value not in (None, [])}


def _turns(trajectory: Trajectory[Any, Any], score: Score | None) -> list[dict[str, Any]]:
    return [_turn(turn, marks) for turn, marks in marked(conversation(trajectory), score)]


def _turn(turn: Turn, marks: Sequence[Highlight]) -> dict[str, Any]:
    thinking, turn, marks = take_thinking(turn, marks)
    form = {
        "role": turn.role,
        "thinking": thinking,
        "parts": list(turn.parts),
        "step": turn.step,
        "calls": [_call(call) for call in turn.calls],
        "answers": turn.answers,
        "name": turn.name,
        "reasoning": turn.reasoning,
        "extra": turn.extra,
        "marks": [_mark(turn.parts[0], mark) for mark in marks],
    }
    return {key: value for key, value in form.items() if value not in (None, [])}


def _mark(text: Any, mark: Highlight) -> dict[str, Any]:
    """Return a mark as JavaScript counts characters."""
    return {
        "start": utf16_length(text[: mark.start]),
        "stop": utf16_length(text[: mark.stop]),
        "status": mark.status,
        "label": mark.label,
    }


def _call(call: Call) -> dict[str, Any]:
    return {"name": call.name, "arguments": call.arguments, "id": call.id}


def _steps(trajectory: Trajectory[Any, Any]) -> list[dict[str, Any]]:
    return [
        {
            "reward": step.reward,
            "stop": step.policy_stop_reason,
            "version": None if step.policy_version is None else to_text(step.policy_version),
            "tokens": None if step.policy_tokens is None else len(step.policy_tokens),
            "info": _info(step.info),
            "policy": laid_out(step.policy_info) if step.policy_info else None,
        }
        for step in trajectory.steps
    ]


def _info(info: Mapping[str, Any]) -> str | None:
    """Return what an environment said, without the score, which has a place of its own."""
    rest = {key: value for key, value in info.items() if key != "score"}
    return laid_out(rest) if rest else None


def _score(score: Score) -> dict[str, Any]:
    form = {
        "value": score.value,
        "parts": {name: _score(part) for name, part in score.components.items()},
        "facts": {
            name: to_text(value) for name, value in score.metadata.items() if value is not None
        },
        "feedback": score.feedback,
    }
    return {key: value for key, value in form.items() if value not in (None, {})}


def _facts(record: EvaluationRecord) -> dict[str, str]:
    trajectory = record.trajectory
    facts: dict[str, Any] = {
        "item": record.item_id,
        "epoch": record.epoch or None,
        "seed": record.seed,
        "attempts": record.attempts if record.attempts > 1 else None,
        "started": record.started,
        "seconds": None if record.seconds is None else f"{record.seconds:.3g}",
        "steps": len(trajectory.steps) if trajectory is not None else None,
    }
    return {name: str(value) for name, value in facts.items() if value is not None}
