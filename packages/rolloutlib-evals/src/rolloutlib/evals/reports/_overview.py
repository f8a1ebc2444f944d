"""What the page knows before it looks at any sample: enough to list, filter and order them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rolloutlib.evals._records import EvaluationRecord
from rolloutlib.evals._rows import to_row
from rolloutlib.evals.reports._conversation import conversation
from rolloutlib.evals.reports._figures import OUTCOMES, reason
from rolloutlib.evals.reports._report import Report, item_name
from rolloutlib.evals.reports._text import HIDDEN
from rolloutlib.evals.statistics import mean_score
from rolloutlib.rollouts import Trajectory

__all__ = ["to_overview"]

_SNIPPET = 160


def to_overview(runs: Sequence[Report]) -> dict[str, Any]:
    """Return what the page knows of its runs, as data that JSON can hold.

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
        "reason": _shortened(reason(record)),
        "expected": _shortened(row["expected"]),
        "extracted": _shortened(row["extracted"]),
        "snippet": _snippet(record),
    }


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
