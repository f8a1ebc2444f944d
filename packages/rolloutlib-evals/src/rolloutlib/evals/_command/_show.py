"""`rolloutlib show`: what came of a run, on the terminal or as a page."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from rolloutlib.evals._command._errors import CommandError, ExitCode
from rolloutlib.evals._command._figures import report_figures
from rolloutlib.evals._command._logs import read_run
from rolloutlib.evals._command._options import OutputOptions
from rolloutlib.evals._command._output import stdout, tell, write_json
from rolloutlib.evals._records import EvaluationRecord
from rolloutlib.evals._rows import component_names, to_row

_FILTERS = "Which samples"


class OutcomeName(StrEnum):
    """The outcomes that there are."""

    CREDITED = "credited"
    WRONG = "wrong"
    NO_ANSWER = "no_answer"
    TRUNCATED = "truncated"
    FAILED = "failed"


class ChangeName(StrEnum):
    """How an item may fare against a baseline."""

    BETTER = "better"
    WORSE = "worse"
    EQUAL = "equal"


def show(
    path: Annotated[Path, typer.Argument(help="A log, or a file of trajectories.")],
    output: OutputOptions,
    sample: Annotated[
        str | None, typer.Argument(help="Show this sample in full: its item, or `item#epoch`.")
    ] = None,
    html: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Write one page that needs no network, in place of text."
        ),
    ] = None,
    tokens: Annotated[
        bool,
        typer.Option(
            "--tokens/--no-tokens", help="Whether the page has token ids and log probabilities."
        ),
    ] = True,
    baseline: Annotated[
        Path | None, typer.Option(metavar="FILE", help="A run to compare with, item by item.")
    ] = None,
    samples: Annotated[
        bool, typer.Option("--samples", "-s", help="List the samples.", rich_help_panel=_FILTERS)
    ] = False,
    outcome: Annotated[
        list[OutcomeName] | None,
        typer.Option(
            help="List samples of this outcome; may be repeated.", rich_help_panel=_FILTERS
        ),
    ] = None,
    text: Annotated[
        str | None,
        typer.Option(help="List samples in which this is said.", rich_help_panel=_FILTERS),
    ] = None,
    min_score: Annotated[
        float | None,
        typer.Option(
            metavar="X", help="List samples of at least this score.", rich_help_panel=_FILTERS
        ),
    ] = None,
    max_score: Annotated[
        float | None,
        typer.Option(
            metavar="X", help="List samples of at most this score.", rich_help_panel=_FILTERS
        ),
    ] = None,
    change: Annotated[
        list[ChangeName] | None,
        typer.Option(help="With --baseline: list samples of such items.", rich_help_panel=_FILTERS),
    ] = None,
    limit: Annotated[
        int,
        typer.Option(
            "--limit", "-n", min=1, metavar="N", help="List so many.", rich_help_panel=_FILTERS
        ),
    ] = 20,
) -> int:
    """Show a run: its figures, its samples, or one sample in full."""
    from rolloutlib.evals import reports

    filters: dict[str, Any] = {
        "outcome": [each.value for each in outcome or ()],
        "text": text,
        "min_score": min_score,
        "max_score": max_score,
        "change": [each.value for each in change or ()],
    }
    given = [name for name, value in filters.items() if value not in (None, [])]
    _check_filters(given, sample, html)
    if html is not None:
        _check_page(html, path, baseline)
    report = read_run(path, baseline)
    if html is not None:
        try:
            reports.write_html(report, html, tokens=tokens)
        except OSError as error:
            msg = f"cannot write {str(html)!r}: {error.strerror or error}"
            raise CommandError(msg) from error
        tell(f"wrote {html}")
        if output.json:
            write_json({**report_figures(report), "html": str(html)})
        return ExitCode.OK
    if sample is not None:
        try:
            record = report.sample(sample)
        except LookupError as error:
            hint = "" if "did you mean" in str(error) else "; --samples lists them"
            msg = f"{error.args[0]}{hint}"
            raise CommandError(msg) from error
        if output.json:
            write_json(_sample(record))
        else:
            reports.print_sample(report, sample, stdout())
        return ExitCode.OK
    found = None
    if samples or given:
        outcomes, changes = filters.pop("outcome"), filters.pop("change")
        try:
            found = report.select(outcomes=outcomes, changes=changes, **filters)
        except ValueError as error:
            msg = "--change needs --baseline" if change else str(error)
            raise CommandError(msg) from error
    if output.json:
        figures = report_figures(report)
        if found is not None:
            names = component_names(found.values())
            figures["samples"] = [
                {"name": name, **to_row(record, names)}
                for name, record in list(found.items())[:limit]
            ]
        write_json(figures)
    elif found is not None:
        reports.print_samples(report, found, stdout(), limit=limit)
    else:
        reports.print_summary(report, stdout())
    return ExitCode.OK


def _check_filters(given: Sequence[str], sample: str | None, html: Path | None) -> None:
    """Refuse filters where nothing is listed, and a sample where a page of all is written.

    Raises:
        CommandError: There is one.
    """
    options = [f"--{name.replace('_', '-')}" for name in given]
    if html is not None and (sample is not None or options):
        extra = repr(sample) if sample is not None else options[0]
        msg = (
            f"--html writes a page of all samples, which has filters of its own: leave out {extra}"
        )
        raise CommandError(msg)
    if sample is not None and options:
        msg = f"{sample!r} is one sample, which no filter is for: leave out {options[0]}"
        raise CommandError(msg)


def _check_page(html: Path, *runs: Path | None) -> None:
    """Refuse a file for a page that is a folder, or what is read.

    Raises:
        CommandError: It is one.
    """
    if html.is_dir():
        msg = f"{str(html)!r} is a folder: name a file in it"
        raise CommandError(msg)
    if html.exists() and any(
        run is not None and run.exists() and html.samefile(run) for run in runs
    ):
        msg = f"{str(html)!r} is the run itself: give the page another name"
        raise CommandError(msg)


def _sample(record: EvaluationRecord) -> dict[str, Any]:
    """Return a record with all that was said in it."""
    trajectory = record.trajectory
    steps = () if trajectory is None else trajectory.steps
    return {
        **to_row(record, component_names([record])),
        "score_metadata": None if record.score is None else dict(record.score.metadata),
        "steps": [
            {
                "observation": step.observation,
                "action": step.action,
                "reward": step.reward,
                "stop_reason": step.policy_stop_reason,
                "policy_info": step.policy_info,
            }
            for step in steps
        ],
        "final_observation": steps[-1].next_observation if steps else None,
    }
