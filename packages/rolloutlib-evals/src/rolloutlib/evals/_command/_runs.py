"""What `eval` and `collect` have in common: their arguments, where they write, and what they play."""

from __future__ import annotations

import contextlib
import hashlib
import inspect
import json
import re
import shlex
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import anyio
import typer

from rolloutlib.evals._benchmark import Benchmark
from rolloutlib.evals._command._errors import CommandError, ExitCode, describe
from rolloutlib.evals._command._models import sampling
from rolloutlib.evals._command._options import ModelOptions, RunOptions
from rolloutlib.evals._command._output import counted
from rolloutlib.rollouts import Retry, Timeouts
from rolloutlib.storage import read_settings

FOLDER = "runs"


def run_arguments(options: RunOptions, model: ModelOptions) -> dict[str, Any]:
    """Return the arguments that `arun_benchmark` and `acollect` share, from options.

    Raises:
        CommandError: One has no usable value.
    """
    timeout = options.episode_timeout
    try:
        timeouts = None if timeout is None else Timeouts(episode=timeout)
    except ValueError as error:
        msg = f"--episode-timeout: {error}"
        raise CommandError(msg) from error
    return {
        "seed": options.seed,
        "max_steps": options.max_steps,
        "retry": Retry(attempts=options.attempts) if options.attempts > 1 else None,
        "timeouts": timeouts,
        "max_failures": options.max_failures,
        "metadata": {"sampling": sampling(model)},
    }


def settings_of(
    options: RunOptions, model: ModelOptions, arguments: Mapping[str, Any]
) -> dict[str, Any]:
    """Return what of the shared options tells one run from another, without what is left out."""
    settings = {
        "arg": dict(arguments) or None,
        "seed": options.seed or None,
        "max_steps": options.max_steps,
        **sampling(model),
        "max_tokens": model.max_tokens,
    }
    return {name: value for name, value in settings.items() if value is not None}


def default_log(
    name: str, model: str, settings: Mapping[str, Any], defaults: Mapping[str, Any]
) -> Path:
    """Return the file that a run keeps itself in: the same command finds it again.

    Args:
        name: What is played.
        model: The model's name.
        settings: What else tells one run from another.
        defaults: Those of a run without options; a run with others has a mark in the name of its file.
    """
    chosen = {key: value for key, value in settings.items() if value != defaults.get(key)}
    mark = ""
    if chosen:
        text = json.dumps(chosen, sort_keys=True, default=repr)
        mark = f"-{hashlib.sha256(text.encode()).hexdigest()[:6]}"
    return Path(FOLDER) / f"{_slug(name)}-{_slug(model)}{mark}.jsonl"


def log_words(path: Path, noun: str, *, is_evaluation: bool) -> str:
    """Return where a run is kept, and what is there.

    Raises:
        CommandError: The file has what the other of `eval` and `collect` keeps.
    """
    there = ""
    with contextlib.suppress(OSError, ValueError):  # the run itself says what is wrong with it
        settings = read_settings(path)
        if settings is not None and ("evaluation" in settings) != is_evaluation:
            kind = "a file of trajectories" if is_evaluation else "a log of an evaluation"
            msg = f"{str(path)!r} is {kind}: --log names another file"
            raise CommandError(msg)
        with path.open("rb") as file:
            kept = sum(1 for _ in file) - 1
        there = f", which has {counted(kept, noun)}" if kept else ""
    return f"log: {path}{there}"


def resume_command(context: typer.Context, option: str | None = None) -> str:
    """Return the command that goes on with the run, to be pasted into a shell.

    Args:
        context: What the command was called with.
        option: A further option, unless it is there.
    """
    arguments: list[str] = context.obj or []
    more = [] if option is None or option in arguments else [option]
    return shlex.join(["rolloutlib", *arguments, *more])


def tools_of(benchmark: Benchmark[Any]) -> Any:
    """Return the tools that the environment of the first item offers, or None.

    Raises:
        CommandError: There are no items, or the environment cannot be made.
    """
    if not benchmark.items:
        msg = f"{benchmark.name!r} has no items"
        raise CommandError(msg)
    try:
        return anyio.run(_tools, benchmark)
    except Exception as error:  # whatever a user's environment raises
        msg = (
            f"cannot make an environment of the first item of {benchmark.name!r}: {describe(error)}"
        )
        raise CommandError(msg, ExitCode.BROKEN) from error


async def _tools(benchmark: Benchmark[Any]) -> Any:
    environment: Any = await _value(benchmark.make_env(benchmark.items[0]))
    try:
        # Also those of one within wrappers; what is no environment is refused when it is played.
        has: Callable[[str], bool] | None = getattr(environment, "has_wrapper_attr", None)
        tools: Any = environment.get_wrapper_attr("tools") if has and has("tools") else None
        return tools if tools and hasattr(tools, "definitions") else None
    finally:
        close: Callable[[], Any] | None = getattr(environment, "close", None)
        if close is not None:
            await _value(close())


async def _value(value: Any) -> Any:
    return await value if inspect.isawaitable(value) else value


def _slug(text: str) -> str:
    """Return a text as a part of a file's name."""
    return re.sub(r"[^\w.-]+", "-", text).strip("-.") or "model"
