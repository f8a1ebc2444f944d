"""What the command writes: results to standard output, and all else to standard error."""

from __future__ import annotations

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


def stderr() -> Console:
    """Return where progress, hints and errors go, so that results can be piped."""
    return Console(stderr=True, highlight=False, soft_wrap=True)


def tell(message: str) -> None:
    """Write a line to standard error."""
    stderr().print(message, markup=False)


def tell_error(message: str) -> None:
    """Write what is wrong, as one line."""
    line = " ".join(message.split())
    stderr().print(f"[bold red]error:[/] {escape(line)}")


def write_json(value: object) -> None:
    """Write a value as the one JSON document on standard output; what is no finite number is null."""
    json.dump(_strict(to_plain(value)), sys.stdout, ensure_ascii=False, indent=2, default=repr)
    sys.stdout.write("\n")
    sys.stdout.flush()


def _strict(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, Mapping):
        pairs = cast("Mapping[Any, Any]", value).items()
        return {str(key): _strict(item) for key, item in pairs}
    if isinstance(value, (list, tuple)):
        return [_strict(item) for item in cast("list[Any]", value)]
    return value
