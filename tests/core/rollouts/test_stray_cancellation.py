"""Cancellations that nobody asked for: they end a run with an error, and never in silence."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Generator
from typing import Any

import pytest

from core.rollouts.scripted import AsyncScriptedEnv, Log, apolicy
from rolloutlib import acollect
from rolloutlib.rollouts import Retry, TrajectoryGroup

pytestmark = pytest.mark.anyio


async def take(*args: Any, **arguments: Any) -> list[TrajectoryGroup[Any, Any, Any]]:
    async with acollect(*args, **arguments) as groups:
        return [group async for group in groups]


def cancelled(*_: object) -> Any:
    """Raise what comes of waiting for an asyncio task that somebody has cancelled."""
    raise asyncio.CancelledError


async def asynchronous_items() -> AsyncGenerator[int]:
    yield 0
    yield 1
    cancelled()


def items() -> Generator[int]:
    yield 0
    yield 1
    cancelled()


class Items(list[int]):
    """Items with a length, which are read on the event loop."""

    def __iter__(self) -> Generator[int]:
        return items()


@pytest.mark.parametrize("source", [asynchronous_items, items, Items])
async def test_in_a_source_it_is_not_taken_for_the_end(source: Callable[[], Any]) -> None:
    log = Log()
    with pytest.raises(RuntimeError, match="cancellation") as caught:
        await take(source(), lambda _: AsyncScriptedEnv(log=log), apolicy)
    assert isinstance(caught.value.__cause__, asyncio.CancelledError)
    assert log.opened == log.closed <= 2


async def failing(observation: str) -> str:
    raise ConnectionError


@pytest.mark.parametrize(
    "arguments",
    [
        {"get_item_id": cancelled},
        {"on_event": cancelled},
        {"policy": failing, "retry": Retry(transient=cancelled)},
    ],
)
async def test_in_a_function_of_the_run_it_ends_the_run(arguments: dict[str, Any]) -> None:
    log = Log()
    arguments = {"policy": apolicy, **arguments}
    with pytest.raises(RuntimeError, match="cancellation"):
        await take([0, 1], lambda _: AsyncScriptedEnv(log=log), **arguments)
    assert log.opened == log.closed


async def test_in_a_policy_it_is_the_failure_of_an_episode() -> None:
    groups = await take([0, 1], lambda _: AsyncScriptedEnv(), cancelled)
    errors = [error for group in groups for error in group.errors]
    assert [(error.phase, error.error_type) for error in errors] == [("policy", "RuntimeError")] * 2
