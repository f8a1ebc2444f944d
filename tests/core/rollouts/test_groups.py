"""Groups of episodes: every one accounted for, every environment closed."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import signal
import threading
import uuid
from collections.abc import Callable
from typing import Any

import anyio
import anyio.lowlevel
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.rollouts.scripted import AsyncScriptedEnv, Log, ScriptedEnv, apolicy, policy
from rolloutlib import (
    Env,
    Trajectory,
    TrajectoryGroup,
    arollout_group,
    as_async,
    rollout,
    rollout_group,
)

pytestmark = pytest.mark.anyio


def factory(kind: Any, log: Log, members: list[dict[str, Any]]) -> Callable[[str], Any]:
    """Make environments, each by the next member's script."""
    scripts = iter(members)

    def make_env(item: str) -> Any:
        script = dict(next(scripts))
        error = script.get("faults", {}).get("make_env")
        if error is not None:
            raise error
        return kind(log=log, **script)

    return make_env


def accounted(group: TrajectoryGroup[Any, Any, Any], requested: int) -> bool:
    members = [trajectory.member for trajectory in group.trajectories]
    members += [error.index for error in group.errors]
    return (
        group.num_requested == requested
        and group.num_completed + group.num_truncated + group.num_failed == requested
        and sorted(members, key=lambda member: member or 0) == list(range(requested))
    )


faults = st.dictionaries(
    st.sampled_from(["make_env", "reset", "step 0", "step 1", "close"]),
    st.builds(KeyError, st.just("lost")),
    max_size=2,
)
scripts = st.fixed_dictionaries(
    {
        "length": st.integers(1, 3),
        "ends": st.sampled_from(["terminated", "truncated"]),
        "faults": faults,
    }
)


@given(members=st.lists(scripts, min_size=1, max_size=4), concurrency=st.integers(1, 4))
@settings(max_examples=40)
def test_whatever_fails_every_episode_has_one_outcome(
    members: list[dict[str, Any]], concurrency: int
) -> None:
    arguments: dict[str, Any] = {"num_rollouts": len(members), "seed": 3, "item_id": "x"}
    groups: list[TrajectoryGroup[Any, Any, Any]] = []

    def check(group: TrajectoryGroup[Any, Any, Any], log: Log) -> None:
        assert accounted(group, len(members))
        assert log.opened == log.closed
        groups.append(group)

    log = Log()
    check(rollout_group("item", factory(ScriptedEnv, log, members), policy, **arguments), log)

    async def main() -> None:
        ways: list[tuple[Any, Any, dict[str, Any]]] = [
            (AsyncScriptedEnv, apolicy, {}),
            (ScriptedEnv, policy, {}),
            (ScriptedEnv, apolicy, {"inline": True}),
        ]
        for kind, answer, more in ways:
            log = Log()
            make_env = factory(kind, log, members)
            group = await arollout_group(
                "item", make_env, answer, concurrency=concurrency, **arguments, **more
            )
            check(group, log)

    for backend in ("asyncio", "trio"):
        anyio.run(main, backend=backend)
    expected = groups[0]
    for error in expected.errors:
        assert error.error_type == "KeyError"
        assert error.phase in ("make_env", "reset", "step")
    for group in groups[1:]:
        assert group.trajectories == expected.trajectories
        assert [(e.index, e.phase, e.trajectory) for e in group.errors] == [
            (e.index, e.phase, e.trajectory) for e in expected.errors
        ]


async def both(
    members: list[dict[str, Any]], **arguments: Any
) -> list[tuple[TrajectoryGroup[Any, Any, Any], Log]]:
    """Run the scripts in both kinds of group."""
    log, alog = Log(), Log()
    arguments = {"num_rollouts": len(members), "seed": 3, **arguments}
    group = rollout_group("item", factory(ScriptedEnv, log, members), policy, **arguments)
    make_env = factory(AsyncScriptedEnv, alog, members)
    return [(group, log), (await arollout_group("item", make_env, apolicy, **arguments), alog)]


