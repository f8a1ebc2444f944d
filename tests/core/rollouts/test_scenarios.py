"""Faults that runs meet, each with what becomes of them. Others are in the tests of their part."""

from __future__ import annotations

import contextlib
import json
import multiprocessing
import sys
import threading
from collections import Counter
from collections.abc import Generator
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import anyio
import anyio.abc
import anyio.lowlevel
import anyio.to_thread
import pytest

from core.rollouts import spawned
from core.rollouts.scripted import AsyncScriptedEnv, Log, ScriptedEnv, apolicy, policy
from rolloutlib import (
    TrajectoryGroup,
    acollect,
    arollout_group,
    collect,
    rollout_group,
)
from rolloutlib.rollouts import Retry, StalledError, Timeouts

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("threads_end")]

Group = TrajectoryGroup[Any, Any, Any]


async def test_one_failure_among_five_hundred_leaves_the_others_alone() -> None:
    """One of very many episodes raises after it was sampled, and the rest must not be lost."""
    answers = 0

    async def answer(observation: str) -> str:
        nonlocal answers
        await anyio.lowlevel.checkpoint()
        answers += 1
        if answers == 250:
            msg = "bad gateway"
            raise ConnectionError(msg)
        return "a"

    group = await arollout_group(
        "item", lambda _: AsyncScriptedEnv(1), answer, num_rollouts=500, concurrency=500
    )
    assert group.num_completed == 499
    [error] = group.errors
    assert (error.error_type, error.error_message) == ("ConnectionError", "bad gateway")
    assert "in answer" in error.traceback


@pytest.mark.parametrize("on_error", ["record", "raise"])
async def test_a_failure_of_the_last_member_loses_none_of_those_before(on_error: Any) -> None:
    """The last episode of a group fails when all others have ended."""
    made = 0

    def make_env(item: str) -> AsyncScriptedEnv:
        nonlocal made
        made += 1
        return AsyncScriptedEnv(faults={"step 1": KeyError("lost")} if made == 8 else {})

    group: Group | None = None
    try:
        group = await arollout_group(
            "item", make_env, apolicy, num_rollouts=8, concurrency=3, on_error=on_error
        )
    except KeyError as error:
        group = TrajectoryGroup.from_exception(error)
    assert group is not None
    assert (group.num_completed, group.num_failed) == (7, 1)
    assert group.errors[0].index == 7


async def test_a_first_failure_leaves_nobody_stepping_in_the_background() -> None:
    """The first of four concurrent episodes raises while the others are in the middle of a step."""
    log, started = Log(), anyio.Event()

    class Waiting(AsyncScriptedEnv):
        async def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
            if log.open == 4 and action == "first":
                started.set()
                msg = "lost"
                raise KeyError(msg)
            await started.wait()
            await anyio.lowlevel.checkpoint()
            return await super().step(action)

    actions = iter(["later", "later", "later", "first"])

    async def answer(observation: str) -> str:
        while log.open < 4:
            await anyio.lowlevel.checkpoint()
        return next(actions)

    before = len(anyio.get_running_tasks())
    with pytest.raises(KeyError):
        await arollout_group(
            "item",
            lambda _: Waiting(log=log),
            answer,
            num_rollouts=4,
            concurrency=4,
            on_error="raise",
        )
    assert log.opened == log.closed == 4
    events = list(log.events)
    await anyio.wait_all_tasks_blocked()
    assert log.events == events
    assert len(anyio.get_running_tasks()) == before


async def test_cleaning_up_after_a_cancellation_may_take_several_awaits() -> None:
    """The first await of a cleanup raises the cancellation again, so the rest of it never runs."""
    closed = 0

    class Careful(AsyncScriptedEnv):
        async def close(self) -> None:
            nonlocal closed
            for _ in range(3):
                await anyio.lowlevel.checkpoint()
            await super().close()
            closed += 1

    hanging = anyio.Event()

    async def hang(observation: str) -> str:
        hanging.set()
        await anyio.sleep_forever()
        return "never"

    async with (
        acollect(range(4), lambda _: Careful(), hang) as groups,
        anyio.create_task_group() as tasks,
    ):
        tasks.start_soon(_drain, groups)
        await hanging.wait()
        await anyio.wait_all_tasks_blocked()
        tasks.cancel_scope.cancel()
    assert closed == 4


