"""`rolloutlib compare`: two logs, item by item."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from rolloutlib.evals import statistics
from rolloutlib.evals._command._errors import CommandError, ExitCode
from rolloutlib.evals._command._figures import comparison_figures
from rolloutlib.evals._command._logs import read_run
from rolloutlib.evals._command._options import OutputOptions
from rolloutlib.evals._command._output import stdout, tell_error, write_json
from rolloutlib.evals._results import BenchmarkResult
from rolloutlib.evals.statistics import (
    Comparison,
    Estimate,
    avg_at_k,
    mean_score,
    pass_at_k,
    pass_hat_k,
)
from rolloutlib.rollouts._identity import same_contents

if TYPE_CHECKING:
    from rolloutlib.evals.reports import Report

_METRICS: dict[str, Any] = {"avg@": avg_at_k, "pass@": pass_at_k, "pass^": pass_hat_k}


def compare(
    baseline: Annotated[
        Path, typer.Argument(help="The log or file of trajectories to compare with.")
    ],
    candidate: Annotated[Path, typer.Argument(help="The one that is to be better.")],
    output: OutputOptions,
    metric: Annotated[
        str,
        typer.Option(help="`mean`, `avg@K`, `pass@K` or `pass^K`, of K samples of each item."),
    ] = "mean",
    common: Annotated[
        bool,
        typer.Option("--common", help="Compare on the items that both have, though one has more."),
    ] = False,
    fail_if_worse: Annotated[
        bool,
        typer.Option("--fail-if-worse", help="Exit with 1 if the candidate is worse, at --alpha."),
    ] = False,
    alpha: Annotated[
        float,
        typer.Option(
            min=0, max=1, metavar="X", help="The p-value below which a difference counts."
        ),
    ] = 0.05,
) -> int:
    """Compare two runs on the same items.

    Runs of different benchmarks or items are refused, with exit code 2: what is compared has to differ in
    the model alone, or in the prompt.
    """
    old, new = read_run(baseline), read_run(candidate)
    _check_same(old, new)
    comparison = _compared(old.result, new.result, metric, common=common)
    is_worse = comparison.difference.value < 0 and comparison.p_value < alpha
    if output.json:
        figures = comparison_figures(comparison)
        write_json({"metric": metric, **figures, "alpha": alpha, "is_worse": is_worse})
    else:
        _tell(comparison, baseline, candidate)
    if fail_if_worse and is_worse:
        tell_error(f"the candidate is worse: p = {comparison.p_value:.3g}, below --alpha {alpha:g}")
        return ExitCode.NOT_MET
    return ExitCode.OK


def _check_same(baseline: Report, candidate: Report) -> None:
    """Refuse runs of which the one says nothing about the other.

    Raises:
        CommandError: They are of different benchmarks, or an item differs under one name.
    """
    from rolloutlib.evals.reports._report import item_name

    names = [report.settings.get("benchmark") for report in (baseline, candidate)]
    if names[0] != names[1]:
        kinds = [
            "a file of trajectories" if name is None else f"a log of {name!r}" for name in names
        ]
        msg = f"cannot compare {kinds[1]} with {kinds[0]}"
        raise CommandError(msg)
    items = {item_name(record): record.item for record in baseline.result.records}
    for record in candidate.result.records:
        name = item_name(record)
        if name in items and not same_contents(items[name], record.item):
            msg = f"the item {name!r} is not the same in both runs: they are of different data"
            raise CommandError(msg)


def _compared(
    baseline: BenchmarkResult, candidate: BenchmarkResult, metric: str, *, common: bool
) -> Comparison:
    """Compare a metric of two runs.

    Raises:
        CommandError: There is no such metric, or the runs do not allow it.
    """
    try:
        estimates = [_estimate(result, metric) for result in (baseline, candidate)]
        return statistics.compare(*estimates, on_common_items=common)
    except ValueError as error:
        text = str(error).replace("on_common_items=True", "--common")
        raise CommandError(text) from error


def _estimate(result: BenchmarkResult, metric: str) -> Estimate:
    if metric == "mean":
        return mean_score(result.item_scores)
    found = re.fullmatch(r"(avg@|pass@|pass\^)(\d+)", metric)
    if found is None:
        msg = f"--metric must be mean, avg@K, pass@K or pass^K, got {metric!r}"
        raise CommandError(msg)
    return _METRICS[found[1]](result.item_scores, int(found[2]))


def _tell(comparison: Comparison, baseline: Path, candidate: Path) -> None:
    table = Table.grid(padding=(0, 2, 0, 0))
    for name, estimate, path in (
        ("baseline", comparison.baseline, baseline),
        ("candidate", comparison.candidate, candidate),
    ):
        table.add_row(name, Text(f"{estimate.value:.4g}", "bold"), Text(f"{path}", "dim"))
    difference = comparison.difference
    interval = difference.t_interval()
    test = "too few items for an interval"
    if not math.isnan(comparison.p_value):
        test = (
            f"{interval.low:+.4g} to {interval.high:+.4g} ({interval.confidence:.0%}); "
            f"p = {comparison.p_value:.3g}, paired t test over {difference.num_items:,} items"
        )
    table.add_row("difference", Text(f"{difference.value:+.4g}", "bold"), test)
    counts = f"{comparison.num_better:,} better, {comparison.num_worse:,} worse, {comparison.num_equal:,} equal"
    exact = "sign test" if comparison.mcnemar_p_value is None else "McNemar's exact test"
    table.add_row("items", "", f"{counts}; p = {comparison.sign_p_value:.3g}, {exact}")
    if comparison.num_left_out:
        table.add_row("left out", "", f"{comparison.num_left_out:,} items")
    console = stdout()
    console.print(Text(difference.name, "dim"))
    console.print(table)
