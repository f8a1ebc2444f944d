"""Options that several subcommands have, each written down once."""

from __future__ import annotations

import dataclasses
import functools
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, get_type_hints

from typer import Option

from rolloutlib.evals._command._config import read_config
from rolloutlib.evals._command._errors import CommandError, ExitCode, describe
from rolloutlib.evals._command._output import tell
from rolloutlib.evals._command._pairs import PAIRS, merge_pairs

_MODEL = "The model"
_RUN = "The run"
_OUTPUT = "Input and output"

Arguments = Annotated[
    list[str] | None,
    Option(
        "--arg",
        "-a",
        metavar=PAIRS,
        callback=merge_pairs,
        help="An argument of the benchmark or function, `few_shot=8` say; may be repeated. "
        "`rolloutlib list NAME` tells which there are.",
    ),
]


@dataclass(frozen=True, kw_only=True)
class OutputOptions:
    """What every subcommand has."""

    json: Annotated[
        bool,
        Option(
            "--json",
            help="Write JSON to standard output, and nothing else.",
            rich_help_panel=_OUTPUT,
        ),
    ] = False
    config: Annotated[
        str | None,
        Option(
            "--config",
            metavar="FILE",
            help="A TOML file of options by their long names; the command line wins.",
            callback=read_config,
            is_eager=True,
            rich_help_panel=_OUTPUT,
        ),
    ] = None
    debug: Annotated[
        bool,
        Option("--debug", help="Show the traceback of an error.", rich_help_panel=_OUTPUT),
    ] = False


@dataclass(frozen=True, kw_only=True)
class ModelOptions:
    """Which model is asked, where, and how it samples."""

    model: Annotated[
        str,
        Option(
            "--model",
            "-m",
            metavar="NAME",
            help="The model, as its server knows it; `local` is SmolLM2-135M-Instruct on this machine, "
            "and `local:FILE` any GGUF file.",
            rich_help_panel=_MODEL,
        ),
    ]
    base_url: Annotated[
        str | None,
        Option(
            metavar="URL",
            help="An OpenAI-compatible server, such as http://localhost:8000/v1; by default OpenAI's.",
            rich_help_panel=_MODEL,
        ),
    ] = None
    api_key_env: Annotated[
        str | None,
        Option(
            metavar="VARIABLE",
            help="The environment variable that holds the key of the server. By default OPENAI_API_KEY, "
            "which is sent to OpenAI alone.",
            rich_help_panel=_MODEL,
        ),
    ] = None
    max_tokens: Annotated[
        int | None,
        Option(min=1, metavar="N", help="The most tokens of an answer.", rich_help_panel=_MODEL),
    ] = None
    temperature: Annotated[
        float | None,
        Option(min=0, metavar="X", help="0 takes the likeliest token.", rich_help_panel=_MODEL),
    ] = None
    top_p: Annotated[
        float | None,
        Option(
            min=0,
            max=1,
            metavar="X",
            help="Sample from the likeliest tokens of this share.",
            rich_help_panel=_MODEL,
        ),
    ] = None
    stop: Annotated[
        list[str] | None,
        Option(
            metavar="TEXT",
            help="A text that ends an answer; may be repeated.",
            rich_help_panel=_MODEL,
        ),
    ] = None
    extra_body: Annotated[
        list[str] | None,
        Option(
            metavar=PAIRS,
            callback=merge_pairs,
            help="A further field of each request, `top_k=20` say; may be repeated.",
            rich_help_panel=_MODEL,
        ),
    ] = None
    logprobs: Annotated[
        bool,
        Option(
            "--logprobs", help="Keep the log probability of each token.", rich_help_panel=_MODEL
        ),
    ] = False
    tokens: Annotated[
        bool,
        Option(
            "--tokens",
            help="Keep the ids of tokens; vLLM, SGLang and llama.cpp tell them.",
            rich_help_panel=_MODEL,
        ),
    ] = False
    send_seed: Annotated[
        bool,
        Option(
            "--send-seed/--no-send-seed",
            help="Whether requests have seeds; some servers refuse them.",
            rich_help_panel=_MODEL,
        ),
    ] = True
    request_timeout: Annotated[
        float | None,
        Option(
            metavar="SECONDS",
            help="How long an answer may take; by default 600.",
            rich_help_panel=_MODEL,
        ),
    ] = None
    max_retries: Annotated[
        int,
        Option(
            min=0, metavar="N", help="How often a request is sent again.", rich_help_panel=_MODEL
        ),
    ] = 2


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """How episodes are played."""

    limit: Annotated[
        int | None,
        Option(
            "--limit", "-n", min=1, metavar="N", help="Only so many items.", rich_help_panel=_RUN
        ),
    ] = None
    seed: Annotated[
        int,
        Option(min=0, metavar="N", help="Fixes the seeds of all episodes.", rich_help_panel=_RUN),
    ] = 0
    max_steps: Annotated[
        int | None,
        Option(
            min=1,
            metavar="N",
            help="Cut an episode short after so many steps.",
            rich_help_panel=_RUN,
        ),
    ] = None
    concurrency: Annotated[
        int | None,
        Option(
            "--concurrency",
            "-c",
            min=1,
            metavar="N",
            help="How many episodes at once; by default 64, and 4 for `--model local`.",
            rich_help_panel=_RUN,
        ),
    ] = None
    attempts: Annotated[
        int,
        Option(
            min=1,
            metavar="N",
            help="How often an episode is tried that lost its connection.",
            rich_help_panel=_RUN,
        ),
    ] = 1
    episode_timeout: Annotated[
        float | None,
        Option(
            metavar="SECONDS", help="Cut an episode short that takes longer.", rich_help_panel=_RUN
        ),
    ] = None
    max_failures: Annotated[
        int,
        Option(
            min=1,
            metavar="N",
            help="Give up after so many failures in a row.",
            rich_help_panel=_RUN,
        ),
    ] = 100
    fail_fast: Annotated[
        bool, Option("--fail-fast", help="Give up at the first failure.", rich_help_panel=_RUN)
    ] = False