async def test_a_failed_episode_is_recorded_with_the_steps_before_it() -> None:
    members = [{}, {"faults": {"step 1": KeyError("lost")}}, {}]
    for group, log in await both(members):
        assert [trajectory.member for trajectory in group.trajectories] == [0, 2]
        assert len(group.scores) == len(group.rewards) == 2
        [error] = group.errors
        assert (error.index, error.phase) == (1, "step")
        assert (error.error_type, error.error_message) == ("KeyError", "'lost'")
        assert "KeyError: 'lost'" in error.traceback
        assert error.trajectory is not None
        assert error.trajectory.actions == ("ao0",)
        assert error.trajectory.seed == error.seed
        assert error.trajectory.member == 1
        assert log.closed == 3


async def test_a_policys_failure_is_the_policys() -> None:
    def fail(observation: str) -> str:
        raise ConnectionError(observation)

    group = rollout_group("item", lambda _: ScriptedEnv(), fail)
    again = await arollout_group("item", lambda _: AsyncScriptedEnv(), fail)
    for record in (group, again):
        [error] = record.errors
        assert (error.phase, error.error_type) == ("policy", "ConnectionError")
        assert error.trajectory is not None
        assert error.trajectory.initial_observation == "o0"


async def test_the_first_error_outranks_the_failure_to_close() -> None:
    members = [{"faults": {"step 0": KeyError("first"), "close": OSError("second")}}]
    for group, log in await both(members):
        [error] = group.errors
        assert (error.error_type, error.phase) == ("KeyError", "step")
        assert "failed too: OSError('second')" in error.traceback
        assert log.closed == 1


async def test_a_failure_to_close_alone_keeps_the_episode() -> None:
    for group, _ in await both([{"faults": {"close": OSError("busy")}}, {}], on_error="raise"):
        first, second = group.trajectories
        assert first.metadata == {"close_error": "OSError('busy')"}
        assert len(first.steps) == 2
        assert second.metadata == {}
        assert group.errors == ()


async def test_raising_carries_the_finished_work() -> None:
    error = KeyError("lost")
    members = [{}, {"faults": {"step 1": error}}, {}]
    for run, kind, answer in (
        (rollout_group, ScriptedEnv, policy),
        (arollout_group, AsyncScriptedEnv, apolicy),
    ):
        log = Log()
        make_env = factory(kind, log, members)
        caught: BaseException | None = None
        try:
            result: Any = run("item", make_env, answer, num_rollouts=3, on_error="raise")  # pyright: ignore[reportArgumentType]
            if run is arollout_group:
                await result
        except KeyError as raised:
            caught = raised
        assert caught is error
        partial = TrajectoryGroup.from_exception(error)
        assert partial is not None
        assert [trajectory.member for trajectory in partial.trajectories] == [0]
        assert [e.index for e in partial.errors] == [1]
        failed = Trajectory.from_exception(error)
        assert failed is not None
        assert len(failed.steps) == 1
        assert log.opened == log.closed == 2  # the third was never begun


async def test_on_return_nothing_runs_any_more() -> None:
    log = Log()
    started = 0

    async def hang(observation: str) -> str:
        nonlocal started
        started += 1
        if started == 4:
            msg = "the last one"
            raise ConnectionError(msg)
        await anyio.sleep_forever()
        return "never"

    def make_env(item: str) -> AsyncScriptedEnv:
        return AsyncScriptedEnv(log=log)

    with pytest.raises(ConnectionError, match="the last one") as caught:
        await arollout_group(
            "item", make_env, hang, num_rollouts=8, concurrency=4, on_error="raise"
        )
    assert log.opened == log.closed == 4
    events = list(log.events)
    await anyio.wait_all_tasks_blocked()
    assert log.events == events == ["reset"] * 4 + ["close"] * 4
    partial = TrajectoryGroup.from_exception(caught.value)
    assert partial is not None
    assert [error.phase for error in partial.errors] == ["policy"]


