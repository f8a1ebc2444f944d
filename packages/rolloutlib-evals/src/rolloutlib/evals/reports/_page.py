"""The report as a page."""

from __future__ import annotations

import base64
import hashlib
import os
from collections.abc import Callable, Iterator
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

import jinja2

import rolloutlib
from rolloutlib.evals.reports._charts import Chart, histogram, intervals, stack
from rolloutlib.evals.reports._figures import (
    OUTCOMES,
    comparison_figures,
    component_figures,
    count_words,
    figures,
    outcome_counts,
    reason_counts,
    settings_words,
)
from rolloutlib.evals.reports._overview import to_overview
from rolloutlib.evals.reports._payload import chunks, script_json
from rolloutlib.evals.reports._report import Report
from rolloutlib.evals.reports._text import visible

__all__ = ["write_html"]

SCRIPTS = ("dom", "data", "text", "tokens", "sample", "item", "list", "filters", "main")


def write_html(
    report: Report,
    path: str | os.PathLike[str],
    *,
    tokens: bool = True,
    token_text: Callable[[int], str] | None = None,
) -> None:
    """Write a report as one page that needs nothing else, and no network.

        write_html(report, "gsm8k.html", token_text=tokenizer.decode)

    Args:
        report: The report.
        path: The file, which appears when it is whole; one that exists is replaced.
        tokens: Whether to keep token ids, log probabilities and masks, which may be most of the page.
        token_text: Tells the text of a token, to show instead of its id.
    """
    path = Path(path)
    part = path.with_name(f"{path.name}.part")
    try:
        with part.open("w", encoding="utf-8", newline="\n") as file:
            context = _context(report, tokens=tokens, token_text=token_text)
            file.writelines(_template().generate(context))
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def _context(
    report: Report, *, tokens: bool, token_text: Callable[[int], str] | None
) -> dict[str, Any]:
    style, script = _asset("page.css"), _script()
    runs = [report] if report.baseline is None else [report, report.baseline]
    changes = report.comparison
    counts = outcome_counts(report)
    return {
        "policy": "; ".join(
            [
                "default-src 'none'",
                f"script-src {_hash(script)}",
                f"style-src {_hash(style)}",
                "img-src data:",
                "base-uri 'none'",
                "form-action 'none'",
                "require-trusted-types-for 'script'",
                "trusted-types 'none'",
            ]
        ),
        "style": style,
        "script": script,
        "title": report.title,
        "version": rolloutlib.__version__,
        "report": report,
        "kinds": OUTCOMES,
        "count_words": count_words,
        "signs": {"better": "▲", "worse": "▼", "equal": "="},
        "figures": figures(report),
        "counts": counts,
        "outcomes": stack(
            "Outcomes",
            {kind.name: counts[outcome] for outcome, kind in OUTCOMES.items()},
            styles={kind.name: outcome for outcome, kind in OUTCOMES.items()},
        ),
        "reasons": reason_counts(report),
        "components": component_figures(report),
        "charts": list(_charts(report)),
        "settings": settings_words(report.settings),
        "comparison": comparison_figures(report),
        "comparison_charts": list(_comparison_charts(report)),
        "changes": None
        if changes is None
        else {
            "better": changes.num_better,
            "worse": changes.num_worse,
            "equal": changes.num_equal,
        },
        "grouped": report.baseline is not None or len(report.groups) < len(report.samples),
        "config": script_json(to_overview(runs)),
        "chunks": _chunks(runs, tokens=tokens),
        "vocabulary": lambda: script_json(_vocabulary(runs, token_text if tokens else None)),
    }


def _charts(report: Report) -> Iterator[Chart]:
    styles = {"credited": "credited", "others": "others"}
    samples = report.samples.items()
    sides = [(name, record, record.outcome == "credited") for name, record in samples]
    scores = [(record.score.value, credited) for _, record, credited in sides if record.score]
    lengths = [
        (report.lengths[name], credited) for name, _, credited in sides if name in report.lengths
    ]
    for title, values, unit in (
        ("Scores of samples", scores, "score"),
        (f"Lengths of replies, in {report.length_unit}", lengths, report.length_unit),
    ):
        series = {
            "credited": [float(value) for value, credited in values if credited],
            "others": [float(value) for value, credited in values if not credited],
        }
        if values:
            yield histogram(title, series, styles=styles, unit=unit)


def _comparison_charts(report: Report) -> Iterator[Chart]:
    comparison = report.comparison
    if comparison is None or report.baseline is None:
        return
    rows: list[tuple[str, str, float, float, float]] = []
    for name, style, estimate in (
        (report.baseline.title, "baseline", comparison.baseline),
        (report.title, "candidate", comparison.candidate),
    ):
        interval = estimate.interval()
        rows.append((visible(name), style, estimate.value, interval.low, interval.high))
    yield intervals("Means over the items that both have, with 95% intervals", rows)
    interval = comparison.difference.t_interval()
    row = ("difference", "candidate", comparison.difference.value, interval.low, interval.high)
    yield intervals("Their paired difference, with its 95% interval", [row], zero=True)
    differences = list(comparison.difference.item_values.values())
    series = {
        "better": [value for value in differences if value > 0],
        "worse": [value for value in differences if value < 0],
        "equal": [value for value in differences if value == 0],
    }
    title = "Differences of items"
    yield histogram(title, series, styles={name: name for name in series}, unit="difference")


def _chunks(runs: list[Report], *, tokens: bool) -> Iterator[tuple[str, str]]:
    for run, report in enumerate(runs):
        for start, chunk in chunks(report, tokens=tokens):
            yield f"chunk-{run}-{start}", chunk


def _vocabulary(runs: list[Report], token_text: Callable[[int], str] | None) -> dict[int, str]:
    if token_text is None:
        return {}
    ids: set[int] = set()
    for report in runs:
        for record in report.samples.values():
            for step in () if record.trajectory is None else record.trajectory.steps:
                ids.update(step.policy_prompt_tokens or ())
                ids.update(step.policy_tokens or ())
    return {number: token_text(number) for number in sorted(ids)}


def _finalize(value: Any) -> Any:
    """Let nothing hidden into the page, wherever it comes from."""
    return visible(value) if type(value) is str else value


@cache
def _template() -> jinja2.Template:
    environment = jinja2.Environment(
        autoescape=True,
        finalize=_finalize,
        loader=jinja2.FunctionLoader(_asset),
        undefined=jinja2.StrictUndefined,
    )
    return environment.get_template("page.html")


@cache
def _script() -> str:
    """Return the scripts of the page as one, whose names are its own."""
    parts = "\n".join([_asset(f"{name}.js") for name in SCRIPTS])
    return f'"use strict";\n(() => {{\n{parts}}})();\n'


@cache
def _asset(name: str) -> str:
    return (resources.files("rolloutlib.evals.reports") / "assets" / name).read_text(
        encoding="utf-8"
    )


def _hash(text: str) -> str:
    """Return what a content security policy calls a text by."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