def spread(function: Callable[..., int]) -> Callable[..., int]:
    """Let a subcommand take groups of options as data classes.

    A parameter that is annotated with one of them becomes as many options as it has fields.
    """
    hints = get_type_hints(function, include_extras=True)
    hints.pop("return")
    parameters: list[inspect.Parameter] = []
    groups: dict[str, Any] = {
        name: kind for name, kind in hints.items() if dataclasses.is_dataclass(kind)
    }
    for name, parameter in inspect.signature(function).parameters.items():
        fields = (
            _fields(groups[name]) if name in groups else [(name, hints[name], parameter.default)]
        )
        parameters += [
            inspect.Parameter(key, parameter.KEYWORD_ONLY, default=default, annotation=annotation)
            for key, annotation, default in fields
        ]

    @functools.wraps(function)
    def spread_out(**values: Any) -> int:
        arguments: dict[str, Any] = {}
        for name, kind in groups.items():
            given = {key: values.pop(key) for key, *_ in _fields(kind)}
            arguments[name] = kind(**given)
        try:
            return function(**values, **arguments)
        except KeyboardInterrupt:  # before a run began, or where there is none
            tell("interrupted")
            return ExitCode.INTERRUPTED
        except SystemExit as leaving:
            if isinstance(leaving.__context__, BrokenPipeError):  # so does Rich
                raise
            msg = f"code that was run here left it: {describe(leaving)} (--debug shows where)"
            raise CommandError(msg, ExitCode.BROKEN) from leaving

    names: Any = spread_out
    names.__signature__ = inspect.Signature(parameters)
    names.__annotations__ = {each.name: each.annotation for each in parameters}
    return spread_out


def _fields(kind: Any) -> list[tuple[str, Any, Any]]:
    hints = get_type_hints(kind, include_extras=True)
    return [
        (
            field.name,
            hints[field.name],
            inspect.Parameter.empty if field.default is dataclasses.MISSING else field.default,
        )
        for field in dataclasses.fields(kind)
    ]