@pytest.mark.parametrize("interrupt", [KeyboardInterrupt(), SystemExit(2)])
async def test_an_interrupt_comes_out_with_the_finished_work(interrupt: BaseException) -> None:
    members = [{}, {"faults": {"step 0": interrupt}}, {}]
    log = Log()
    with pytest.raises(type(interrupt)) as caught:
        rollout_group("item", factory(ScriptedEnv, log, members), policy, num_rollouts=3)
    partial = TrajectoryGroup.from_exception(caught.value)
    assert partial is not None
    assert len(partial.trajectories) == 1
    assert log.opened == log.closed == 2
    alog = Log()
    raised: BaseException | None = None
    try:
        await arollout_group(
            "item", factory(AsyncScriptedEnv, alog, members), apolicy, num_rollouts=3
        )
    except (KeyboardInterrupt, SystemExit) as error:
        raised = error
    assert raised is interrupt
    assert alog.opened == alog.closed == 2


def test_ctrl_c_comes_out_as_it_is(anyio_backend: str) -> None:
    async def hang(observation: str) -> str:
        signal.raise_signal(signal.SIGINT)
        await anyio.sleep_forever()
        return "never"

    async def run() -> None:
        await arollout_group("item", factory(AsyncScriptedEnv, log, [{}]), hang)

    log = Log()
    with pytest.raises(KeyboardInterrupt):
        anyio.run(run, backend=anyio_backend)
    assert log.opened == log.closed == 1


async def test_cancellation_comes_out_and_closes() -> None:
    log = Log()
    asked = 0

    async def hang(observation: str) -> str:
        nonlocal asked
        asked += 1
        if asked == 3:
            scope.cancel()
        await anyio.sleep_forever()
        return "never"

    with anyio.CancelScope() as scope:
        await arollout_group(
            "item", lambda _: AsyncScriptedEnv(log=log), hang, num_rollouts=9, concurrency=3
        )
    assert scope.cancelled_caught
    assert log.opened == log.closed == 3


def test_the_finished_work_is_found_from_the_exception_that_takes_the_place_of_a_cancellation() -> (
    None
):
    async def main() -> None:
        waiting = asyncio.Event()
        asked = 0

        async def hang(observation: str) -> str:
            nonlocal asked
            asked += 1
            if asked == 3:
                waiting.set()
                await asyncio.Event().wait()
            return "a"

        async def interrupt() -> None:
            await waiting.wait()
            signal.raise_signal(signal.SIGINT)

        interrupting = asyncio.create_task(interrupt())
        await arollout_group("item", lambda _: AsyncScriptedEnv(length=1), hang, num_rollouts=4)
        await interrupting

    with pytest.raises(KeyboardInterrupt) as caught:
        asyncio.run(main())
    group = TrajectoryGroup.from_exception(caught.value)
    assert group is not None
    assert group.num_completed == 2
    unrelated = KeyError("other")
    unrelated.__context__ = unrelated.__cause__ = ValueError("first")
    assert TrajectoryGroup.from_exception(unrelated) is None


def test_cancelling_twice_closes_each_environment_once() -> None:
    log = Log()

    async def main() -> None:
        waiting, closing, release = asyncio.Event(), asyncio.Event(), asyncio.Event()

        class SlowToClose(AsyncScriptedEnv):
            async def close(self) -> None:
                closing.set()
                await release.wait()
                await super().close()

        async def hang(observation: str) -> str:
            waiting.set()
            await asyncio.Event().wait()
            return "never"

        def make_env(item: str) -> AsyncScriptedEnv:
            return SlowToClose(log=log)

        group = arollout_group("item", make_env, hang, num_rollouts=2, concurrency=2)
        task = asyncio.create_task(group)
        await waiting.wait()
        task.cancel()
        await closing.wait()
        task.cancel()
        await asyncio.sleep(0)
        assert not task.done()
        release.set()
        with contextlib.suppress(asyncio.CancelledError):
            await task
        assert task.cancelled()

    asyncio.run(main())
    assert log.opened == log.closed == 2


