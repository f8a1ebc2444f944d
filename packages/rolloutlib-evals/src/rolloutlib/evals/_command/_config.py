"""Options from a TOML file."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any, cast

import typer

from rolloutlib.evals._command._errors import CommandError, nearest
from rolloutlib.evals._command._pairs import PAIRS


def read_config(context: typer.Context, path: str | None) -> str | None:
    """Let the options of a file be the defaults of the subcommand.

    Raises:
        CommandError: The file cannot be read, or names an option that there is not.
    """
    if path is None or context.resilient_parsing:
        return path
    try:
        options = tomllib.loads(Path(path).read_text(encoding="utf-8-sig"))
    except OSError as error:
        msg = f"cannot read the config {path!r}: {error.strerror or error}"
        raise CommandError(msg) from error
    except ValueError as error:  # no TOML, or no UTF-8
        msg = f"the config {path!r} is not TOML: {error}"
        raise CommandError(msg) from error
    parameters = _parameters(context)
    defaults: dict[str, Any] = {}
    for key, value in options.items():
        name = key.replace("_", "-")
        if name not in parameters:
            known = "" if name != "config" else "; a config names no other config"
            msg = (
                f"the config {path!r} has an unknown option {key!r} of {context.command_path!r}"
                f"{known or nearest(name, parameters)}"
            )
            raise CommandError(msg)
        parameter = parameters[name]
        if not _takes(parameter, value):
            msg = f"the config {path!r} has {value!r} for {key!r}, which takes {_kinds(parameter)}"
            raise CommandError(msg)
        defaults[parameter.name] = _as_on_the_command_line(parameter, value)
    context.default_map = {**(context.default_map or {}), **defaults}
    return path


def _parameters(context: typer.Context) -> dict[str, Any]:
    """Return parameters by what a config calls them."""
    found: dict[str, Any] = {}
    for parameter in context.command.params:
        name = parameter.name or ""
        if name in ("help", "config"):
            continue
        long = [option[2:] for option in parameter.opts if option.startswith("--")]
        found[long[0] if long else name.replace("_", "-")] = parameter
    return found


def _kinds(parameter: Any) -> str:
    """Return what a config may have for a parameter, in words."""
    if parameter.metavar == PAIRS:
        return f"a table, or a list of {PAIRS}"
    if getattr(parameter, "is_flag", False):
        return "true or false"
    return "a list of texts" if getattr(parameter, "multiple", False) else "a text or a number"


def _takes(parameter: Any, value: Any) -> bool:
    """Tell whether a value is of such a kind; Typer checks all else."""
    if isinstance(value, dict):
        return parameter.metavar == PAIRS
    if getattr(parameter, "is_flag", False):
        return isinstance(value, bool)
    kinds = str if parameter.metavar == PAIRS else (str, int, float)
    values: list[Any] = [value]
    if isinstance(value, list) and getattr(parameter, "multiple", False):
        values = cast("list[Any]", value)
    return all(isinstance(each, kinds) and not isinstance(each, bool) for each in values)


def _as_on_the_command_line(parameter: Any, value: Any) -> Any:
    """Return a table as `name=value` pairs, and a list of what may be repeated."""
    if isinstance(value, dict):
        table = cast("dict[str, Any]", value)
        return [f"{name}={json.dumps(each, default=str)}" for name, each in table.items()]
    is_lone = getattr(parameter, "multiple", False) and not isinstance(value, list)
    return cast("Any", [value] if is_lone else value)
