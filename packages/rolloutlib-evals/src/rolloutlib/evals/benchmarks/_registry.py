"""The built-in benchmarks by name."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeAlias

from rolloutlib.evals._benchmark import Benchmark
from rolloutlib.evals.benchmarks._aime import aime
from rolloutlib.evals.benchmarks._gsm8k import gsm8k
from rolloutlib.evals.benchmarks._math import MathExample

__all__ = ["REGISTRY", "BenchmarkFactory", "make"]

BenchmarkFactory: TypeAlias = Callable[..., Benchmark[MathExample]]
"""Makes a benchmark of examples, or of a data set that it loads."""

REGISTRY: dict[str, BenchmarkFactory] = {"aime": aime, "gsm8k": gsm8k}


def make(
    name: str, examples: Iterable[MathExample | Mapping[str, Any]] | None = None, **kwargs: Any
) -> Benchmark[MathExample]:
    """Make a built-in benchmark by name.

    Args:
        name: A key of `REGISTRY`.
        examples: The problems, or None to load the benchmark's data set.
        **kwargs: What else the benchmark's own function takes.

    Raises:
        ValueError: There is no such benchmark.
    """
    if name not in REGISTRY:
        msg = f"unknown benchmark {name!r}; choose from {sorted(REGISTRY)}"
        raise ValueError(msg)
    return REGISTRY[name](examples, **kwargs)