def test_a_cancellation_that_nobody_asked_for_is_a_failure() -> None:
    answers = 0

    async def stray(observation: str) -> str:
        nonlocal answers
        answers += 1
        if answers == 2:
            raise asyncio.CancelledError
        return "a"

    class Straying(AsyncScriptedEnv):
        async def close(self) -> None:
            await super().close()
            raise asyncio.CancelledError

    async def main() -> None:
        log = Log()
        group = await arollout_group(
            "item", lambda _: AsyncScriptedEnv(log=log), stray, num_rollouts=4, concurrency=2
        )
        assert accounted(group, 4)
        assert log.opened == log.closed == 4
        [error] = group.errors
        assert (error.phase, error.error_type) == ("policy", "RuntimeError")
        assert "its caller did not ask for" in error.error_message
        group = await arollout_group("item", lambda _: Straying(), apolicy, num_rollouts=2)
        assert ["close_error" in trajectory.metadata for trajectory in group.trajectories] == [
            True
        ] * 2

    asyncio.run(main())


class Connected(AsyncScriptedEnv):
    """Keeps a task group open from its reset to its closing, as clients of tool servers do."""

    def __init__(self, *args: Any, loses_connection: bool = False, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._loses_connection = loses_connection
        self._connection = contextlib.AsyncExitStack()

    async def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[str, dict[str, Any]]:
        self._tasks = await self._connection.enter_async_context(anyio.create_task_group())
        self._tasks.start_soon(anyio.sleep_forever)
        return await super().reset(seed=seed, options=options)

    async def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        result = await super().step(action)
        if self._loses_connection:
            self._tasks.start_soon(self._lose_connection)
            await anyio.sleep_forever()
        return result

    async def close(self) -> None:
        self._tasks.cancel_scope.cancel()
        try:
            await self._connection.aclose()
        finally:
            await super().close()

    async def _lose_connection(self) -> None:
        msg = "connection lost"
        raise ConnectionError(msg)


async def test_an_environment_may_keep_a_task_group_open_until_it_is_closed() -> None:
    log = Log()
    group = await arollout_group(
        "item", lambda _: Connected(log=log), apolicy, num_rollouts=4, concurrency=2
    )
    assert accounted(group, 4)
    assert [dict(trajectory.metadata) for trajectory in group.trajectories] == [{}] * 4
    assert log.opened == log.closed == 4


async def test_an_environment_whose_own_task_fails_is_a_failure_among_others() -> None:
    log = Log()
    members = [{}, {"loses_connection": True}, {}, {}]
    group = await arollout_group(
        "item", factory(Connected, log, members), apolicy, num_rollouts=4, concurrency=2
    )
    assert accounted(group, 4)
    [error] = group.errors
    assert (error.index, error.phase, error.error_type) == (1, "step", "RuntimeError")
    assert "its caller did not ask for" in error.error_message
    assert error.trajectory is not None
    assert "connection lost" in error.traceback
    assert log.opened == log.closed == 4


class MuteError(Exception):
    def __str__(self) -> str:
        msg = "no text"
        raise RuntimeError(msg)

    __repr__ = __str__


@dataclasses.dataclass(frozen=True)
class FrozenError(Exception):
    code: int


@pytest.mark.parametrize("event", ["make_env", "reset", "step 0"])
@pytest.mark.parametrize("error", [MuteError(), FrozenError(3)])
async def test_odd_exceptions_are_recorded_as_what_they_are(error: Exception, event: str) -> None:
    for group, _ in await both([{}, {"faults": {event: error, "close": MuteError()}}, {}]):
        assert accounted(group, 3)
        [record] = group.errors
        assert record.error_type.endswith(type(error).__name__)
        assert record.traceback


async def test_an_odd_exception_in_close_keeps_the_episode() -> None:
    for group, _ in await both([{"faults": {"close": MuteError()}}]):
        [trajectory] = group.trajectories
        assert "MuteError" in trajectory.metadata["close_error"]


async def test_one_exception_raised_in_many_places_mixes_no_records() -> None:
    shared = KeyError("the same object")
    members = [{"faults": {"step 1": shared}}, {"faults": {"reset": shared}}]
    for group, _ in await both(members):
        first, second = group.errors
        assert first.trajectory is not None
        assert (first.trajectory.member, len(first.trajectory.steps)) == (0, 1)
        assert second.trajectory is None
    assert Trajectory.from_exception(shared) is None


async def test_a_limiter_may_get_its_tokens_later() -> None:
    limiter = anyio.CapacityLimiter(1)
    limiter.total_tokens = 0
    groups: list[Any] = []

    async def run() -> None:
        groups.append(
            await arollout_group(
                "item", lambda _: AsyncScriptedEnv(), apolicy, num_rollouts=3, concurrency=limiter
            )
        )

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(run)
        await anyio.wait_all_tasks_blocked()
        assert groups == []
        limiter.total_tokens = 2
    assert accounted(groups[0], 3)


async def test_no_more_are_open_than_the_limit_and_no_fewer_than_it_allows() -> None:
    for concurrency in (1, 3, 8, 20):
        log = Log()
        group = await arollout_group(
            "item",
            lambda _, log=log: AsyncScriptedEnv(log=log),
            apolicy,
            num_rollouts=12,
            concurrency=concurrency,
        )
        assert group.num_completed == 12
        assert log.most_open == min(concurrency, 12)


async def test_one_limiter_bounds_several_groups_together() -> None:
    log, limiter = Log(), anyio.CapacityLimiter(5)

    async def run(item: str) -> None:
        group = await arollout_group(
            item,
            lambda _: AsyncScriptedEnv(log=log),
            apolicy,
            num_rollouts=8,
            concurrency=limiter,
        )
        assert group.num_completed == 8

    async with anyio.create_task_group() as tasks:
        for index in range(4):
            tasks.start_soon(run, f"item {index}")
    assert log.opened == log.closed == 32
    assert log.most_open == 5
    assert limiter.borrowed_tokens == 0


async def test_a_thousand_episodes_at_once() -> None:
    log = Log()
    group = await arollout_group(
        "item",
        lambda _: AsyncScriptedEnv(log=log),
        apolicy,
        num_rollouts=1000,
        concurrency=256,
    )
    assert group.num_completed == 1000
    assert log.most_open == 256


async def test_blocking_environments_and_policies_run_side_by_side() -> None:
    meeting = threading.Barrier(64)

    class Meeting(ScriptedEnv):
        def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
            meeting.wait(60)
            return super().step(action)

    def meet(observation: str) -> str:
        meeting.wait(60)
        return "a"

    group = await arollout_group(
        "item", lambda _: Meeting(length=1), meet, num_rollouts=64, concurrency=64
    )
    assert group.num_completed == 64


async def test_a_factory_may_be_asynchronous_and_make_either_kind() -> None:
    async def make_async(item: str) -> AsyncScriptedEnv:
        await anyio.lowlevel.checkpoint()
        return AsyncScriptedEnv()

    async def make_sync(item: str) -> ScriptedEnv:
        await anyio.lowlevel.checkpoint()
        return ScriptedEnv()

    for make_env in (make_async, make_sync, lambda _: as_async(ScriptedEnv())):
        assert (await arollout_group("item", make_env, apolicy)).num_completed == 1


async def test_what_a_factory_makes_must_be_an_environment() -> None:
    wrong: Any = lambda item: 5  # noqa: E731
    [error] = rollout_group("item", wrong, policy).errors
    assert (error.phase, error.error_type) == ("make_env", "TypeError")
    assert error.error_message == "make_env must return a gymnasium.Env, got 5"
    [error] = (await arollout_group("item", wrong, policy)).errors
    assert (error.phase, error.error_type) == ("make_env", "TypeError")
    assert "got 5" in error.error_message


def test_a_group_in_which_nothing_ended_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    make_env = factory(ScriptedEnv, Log(), [{"faults": {"reset": KeyError("lost")}}] * 2)
    rollout_group("item", make_env, policy, num_rollouts=2, item_id="problem-17")
    assert caplog.messages == [
        "no rollout of item 'problem-17' ended: 2 failed, the first in reset with KeyError: 'lost'"
    ]


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"num_rollouts": 0}, ValueError),
        ({"num_rollouts": 1.5}, TypeError),
        ({"num_rollouts": True}, TypeError),
        ({"max_steps": -1}, ValueError),
        ({"seed": -1}, ValueError),
        ({"seed": "1"}, ValueError),
        ({"on_error": "ignore"}, ValueError),
        ({"concurrency": 0}, ValueError),
        ({"concurrency": 1.5}, TypeError),
        ({"concurrency": True}, TypeError),
    ],
)
async def test_bad_arguments_are_refused_before_anything_is_made(
    arguments: dict[str, Any], error: type[Exception]
) -> None:
    [(name, value)] = arguments.items()
    log = Log()

    def make_env(item: str) -> Any:
        return ScriptedEnv(log=log)

    with pytest.raises(error, match=f"{name} must .*, got {value!r}"):
        await arollout_group("item", make_env, policy, **arguments)
    if name != "concurrency":
        with pytest.raises(error, match=f"{name} must .*{value!r}"):
            rollout_group("item", make_env, policy, **arguments)
    assert log.opened == 0


