"""`rolloutlib check`: whether an environment, a policy or a grader keeps its contract."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Mapping
from enum import StrEnum
from functools import partial
from typing import Annotated, Any, cast

import anyio
import typer
from rich.text import Text

from rolloutlib._calls import is_awaitable
from rolloutlib.envs import AsyncEnv, ChatEnv, as_async, check_async_env, check_env
from rolloutlib.evals._benchmark import Benchmark
from rolloutlib.evals._command._errors import CommandError, ExitCode
from rolloutlib.evals._command._findings import Findings
from rolloutlib.evals._command._options import Arguments, OutputOptions
from rolloutlib.evals._command._output import counted, stdout, tell, write_json
from rolloutlib.evals._command._pairs import read_pairs
from rolloutlib.evals._command._sources import (
    complete_benchmark,
    is_source,
    is_target,
    read_items,
    read_source,
)
from rolloutlib.evals._command._targets import call_target, load_target, required
from rolloutlib.rollouts import arollout

_MOST_STEPS = 10


class Kind(StrEnum):
    """What can be checked."""

    ENVIRONMENT = "environment"
    POLICY = "policy"
    GRADER = "grader"


def check(
    target: Annotated[
        str,
        typer.Argument(
            help="`module:attribute` of an environment, a data set, a policy or a grader, or of its class "
            "or a function that returns it; or a benchmark of `rolloutlib list`.",
            autocompletion=complete_benchmark,
        ),
    ],
    output: OutputOptions,
    kind: Annotated[
        Kind | None,
        typer.Option(
            "--as",
            help="What it is, where that cannot be told: a function of an observation is "
            "a policy, and one of an input and a rubric a grader.",
        ),
    ] = None,
    arg: Arguments = None,
    items: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="JSON Lines; an environment is made of each item."),
    ] = None,
    limit: Annotated[
        int,
        typer.Option(
            "--limit", "-n", min=1, metavar="N", help="Check the environments of so many items."
        ),
    ] = 3,
    action: Annotated[
        str | None,
        typer.Option(
            metavar="JSON", help="What to do in the environment; by default something at random."
        ),
    ] = None,
    faults: Annotated[
        bool,
        typer.Option(
            "--faults/--no-faults", help="Whether to let each call fail in turn; some seconds."
        ),
    ] = True,
    prompt: Annotated[str, typer.Option(help="What a policy is asked.")] = "What is 2 + 2?",
    env: Annotated[
        str | None,
        typer.Option(
            metavar="TARGET", help="The environment for a policy, in place of a chat of one turn."
        ),
    ] = None,
    cases: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help='For a grader: JSON Lines with "prompt", "reference" and a right "answer".',
        ),
    ] = None,
) -> int:
    """Check that an environment, a policy or a grader keeps its contract.

    The checks are those of `rolloutlib.testing`. Exit code 1 tells that something does not hold.
    """
    arguments = read_pairs("--arg", arg)
    value: Any = load_target(target) if is_target(target) else None
    kind = kind or _kind_of(target, value, cases)
    findings = Findings(output.debug)
    if kind is Kind.ENVIRONMENT:
        source = read_source(target, arguments, items)
        _check_environment(findings, source, limit, _read_action(action), faults=faults)
    elif kind is Kind.POLICY:
        source = None if env is None else read_source(env, {}, items)
        _check_policy(findings, _instance(target, value, arguments), source, prompt, faults=faults)
    else:
        _check_grader(findings, _instance(target, value, arguments), cases)
    if output.json:
        write_json(
            {
                "target": target,
                "kind": kind.value,
                "is_passed": not findings.problems,
                "passed": findings.passed,
                "problems": findings.problems,
            }
        )
    else:
        console = stdout()
        for text in findings.passed:
            console.print(Text.assemble(("ok      ", "green"), text))
        for text in findings.problems:
            console.print(Text.assemble(("problem ", "bold red"), text))
    return ExitCode.NOT_MET if findings.problems else ExitCode.OK


def _check_environment(
    findings: Findings, source: Benchmark[Any], limit: int, action: Any, *, faults: bool
) -> None:
    if not source.items:
        msg = f"{source.name!r} has no items"
        raise CommandError(msg)
    taken: Any = None
    for index in range(min(limit, len(source.items))):
        taken = anyio.run(_check_one, findings, source, index, action)
    if faults and not findings.problems:

        def policy(observation: Any) -> Any:
            return taken

        _check_faults(findings, source, policy)


async def _check_one(findings: Findings, source: Benchmark[Any], index: int, action: Any) -> Any:
    """Check the environment of an item, and return an action that it takes."""
    place = f"environment of item {index}"
    environment: Any = None
    taken = action
    with findings.about(place) as tell_done:
        environment = await _value(source.make_env(source.items[index]))
        if isinstance(environment, AsyncEnv):
            await check_async_env(cast("AsyncEnv[Any, Any]", environment), action=action)
        else:
            check_env(environment, action=action)
        if action is None:
            taken = _sampled(environment)
        tell_done("keeps the contract in two episodes")
    if environment is not None:
        with findings.about(f"close() of the {place}"):
            await _value(environment.close())
    return taken


def _sampled(environment: Any) -> Any:
    environment.action_space.seed(0)
    return environment.action_space.sample()


async def _value(value: Any) -> Any:
    return await value if is_awaitable(value) else value


def _check_policy(
    findings: Findings, policy: Any, source: Benchmark[Any] | None, prompt: str, *, faults: bool
) -> None:
    if source is None:
        source = Benchmark("chat", [prompt], partial(ChatEnv, max_turns=1))
    with findings.about("policy") as tell_done:
        count = anyio.run(_check_actions, source, policy)
        tell_done(f"{count:,} {'action is' if count == 1 else 'actions are'} in the action space")
    if faults and not findings.problems:
        _check_faults(findings, source, policy)


async def _check_actions(source: Benchmark[Any], policy: Callable[..., Any]) -> int:
    environment: Any = await _value(source.make_env(source.items[0]))
    if not isinstance(environment, AsyncEnv):
        environment = as_async(environment, inline=source.inline)
    return await _play(cast("AsyncEnv[Any, Any]", environment), policy)


async def _play(environment: AsyncEnv[Any, Any], policy: Callable[..., Any]) -> int:
    """Play an episode, and return how many actions were right.

    Raises:
        AssertionError: One is not in the action space.
    """
    try:
        trajectory = await arollout(environment, policy, seed=0, max_steps=_MOST_STEPS)
    finally:
        await environment.close()
    for index, action in enumerate(trajectory.actions):
        if action not in environment.action_space:
            msg = f"action {index} is not in {environment.action_space}, got {action!r}"
            raise AssertionError(msg)
    return len(trajectory.actions)


def _check_faults(findings: Findings, source: Benchmark[Any], policy: Callable[..., Any]) -> None:
    from rolloutlib.testing import check_faults

    tell("letting each call fail in turn ...")
    with findings.about("faults") as tell_done:
        report = check_faults(source.items[0], source.make_env, policy, inline=source.inline)
        tell_done(f"{report.num_runs:,} runs, each with one at one of {report.num_places:,} calls")


def _check_grader(findings: Findings, grader: Any, path: str | None) -> None:
    from rolloutlib.testing import check_grader

    if path is None:
        msg = (
            'a grader is checked with --cases FILE: JSON Lines with "prompt", "reference" and a right '
            '"answer"'
        )
        raise CommandError(msg)
    rows = read_items(path)
    for number, row in enumerate(rows, 1):
        if not isinstance(row, dict) or not row.keys() >= _CASE:
            msg = f"case {number} of {path!r} must be an object of {', '.join(sorted(_CASE))}, got {row!r}"
            raise CommandError(msg)
    with findings.about("grader") as tell_done:
        report = check_grader(
            grader, [(row["prompt"], row["reference"], row["answer"]) for row in rows]
        )
        tell_done(
            f"{counted(report.num_texts, 'text')} about {counted(report.num_cases, 'case')}: {', '.join(report.properties)}"
        )


_CASE = {"prompt", "reference", "answer"}


def _kind_of(target: str, value: Any, cases: str | None) -> Kind:
    """Tell what a target is: an environment or what makes one, or else by how it is called.

    Raises:
        CommandError: It cannot be told.
    """
    if value is None or is_source(value):
        return Kind.ENVIRONMENT
    if cases is not None or hasattr(value, "ascore"):
        return Kind.GRADER
    function = value.__call__ if inspect.isclass(value) else value
    needed = [name for name in required(function) if name != "self"] if callable(value) else []
    kind = {0: Kind.ENVIRONMENT, 1: Kind.POLICY, 2: Kind.GRADER}.get(len(needed))
    if not callable(value) or kind is None:
        msg = f"{target} is no environment, policy or grader, got {value!r}"
        raise CommandError(msg)
    return kind


def _instance(target: str, value: Any, arguments: Mapping[str, Any]) -> Any:
    """Make an object of a class; anything else is what it is."""
    if inspect.isclass(value):
        return call_target(target, value, arguments)
    if not callable(value):
        msg = f"{target} cannot be called, got {value!r}"
        raise CommandError(msg)
    return value


def _read_action(text: str | None) -> Any:
    if text is None:
        return None
    try:
        return json.loads(text)
    except ValueError:
        return text
