"""Evaluating one item: its environment, the user's callback, and what became of both."""

from __future__ import annotations

import contextlib
import inspect
import traceback
from dataclasses import replace
from typing import Any, Protocol, TypeVar, cast

from rolloutlib.evals._benchmark import Benchmark
from rolloutlib.evals._results import Evaluation, EvaluationRecord

__all__ = ["EvaluationCallback", "evaluate_item"]

ItemT = TypeVar("ItemT")
EnvironmentT = TypeVar("EnvironmentT", contravariant=True)


class EvaluationCallback(Protocol[EnvironmentT]):
    """Plays one episode in an environment and says how it went.

    The runner makes the environment before the call and closes it after.
    """

    def __call__(self, environment: EnvironmentT, /) -> Evaluation:
        """Play one episode."""
        ...


def evaluate_item(
    benchmark: Benchmark[ItemT],
    evaluate: EvaluationCallback[Any],
    index: int,
    item: ItemT,
    records: list[EvaluationRecord],
    *,
    fail_fast: bool,
) -> None:
    """Append the item's record before closing, so that nothing which happens then can lose it."""
    item_id: str | None = None
    environment: Any = None
    try:
        item_id = _item_id(benchmark, index, item)
        environment = _environment(benchmark, item)
        evaluation = _evaluation(evaluate, environment)
    except BaseException as error:
        if isinstance(error, Exception):
            records.append(_failed(index, item_id, error))
        close_error = _close(environment)
        if close_error is not None:
            with contextlib.suppress(Exception):  # an exception class may refuse notes
                error.add_note(f"closing the environment failed too: {close_error!r}")
            if isinstance(error, Exception):
                records[-1] = _with_close_error(records[-1], close_error)
        if fail_fast or not isinstance(error, Exception):
            raise
        return
    records.append(
        EvaluationRecord(
            index, item_id, evaluation.score, evaluation.truncated, evaluation.metadata
        )
    )
    close_error = _close(environment)
    if close_error is not None:
        records[-1] = _with_close_error(records[-1], close_error)


def _item_id(benchmark: Benchmark[ItemT], index: int, item: ItemT) -> str:
    if benchmark.item_id is None:
        return str(index)
    item_id = benchmark.item_id(item)
    if isinstance(cast("object", item_id), str):
        return item_id
    msg = f"item_id of benchmark {benchmark.name!r} must return text, got {item_id!r} for item {index}"
    raise TypeError(msg)


def _environment(benchmark: Benchmark[ItemT], item: ItemT) -> Any:
    environment: Any = _synchronous(benchmark.make_env(item), "make_env")
    if inspect.iscoroutinefunction(getattr(environment, "close", None)):
        msg = f"make_env must return a synchronous environment, got {environment!r}: wrap it in as_sync"
        raise TypeError(msg)
    return environment


def _evaluation(evaluate: EvaluationCallback[Any], environment: Any) -> Evaluation:
    evaluation: object = _synchronous(evaluate(environment), "evaluate")
    if isinstance(evaluation, Evaluation):
        return evaluation
    msg = f"evaluate must return an Evaluation, got {evaluation!r}"
    raise TypeError(msg)


def _synchronous(value: object, name: str) -> object:
    if not inspect.iscoroutine(value):
        return value
    value.close()
    msg = f"{name} must be synchronous, but returned {value!r}"
    raise TypeError(msg)


def _failed(index: int, item_id: str | None, error: Exception) -> EvaluationRecord:
    name = type(error).__name__
    metadata = {"error_type": name, "traceback": "".join(traceback.format_exception(error))}
    return EvaluationRecord(index, item_id, metadata=metadata, error=_message(error) or name)


def _close(environment: Any) -> Exception | None:
    try:
        close = getattr(environment, "close", None)
        if close is not None:
            close()
    except Exception as error:
        return error
    return None


def _with_close_error(record: EvaluationRecord, error: Exception) -> EvaluationRecord:
    described = f"{type(error).__name__}: {_message(error)}"
    return replace(record, metadata={**record.metadata, "close_error": described})


def _message(error: Exception) -> str:
    try:
        return str(error)
    except Exception:  # a user's __str__ may fail, and must not cost the record
        return ""
