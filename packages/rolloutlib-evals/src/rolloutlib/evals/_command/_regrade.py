"""`rolloutlib regrade`: a log with new scores, without a model."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated, Any, cast

import typer

from rolloutlib.evals._command._errors import CommandError, ExitCode
from rolloutlib.evals._command._figures import result_figures
from rolloutlib.evals._command._logs import check_file
from rolloutlib.evals._command._options import Arguments, OutputOptions
from rolloutlib.evals._command._output import counted, stdout, tell, tell_error, write_json
from rolloutlib.evals._command._pairs import read_pairs
from rolloutlib.evals._command._sources import complete_benchmark, read_source
from rolloutlib.evals._command._targets import load_target
from rolloutlib.evals._log import read_log
from rolloutlib.evals._records import EvaluationRecord
from rolloutlib.evals._regrade import regrade_log
from rolloutlib.evals._results import BenchmarkResult


def regrade(
    log: Annotated[Path, typer.Argument(help="The log of an evaluation.")],
    output: OutputOptions,
    benchmark: Annotated[
        str | None,
        typer.Argument(
            help="Its environments grade the answers again: a benchmark of `rolloutlib list`, or "
            "`module:attribute`.",
            autocompletion=complete_benchmark,
        ),
    ] = None,
    arg: Arguments = None,
    grade: Annotated[
        str | None,
        typer.Option(
            metavar="TARGET",
            help="In place of a benchmark `module:attribute`, a function from an `EvaluationRecord` to a score.",
        ),
    ] = None,
    to: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="A new log of the samples with their new scores."),
    ] = None,
) -> int:
    """Grade the samples of a log anew.

    Answers and graders may have changed, prompts may not: what the log has would be no answer to them.
    """
    check_file(log)
    try:
        before = read_log(log)
    except ValueError as error:
        raise CommandError(str(error)) from error
    if (benchmark is None) == (grade is None):
        name = before.header["benchmark"]
        msg = f"name a benchmark, or --grade module:function; not both. The log is of {name!r}"
        raise CommandError(msg)
    arguments = read_pairs("--arg", arg)
    if benchmark is None and arguments:
        msg = "--arg is for a benchmark, and --grade has none"
        raise CommandError(msg)
    source = None if benchmark is None else read_source(benchmark, arguments)
    function: Any = None if grade is None else load_target(grade)
    if grade is not None and not callable(function):
        msg = f"--grade must name a function of an EvaluationRecord, got {function!r}"
        raise CommandError(msg)
    try:
        result = regrade_log(log, source, grade=cast("Any", function), to=to)
    except OSError as error:
        msg = (
            str(error) if error.strerror is None else f"cannot write {str(to)!r}: {error.strerror}"
        )
        raise CommandError(msg) from error
    except (TypeError, ValueError) as error:
        raise CommandError(str(error)) from error
    old = before.result()
    changed = _changed(old.records, result.records)
    if output.json:
        figures = {"before": result_figures(old), "after": result_figures(result)}
        write_json(
            {
                **figures,
                "num_changed": len(changed),
                "changed": changed,
                "log": None if to is None else str(to),
            }
        )
    else:
        console = stdout()
        console.print(f"score {old.score:.4g} before, {result.score:.4g} now")
        console.print(f"{len(changed):,} of {result.num_examples:,} samples changed")
        for name in changed[:10]:
            console.print(f"  {name}", markup=False)
        if to is not None:
            show = shlex.join(["rolloutlib", "show", str(to), "--baseline", str(log)])
            tell(f"\n{show}  # what changed")
    if result.num_errors > old.num_errors:
        count = counted(result.num_errors - old.num_errors, "sample")
        tell_error(f"{count} cannot be graded now; the first: {_new_error(old, result)}")
        return ExitCode.NOT_MET
    return ExitCode.OK


def _new_error(before: BenchmarkResult, after: BenchmarkResult) -> str:
    """Return the text of the first error that was not there before."""
    pairs = zip(before.records, after.records, strict=True)
    return next(f"{new.error}" for old, new in pairs if new.error is not None and old.error is None)


def _changed(
    before: tuple[EvaluationRecord, ...], after: tuple[EvaluationRecord, ...]
) -> list[str]:
    """Return the names of the samples whose scores differ, as `show` knows them."""
    from rolloutlib.evals.reports._report import named_samples

    return [
        name
        for old, (name, new) in zip(before, named_samples(after).items(), strict=True)
        if (old.score and old.score.value) != (new.score and new.score.value)
    ]
