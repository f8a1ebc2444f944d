"""Limits on time: control comes back at the limit, and what was finished stays.

What is to hit a limit never ends by itself. What is not to hit it does nothing that takes time, or
has no limit.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Generator
from typing import Any

import anyio
import pytest

from core.rollouts.scripted import Log, ScriptedEnv, apolicy, policy
from rolloutlib import (
    AsyncEnv,
    Trajectory,
    TrajectoryGroup,
    acollect,
    arollout,
    arollout_group,
    as_async,
    collect,
    rollout_group,
)
from rolloutlib.rollouts import Retry, Timeouts

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("threads_end")]

LIMIT = 0.3


@pytest.fixture
def release(threads_end: Callable[[], None]) -> Generator[threading.Event]:
    """Let go at the end of a test what blocks a thread until then."""
    event = threading.Event()
    yield event
    event.set()


async def hang() -> None:
    await anyio.sleep_forever()


async def swallow() -> None:
    """Take no notice of the cancellation."""
    try:
        await anyio.sleep_forever()
    except anyio.get_cancelled_exc_class():
        pass


async def finish_first() -> None:
    """Be protected from the cancellation until the limit is past."""
    with anyio.CancelScope(shield=True):
        await anyio.sleep(2 * LIMIT)


async def replace() -> None:
    """Make an error of the cancellation."""
    try:
        await anyio.sleep_forever()
    except anyio.get_cancelled_exc_class() as error:
        msg = "the connection was closed"
        raise ConnectionError(msg) from error


HANGS = pytest.mark.parametrize("hanging", [hang, swallow, finish_first, replace])


class HangingEnv(AsyncEnv[str, str]):
    """Does what a script says without letting go of the event loop, and hangs in one event."""

    def __init__(self, event: str, hanging: Any, log: Log, length: int = 3) -> None:
        self.twin = ScriptedEnv(length, log=log)
        self.action_space, self.observation_space = self.twin.action_space, self.twin.action_space
        self._event = event
        self._hanging = hanging

    async def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[str, dict[str, Any]]:
        await self.wait("reset")
        return self.twin.reset(seed=seed, options=options)

    async def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        await self.wait(f"step {self.twin.steps}")
        return self.twin.step(action)

    async def close(self) -> None:
        try:
            await self.wait("close")
        finally:
            self.twin.close()

    async def wait(self, event: str) -> None:
        if event == self._event:
            await self._hanging()


class Script:
    """An environment factory and a policy, one event of which hangs in the member that is named."""

    def __init__(self, event: str, hanging: Any = hang, member: int = 1) -> None:
        self.log = Log()
        self._event = event
        self._hanging = hanging
        self._member = member
        self._made = 0

    async def make_env(self, item: object) -> HangingEnv:
        chosen = self._made == self._member
        self._made += 1
        if chosen and self._event == "make_env":
            await self._hanging()
        return HangingEnv(self._event if chosen else "", self._hanging, self.log)

    async def policy(self, observation: str) -> Any:
        if self._event == f"policy {observation}" and self._made == self._member + 1:
            await self._hanging()
        return policy(observation)

    async def run(self, timeouts: Timeouts, **arguments: Any) -> TrajectoryGroup[Any, Any, Any]:
        group = await arollout_group(
            "item", self.make_env, self.policy, num_rollouts=3, timeouts=timeouts, **arguments
        )
        assert self.log.opened == self.log.closed
        assert group.num_requested == 3
        return group


@HANGS
@pytest.mark.parametrize(
    ("event", "part", "phase", "steps"),
    [
        ("make_env", "reset", "make_env", None),
        ("reset", "reset", "reset", None),
        ("policy o0", "policy", "policy", 0),
        ("policy o2", "policy", "policy", 2),
        ("step 0", "step", "step", 0),
        ("step 2", "step", "step", 2),
    ],
)
async def test_a_call_that_takes_too_long_fails_its_episode_which_keeps_its_steps(
    hanging: Any, event: str, part: Any, phase: str, steps: int | None
) -> None:
    script = Script(event, hanging)
    group = await script.run(Timeouts(**{part: LIMIT}))
    assert [trajectory.member for trajectory in group.trajectories] == [0, 2]
    [error] = group.errors
    assert (error.index, error.phase, error.error_type) == (1, phase, "TimeoutError")
    assert error.error_message == f"{part} took longer than {LIMIT} s"
    assert (None if error.trajectory is None else len(error.trajectory.steps)) == steps
    assert ("the connection was closed" in error.traceback) == (hanging is replace)


@HANGS
@pytest.mark.parametrize(("event", "steps"), [("policy o0", 0), ("policy o1", 1), ("step 2", 2)])
@pytest.mark.parametrize("others", [{}, {"policy": 3600, "step": 3600, "reset": 3600}])
async def test_an_episode_that_takes_too_long_is_truncated(
    hanging: Any, event: str, steps: int, others: dict[str, float]
) -> None:
    script = Script(event, hanging)
    group = await script.run(Timeouts(episode=LIMIT, **others))
    assert group.errors == ()
    late = group.trajectories[1]
    assert (late.terminated, late.truncated) == (False, True)
    assert late.metadata == {"truncated_by": f"the episode took longer than {LIMIT} s"}
    assert len(late.steps) == steps
    assert group.num_completed == 2


@pytest.mark.parametrize("event", ["make_env", "reset"])
async def test_an_episode_that_never_began_cannot_be_truncated(event: str) -> None:
    group = await Script(event).run(Timeouts(episode=LIMIT))
    [error] = group.errors
    assert (error.index, error.phase, error.trajectory) == (1, event, None)
    assert "the episode took longer" in error.error_message


@pytest.mark.parametrize("hanging", [hang, replace])
async def test_closing_that_takes_too_long_keeps_the_episode(hanging: Any) -> None:
    group = await Script("close", hanging).run(Timeouts(close=LIMIT))
    assert group.num_completed == 3
    late = group.trajectories[1]
    kind = "TimeoutError" if hanging is hang else "ConnectionError"
    assert kind in late.metadata["close_error"]
    assert group.trajectories[0].metadata == {}


async def test_closing_that_takes_too_long_does_not_hide_the_failure_before_it() -> None:
    log = Log()

    class Broken(HangingEnv):
        async def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
            msg = "lost"
            raise KeyError(msg)

    group = await arollout_group(
        "item", lambda _: Broken("close", hang, log), policy, timeouts=Timeouts(close=LIMIT)
    )
    [error] = group.errors
    assert (error.phase, error.error_type) == ("step", "KeyError")
    assert "took longer than" in error.traceback
    assert log.closed == 1


async def test_closing_has_its_time_after_a_step_that_took_too_long() -> None:
    log = Log()

    class SlowToClose(HangingEnv):
        async def close(self) -> None:
            for _ in range(5):
                await anyio.sleep(0.001)
            await super().close()

    for timeouts in (Timeouts(step=LIMIT), Timeouts(episode=LIMIT)):
        group = await arollout_group(
            "item", lambda _: SlowToClose("step 1", hang, log), policy, timeouts=timeouts
        )
        records = [*group.trajectories, *[error.trajectory for error in group.errors]]
        assert [record and "close_error" in record.metadata for record in records] == [False]
        assert not any("closing" in error.traceback for error in group.errors)
    assert log.opened == log.closed == 2


@pytest.mark.parametrize("hanging", [hang, replace])
async def test_grading_that_takes_too_long_fails_its_group(hanging: Any) -> None:
    async def grade(group: TrajectoryGroup[Any, Any, Any]) -> list[float]:
        await hanging()
        return []

    group = await Script("").run(Timeouts(grade=LIMIT), grade_group=grade)
    assert group.num_failed == 3
    for error in group.errors:
        assert error.phase == "grade"
        assert error.trajectory is not None
        assert error.trajectory.terminated


async def test_grading_that_took_too_long_may_be_tried_again() -> None:
    calls = 0

    async def grade(group: TrajectoryGroup[Any, Any, Any]) -> list[float]:
        nonlocal calls
        calls += 1
        if calls < 3:
            await hang()
        return [7.0] * 3

    group = await Script("").run(
        Timeouts(grade=LIMIT), grade_group=grade, retry=Retry(initial_delay=0)
    )
    assert group.rewards == (7.0, 7.0, 7.0)
    assert calls == 3


async def test_an_episode_that_took_too_long_may_be_tried_again() -> None:
    script = Script("step 1")
    group = await script.run(Timeouts(step=LIMIT), retry=Retry(initial_delay=0))
    assert group.num_completed == 3
    [error] = group.retried
    assert (error.index, error.attempt, error.error_type) == (1, 0, "TimeoutError")
    assert group.trajectories[1].attempt == 1


async def test_an_environment_that_is_made_too_late_is_closed() -> None:
    for hanging in (swallow, finish_first):
        script = Script("make_env", hanging, member=0)
        group = await script.run(Timeouts(reset=LIMIT))
        assert group.num_completed == 2
        assert script.log.opened == 3


class BlockingEnv(ScriptedEnv):
    """Blocks its thread in one event until it is let go."""

    def __init__(self, event: str, release: threading.Event, log: Log) -> None:
        super().__init__(log=log)
        self._event, self._release = event, release

    def _do(self, event: str) -> None:
        super()._do(event)
        if event == self._event:
            self._release.wait(60)


@pytest.mark.parametrize(
    ("event", "part", "steps"), [("reset", "reset", None), ("step 0", "step", 0)]
)
async def test_an_environment_that_blocks_its_thread_is_left_there_and_closed_later(
    event: str, part: str, steps: int | None, release: threading.Event, threads_end: Any
) -> None:
    log = Log()
    group = await arollout_group(
        "item",
        lambda _: BlockingEnv(event, release, log),
        apolicy,
        timeouts=Timeouts(**{part: LIMIT}),
    )
    [error] = group.errors
    assert (error.phase, error.error_type) == (part, "TimeoutError")
    assert (None if error.trajectory is None else len(error.trajectory.steps)) == steps
    assert (log.opened, log.closed) == (1, 0)  # it cannot be closed while it is blocked
    release.set()
    threads_end()
    assert log.closed == 1
    assert log.events == {"reset": ["reset", "close"], "step": ["reset", "step 0", "close"]}[part]


async def test_an_environment_that_blocks_in_close_is_left_there(
    release: threading.Event, threads_end: Any
) -> None:
    log = Log()
    group = await arollout_group(
        "item",
        lambda _: BlockingEnv("close", release, log),
        apolicy,
        timeouts=Timeouts(close=LIMIT),
    )
    [trajectory] = group.trajectories
    assert "TimeoutError" in trajectory.metadata["close_error"]


async def test_a_policy_that_blocks_its_thread_is_left_there(release: threading.Event) -> None:
    log = Log()

    def block(observation: str) -> str:
        release.wait(60)
        return "a"

    for timeouts, failed in ((Timeouts(policy=LIMIT), 1), (Timeouts(episode=LIMIT), 0)):
        group = await arollout_group(
            "item",
            lambda _: as_async(ScriptedEnv(log=log), inline=True),
            block,
            timeouts=timeouts,
        )
        assert (group.num_failed, group.num_truncated) == (failed, 1 - failed)
    assert log.opened == log.closed == 2
    assert not release.is_set()


async def test_a_grader_that_blocks_its_thread_is_left_there(release: threading.Event) -> None:
    def block(group: TrajectoryGroup[Any, Any, Any]) -> list[float]:
        release.wait(60)
        return [1.0] * 3

    group = await Script("").run(Timeouts(grade=LIMIT), grade_group=block)
    assert [error.phase for error in group.errors] == ["grade"] * 3
    assert not release.is_set()


@HANGS
async def test_arollout_raises_and_leaves_its_environment_to_the_caller(hanging: Any) -> None:
    log = Log()
    environment = HangingEnv("step 2", hanging, log)
    with pytest.raises(TimeoutError, match="step took longer") as caught:
        await arollout(environment, policy, timeouts=Timeouts(step=LIMIT), inline=True)
    trajectory = Trajectory.from_exception(caught.value)
    assert trajectory is not None
    assert len(trajectory.steps) == 2
    assert log.closed == 0
    truncated = await arollout(environment, policy, timeouts=Timeouts(episode=LIMIT), inline=True)
    assert truncated.truncated
    assert len(truncated.steps) == 2
    await environment.close()


async def test_a_timeout_error_of_the_users_own_is_the_users_own() -> None:
    async def fail(observation: str) -> str:
        msg = "the server gave up"
        raise TimeoutError(msg)

    group = await arollout_group(
        "item", lambda _: HangingEnv("", hang, Log()), fail, timeouts=Timeouts(policy=3600)
    )
    assert group.errors[0].error_message == "the server gave up"


@pytest.mark.parametrize("hanging", [hang, swallow, replace])
async def test_a_callers_cancellation_is_no_timeout(hanging: Any) -> None:
    log = Log()
    waiting = anyio.Event()

    async def wait(observation: str) -> str:
        waiting.set()
        await hanging()
        return "a"

    async def cancel() -> None:
        await waiting.wait()
        scope.cancel()

    with anyio.CancelScope() as scope:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(cancel)
            await arollout_group(
                "item",
                lambda _: HangingEnv("", hang, log),
                wait,
                timeouts=Timeouts(policy=3600, step=3600, episode=3600),
            )
            await anyio.sleep_forever()
    assert scope.cancelled_caught
    assert log.opened == log.closed == 1


async def test_limits_that_are_kept_change_nothing() -> None:
    timeouts = Timeouts(reset=3600, policy=3600, step=3600, episode=math.inf, grade=3600)
    arguments: dict[str, Any] = {"num_rollouts": 3, "seed": 4, "item_id": "x"}

    async def make_env(item: object) -> HangingEnv:
        return HangingEnv("", hang, Log())

    def make_sync_env(item: object) -> ScriptedEnv:
        return ScriptedEnv(3)

    group = await arollout_group("item", make_env, policy, **arguments)
    assert group == await arollout_group("item", make_env, policy, timeouts=timeouts, **arguments)
    assert group == rollout_group("item", make_sync_env, policy, timeouts=timeouts, **arguments)


def test_synchronous_groups_have_limits_too(release: threading.Event, threads_end: Any) -> None:
    log = Log()

    def block(observation: str) -> str:
        release.wait(60)
        return "a"

    def make_env(item: object) -> ScriptedEnv:
        return BlockingEnv("", release, log)

    group = rollout_group("item", make_env, block, num_rollouts=2, timeouts=Timeouts(policy=LIMIT))
    assert [error.phase for error in group.errors] == ["policy"] * 2
    with pytest.raises(TimeoutError, match="policy took longer") as caught:
        rollout_group("item", make_env, block, timeouts=Timeouts(policy=LIMIT), on_error="raise")
    partial = TrajectoryGroup.from_exception(caught.value)
    assert partial is not None
    assert partial.num_failed == 1
    [first, second] = collect(range(2), make_env, block, timeouts=Timeouts(policy=LIMIT))
    assert first.num_failed == second.num_failed == 1
    assert not release.is_set()
    release.set()
    threads_end()
    assert log.opened == log.closed == 5


async def test_others_go_on_while_one_hangs() -> None:
    log = Log()

    def make_env(item: int) -> HangingEnv:
        return HangingEnv("step 1" if item == 0 else "", hang, log)

    async with acollect(
        range(20), make_env, policy, concurrency=2, timeouts=Timeouts(step=3600), inline=True
    ) as groups:
        others = [await anext(groups) for _ in range(19)]
    assert [group.item for group in others] == list(range(1, 20))
    assert all(group.num_completed == 1 for group in others)
    assert log.opened == log.closed == 20


@pytest.mark.parametrize("name", ["reset", "policy", "step", "episode", "grade", "close"])
@pytest.mark.parametrize(
    ("value", "error"),
    [(0, ValueError), (-1, ValueError), (math.nan, ValueError), ("1", TypeError)],
)
def test_limits_must_be_positive_numbers(name: str, value: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match=f"the timeout '{name}'"):
        Timeouts(**{name: value})
    for fine in (None, 1, 0.5, math.inf):
        assert getattr(Timeouts(**{name: fine}), name) == fine