async def _drain(groups: Any) -> None:
    async for _ in groups:
        pass


async def test_a_failure_that_nobody_awaits_comes_out_at_the_consumer() -> None:
    """A task in the background dies, and whoever waits for its results waits for ever."""

    def make_env(item: int) -> AsyncScriptedEnv:
        return AsyncScriptedEnv(faults={"reset": OSError("no disk")})

    for consumers in (1, 3):
        caught: list[OSError] = []

        async def consume(groups: Any, caught: list[OSError] = caught) -> None:
            try:
                await _drain(groups)
            except OSError as error:
                caught.append(error)

        async with (
            acollect(range(9), make_env, apolicy, on_error="raise") as groups,
            anyio.create_task_group() as tasks,
        ):
            for _ in range(consumers):
                tasks.start_soon(consume, groups)
        assert len(caught) == consumers


@pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX processes")
async def test_a_grader_that_hangs_in_a_process_is_told_to_end_it() -> None:
    """A time limit strikes while a grader's process hangs, and the process outlives it."""
    code = "import time; time.sleep(3600)"
    process = await anyio.open_process([sys.executable, "-c", code])

    async def grade(group: Group) -> list[float]:
        try:
            await process.wait()
        except BaseException:
            process.kill()
            with anyio.CancelScope(shield=True):
                await process.aclose()
            raise
        return [1.0]

    group = await arollout_group(
        "item",
        lambda _: AsyncScriptedEnv(),
        apolicy,
        grade_group=grade,
        timeouts=Timeouts(grade=0.05),
    )
    assert [error.phase for error in group.errors] == ["grade"]
    assert process.returncode is not None


@pytest.mark.parametrize("event", ["reset", "step 0"])
async def test_a_failed_attempts_resources_are_released_before_the_next_begins(event: str) -> None:
    """Setting up raises half-way, and what it had opened by then is never closed."""
    log = Log()

    def make_env(item: str) -> ScriptedEnv:
        assert log.open == 0
        return ScriptedEnv(faults={event: ConnectionError()} if log.opened < 2 else {}, log=log)

    retry = Retry(initial_delay=0)
    assert rollout_group("item", make_env, policy, retry=retry).num_completed == 1
    assert log.opened == log.closed == 3
    log = Log()
    assert (await arollout_group("item", make_env, policy, retry=retry)).num_completed == 1
    assert log.opened == log.closed == 3


@pytest.mark.parametrize("max_steps", [0, 1, 3])
async def test_an_episode_that_is_cut_short_is_closed_after_its_last_info_was_read(
    max_steps: int,
) -> None:
    """A limit on steps ends an episode, which stays open, or whose facts are read after closing."""

    class Forgetful(ScriptedEnv):
        def __init__(self, log: Log) -> None:
            super().__init__(9, log=log)
            self.facts = {"open": True}

        def reset(self, *, seed: Any = None, options: Any = None) -> tuple[str, dict[str, Any]]:
            return super().reset(seed=seed)[0], self.facts

        def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
            return (*super().step(action)[:4], self.facts)

        def close(self) -> None:
            self.facts["open"] = False
            super().close()

    log = Log()
    for group in (
        rollout_group("item", lambda _: Forgetful(log), policy, max_steps=max_steps),
        await arollout_group("item", lambda _: Forgetful(log), policy, max_steps=max_steps),
    ):
        [trajectory] = group.trajectories
        assert trajectory.truncated
        infos = [trajectory.initial_info, *[step.info for step in trajectory.steps]]
        assert infos == [{"open": True}] * (max_steps + 1)
    assert log.opened == log.closed == 2


