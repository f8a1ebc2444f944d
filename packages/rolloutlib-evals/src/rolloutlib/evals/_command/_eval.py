"""`rolloutlib eval`: a model on a benchmark."""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

import typer

from rolloutlib.evals._benchmark import Benchmark
from rolloutlib.evals._command._errors import CommandError, ExitCode, nearest
from rolloutlib.evals._command._figures import report_figures
from rolloutlib.evals._command._gate import Gate
from rolloutlib.evals._command._logs import read_run
from rolloutlib.evals._command._models import check_model, model_name
from rolloutlib.evals._command._options import (
    Arguments,
    ModelOptions,
    OutputOptions,
    RunOptions,
)
from rolloutlib.evals._command._output import counted, stdout, tell, tell_error, write_json
from rolloutlib.evals._command._pairs import read_pairs
from rolloutlib.evals._command._playing import conclude, play_run
from rolloutlib.evals._command._runs import (
    default_log,
    log_words,
    resume_command,
    run_arguments,
    settings_of,
    tools_of,
)
from rolloutlib.evals._command._sources import complete_benchmark, read_source
from rolloutlib.evals._run import arun_benchmark
from rolloutlib.evals._samples import item_names
from rolloutlib.evals._stopping import ScoreRangeError, StopWhen


def evaluate(
    context: typer.Context,
    benchmark: Annotated[
        str,
        typer.Argument(
            help="A benchmark of `rolloutlib list`, or `module:attribute` of one or of a data set.",
            autocompletion=complete_benchmark,
        ),
    ],
    model: ModelOptions,
    run: RunOptions,
    output: OutputOptions,
    arg: Arguments = None,
    epochs: Annotated[
        int,
        typer.Option(
            min=1, metavar="N", help="How often each item is played.", rich_help_panel="The run"
        ),
    ] = 1,
    shuffle: Annotated[
        bool,
        typer.Option(
            "--shuffle",
            help="With --limit: a random sample of the items.",
            rich_help_panel="The run",
        ),
    ] = False,
    item: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME", help="Only this item; may be repeated.", rich_help_panel="The run"
        ),
    ] = None,
    max_errors: Annotated[
        int | None,
        typer.Option(
            min=0,
            metavar="N",
            help="Give up when more samples have failed.",
            rich_help_panel="The run",
        ),
    ] = None,
    stop_width: Annotated[
        float | None,
        typer.Option(
            metavar="X",
            help="Stop when the interval of the score is as narrow as this; needs --shuffle.",
            rich_help_panel="The run",
        ),
    ] = None,
    retry_failed: Annotated[
        bool,
        typer.Option(
            "--retry-failed",
            help="Play the samples again that failed in the log.",
            rich_help_panel="The run",
        ),
    ] = False,
    log: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Keeps each sample when it ends; the same command goes on with it. By default a file in "
            "the folder `runs`.",
        ),
    ] = None,
    min_score: Annotated[
        float | None, typer.Option(metavar="X", help="Exit with 1 if the score is lower.")
    ] = None,
) -> int:
    """Evaluate a model on a benchmark.

    Every sample is in the log when it ends. Ctrl-C lets the episodes in flight end, and the same command
    goes on; a second Ctrl-C stops at once.
    """
    from rolloutlib.evals import reports

    stop_when = _read_stop(stop_width, shuffle=shuffle)
    check_model(model)
    arguments = read_pairs("--arg", arg)
    source = read_source(benchmark, arguments)
    _check_items(source, item or ())
    tools = tools_of(source)
    samples: dict[str, Any] = {
        "epochs": epochs,
        "shuffle": shuffle,
        "limit": run.limit,
        "item_ids": item or None,
    }
    name = model_name(model)
    path = log or default_log(
        source.name,
        name,
        {**samples, "stop_width": stop_width, **settings_of(run, model, arguments)},
        {"epochs": 1, "shuffle": False},
    )
    total = len(set(item) if item else source.items)
    total = min(total, total if run.limit is None else run.limit) * epochs
    shared = run_arguments(run, model)

    async def play(gate: Gate, concurrency: int) -> None:
        try:
            await arun_benchmark(
                source,
                policy=gate,
                model=name,
                log=path,
                concurrency=concurrency,
                fail_fast=run.fail_fast,
                max_errors=max_errors,
                stop_when=stop_when,
                retry_failed=retry_failed,
                on_event=gate.on_event,
                **samples,
                **shared,
            )
        except ScoreRangeError as error:
            msg = f"{error.found}, and --stop-width needs scores from 0 to 1; run without it"
            raise CommandError(msg, ExitCode.NOT_MET) from error

    ended = play_run(
        play,
        model,
        run,
        path=path,
        heading=f"{source.name}: {counted(total, 'sample')} with {name}\n"
        + log_words(path, "sample", is_evaluation=True),
        total=total,
        tools=tools,
    )
    report = read_run(path)
    result = report.result
    is_interrupted = ended.was_interrupted and not result.is_over
    resume = resume_command(context) if is_interrupted else None
    if output.json:
        write_json({**report_figures(report), "log": str(path), "resume": resume})
    else:
        reports.print_summary(report, stdout())
        if not is_interrupted:
            tell(
                f"\nto read the samples: rolloutlib show {shlex.quote(str(path))} --samples, or --html FILE"
            )
        if result.num_errors and not is_interrupted:
            tell(f"to play again what failed: {resume_command(context, '--retry-failed')}")
    code = conclude(
        ended,
        path,
        "sample",
        resume=resume,
        played=result.num_examples,
        failed=result.num_errors,
        left=result.num_remaining,
    )
    if code is not ExitCode.OK:
        return code
    if min_score is not None and not result.score >= min_score:
        tell_error(f"the score {result.score:.4g} is below --min-score {min_score:g}")
        return ExitCode.NOT_MET
    return ExitCode.OK


def _read_stop(width: float | None, *, shuffle: bool) -> StopWhen | None:
    """Return when the run may stop early.

    Raises:
        CommandError: There is no such width, or the items are not in random order.
    """
    if width is None:
        return None
    if not shuffle:
        msg = "--stop-width needs --shuffle: the first items of a benchmark may be its easiest"
        raise CommandError(msg)
    try:
        return StopWhen(width)
    except ValueError as error:
        msg = f"--stop-width: {error}"
        raise CommandError(msg) from error


def _check_items(source: Benchmark[Any], wanted: Iterable[str]) -> None:
    """Refuse the names of no items, with the nearest name.

    Raises:
        CommandError: There is such a name.
    """
    names = item_names(source)
    for name in wanted:
        if name not in names:
            msg = f"{source.name!r} has no item {name!r}{nearest(name, names)}"
            raise CommandError(msg)
