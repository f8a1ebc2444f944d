"""What the log of an evaluation begins with."""

from __future__ import annotations

import functools
import platform
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any, cast

from rolloutlib.evals._plain import to_plain
from rolloutlib.evals._samples import Samples
from rolloutlib.rollouts import AsyncBatchedPolicy, BatchedPolicy
from rolloutlib.rollouts._identity import describe_function
from rolloutlib.storage import read_settings

__all__ = ["LOG_VERSION", "log_header", "model_name", "read_versions"]

LOG_VERSION = 1
"""The version of the header and of the samples in a log."""


def log_header(samples: Samples[Any], *, model: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a log begins with, but for the versions."""
    benchmark = samples.benchmark
    return {
        "evaluation": LOG_VERSION,
        "benchmark": benchmark.name,
        "benchmark_metadata": to_plain(benchmark.metadata),
        "dataset": samples.fingerprint,
        "num_items": len(samples.ids),
        "num_samples": len(samples.samples),
        "make_env": describe_function(benchmark.make_env),
        "model": model,
        "seed": samples.seed,
        **settings,
    }


def model_name(policy: Any) -> str:
    """Return what a policy says it is, or the name of its function or class.

    Of a partial it tells the numbers too, and the model: not other texts, for they may be secrets.
    """
    model: object = getattr(policy, "model", None)
    if isinstance(model, str):
        return model
    if isinstance(policy, functools.partial):
        bound = cast("functools.partial[Any]", policy)
        facts = [repr(value) for value in bound.args if isinstance(value, (int, float))]
        facts += [
            f"{name}={value!r}"
            for name, value in sorted(bound.keywords.items())
            if isinstance(value, (int, float)) or name == "model"
        ]
        return f"{model_name(bound.func)}({', '.join(facts)})" if facts else model_name(bound.func)
    if isinstance(policy, (BatchedPolicy, AsyncBatchedPolicy)):
        return model_name(cast("BatchedPolicy[Any, Any]", policy).batch)
    return getattr(policy, "__qualname__", type(policy).__qualname__)


def read_versions(path: Path) -> Any:
    """Return the versions that a log was begun with, or the present ones for a new log.

    They are told and not compared: a run may be gone on with after an update of Python.
    """
    try:
        before = read_settings(path) or {}
    except (
        OSError,
        ValueError,
    ):  # none yet, or not a whole line of one; or no log, as is told later
        before = {}
    return before.get("versions") or {
        "python": platform.python_version(),
        **{name: version(name) for name in ("rolloutlib-core", "rolloutlib-evals")},
    }
