"""What a run with a policy is asked for."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias, cast

import anyio

from rolloutlib._calls import check_count
from rolloutlib._values import to_bool
from rolloutlib.evals._benchmark import Benchmark
from rolloutlib.evals._header import log_header, model_name
from rolloutlib.evals._plain import to_plain
from rolloutlib.evals._recorder import Recorder
from rolloutlib.evals._samples import Samples
from rolloutlib.evals._stopping import Stopping, StopWhen
from rolloutlib.rollouts import AsyncPolicy, Policy, Retry, Timeouts
from rolloutlib.rollouts._events import OnEvent

__all__ = ["AnyPolicy", "PolicySettings", "make_recorder"]

AnyPolicy: TypeAlias = Policy[Any, Any] | AsyncPolicy[Any, Any]


@dataclass(frozen=True, kw_only=True)
class PolicySettings:
    """What a run with a policy is asked for beside its policy, as `run_benchmark` explains it."""

    epochs: int = 1
    seed: int = 0
    shuffle: bool = False
    item_ids: Sequence[str] | None = None
    max_steps: int | None = None
    concurrency: int | anyio.CapacityLimiter = 1
    retry: Retry | None = None
    timeouts: Timeouts | None = None
    max_failures: int | None = 100
    max_errors: int | None = None
    on_event: OnEvent | None = None
    log: str | os.PathLike[str] | None = None
    model: str | None = None
    metadata: Mapping[str, Any] | None = None
    stop_when: StopWhen | None = None
    retry_failed: bool = False
    inline: bool = False


def make_recorder(
    benchmark: Benchmark[Any], policy: AnyPolicy, settings: PolicySettings, limit: int | None
) -> Recorder:
    """Return what keeps the samples of a benchmark.

    Raises:
        TypeError: A setting has the wrong type.
        ValueError: A setting has no usable value.
    """
    if settings.max_errors is not None:
        check_count("max_errors", settings.max_errors, least=0)
    if settings.model is not None and not isinstance(cast("object", settings.model), str):
        msg = f"model must be a name or None, got {settings.model!r}"
        raise TypeError(msg)
    if not isinstance(cast("object", settings.metadata), Mapping | None):
        msg = f"metadata must be a mapping or None, got {settings.metadata!r}"
        raise TypeError(msg)
    if not isinstance(cast("object", settings.log), str | os.PathLike | None):
        msg = f"log must be a path or None, got {settings.log!r}"
        raise TypeError(msg)
    if to_bool(settings.retry_failed, "retry_failed") and settings.log is None:
        msg = "retry_failed: without a `log` there are no failed samples to play again"
        raise ValueError(msg)
    stopping = _stopping(settings)
    samples = Samples(
        benchmark,
        limit=limit,
        item_ids=settings.item_ids,
        shuffle=to_bool(settings.shuffle, "shuffle"),
        epochs=settings.epochs,
        seed=settings.seed,
        by_item=stopping is not None,
    )
    path = None if settings.log is None else Path(settings.log).absolute()
    return Recorder(
        samples,
        path=path,
        header={} if path is None else _header(samples, policy, settings, limit, stopping),
        max_errors=settings.max_errors,
        stopping=stopping,
        retry_failed=settings.retry_failed,
    )


def _header(
    samples: Samples[Any],
    policy: AnyPolicy,
    settings: PolicySettings,
    limit: int | None,
    stopping: Stopping | None,
) -> dict[str, Any]:
    return log_header(
        samples,
        model=model_name(policy) if settings.model is None else settings.model,
        settings={
            "limit": None if limit is None else int(limit),
            "item_ids": samples.item_ids,
            "shuffle": bool(settings.shuffle),
            "epochs": int(settings.epochs),
            "max_steps": None if settings.max_steps is None else int(settings.max_steps),
            "metadata": to_plain(settings.metadata or {}),
            "stop_when": None if stopping is None else stopping.settings,
        },
    )


def _stopping(settings: PolicySettings) -> Stopping | None:
    """Return what tells when the run may stop early.

    Raises:
        TypeError: `stop_when` is no such rule.
        ValueError: The order of the items may depend on their scores.
    """
    rule = settings.stop_when
    if rule is None:
        return None
    if not isinstance(cast("object", rule), StopWhen):
        msg = f"stop_when must be a StopWhen or None, got {rule!r}"
        raise TypeError(msg)
    if not settings.shuffle:
        msg = (
            "stop_when needs shuffle=True: the first items of a benchmark may be its easiest, and "
            "the interval holds for items in an order that does not depend on their scores"
        )
        raise ValueError(msg)
    check_count("epochs", settings.epochs)
    return Stopping(rule, int(settings.epochs))
