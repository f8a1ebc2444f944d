"""The command itself: its subcommands, and what becomes of mistakes in them."""

from __future__ import annotations

import sys
import traceback
import warnings
from collections.abc import Sequence
from typing import Annotated, Any

import typer
from pydantic import ValidationError
from typer.core import TyperGroup

import rolloutlib
from rolloutlib.evals._command._check import check
from rolloutlib.evals._command._collect import collect
from rolloutlib.evals._command._compare import compare
from rolloutlib.evals._command._errors import CommandError, ExitCode, describe
from rolloutlib.evals._command._eval import evaluate
from rolloutlib.evals._command._list import list_
from rolloutlib.evals._command._options import spread
from rolloutlib.evals._command._output import tell_error, tell_warning, write_anything
from rolloutlib.evals._command._regrade import regrade
from rolloutlib.evals._command._show import show

__all__ = ["app", "main"]


class Command(TyperGroup):
    """Ends with the exit code that a subcommand returns, and tells of mistakes in one line."""

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        windows_expand_args: bool = True,
        **extra: Any,
    ) -> Any:
        """Run the command; see `TyperGroup`."""
        args = sys.argv[1:] if args is None else list(args)
        write_anything()
        with warnings.catch_warnings():
            warnings.showwarning = tell_warning
            try:
                code = super().main(
                    args,
                    "rolloutlib",
                    complete_var,
                    standalone_mode=False,
                    windows_expand_args=windows_expand_args,
                    obj=args,
                    **extra,
                )
            except SystemExit as leaving:  # so does Typer for a pipe that nobody reads
                is_closed = isinstance(leaving.__context__, BrokenPipeError)
                code = ExitCode.CLOSED if is_closed else leaving.code
            except Exception as error:
                code = _tell(error, debug="--debug" in args)
        if standalone_mode:
            sys.exit(code or ExitCode.OK)
        return code


app = typer.Typer(
    cls=Command,
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Evaluate language models, collect trajectories, and read what came of it.",
    epilog="Exit codes: 0 done; 1 it does not hold, or all failed; 2 wrong usage; "
    "3 something is missing or broke; 130 interrupted; 141 nobody reads the output.",
)


def _show_version(asked: bool) -> None:
    if asked:
        typer.echo(f"rolloutlib {rolloutlib.__version__}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool,
        typer.Option("--version", help="Show the version.", callback=_show_version, is_eager=True),
    ] = False,
) -> None:
    """Take the options that come before a subcommand."""


for _function in (list_, evaluate, collect, show, compare, regrade, check):
    _name = {"list_": "list", "evaluate": "eval"}.get(_function.__name__, _function.__name__)
    app.command(_name)(spread(_function))


def main() -> None:
    """Run the command, and end the process."""
    app()


def _tell(error: Exception, *, debug: bool) -> ExitCode:
    """Write an error in one line, and return how the command ends."""
    if debug:
        traceback.print_exception(error)
    if isinstance(error, typer.TyperException):  # of an option
        place = getattr(getattr(error, "ctx", None), "command_path", "rolloutlib")
        if text := error.format_message():  # `rolloutlib` alone shows its help
            text = text.replace("Value error, ", "").rstrip(".")  # of pydantic, which reads options
            tell_error(f"{text}{_value_words(error, text)} (see {place} --help)")
        return ExitCode.USAGE
    if isinstance(error, CommandError):
        tell_error(str(error))
        return error.code
    hint = "" if debug else " (--debug shows where)"
    tell_error(f"{describe(error)}{hint}")
    return ExitCode.BROKEN


def _value_words(error: typer.TyperException, text: str) -> str:
    """Return words on the value of an option that cannot be read, unless a text has it."""
    if not isinstance(error.__cause__, ValidationError):
        return ""
    [first, *_] = error.__cause__.errors(include_url=False)
    value = repr(first["input"])
    return "" if value in text else f", got {value}"
