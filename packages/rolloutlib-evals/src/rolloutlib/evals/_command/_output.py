"""What the command writes: results to standard output, and all else to standard error."""

from __future__ import annotations

import functools
import io
import json
import math
import sys
from collections.abc import Mapping
from typing import Any, cast

from rich.console import Console
from rich.markup import escape

from rolloutlib.evals._plain import to_plain


def stdout() -> Console:
    """Return where results are told to a person."""
    return Console(highlight=False)


@functools.cache  # lines appear above a display only if both are of one console
def stderr() -> Console:
    """Return where progress, hints and errors go, so that results can be piped."""
    return Console(stderr=True, highlight=False)


def write_anything() -> None:
    """Let what standard output has no form for be escaped: no text ends the command."""
    stream: object = sys.stdout
    if isinstance(stream, io.TextIOWrapper):
        stream.reconfigure(errors="backslashreplace")


def tell(message: str) -> None:
    """Write a line to standard error."""
    stderr().print(message, markup=False, soft_wrap=True)


def tell_warning(message: Warning | str, *_: object) -> None:
    """Write a warning as one line, in place of `warnings.showwarning`."""
    stderr().print(f"[yellow]warning:[/] {escape(_one_line(str(message)))}", soft_wrap=True)


def tell_error(message: str) -> None:
    """Write what is wrong, as one line."""
    stderr().print(f"[bold red]error:[/] {escape(_one_line(message))}", soft_wrap=True)


def counted(count: int, noun: str) -> str:
    """Return a number of things in words."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def write_json(value: object) -> None:
    """Write a value as the one JSON document on standard output; what is no finite number is null."""
    text = json.dumps(_strict(to_plain(value)), ensure_ascii=False, indent=2, default=repr)
    try:
        text.encode(sys.stdout.encoding or "utf-8")
    except UnicodeEncodeError:  # escapes of JSON, not of Python
        text = json.dumps(json.loads(text), indent=2)
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _strict(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, Mapping):
        pairs = cast("Mapping[Any, Any]", value).items()
        return {str(key): _strict(item) for key, item in pairs}
    if isinstance(value, (list, tuple)):
        return [_strict(item) for item in cast("list[Any]", value)]
    return value
