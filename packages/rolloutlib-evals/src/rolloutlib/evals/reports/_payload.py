"""What the page knows of each sample, as data that JSON can hold."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from rolloutlib.evals._plain import to_text
from rolloutlib.evals._records import EvaluationRecord
from rolloutlib.evals._rows import to_row
from rolloutlib.evals.reports._conversation import Call, Turn, conversation, highlights
from rolloutlib.evals.reports._figures import OUTCOMES, reason
from rolloutlib.evals.reports._report import Report, item_name
from rolloutlib.evals.reports._text import HIDDEN, utf16_length
from rolloutlib.evals.statistics import mean_score
from rolloutlib.rollouts import Step, Trajectory
from rolloutlib.scores import Score
from rolloutlib.training import TokenSequence, assemble_rows

__all__ = ["chunks", "script_json", "to_config", "to_payload"]

_CHUNK = 400_000
_SNIPPET = 160


def script_json(value: Any) -> str:
    """Return JSON, in ASCII, that may stand in a script element: nothing in it can end that."""
    return json.dumps(value, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")


def to_config(runs: Sequence[Report]) -> dict[str, Any]:
    """Return what the page knows before it looks at any sample.

    Args:
        runs: The report, and its baseline if there is one.
    """
    report = runs[0]
    return {
        "hidden": HIDDEN,
        "outcomes": {outcome: [kind.sign, kind.name] for outcome, kind in OUTCOMES.items()},
        "runs": [{"title": run.title, "unit": run.length_unit, **_index(run)} for run in runs],
        "items": _items(report) if report.comparison is None else _compared(runs),
    }


def _items(report: Report) -> list[dict[str, Any]]:
    places = {name: place for place, name in enumerate(report.samples)}
    groups = report.groups
    scores = {
        key: [
            None if (score := report.samples[name].score) is None else score.value for name in names
        ]
        for key, names in groups.items()
    }
    estimates = mean_score(scores).items
    return [
        {
            "name": key[1],
            "samples": [[places[name] for name in names]],
            "values": [estimates[key].value],
        }
        for key, names in groups.items()
    ]


def _compared(runs: Sequence[Report]) -> list[dict[str, Any]]:
    places: list[dict[str, list[int]]] = [{} for _ in runs]
    for run, samples in zip(runs, places, strict=True):
        for place, record in enumerate(run.samples.values()):
            samples.setdefault(item_name(record), []).append(place)
    return [
        {
            "name": item,
            "samples": [samples.get(item, []) for samples in places],
            "values": [
                run.estimate.items[item].value if item in run.estimate.items else None
                for run in runs
            ],
            "change": runs[0].changes.get(item),
        }
        for item in dict.fromkeys([item for samples in places for item in samples])
    ]


def _index(report: Report) -> dict[str, list[Any]]:
    """Return what lists, filters and orders of samples need, by columns."""
    entries = [_entry(report, name, record) for name, record in report.samples.items()]
    columns = _entry(report, "", EvaluationRecord(0)) if not entries else entries[0]
    return {column: [entry[column] for entry in entries] for column in columns}


def _entry(report: Report, name: str, record: EvaluationRecord) -> dict[str, Any]:
    row = to_row(record, ())
    return {
        "name": name,
        "outcome": record.outcome,
        "score": row["score"],
        "length": report.lengths.get(name),
        "seconds": record.seconds,
        "reason": reason(record),
        "expected": _shortened(row["expected"]),
        "extracted": _shortened(row["extracted"]),
        "snippet": _snippet(record),
    }


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
        form = script_json(to_payload(record, tokens=tokens))
        if forms and size + len(form) > _CHUNK:
            yield start, f"[{','.join(forms)}]"
            start, forms, size = start + len(forms), [], 0
        forms.append(form)
        size += len(form)
    if forms:
        yield start, f"[{','.join(forms)}]"


def to_payload(record: EvaluationRecord, *, tokens: bool = True) -> dict[str, Any]:
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
        "item": None if record.item is None else to_text(record.item, indent=2),
        "metadata": to_text(metadata, indent=2) if metadata else None,
        "rows": _rows(trajectory) if tokens and trajectory is not None else [],
    }
    return {key: value for key, value in payload.items() if value not in (None, [])}


def _turns(trajectory: Trajectory[Any, Any], score: Score | None) -> list[dict[str, Any]]:
    turns = conversation(trajectory)
    forms = [_turn(turn) for turn in turns]
    said = [number for number, turn in enumerate(turns) if turn.step is not None]
    if said:
        # A grader reads the text of the last action, so that is what its places are in.
        last = turns[said[-1]]
        text = last.parts[0] if last.parts and isinstance(last.parts[0], str) else ""
        marks = [
            {
                "start": utf16_length(text[: mark.start]),
                "stop": utf16_length(text[: mark.stop]),
                "status": mark.status,
                "label": mark.label,
            }
            for mark in highlights(score, len(text))
        ]
        if marks:
            forms[said[-1]]["marks"] = marks
    return forms


def _turn(turn: Turn) -> dict[str, Any]:
    form = {
        "role": turn.role,
        "parts": list(turn.parts),
        "step": turn.step,
        "calls": [_call(call) for call in turn.calls],
        "answers": turn.answers,
        "name": turn.name,
        "reasoning": turn.reasoning,
        "extra": turn.extra,
    }
    return {key: value for key, value in form.items() if value not in (None, [])}


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
            "policy": to_text(step.policy_info, indent=2) if step.policy_info else None,
        }
        for step in trajectory.steps
    ]


def _info(info: Mapping[str, Any]) -> str | None:
    """Return what an environment said, without the score, which has a place of its own."""
    rest = {key: value for key, value in info.items() if key != "score"}
    return to_text(rest, indent=2) if rest else None


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
        "epoch": record.epoch or None,
        "seed": record.seed,
        "attempts": record.attempts if record.attempts > 1 else None,
        "started": record.started,
        "seconds": None if record.seconds is None else f"{record.seconds:.3g}",
        "steps": len(trajectory.steps) if trajectory is not None else None,
    }
    return {name: str(value) for name, value in facts.items() if value is not None}


def _rows(trajectory: Trajectory[Any, Any]) -> list[dict[str, Any]]:
    """Return the tokens as rows for training, in which the mask tells the sampled ones."""
    told = [step.policy_logprobs is not None for step in trajectory.steps if step.policy_tokens]
    rows, report = assemble_rows(
        trajectory, logprobs=bool(told) and all(told), missing="skip", aborted=True
    )
    if report.num_missing_steps:  # there is more to show than can be trained on
        return [row for index, step in enumerate(trajectory.steps) if (row := _alone(index, step))]
    return [_row(row) for row in rows]


def _alone(index: int, step: Step[Any, Any]) -> dict[str, Any] | None:
    """Return what is known of the tokens of one step; an id that is not is None."""
    logprobs, prompt = step.policy_logprobs, step.policy_prompt_tokens or ()
    tokens = step.policy_tokens
    if tokens is None and logprobs is None:
        return None
    sampled = [None] * len(logprobs or ()) if tokens is None else list(tokens)
    span = [len(prompt), len(prompt) + len(sampled)]
    form = {"tokens": [*prompt, *sampled], "sampled": [span], "steps": [[*span, index]]}
    return form if logprobs is None else {**form, "logprobs": _finite(logprobs)}


def _row(row: TokenSequence) -> dict[str, Any]:
    edges = [0, *(np.flatnonzero(np.diff(row.loss_mask)) + 1).tolist(), len(row)]
    form: dict[str, Any] = {
        "tokens": row.tokens.tolist(),
        "sampled": [[start, stop] for start, stop in pairwise(edges) if row.loss_mask[start]],
        "steps": [[span.start, span.stop, span.step] for span in row.spans],
    }
    if row.logprobs is not None:
        form["logprobs"] = _finite(row.logprobs[row.loss_mask].tolist())
    return form


def _finite(logprobs: Sequence[float]) -> list[float | None]:
    return [round(each, 4) if math.isfinite(each) else None for each in logprobs]


def _snippet(record: EvaluationRecord) -> str:
    """Return the beginning of what was asked, or else of what went wrong."""
    if record.trajectory is None:
        return _shortened(record.error) or ""
    turns = conversation(Trajectory(record.trajectory.initial_observation))
    asked = [turn.text for turn in turns if turn.role != "system"]
    return _shortened(asked[0] if asked else "") or ""


def _shortened(text: str | None) -> str | None:
    if text is None or len(text) <= _SNIPPET:
        return text
    return text[: _SNIPPET - 1] + "…"
