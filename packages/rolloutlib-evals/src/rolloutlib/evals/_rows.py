"""Records as rows of a flat table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rolloutlib.evals._plain import to_text
from rolloutlib.evals._records import EvaluationRecord

__all__ = ["component_names", "to_row"]


def component_names(records: Iterable[EvaluationRecord]) -> list[str]:
    """Return the names of all components of the scores, sorted."""
    names: set[str] = set()
    for record in records:
        if record.score is not None:
            names.update(record.score.component_values)
    return sorted(names)


def to_row(record: EvaluationRecord, components: Sequence[str]) -> dict[str, Any]:
    """Return a record as a dictionary of texts, numbers, flags and None."""
    score, trajectory = record.score, record.trajectory
    steps = () if trajectory is None else tuple(trajectory.steps)
    found: Mapping[str, Any] = {} if score is None else score.metadata
    values: Mapping[str, float] = {} if score is None else score.component_values
    return {
        "item_id": record.item_id,
        "index": record.index,
        "epoch": record.epoch,
        "seed": record.seed,
        "outcome": record.outcome,
        "score": None if score is None else score.value,
        "truncated": record.truncated,
        "prompt": None if trajectory is None else _text(trajectory.initial_observation),
        "response": _text(steps[-1].action) if steps else None,
        "expected": _text(found.get("expected")),
        "extracted": _text(found.get("extracted")),
        "status": _text(found.get("status")),
        "rule": _text(found.get("rule")),
        "reason": _text(found.get("reason")),
        "feedback": None if score is None else score.feedback,
        "error": record.error,
        "error_type": record.metadata.get("error_type") if record.error else None,
        "phase": record.metadata.get("phase") if record.error else None,
        "num_steps": len(steps),
        "prompt_tokens": _count([step.policy_prompt_tokens for step in steps]),
        "tokens": _count([step.policy_tokens for step in steps]),
        "stop_reason": steps[-1].policy_stop_reason if steps else None,
        "attempts": record.attempts,
        "started": record.started,
        "seconds": record.seconds,
        "item": _text(record.item),
        **{f"component_{name}": values.get(name) for name in components},
    }


def _text(value: Any) -> str | None:
    return None if value is None else to_text(value)


def _count(numbers: Sequence[Sequence[int] | None]) -> int | None:
    """Return how many tokens steps have, or None if none of them tells."""
    known = [len(tokens) for tokens in numbers if tokens is not None]
    return sum(known) if known else None
