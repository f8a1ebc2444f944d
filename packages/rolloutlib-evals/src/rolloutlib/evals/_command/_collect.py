"""`rolloutlib collect`: trajectories of an environment or a data set, with a model."""

from __future__ import annotations

import dataclasses
import functools
import shlex
from pathlib import Path
from typing import Annotated, Any

import typer

from rolloutlib._values import snapshot
from rolloutlib.datasets import RLDataset
from rolloutlib.evals._benchmark import Benchmark
from rolloutlib.evals._command._gate import Gate
from rolloutlib.evals._command._models import check_model, model_name
from rolloutlib.evals._command._options import (
    Arguments,
    ModelOptions,
    OutputOptions,
    RunOptions,
)
from rolloutlib.evals._command._output import counted, stdout, tell, write_json
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
from rolloutlib.evals._plain import encode, fingerprint, to_plain
from rolloutlib.evals._samples import item_names
from rolloutlib.rollouts import Summary, acollect, summarize
from rolloutlib.storage import GroupStore, read_groups


def collect(
    context: typer.Context,
    source: Annotated[
        str,
        typer.Argument(
            help="`module:attribute` of an environment's class, a data set or a benchmark, or of a function "
            "that returns one; or a benchmark of `rolloutlib list`.",
            autocompletion=complete_benchmark,
        ),
    ],
    model: ModelOptions,
    run: RunOptions,
    output: OutputOptions,
    arg: Arguments = None,
    items: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="JSON Lines; an environment is made of each item."),
    ] = None,
    num_rollouts: Annotated[
        int,
        typer.Option(
            "--num-rollouts",
            "-r",
            min=1,
            metavar="N",
            help="How many episodes of each item.",
            rich_help_panel="The run",
        ),
    ] = 1,
    log: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Keeps each item's group when it ends; the same command goes on with it. By default a "
            "file in the folder `runs`.",
        ),
    ] = None,
) -> int:
    """Write trajectories of an environment or a data set, played by a model.

    The file has a group of trajectories for each item, to be read by `rolloutlib.storage.read_groups` or
    by `rolloutlib show`. Ctrl-C lets the groups in flight end, and the same command goes on.
    """
    check_model(model)
    arguments = read_pairs("--arg", arg)
    benchmark = read_source(source, arguments, items)
    tools = tools_of(benchmark)
    dataset = _plain_dataset(benchmark).take(run.limit)
    name = model_name(model)
    path = log or default_log(
        f"{benchmark.name}-trajectories",
        name,
        {"num_rollouts": num_rollouts, "limit": run.limit, **settings_of(run, model, arguments)},
        {"num_rollouts": 1},
    )
    shared = run_arguments(run, model)
    shared["metadata"] = {"model": name, **shared["metadata"]}
    total = len(dataset) * num_rollouts

    async def play(gate: Gate, concurrency: int) -> None:
        async with acollect(
            dataset,
            dataset.make_env,
            gate,
            num_rollouts=num_rollouts,
            concurrency=concurrency,
            inline=benchmark.inline,
            on_error="raise" if run.fail_fast else "record",
            on_event=gate.on_event,
            store=GroupStore(path, encode=encode, decode=lambda _, value: value),
            **shared,
        ) as groups:
            async for _ in groups:  # the store keeps them
                pass

    ended = play_run(
        play,
        model,
        run,
        path=path,
        heading=f"{benchmark.name}: {counted(total, 'episode')} with {name}\n"
        + log_words(path, "group", is_evaluation=False),
        total=total,
        tools=tools,
        num_rollouts=num_rollouts,
    )
    summary = summarize(read_groups(path, decode=lambda _, value: value))
    left = total - summary.requested
    resume = resume_command(context) if ended.was_interrupted and left > 0 else None
    _tell_summary(summary, name, path, resume, output)
    return conclude(
        ended,
        path,
        "episode",
        resume=resume,
        played=summary.requested,
        failed=summary.failed,
        left=left,
    )


def _tell_summary(
    summary: Summary, model: str, path: Path, resume: str | None, output: OutputOptions
) -> None:
    facts = dataclasses.asdict(summary)
    if output.json:
        write_json({"model": model, **facts, "log": str(path), "resume": resume})
        return
    console = stdout()
    reward = "unknown" if summary.mean_reward is None else f"{summary.mean_reward:.4g}"
    over = counted(summary.completed + summary.truncated, "episode")
    console.print(f"mean reward {reward} over {over}")
    told = f", {counted(summary.tokens, 'token id')}" if summary.tokens else ""
    console.print(
        f"{counted(summary.groups, 'group')}: {summary.completed:,} episodes completed, "
        f"{summary.truncated:,} truncated, {summary.failed:,} failed; "
        f"{counted(summary.steps, 'step')}{told}"
    )
    tell(f"\nto read them: rolloutlib show {shlex.quote(str(path))} --samples, or --html FILE")


def _plain_dataset(benchmark: Benchmark[Any]) -> RLDataset[Any, Any]:
    """Return the items as data, which a file can hold and give back, with their environments."""
    plain = [to_plain(item) for item in benchmark.items]
    names = item_names(benchmark)
    indices = {_key(item): index for index, item in reversed(list(enumerate(plain)))}

    @functools.wraps(benchmark.make_env)
    def make_env(item: Any) -> Any:
        return benchmark.make_env(snapshot(benchmark.items[indices[_key(item)]]))

    return RLDataset(
        plain,
        dict(benchmark.metadata),
        make_env=make_env,
        get_item_id=lambda item: names[indices[_key(item)]],
    )


def _key(item: Any) -> str:
    return fingerprint([""], [item])