def test_a_request_that_is_refused_for_good_is_not_repeated_for_ever() -> None:
    """A server refuses each request for a reason that will not pass, and the run goes on asking."""
    asked = 0

    def refuse(observation: str) -> str:
        nonlocal asked
        asked += 1
        msg = "404: no such model"
        raise LookupError(msg)

    groups = collect(range(10**6), lambda _: ScriptedEnv(), refuse, retry=Retry(initial_delay=0))
    with pytest.raises(StalledError) as caught:
        list(groups)
    assert str(caught.value.__cause__) == "404: no such model"
    assert asked == 100


def test_seed_and_step_tell_each_request_of_a_run_from_all_others() -> None:
    """A response is lost and its request sent again, so that one turn is sampled twice."""
    keys: Counter[tuple[int, int]] = Counter()
    made = 0

    def make_env(item: str) -> ScriptedEnv:
        nonlocal made
        made += 1
        return ScriptedEnv(faults={"step 1": ConnectionError()} if made % 3 else {})

    def answer(observation: str, *, seed: int = 0, step: int = 0) -> str:
        keys[seed, step] += 1
        return "a"

    groups = list(
        collect(
            ["a", "b", "a"],
            make_env,
            answer,
            num_rollouts=4,
            retry=Retry(initial_delay=0),
        )
    )
    assert sum(len(group.retried) for group in groups) == 24
    assert set(keys.values()) == {1}
    assert len(keys) == 2 * 36


async def test_an_environment_with_a_home_thread_never_leaves_it() -> None:
    """An environment that is bound to its thread is stepped on changing threads of a pool."""
    threads: list[set[int]] = []

    class AtHome(ScriptedEnv):
        def __init__(self) -> None:
            super().__init__(4)
            self.seen: set[int] = set()
            threads.append(self.seen)

        def _do(self, event: str) -> None:
            self.seen.add(threading.get_ident())
            super()._do(event)

    async with acollect(range(6), lambda _: AtHome(), apolicy, concurrency=6) as groups:
        await _drain(groups)
    await anyio.to_thread.run_sync(
        lambda: list(collect(range(6), lambda _: AtHome(), policy, concurrency=6))
    )
    assert [len(seen) for seen in threads] == [1] * 12


async def test_an_environment_that_was_left_in_a_call_is_never_used_again() -> None:
    """A deadline passes during a blocking step, and the environment is stepped on all the same."""
    log, stuck, release = Log(), threading.Event(), threading.Event()

    class Stuck(ScriptedEnv):
        def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
            stuck.set()
            release.wait(60)
            return super().step(action)

    async def cancel() -> None:
        await anyio.to_thread.run_sync(stuck.wait, 60, abandon_on_cancel=True)
        scope.cancel()

    retry = Retry(initial_delay=0)
    with anyio.CancelScope() as scope:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(cancel)
            await arollout_group("item", lambda _: Stuck(log=log), apolicy, retry=retry)
    assert scope.cancelled_caught
    assert log.closed == 0
    release.set()
    while log.closed == 0 and threading.active_count() > 1:
        await anyio.lowlevel.checkpoint()
    assert log.events == ["reset", "step 0", "close"]


async def test_blocking_environments_policies_and_graders_are_not_limited_by_a_pool() -> None:
    """A pool of threads somewhere below allows far fewer at once than was asked for."""
    count = 150
    stepping, answering, grading = (threading.Barrier(count) for _ in range(3))

    class Meeting(ScriptedEnv):
        def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
            stepping.wait(60)
            return super().step(action)

    def meet(observation: str) -> str:
        answering.wait(60)
        return "a"

    def grade(group: Group) -> list[float]:
        grading.wait(60)
        return [1.0]

    async with acollect(
        range(count), lambda _: Meeting(1), meet, concurrency=count, grade_group=grade
    ) as groups:
        assert [group.rewards async for group in groups] == [(1.0,)] * count


