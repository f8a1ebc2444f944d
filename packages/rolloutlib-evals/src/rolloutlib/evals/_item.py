"""Evaluating one item: its environment, the user's callback, and what became of both."""

from __future__ import annotations

import inspect
import traceback
from dataclasses import replace
from typing import Any, Protocol, TypeVar

import anyio

from rolloutlib._calls import RefuseStrayCancellation, is_awaitable
from rolloutlib._exceptions import add_note
from rolloutlib.evals._benchmark import Benchmark
from rolloutlib.evals._records import Evaluation, EvaluationRecord

__all__ = ["AsyncEvaluationCallback", "EvaluationCallback", "aevaluate_item", "evaluate_item"]

CLOSE_SECONDS = 30.0
"""How long an asynchronous environment may take to close."""

ItemT = TypeVar("ItemT")
EnvironmentT = TypeVar("EnvironmentT", contravariant=True)


class EvaluationCallback(Protocol[EnvironmentT]):
    """Plays one episode in an environment and says how it went.

    The runner makes the environment before the call and closes it after.
    """

    def __call__(self, environment: EnvironmentT, /) -> Evaluation:
        """Play one episode."""
        ...


class AsyncEvaluationCallback(Protocol[EnvironmentT]):
    """A callback of `arun_benchmark`: `EvaluationCallback`'s asynchronous twin."""

    async def __call__(self, environment: EnvironmentT, /) -> Evaluation:
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
    opened: list[Any] = []
    try:
        _play(benchmark, evaluate, index, item, records, opened, fail_fast=fail_fast)
    except BaseException as error:
        close_error = _close(opened, records, index)
        if close_error is not None:
            add_note(error, f"closing the environment failed too: {close_error}")
        raise
    _close(opened, records, index)


def _play(
    benchmark: Benchmark[ItemT],
    evaluate: EvaluationCallback[Any],
    index: int,
    item: ItemT,
    records: list[EvaluationRecord],
    opened: list[Any],
    *,
    fail_fast: bool,
) -> None:
    item_id: str | None = None
    try:
        item_id = str(index) if benchmark.item_id is None else benchmark.item_id(item)
        opened.append(_environment(benchmark, item))
        result = _evaluation(evaluate, opened[0])
        records.append(
            EvaluationRecord(index, item_id, result.score, result.truncated, result.metadata)
        )
    except Exception as error:
        records.append(_failed(index, item_id, error))
        if fail_fast:
            raise


async def aevaluate_item(
    benchmark: Benchmark[ItemT],
    evaluate: AsyncEvaluationCallback[Any],
    index: int,
    item: ItemT,
    records: list[EvaluationRecord],
    *,
    fail_fast: bool,
) -> None:
    """The twin of `evaluate_item` for a coroutine function and environments of any kind."""
    opened: list[Any] = []
    try:
        await _aplay(benchmark, evaluate, index, item, records, opened, fail_fast=fail_fast)
    except BaseException as error:
        close_error = await _aclose(opened, records, index)
        if close_error is not None:
            add_note(error, f"closing the environment failed too: {close_error}")
        raise
    await _aclose(opened, records, index)


async def _aplay(
    benchmark: Benchmark[ItemT],
    evaluate: AsyncEvaluationCallback[Any],
    index: int,
    item: ItemT,
    records: list[EvaluationRecord],
    opened: list[Any],
    *,
    fail_fast: bool,
) -> None:
    item_id: str | None = None
    try:
        item_id = str(index) if benchmark.item_id is None else benchmark.item_id(item)
        with RefuseStrayCancellation(f"item {item_id!r}"):
            made: Any = benchmark.make_env(item)
            opened.append(await made if is_awaitable(made) else made)
            result = _read(await evaluate(opened[0]))
        records.append(
            EvaluationRecord(index, item_id, result.score, result.truncated, result.metadata)
        )
    except Exception as error:
        records.append(_failed(index, item_id, error))
        if fail_fast:
            raise


def _environment(benchmark: Benchmark[ItemT], item: ItemT) -> Any:
    environment: Any = _synchronous(benchmark.make_env(item), "make_env")
    if inspect.iscoroutinefunction(getattr(environment, "close", None)):
        msg = f"make_env must return a synchronous environment, got {environment!r}: wrap it in as_sync"
        raise TypeError(msg)
    return environment


def _evaluation(evaluate: EvaluationCallback[Any], environment: Any) -> Evaluation:
    return _read(_synchronous(evaluate(environment), "evaluate"))


def _read(evaluation: object) -> Evaluation:
    if isinstance(evaluation, Evaluation):
        return evaluation
    msg = f"evaluate must return an Evaluation, got {evaluation!r}; a policy is passed as `policy=`"
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


def _close(opened: list[Any], records: list[EvaluationRecord], index: int) -> str | None:
    """Close the environment; if that fails, return the error, and say so in the item's record."""
    try:
        for environment in opened:
            close = getattr(environment, "close", None)
            if close is not None:
                close()
    except Exception as error:
        return _note_close_error(error, records, index)
    return None


async def _aclose(opened: list[Any], records: list[EvaluationRecord], index: int) -> str | None:
    """The twin of `_close`, which no cancellation breaks off."""
    try:
        for environment in opened:
            close = getattr(environment, "close", None)
            closing: Any = None if close is None else close()
            if is_awaitable(closing):
                with anyio.fail_after(CLOSE_SECONDS, shield=True):
                    with RefuseStrayCancellation(environment):
                        await closing
    except Exception as error:
        return _note_close_error(error, records, index)
    return None


def _note_close_error(error: Exception, records: list[EvaluationRecord], index: int) -> str:
    described = f"{type(error).__name__}: {_message(error)}"
    if records and records[-1].index == index:
        metadata = {**records[-1].metadata, "close_error": described}
        records[-1] = replace(records[-1], metadata=metadata)
    return described


def _message(error: Exception) -> str:
    try:
        return str(error)
    except Exception:  # a user's __str__ may fail, and must not cost the record
        return ""
