"""`rolloutlib list`: which benchmarks there are, and what they take."""

from __future__ import annotations

import inspect
from textwrap import shorten
from typing import Annotated, Any

import typer
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from rolloutlib.evals._command._options import OutputOptions
from rolloutlib.evals._command._output import stdout, write_json
from rolloutlib.evals._command._sources import benchmark_factory, complete_benchmark
from rolloutlib.evals.benchmarks import list_benchmarks


def list_(
    output: OutputOptions,
    benchmark: Annotated[
        str | None,
        typer.Argument(help="Tell the arguments of this one.", autocompletion=complete_benchmark),
    ] = None,
) -> int:
    """List the benchmarks, or the arguments of one.

    Other packages add theirs by entry points of the group `rolloutlib.benchmarks`.
    """
    if benchmark is None:
        names = list_benchmarks()
        if output.json:
            write_json({"benchmarks": names})
        else:
            for name in names:
                stdout().print(name, markup=False)
        return 0
    factory = benchmark_factory(benchmark)
    arguments = [
        {
            "name": name,
            "required": parameter.default is parameter.empty,
            "default": None if parameter.default is parameter.empty else parameter.default,
        }
        for name, parameter in inspect.signature(factory).parameters.items()
        if parameter.kind is not parameter.VAR_KEYWORD
    ]
    text = _docs(factory)
    if output.json:
        write_json({"benchmark": benchmark, "arguments": arguments, "docs": text})
        return 0
    console = stdout()
    console.print(Text(benchmark, "bold"))
    table = Table.grid(padding=(0, 2))
    for argument in arguments:
        default = (
            "needed"
            if argument["required"]
            else f"{shorten(repr(argument['default']), 50)} by default"
        )
        table.add_row(Text(f"  -a {argument['name']}=..."), Text(default, "dim"))
    console.print(table)
    console.print()
    for line in text.splitlines():  # what is too long for the console goes on below its beginning
        words = line.lstrip()
        console.print(Padding(Text(words), (0, 0, 0, len(line) - len(words))))
    return 0


def _docs(factory: Any) -> str:
    """Return what the function says of itself, that of a partial without what the latter fixes."""
    return inspect.getdoc(getattr(factory, "func", factory)) or ""