async def test_many_groups_share_one_limit() -> None:
    """A limit holds for each group alone, so that many groups together are far above it."""
    log, limiter = Log(), anyio.CapacityLimiter(8)

    async def play(item: int) -> None:
        await arollout_group(
            item,
            lambda _: AsyncScriptedEnv(log=log),
            apolicy,
            num_rollouts=8,
            concurrency=limiter,
        )

    async with anyio.create_task_group() as tasks:
        for item in range(32):
            tasks.start_soon(play, item)
    assert log.opened == log.closed == 256
    assert log.most_open == 8


def test_limits_on_time_work_in_any_thread() -> None:
    """A time limit is built on a signal, which only the main thread gets."""
    groups: list[Group] = []
    release = threading.Event()

    def block(observation: str) -> str:
        release.wait(60)
        return "a"

    def work() -> None:
        timeouts = Timeouts(policy=0.05)
        groups.append(rollout_group("item", lambda _: ScriptedEnv(), block, timeouts=timeouts))
        groups.extend(collect(range(2), lambda _: ScriptedEnv(), block, timeouts=timeouts))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join(60)
    release.set()
    assert [group.errors[0].error_type for group in groups] == ["TimeoutError"] * 3


async def test_a_server_that_falls_silent_ends_as_a_record() -> None:
    """A connection is dropped without a word, and the episode waits for the answer for ever."""
    silence = anyio.Event()

    async def serve(client: anyio.abc.SocketStream) -> None:
        async with client:
            with contextlib.suppress(anyio.EndOfStream):  # its time may be over before it asks
                await client.receive()
            await silence.wait()

    listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
    port = listener.extra_attributes[anyio.abc.SocketAttribute.local_port]()

    async def ask(observation: str) -> str:
        async with await anyio.connect_tcp("127.0.0.1", port) as stream:
            await stream.send(observation.encode())
            return (await stream.receive()).decode()

    async with listener, anyio.create_task_group() as tasks:
        tasks.start_soon(listener.serve, serve)
        group = await arollout_group(
            "item", lambda _: AsyncScriptedEnv(), ask, num_rollouts=2, timeouts=Timeouts(policy=0.2)
        )
        assert [error.error_type for error in group.errors] == ["TimeoutError"] * 2
        assert [error.phase for error in group.errors] == ["policy"] * 2
        tasks.cancel_scope.cancel()


async def test_what_was_asked_for_is_what_is_accounted_for() -> None:
    """Workers die, fewer results than were asked for come back, and training goes on with them."""
    made = 0

    def make_env(item: int) -> AsyncScriptedEnv:
        nonlocal made
        made += 1
        if made % 3 == 0:
            msg = f"worker {made} is gone"
            raise ConnectionError(msg)
        return AsyncScriptedEnv(1)

    async with acollect(range(64), make_env, apolicy, num_rollouts=16) as groups:
        taken = [group async for group in groups]
    assert sorted(group.item for group in taken) == list(range(64))
    for group in taken:
        members = [trajectory.member for trajectory in group.trajectories]
        members += [error.index for error in group.errors]
        assert sorted(members, key=lambda member: member or 0) == list(range(16))
        assert group.num_completed + group.num_failed == 16


def test_groups_and_errors_come_whole_from_processes_that_are_spawned() -> None:
    """A process is forked while threads hold locks, and the copy waits for them for ever."""
    here = spawned.play([0, 1], 5)
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=context) as pool:
        there = pool.submit(spawned.play, [0, 1], 5).result(120)
        assert [group.trajectories for group in there] == [group.trajectories for group in here]
        [error, _] = there[1].errors
        assert error.trajectory == here[1].errors[0].trajectory
        again = pool.submit(spawned.read, json.dumps(error.to_dict())).result(120)
    assert again == error


