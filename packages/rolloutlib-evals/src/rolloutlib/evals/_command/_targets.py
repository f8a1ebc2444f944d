"""Objects that users name as `module:attribute`."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from rolloutlib.evals._command._errors import CommandError, ExitCode, describe, nearest


def load_target(target: str) -> Any:
    """Import what `module:attribute` or `file.py:attribute` names; modules may lie in this folder.

    Raises:
        CommandError: There is no such module or attribute, or importing it fails.
    """
    module_name, colon, attribute = target.rpartition(":")
    if not colon or not module_name or not attribute:
        msg = f"expected module:attribute or file.py:attribute, got {target!r}"
        raise CommandError(msg)
    folder = Path.cwd()
    if module_name.endswith(".py"):
        path = Path(module_name)
        if not path.is_file():
            msg = f"there is no file {module_name!r}"
            raise CommandError(msg)
        folder, module_name = path.resolve().parent, path.stem
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))
    value: Any = _import(module_name, folder)
    for part in attribute.split("."):
        if not hasattr(value, part):
            names = [name for name in dir(value) if not name.startswith("_")]
            msg = f"{module_name!r} has no attribute {attribute!r}{nearest(part, names)}"
            raise CommandError(msg)
        value = getattr(value, part)
    return value


def call_target(name: str, function: Callable[..., Any], arguments: Mapping[str, Any]) -> Any:
    """Call what a user named, after a look at its arguments.

    Raises:
        CommandError: It takes no such argument, or needs another, or it fails.
    """
    check_arguments(name, function, arguments)
    try:
        return function(**arguments)
    except ImportError as error:  # which says what to install
        msg = f"{name}: {error}"
        raise CommandError(msg, ExitCode.BROKEN) from error
    except (LookupError, OSError, TypeError, ValueError) as error:
        msg = f"{name}: {error}"
        raise CommandError(msg) from error
    except (Exception, SystemExit) as error:  # whatever a user's code raises
        msg = f"{name} raised {describe(error)}"
        raise CommandError(msg, ExitCode.BROKEN) from error


def check_arguments(name: str, function: Callable[..., Any], arguments: Mapping[str, Any]) -> None:
    """Refuse arguments that a function does not take, and the lack of those that it needs.

    Raises:
        CommandError: There are such.
    """
    parameters = inspect.signature(function).parameters
    takes_any = any(each.kind is each.VAR_KEYWORD for each in parameters.values())
    for given in arguments:
        if given not in parameters and not takes_any:
            known = ", ".join(parameters) or "none"
            hint = nearest(given, parameters) or f"; it takes: {known}"
            msg = f"{name} takes no argument {given!r}{hint}"
            raise CommandError(msg)
    lacking = [key for key in required(function) if key not in arguments]
    if lacking:
        msg = f"{name} needs {', '.join(lacking)}: give it by {' '.join(f'-a {key}=...' for key in lacking)}"
        raise CommandError(msg)


def required(function: Callable[..., Any]) -> list[str]:
    """Return the arguments that a function cannot be called without."""
    return [
        name
        for name, each in inspect.signature(function).parameters.items()
        if each.default is each.empty and each.kind not in (each.VAR_KEYWORD, each.VAR_POSITIONAL)
    ]


def _import(name: str, folder: Path) -> Any:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or not (name == error.name or name.startswith(f"{error.name}.")):
            msg = f"cannot import {name!r}: {error}"
            raise CommandError(msg, ExitCode.BROKEN) from error
        known = [module.name for module in pkgutil.iter_modules([str(folder)])]
        msg = f"there is no module {name!r}{nearest(name, known)}"
        raise CommandError(msg) from error
    except (Exception, SystemExit) as error:  # whatever a user's module raises
        msg = f"cannot import {name!r}: {describe(error)}"
        raise CommandError(msg, ExitCode.BROKEN) from error
