"""Benchmarks by name: the built-in ones, and those of other installed packages."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from importlib.metadata import EntryPoint, entry_points
from typing import Any, TypeAlias, cast

from rolloutlib.evals._benchmark import Benchmark
from rolloutlib.evals.benchmarks._aime import aime
from rolloutlib.evals.benchmarks._gsm8k import gsm8k
from rolloutlib.evals.benchmarks._math import MathExample
from rolloutlib.evals.benchmarks._reasoning_gym import reasoning_gym

__all__ = ["REGISTRY", "BenchmarkFactory", "list_benchmarks", "make"]

BenchmarkFactory: TypeAlias = Callable[..., Benchmark[MathExample]]
"""Makes a benchmark of examples, or of a data set that it loads."""

REGISTRY: dict[str, BenchmarkFactory] = {"aime": aime, "gsm8k": gsm8k}

_MORE: dict[str, BenchmarkFactory] = {
    "aime_2024": partial(aime, year=2024),
    "aime_2025": partial(aime, year=2025),
    "reasoning_gym": reasoning_gym,
}
_GROUP = "rolloutlib.benchmarks"
_OURS = "rolloutlib-evals"


def make(name: str, examples: Iterable[Any] | None = None, **kwargs: Any) -> Benchmark[Any]:
    """Make a benchmark by name.

    Args:
        name: One of `list_benchmarks`. "distribution:name" is that of one distribution, where several
            have a benchmark of a name.
        examples: What the benchmark's own function takes first, the problems of GSM8K or AIME for
            example; None leaves that to it.
        **kwargs: What else the function takes.

    Raises:
        ImportError: The benchmark's own package cannot be imported.
        TypeError: What is found under the name is no function, or returns no benchmark.
        ValueError: There is no such benchmark, or there are several.
    """
    factory, place = find_factory(name)
    given = () if examples is None else (examples,)
    benchmark: object = factory(*given, **kwargs)
    if not isinstance(benchmark, Benchmark):
        msg = f"benchmark {name!r} must be made as a Benchmark, got {benchmark!r} from {place}"
        raise TypeError(msg)
    return cast("Benchmark[Any]", benchmark)


def list_benchmarks() -> list[str]:
    """Return the names that `make` takes, of built-in benchmarks and of other packages'.

    The latter are the entry points of the group "rolloutlib.benchmarks"; nothing is imported to list
    them. A name that several have stands for each as "distribution:name".
    """
    names: list[str] = []
    found = _found()
    for name in _built_in().keys() | found.keys():
        owners = _owners(name, found)
        names += [name] if len(owners) == 1 else [f"{owner}:{name}" for owner in owners]
    return sorted(names)


def find_factory(name: str) -> tuple[Callable[..., object], str]:
    """Return the factory of a benchmark, and where it is from."""
    owner, colon, short = name.rpartition(":")
    found = _found()
    owners = _owners(short, found)
    if colon:
        owners = [known for known in owners if known == owner]
    if not owners:
        msg = f"unknown benchmark {name!r}; choose from {list_benchmarks()}"
        raise ValueError(msg)
    if len(owners) > 1:
        msg = (
            f"several packages have a benchmark {name!r}: "
            f"choose from {[f'{known}:{name}' for known in owners]}"
        )
        raise ValueError(msg)
    if owners[0] == _OURS:
        return _built_in()[short], _OURS
    return _load(found[short][owners[0]], owners[0])


def _built_in() -> dict[str, BenchmarkFactory]:
    return {**_MORE, **REGISTRY}


def _owners(name: str, found: Mapping[str, Mapping[str, EntryPoint]]) -> list[str]:
    return [*([_OURS] if name in _built_in() else []), *sorted(found.get(name, {}))]


def _found() -> dict[str, dict[str, EntryPoint]]:
    """Return the entry points of each name by distribution, the first on the path of each."""
    found: dict[str, dict[str, EntryPoint]] = {}
    for point in entry_points(group=_GROUP):
        owner = "" if point.dist is None else point.dist.name
        found.setdefault(point.name, {}).setdefault(owner, point)
    return found


def _load(point: EntryPoint, owner: str) -> tuple[Callable[..., object], str]:
    place = f"{point.value!r}, its entry point in {owner!r}"
    try:
        factory: object = point.load()
    except Exception as error:
        msg = (
            f"benchmark {point.name!r} cannot be imported from {place} "
            f"({type(error).__name__}: {error})"
        )
        raise ImportError(msg) from error
    if not callable(factory):
        msg = f"benchmark {point.name!r} must be a function, got {factory!r} from {place}"
        raise TypeError(msg)
    return factory, place
