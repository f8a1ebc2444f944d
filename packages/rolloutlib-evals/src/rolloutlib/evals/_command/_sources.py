"""What is played: benchmarks by name, and data sets and environments of the user's own."""

from __future__ import annotations

import inspect
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import gymnasium as gym

from rolloutlib.datasets import RLDataset
from rolloutlib.envs import AsyncEnv
from rolloutlib.evals._benchmark import Benchmark
from rolloutlib.evals._command._errors import CommandError, ExitCode, nearest
from rolloutlib.evals._command._targets import call_target, load_target, required
from rolloutlib.evals.benchmarks import list_benchmarks
from rolloutlib.evals.benchmarks._registry import find_factory


def read_source(
    name: str, arguments: Mapping[str, Any], items: str | None = None
) -> Benchmark[Any]:
    """Return what a name stands for as a benchmark.

    Args:
        name: A benchmark's, or `module:attribute` of a `Benchmark`, an `RLDataset`, an environment or its
            class, or a function that returns one of these.
        arguments: What the benchmark or the function is called with.
        items: A file of JSON Lines; for each an environment is made.

    Raises:
        CommandError: There is no such thing, or it cannot be made.
    """
    if not is_target(name):
        return _as_benchmark(name, name, call_target(name, benchmark_factory(name), arguments))
    value = load_target(name)
    title = name.rpartition(":")[2].lower()
    if items is not None:
        return _of_items(name, title, value, items, arguments)
    if not is_source(value) or _is_env_class(value):
        if not callable(value):
            msg = (
                f"{name} must be a Benchmark, an RLDataset, an environment or a function that returns "
                f"one, got {value!r}"
            )
            raise CommandError(msg)
        if _is_env_class(value) and (lacking := set(required(value)) - arguments.keys()):
            msg = (
                f"{name} needs {', '.join(sorted(lacking))}: give --items FILE, a JSON Lines file with an "
                "item a line, or -a NAME=VALUE"
            )
            raise CommandError(msg)
        made = call_target(name, value, arguments)
        if _is_env(made):
            return Benchmark(title, [None], lambda item: value(**arguments))
        value = made
    elif arguments:
        msg = f"{name} is no function, so it takes no argument {next(iter(arguments))!r}"
        raise CommandError(msg)
    return _as_benchmark(name, title, value)


def _as_benchmark(name: str, title: str, value: Any) -> Benchmark[Any]:
    if isinstance(value, Benchmark):
        return cast("Benchmark[Any]", value)
    if isinstance(value, RLDataset):
        dataset = cast("RLDataset[Any, Any]", value)
        return Benchmark(
            title, tuple(dataset), dataset.make_env, dataset.metadata, dataset.get_item_id
        )
    if _is_env(value):
        msg = (
            f"{name} is one environment, which cannot be played at once with itself: name its class"
        )
        raise CommandError(msg)
    msg = f"{name} must return a Benchmark, an RLDataset or an environment, got {value!r}"
    raise CommandError(msg)


def _of_items(
    name: str, title: str, value: Any, path: str, arguments: Mapping[str, Any]
) -> Benchmark[Any]:
    if not callable(value) or arguments:
        msg = (
            f"with --items, {name} must be a function of an item, or a class of environments, alone"
        )
        raise CommandError(msg)
    return Benchmark(title, read_items(path), value)


def read_items(path: str) -> list[Any]:
    """Read a JSON Lines file.

    Raises:
        CommandError: It cannot be read, a line is not JSON, or there is none.
    """
    items: list[Any] = []
    try:
        # As bytes, whose lines end at line ends alone: JSON texts may have other separators of lines.
        with Path(path).open("rb") as file:
            for number, line in enumerate(file, 1):
                if line.strip():
                    try:
                        items.append(json.loads(line))
                    except ValueError as error:  # no JSON, or no UTF-8
                        msg = f"line {number} of {path!r} is not JSON: {error}"
                        raise CommandError(msg) from error
    except OSError as error:
        msg = f"cannot read {path!r}: {error.strerror or error}"
        raise CommandError(msg) from error
    if not items:
        msg = f"{path!r} has no items"
        raise CommandError(msg)
    return items


def complete_benchmark(incomplete: str) -> list[str]:
    """Return the benchmarks whose names begin like that, for the shell."""
    return [name for name in list_benchmarks() if name.startswith(incomplete)]


def benchmark_factory(name: str) -> Any:
    try:
        return find_factory(name)[0]
    except ImportError as error:
        raise CommandError(str(error), ExitCode.BROKEN) from error
    except ValueError as error:
        known = list_benchmarks()
        if name in known or "several" in str(error):
            raise CommandError(str(error)) from error
        hint = nearest(name, known) or f"; there are {', '.join(known)}, and module:attribute"
        msg = f"unknown benchmark {name!r}{hint}"
        raise CommandError(msg) from error


def is_target(name: str) -> bool:
    """Tell `module:attribute` from a benchmark, also one of `distribution:name`."""
    module, colon, _ = name.rpartition(":")
    if not colon or name in list_benchmarks():
        return False
    return "-" not in module or module.endswith(".py")


def is_source(value: object) -> bool:
    """Tell whether a value is played as it is, or a class of environments."""
    return isinstance(value, (Benchmark, RLDataset)) or _is_env(value) or _is_env_class(value)


def _is_env(value: object) -> bool:
    return isinstance(value, (gym.Env, AsyncEnv))


def _is_env_class(value: object) -> bool:
    return inspect.isclass(value) and issubclass(value, (gym.Env, AsyncEnv))