async def test_a_group_that_lost_members_stays_aligned() -> None:
    """Some members fail, and the survivors' rewards are taken for those of others."""
    made = 0

    def make_env(item: str) -> ScriptedEnv:
        nonlocal made
        made += 1
        return ScriptedEnv(made, faults={"step 0": KeyError()} if made in (1, 4) else {})

    group = rollout_group(
        "item",
        make_env,
        policy,
        num_rollouts=5,
        grade_group=lambda group: [len(trajectory.steps) for trajectory in group.trajectories],
    )
    assert [(t.member, len(t.steps)) for t in group.trajectories] == [(1, 2), (2, 3), (4, 5)]
    assert group.rewards == (2.0, 3.0, 5.0)
    assert [error.index for error in group.errors] == [0, 3]


async def test_a_reward_that_is_no_number_fails_its_own_episode_alone() -> None:
    """One reward is NaN, and all that is computed from its group becomes NaN."""

    class Undefined(ScriptedEnv):
        def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
            observation, _, terminated, truncated, info = super().step(action)
            return observation, float("nan"), terminated, truncated, info

    made = 0

    def make_env(item: str) -> ScriptedEnv:
        nonlocal made
        made += 1
        return Undefined() if made == 2 else ScriptedEnv()

    group = await arollout_group("item", make_env, policy, num_rollouts=3)
    [error] = group.errors
    assert (error.index, error.phase, error.error_type) == (1, "step", "ValueError")
    assert "Undefined" in error.error_message
    assert "step 0" in error.error_message
    assert group.rewards == (3.0, 3.0)


async def test_groups_of_different_environments_never_get_one_name() -> None:
    """Names count up from zero in each environment, and groups of two of them are merged."""

    class Other(ScriptedEnv):
        pass

    first = list(collect(["item"], lambda _: ScriptedEnv(), policy))
    second = list(collect(["item"], lambda _: Other(), policy))
    async with acollect(["item"], lambda _: Other(), policy) as groups:
        third = [group async for group in groups]
    assert first[0].item_id != second[0].item_id == third[0].item_id


@pytest.mark.parametrize("event", ["make_env", "reset"])
async def test_a_failure_before_the_first_step_is_shown_as_what_it_is(event: str) -> None:
    """An episode fails before its first step, and all that is shown is an empty trajectory."""
    cause = OSError("out of containers")

    def make_env(item: str) -> ScriptedEnv:
        if event == "make_env":
            raise cause
        return ScriptedEnv(faults={"reset": cause})

    for group in (
        rollout_group("item", make_env, policy),
        await arollout_group("item", make_env, policy),
    ):
        assert group.trajectories == ()
        [error] = group.errors
        assert (error.phase, error.error_message) == (event, "out of containers")
        assert error.trajectory is None


@pytest.mark.parametrize("order", ["completion", "dataset"])
async def test_long_episodes_come_out_as_surely_as_short_ones(order: Any) -> None:
    """Groups come in the order in which they end, and those that take long are dropped."""
    lengths = [200 if item % 10 == 0 else 1 for item in range(100)]

    async with acollect(
        range(100),
        lambda item: AsyncScriptedEnv(lengths[item]),
        apolicy,
        concurrency=8,
        buffer=1,
        order=order,
    ) as groups:
        taken = [group async for group in groups]
    assert sorted(group.item for group in taken) == list(range(100))
    assert all(len(group.trajectories[0].steps) == lengths[group.item] for group in taken)


async def test_a_grader_sees_each_group_in_which_anything_ended() -> None:
    """Episodes that were cut short are never graded, since something took them for malformed."""
    seen: list[int] = []

    def grade(group: Group) -> list[float]:
        seen.append(group.item)
        return [1.0] * len(group.trajectories)

    def items() -> Generator[int]:
        yield from range(3)

    arguments: dict[str, Any] = {"num_rollouts": 2, "max_steps": 1, "grade_group": grade}
    groups = list(collect(items(), lambda _: ScriptedEnv(), policy, **arguments))
    assert [group.num_truncated for group in groups] == [2, 2, 2]
    assert [group.rewards for group in groups] == [(1.0, 1.0)] * 3
    assert seen == [0, 1, 2]
