"""Stores of another kind than files: what a run calls, and what comes of their errors."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator, Iterator, Mapping
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from core.rollouts.scripted import policy
from core.storage.runs import AnyGroup, make_env
from rolloutlib import TrajectoryGroup, acollect, collect
from rolloutlib.rollouts import RolloutEvent

pytestmark = pytest.mark.anyio


class MemoryStore:
    """A store of one's own: it keeps dictionaries."""

    def __init__(self) -> None:
        self.settings: Mapping[str, Any] | None = None
        self.kept: dict[int, dict[str, Any]] = {}
        self.calls: list[str] = []
        self.full = False
        self.close_error: Exception | None = None

    def read_seed(self) -> int | None:
        return None if self.settings is None else self.settings["seed"]

    def prepare(self, settings: Mapping[str, Any]) -> None:
        self.settings = settings
        self.calls.append("prepare")

    def check(self, value: object) -> None:
        pass

    def load(self, position: int) -> AnyGroup | None:
        form = self.kept.get(position)
        return None if form is None else AnyGroup.from_dict(form)

    def save(self, position: int, group: AnyGroup) -> None:
        if self.full:
            raise OSError(28, "No space left on device")
        self.kept[position] = group.to_dict()

    def finish(self, num_items: int) -> None:
        self.calls.append(f"finish {num_items}")

    def close(self) -> None:
        self.calls.append("close")
        if self.close_error is not None:
            raise self.close_error


@pytest.mark.parametrize("concurrency", [1, 2])
def test_a_store_may_be_ones_own(concurrency: int) -> None:
    store = MemoryStore()
    first = list(
        collect([*"ab"], make_env, policy, store=store, concurrency=concurrency, order="dataset")
    )
    again = list(
        collect([*"ab"], make_env, policy, store=store, concurrency=concurrency, order="dataset")
    )
    assert first == again
    assert store.calls == ["prepare", "finish 2", "close"] * 2


@pytest.mark.parametrize("inline", [False, True])
async def test_a_store_that_never_blocks_is_called_on_the_event_loop(inline: bool) -> None:
    threads: set[threading.Thread] = set()

    class Watched(MemoryStore):
        def load(self, position: int) -> AnyGroup | None:
            threads.add(threading.current_thread())
            return super().load(position)

        def save(self, position: int, group: AnyGroup) -> None:
            threads.add(threading.current_thread())
            super().save(position, group)

    store: Any = Watched()
    store.inline = inline
    async with acollect([*"ab"], make_env, policy, store=store) as groups:
        assert len([group async for group in groups]) == 2
    assert (threading.current_thread() in threads) == inline
    assert len(store.kept) == 2


@pytest.mark.parametrize("concurrency", [1, 2])
def test_a_group_that_could_not_be_kept_travels_with_the_error(concurrency: int) -> None:
    store = MemoryStore()
    store.full = True
    with pytest.raises(OSError, match="No space left") as caught:
        list(collect([*"a"], make_env, policy, store=store, concurrency=concurrency))
    [group] = TrajectoryGroup.all_from_exception(caught.value)
    assert group.num_completed == 1
    assert store.calls[-1] == "close"


async def test_an_error_of_closing_ends_every_kind_of_run() -> None:
    store = MemoryStore()
    store.close_error = OSError(5, "Input/output error")
    for concurrency in (1, 2):
        with pytest.raises(OSError, match="Input/output"):
            list(collect([*"ab"], make_env, policy, store=store, concurrency=concurrency))
    with pytest.raises(OSError, match="Input/output"), anyio.fail_after(10):
        async with acollect([*"ab"], make_env, policy, store=store) as groups:
            assert len([group async for group in groups]) == 2
    with pytest.raises(OSError, match="Input/output"):
        await acollect([*"ab"], make_env, policy, store=store).aclose()
    with anyio.fail_after(10), anyio.CancelScope() as scope:
        async with acollect([*"ab"], make_env, policy, store=store):
            scope.cancel()
            await anyio.lowlevel.checkpoint()
    assert store.calls.count("close") == 5