async def test_numpy_integers_count_and_odd_names_name() -> None:
    two: Any = np.int64(2)
    counts = {"num_rollouts": two, "max_steps": two, "seed": two}
    group = rollout_group("item", lambda _: ScriptedEnv(3), policy, **counts)
    again = await arollout_group(
        "item", lambda _: AsyncScriptedEnv(3), policy, concurrency=two, **counts
    )
    assert group.num_truncated == again.num_truncated == 2
    assert type(group.seed) is int
    for name in (uuid.uuid4(), np.int64(7), 7):
        item_id: Any = name
        group = rollout_group("item", lambda _: ScriptedEnv(1), policy, item_id=item_id)
        assert (group.item_id, group.num_completed) == (item_id, 1)


def test_a_member_replays_alone() -> None:
    group = rollout_group("item", lambda _: ScriptedEnv(length=3), policy, num_rollouts=4)
    draws: set[Any] = set()
    for trajectory in group.trajectories:
        again = rollout(ScriptedEnv(length=3), policy, seed=trajectory.seed)
        assert again.steps == trajectory.steps
        draws.add(tuple(step.info["draw"] for step in trajectory.steps))
    assert len(draws) == 4


async def test_a_seed_makes_a_group_reproducible() -> None:
    def make_env(item: str) -> Env[str, str]:
        return ScriptedEnv()

    first = rollout_group("item", make_env, policy, num_rollouts=3, seed=5)
    assert first.seed == 5
    assert first == rollout_group("item", make_env, policy, num_rollouts=3, seed=5)
    assert first == await arollout_group(
        "item", make_env, policy, num_rollouts=3, seed=5, concurrency=3
    )
    assert first != rollout_group("item", make_env, policy, num_rollouts=3, seed=6)
    unseeded = [rollout_group("item", make_env, policy).seed for _ in range(2)]
    assert unseeded[0] != unseeded[1]


def test_names_and_metadata_are_the_callers() -> None:
    group = rollout_group(
        {"q": 1}, lambda _: ScriptedEnv(), policy, item_id="problem-17", metadata={"m": 1}
    )
    assert group.item_id == "problem-17"
    assert group.item == {"q": 1}
    assert group.metadata == {"m": 1}
