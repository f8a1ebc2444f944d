"""Options that take `NAME=VALUE` pairs."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import typer

from rolloutlib.evals._command._errors import CommandError

PAIRS = "NAME=VALUE"


def read_pairs(option: str, pairs: Iterable[str] | None) -> dict[str, Any]:
    """Read `name=value` pairs; a value that is JSON is read as such, and any other is a text.

    Raises:
        CommandError: One is no pair, or two have one name.
    """
    values: dict[str, Any] = {}
    for pair in pairs or ():
        name, equals, text = pair.partition("=")
        name = name.strip()
        if not equals or not name:
            msg = f"{option} takes NAME=VALUE, got {pair!r}"
            raise CommandError(msg)
        if name in values:
            msg = f"{option} gives {name!r} twice"
            raise CommandError(msg)
        try:
            values[name] = json.loads(text)
        except ValueError:
            values[name] = text
    return values


def merge_pairs(
    context: typer.Context, parameter: typer.CallbackParam, pairs: list[str] | None
) -> list[str] | None:
    """Let pairs of the command line stand beside those of a config that have other names."""
    defaults: list[str] = (context.default_map or {}).get(parameter.name or "") or []
    if not pairs or not defaults:
        return pairs
    given = {_name(pair) for pair in pairs}
    return [*(pair for pair in defaults if _name(pair) not in given), *pairs]


def _name(pair: str) -> str:
    return pair.partition("=")[0].strip()