async def test_an_error_of_closing_comes_out_where_a_run_is_left_early() -> None:
    store = MemoryStore()
    store.close_error = OSError(5, "Input/output error")
    for concurrency in (1, 2):
        groups = collect([*"abc"], make_env, policy, store=store, concurrency=concurrency)
        next(groups)
        with pytest.raises(OSError, match="Input/output"):
            groups.close()
    run = acollect([*"abc"], make_env, policy, store=store)
    with pytest.raises(OSError, match="Input/output"):
        async with run as groups:
            await anext(groups)
    await run.aclose()  # which tells it once
    run = acollect([*"abc"], make_env, policy, store=store)
    await anext(run)
    with pytest.raises(OSError, match="Input/output") as caught:
        await run.aclose()
    assert TrajectoryGroup.all_from_exception(caught.value) == run.unclaimed


async def test_an_error_of_closing_takes_no_place_of_the_callers_own() -> None:
    store = MemoryStore()
    store.close_error = OSError(5, "Input/output error")

    async def fail() -> None:
        async with acollect([*"abc"], make_env, policy, store=store) as groups:
            await anext(groups)
            raise KeyError

    with pytest.raises(KeyError) as caught:
        await fail()
    assert "Input/output error" in caught.value.__notes__[0]


async def test_an_error_of_closing_does_not_hide_the_one_before() -> None:
    store = MemoryStore()
    store.full = True
    store.close_error = OSError(5, "Input/output error")
    with pytest.raises(OSError, match="No space left") as caught:
        async with acollect([*"a"], make_env, policy, store=store) as groups:
            await anext(groups)
    assert "Input/output error" in caught.value.__notes__[0]


@pytest.mark.parametrize("concurrency", [1, 2])
@pytest.mark.parametrize("what", ["items", "store"])
def test_an_error_of_closing_does_not_hide_that_of_a_policy(what: str, concurrency: int) -> None:
    def items() -> Iterator[str]:
        try:
            yield from "ab"
        finally:
            if what == "items":
                raise ConnectionError(what)

    def broken_policy(observation: str) -> str:
        raise ZeroDivisionError

    store = MemoryStore()
    store.close_error = ConnectionError(what) if what == "store" else None
    run = collect(
        items(), make_env, broken_policy, store=store, concurrency=concurrency, on_error="raise"
    )
    with pytest.raises(ZeroDivisionError) as caught:
        list(run)
    assert f"ConnectionError('{what}')" in caught.value.__notes__[0]
    assert store.calls[-1] == "close"


@pytest.mark.parametrize("concurrency", [1, 2])
def test_a_store_is_closed_though_the_items_are_not(concurrency: int) -> None:
    def items() -> Iterator[str]:
        try:
            yield from "ab"
        finally:
            raise ConnectionError

    store = MemoryStore()
    with pytest.raises(ConnectionError):
        list(collect(items(), make_env, policy, store=store, concurrency=concurrency))
    assert store.calls[-1] == "close"


async def test_what_is_finished_is_kept_when_a_run_is_cancelled() -> None:
    class SlowStore(MemoryStore):
        def save(self, position: int, group: AnyGroup) -> None:
            assert cancelled.wait(10)
            super().save(position, group)

    async def items() -> AsyncIterator[str]:
        yield "a"
        yield "b"
        try:
            await anyio.sleep_forever()
        finally:
            cancelled.set()

    async def apolicy(observation: str) -> str:
        playing.add(anyio.get_current_task().id)
        while len(playing) < 2:
            await anyio.lowlevel.checkpoint()
        return "a"

    def tell(event: RolloutEvent) -> None:
        if event.kind == "finished":
            finished.append(event.item_id)

    playing: set[int] = set()
    finished: list[str] = []
    cancelled = threading.Event()
    store = SlowStore()
    async with acollect(items(), make_env, apolicy, store=store, on_event=tell, inline=True):
        while len(finished) < 2:
            await anyio.lowlevel.checkpoint()
        await anyio.wait_all_tasks_blocked()
    assert sorted(store.kept) == [0, 1]
