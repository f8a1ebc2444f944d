"""Collecting in synchronous code, in the caller's thread or on others."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Generator, Sequence
from typing import Any

import pytest

from core.rollouts.scripted import Log, ScriptedEnv, policy
from rolloutlib import (
    PolicyOutput,
    TrajectoryGroup,
    acollect,
    arollout_group,
    collect,
    rollout_group,
)
from rolloutlib.rollouts import BatchedPolicy, StalledError, Timeouts

pytestmark = pytest.mark.usefixtures("threads_end")

EACH_WAY = pytest.mark.parametrize("arguments", [{}, {"concurrency": 3}, {"timeouts": Timeouts()}])


def make_env(item: object) -> ScriptedEnv:
    return ScriptedEnv()


def press_ctrl_c(felt: threading.Event) -> None:
    """Interrupt the main thread, as a terminal does, and block until that was felt."""
    main = threading.main_thread().ident
    assert main is not None
    for _ in range(60):
        signal.pthread_kill(main, signal.SIGINT)
        # Python loses one that comes just before the main thread begins to wait for a lock.
        if felt.wait(1):
            return


def test_by_default_all_is_called_in_the_callers_thread() -> None:
    threads: set[threading.Thread] = set()

    class Noting(ScriptedEnv):
        def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
            threads.add(threading.current_thread())
            return super().step(action)

        def close(self) -> None:
            threads.add(threading.current_thread())
            super().close()

    def note(observation: str) -> str:
        threads.add(threading.current_thread())
        return "a"

    assert len(list(collect(range(3), lambda _: Noting(), note, num_rollouts=2))) == 3
    assert threads == {threading.current_thread()}


def test_with_concurrency_blocking_episodes_run_side_by_side() -> None:
    meeting = threading.Barrier(8)

    def meet(observation: str) -> str:
        meeting.wait(60)
        return "a"

    log = Log()
    groups = collect(
        range(4),
        lambda _: ScriptedEnv(1, log=log),
        meet,
        num_rollouts=4,
        concurrency=8,
    )
    assert [group.num_completed for group in groups] == [4, 4, 4, 4]
    assert log.opened == log.closed == 16
    assert log.most_open == 8


@EACH_WAY
def test_one_that_never_begins_leaves_nothing(arguments: dict[str, Any]) -> None:
    before = set(threading.enumerate())
    log = Log()
    groups = collect(range(3), lambda _: ScriptedEnv(log=log), policy, **arguments)
    assert set(threading.enumerate()) <= before  # those of other tests may end meanwhile
    del groups
    assert log.opened == 0


@EACH_WAY
@pytest.mark.parametrize("end", ["close", "del", "throw"])
def test_one_that_is_left_early_closes_everything(
    arguments: dict[str, Any], end: str, threads_end: Callable[[], None]
) -> None:
    log, closed = Log(), threading.Event()

    def items() -> Generator[int]:
        try:
            yield from range(1000)
        finally:
            closed.set()

    groups = collect(items(), lambda _: ScriptedEnv(log=log), policy, **arguments)
    next(groups)
    next(groups)
    if end == "close":
        groups.close()
    elif end == "throw":
        with pytest.raises(ZeroDivisionError):
            groups.throw(ZeroDivisionError())
    del groups
    threads_end()
    assert closed.is_set()
    assert 2 <= log.opened < 50
    assert log.opened == log.closed


@EACH_WAY
def test_an_exception_of_the_callers_closes_everything(
    arguments: dict[str, Any], threads_end: Callable[[], None]
) -> None:
    log = Log()

    def consume() -> None:
        for _ in collect(range(1000), lambda _: ScriptedEnv(log=log), policy, **arguments):
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        consume()
    threads_end()
    assert log.opened == log.closed


@EACH_WAY
def test_ctrl_c_in_a_policy_comes_out_with_what_was_finished(
    arguments: dict[str, Any], threads_end: Callable[[], None]
) -> None:
    log, calls, felt = Log(), iter(range(10**6)), threading.Event()

    def interrupt(observation: str) -> str:
        if next(calls) == 7:
            press_ctrl_c(felt)
        return "a"

    groups = collect(
        range(10**6),
        lambda _: ScriptedEnv(1, log=log),
        interrupt,
        num_rollouts=10**6,
        **arguments,
    )
    with pytest.raises(KeyboardInterrupt) as caught:
        next(groups)
    felt.set()
    threads_end()
    assert log.opened == log.closed >= 8
    rest = TrajectoryGroup.all_from_exception(caught.value)
    assert rest
    assert rest[0].item == 0
    assert rest[0].num_completed >= 5


@pytest.mark.parametrize("arguments", [{"concurrency": 2}, {"timeouts": Timeouts()}])
def test_ctrl_c_does_not_wait_for_what_blocks_a_thread(arguments: dict[str, Any]) -> None:
    felt, log = threading.Event(), Log()

    def block(observation: str) -> str:
        press_ctrl_c(felt)
        return "a"

    groups = collect(range(1), lambda _: ScriptedEnv(1, log=log), block, **arguments)
    with pytest.raises(KeyboardInterrupt):
        next(groups)
    assert log.opened == log.closed == 1
    felt.set()


def test_ctrl_c_in_a_group_with_timeouts_comes_out_with_what_was_finished() -> None:
    felt, log, calls = threading.Event(), Log(), iter(range(100))

    def block(observation: str) -> str:
        if next(calls) == 3:
            press_ctrl_c(felt)
        return "a"

    with pytest.raises(KeyboardInterrupt) as caught:
        rollout_group(
            "item",
            lambda _: ScriptedEnv(1, log=log),
            block,
            num_rollouts=9,
            timeouts=Timeouts(policy=3600),
        )
    assert log.opened == log.closed == 4
    group = TrajectoryGroup.from_exception(caught.value)
    assert group is not None
    assert (group.num_completed, group.num_failed) == (3, 0)
    felt.set()


@EACH_WAY
@pytest.mark.parametrize("on_error", ["record", "raise"])
def test_failures_are_recorded_or_raised(
    arguments: dict[str, Any], on_error: Any, threads_end: Callable[[], None]
) -> None:
    log, error = Log(), KeyError("lost")

    def make(item: int) -> ScriptedEnv:
        return ScriptedEnv(faults={"step 1": error} if item == 2 else {}, log=log)

    groups = collect(
        range(4),
        make,
        policy,
        num_rollouts=2,
        order="dataset",
        on_error=on_error,
        buffer=9,
        **arguments,
    )
    if on_error == "record":
        assert [group.num_failed for group in groups] == [0, 0, 2, 0]
    else:
        taken: list[int] = []
        with pytest.raises(KeyError) as caught:
            taken.extend(group.item for group in groups)
        assert caught.value is error
        rest = {group.item: group for group in TrajectoryGroup.all_from_exception(error)}
        assert rest[2].errors
        assert not set(taken) & set(rest)
        assert arguments or (taken, list(rest)) == ([0, 1], [2])
    threads_end()
    assert log.opened == log.closed


@EACH_WAY
def test_a_run_in_which_nothing_ends_stops_with_the_cause(
    arguments: dict[str, Any], threads_end: Callable[[], None]
) -> None:
    log, cause = Log(), PermissionError("401: the key has expired")

    def refuse(observation: str) -> str:
        raise cause

    def consume() -> int:
        items = iter(range(10**9))
        groups = collect(
            items, lambda _: ScriptedEnv(log=log), refuse, max_failures=20, **arguments
        )
        return sum(group.num_failed for group in groups)

    with pytest.raises(StalledError, match="PermissionError") as caught:
        consume()
    assert caught.value.__cause__ is cause
    threads_end()
    assert log.opened == log.closed
    assert 20 <= log.opened < 40


def test_a_batched_policy_plays_each_group_in_lock_step() -> None:
    sizes: list[int] = []

    def answer(observations: Sequence[str]) -> list[PolicyOutput[str]]:
        sizes.append(len(observations))
        return [policy(observation) for observation in observations]

    arguments: dict[str, Any] = {"num_rollouts": 4, "seed": 5, "get_item_id": str}
    groups = list(collect(range(3), make_env, BatchedPolicy(answer), **arguments))
    assert groups == list(collect(range(3), make_env, policy, **arguments))
    assert sizes == [4, 4] * 3


@pytest.mark.parametrize("arguments", [{"concurrency": 2}, {"timeouts": Timeouts(step=1)}])
def test_a_batched_policy_has_neither_concurrency_nor_timeouts(arguments: dict[str, Any]) -> None:
    batched = BatchedPolicy[str, str](list)
    with pytest.raises(TypeError, match="lock step"):
        collect(range(3), make_env, batched, **arguments)
    arguments.pop("concurrency", None)
    if arguments:
        with pytest.raises(TypeError, match="lock step"):
            rollout_group(1, make_env, batched, **arguments)


@pytest.mark.anyio
async def test_asynchronous_code_is_told_of_the_batched_policy_that_suits_it() -> None:
    batched = BatchedPolicy[str, str](list)
    with pytest.raises(TypeError, match="AsyncBatchedPolicy"):
        acollect(range(3), make_env, batched)
    with pytest.raises(TypeError, match="AsyncBatchedPolicy"):
        await arollout_group(1, make_env, batched)


def test_an_interrupt_raised_on_the_other_thread_comes_out_of_a_group_with_timeouts() -> None:
    def interrupting(observation: str) -> str:
        raise KeyboardInterrupt

    log = Log()
    with pytest.raises(KeyboardInterrupt) as caught:
        rollout_group(1, lambda _: ScriptedEnv(log=log), interrupting, timeouts=Timeouts())
    assert TrajectoryGroup.from_exception(caught.value) is not None
    assert log.opened == log.closed == 1


def test_members_get_the_item_as_it_was_when_their_group_began() -> None:
    seen: list[Any] = []

    def reused_items() -> Any:
        item = {"number": 0}
        for number in range(2):
            item["number"] = number
            yield item

    def make(item: dict[str, int]) -> ScriptedEnv:
        seen.append(item)
        return ScriptedEnv(1)

    groups = collect(reused_items(), make, policy, num_rollouts=2, concurrency=4)
    assert len(list(groups)) == 2
    assert sorted(item["number"] for item in seen) == [0, 0, 1, 1]


@pytest.mark.anyio
async def test_it_works_in_a_thread_that_runs_an_event_loop() -> None:
    for arguments in ({}, {"concurrency": 3}, {"timeouts": Timeouts()}):
        log = Log()
        more: dict[str, Any] = arguments
        groups = list(collect(range(5), lambda _, log=log: ScriptedEnv(log=log), policy, **more))
        assert len(groups) == 5
        assert log.opened == log.closed == 5
    group = rollout_group("item", make_env, policy, timeouts=Timeouts())
    assert group.num_completed == 1


def test_groups_are_taken_as_slowly_as_the_caller_likes() -> None:
    log = Log()
    groups = collect(
        range(10**9), lambda _: ScriptedEnv(1, log=log), policy, concurrency=2, buffer=3
    )
    for _ in range(5):
        next(groups)
    settled = -1
    while settled != log.opened:  # however long it is given, it stops at the buffer
        settled = log.opened
        time.sleep(0.05)
    assert settled <= 5 + 3 + 1
    groups.close()


@EACH_WAY
def test_an_interrupt_before_an_episode_has_ended_carries_no_empty_group(
    arguments: dict[str, Any],
) -> None:
    def interrupt(observation: str) -> str:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt) as caught:
        list(collect(range(3), make_env, interrupt, **arguments))
    assert TrajectoryGroup.all_from_exception(caught.value) == ()
