"""Playing a run with a model: what `eval` and `collect` do alike from the first episode to the exit code."""

from __future__ import annotations

import contextlib
import shlex
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from rolloutlib.evals._command._errors import CommandError, ExitCode, describe
from rolloutlib.evals._command._gate import Gate
from rolloutlib.evals._command._models import default_concurrency, open_policy
from rolloutlib.evals._command._options import ModelOptions, RunOptions
from rolloutlib.evals._command._output import counted, stderr, tell, tell_error
from rolloutlib.evals._progress import ProgressDisplay
from rolloutlib.rollouts import RolloutEvent


@dataclass(frozen=True)
class Ended:
    """How a run has ended.

    Attributes:
        failure: What it was given up for, or None.
        was_interrupted: Whether Ctrl-C was pressed, and episodes may be left.
    """

    failure: Exception | None
    was_interrupted: bool


def play_run(
    play: Callable[[Gate, int], Awaitable[None]],
    model: ModelOptions,
    run: RunOptions,
    *,
    path: Path,
    heading: str,
    total: int,
    tools: Any,
    num_rollouts: int = 1,
) -> Ended:
    """Play a run until it ends or Ctrl-C ends it.

    Args:
        play: Plays all episodes with a policy, which is to be told the events too, so many at once.
        model: Which model is asked.
        run: How many episodes are played at once.
        path: Where the run is kept.
        heading: Is told as the first episode begins; not at all where a mistake comes first.
        total: How many episodes there are.
        tools: What the model may call, or None.
        num_rollouts: How many episodes a group has, which is finished if it has begun.

    Raises:
        CommandError: Nothing could be played.
        Exception: Whatever else came before the first episode.
    """
    concurrency = run.concurrency or default_concurrency(model)
    is_begun, failure = False, None
    with (
        open_policy(model, concurrency=concurrency, tools=tools) as policy,
        contextlib.ExitStack() as stack,
    ):
        display = ProgressDisplay(total, console=stderr())

        def on_event(event: RolloutEvent) -> None:
            nonlocal is_begun
            display(event)
            if not is_begun:
                is_begun = True
                tell(heading)
                stack.enter_context(display)

        gate = Gate(policy, on_event, num_rollouts=num_rollouts)

        async def play_with_policy() -> None:
            async with policy:
                await play(gate, concurrency)

        try:
            gate.run(play_with_policy)
        except Exception as error:
            failure = error
    if gate.refusal is not None:
        raise CommandError(str(gate.refusal), ExitCode.BROKEN) from gate.refusal
    if not is_begun:
        _refuse(failure, path)
    return Ended(failure, gate.is_closed)


def conclude(
    ended: Ended, path: Path, noun: str, *, resume: str | None, played: int, failed: int, left: int
) -> ExitCode:
    """Tell what was amiss with a run, and return how the command ends.

    Args:
        ended: How the run has ended.
        path: Where it is kept.
        noun: What is counted.
        resume: The command that goes on with it, or None if it was not interrupted.
        played: How many there are now.
        failed: How many of them failed.
        left: How many were not played.
    """
    if resume is not None:
        tell(f"interrupted; {path} keeps what had ended, and this goes on:\n  {resume}")
        return ExitCode.INTERRUPTED
    if ended.failure is not None:
        failure = ended.failure
        told = str(failure) if isinstance(failure, CommandError) else describe(failure)
        tell_error(f"{told}; not played: {counted(left, noun)}")
        return ExitCode.NOT_MET
    if failed and failed == played:
        why = f"rolloutlib show {shlex.quote(str(path))} --outcome failed"
        tell_error(f"all of {counted(failed, noun)} failed: {why} tells of each")
        return ExitCode.NOT_MET
    return ExitCode.OK


def _refuse(error: Exception | None, path: Path) -> NoReturn:
    """Raise what kept a run from beginning."""
    if error is None:  # Ctrl-C came first
        msg = "interrupted before anything was played"
        raise CommandError(msg, ExitCode.INTERRUPTED)
    if isinstance(error, OSError):
        msg = f"cannot write {str(path)!r}: {error.strerror or error}; --log names another file"
        raise CommandError(msg) from error
    if isinstance(error, (TypeError, ValueError)):
        msg = str(error).replace("or another file", "or another file by --log")
        raise CommandError(msg) from error
    raise error
