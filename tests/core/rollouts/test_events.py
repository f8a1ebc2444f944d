"""What a run tells while it goes on."""

from __future__ import annotations

import logging
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.rollouts.scripted import AsyncScriptedEnv, ScriptedEnv, apolicy, policy
from rolloutlib import TrajectoryGroup, acollect, arollout_group, collect, rollout_group
from rolloutlib.rollouts import (
    BatchedPolicy,
    Progress,
    Retry,
    RolloutEvent,
    Timeouts,
    _events,  # pyright: ignore[reportPrivateUsage]
)

pytestmark = pytest.mark.anyio

SOON = Retry(initial_delay=0)


def answer(observations: Sequence[str]) -> list[Any]:
    return [policy(observation) for observation in observations]


def script(kind: Any, faults: Sequence[dict[str, BaseException]]) -> Callable[[object], Any]:
    """Make environments that fail as is said of each, and then others that do not."""
    fates = iter(faults)
    return lambda item: kind(faults=next(fates, {}))


async def in_every_way(
    faults: Sequence[dict[str, BaseException]], **arguments: Any
) -> list[tuple[str, list[RolloutEvent], list[TrajectoryGroup[Any, Any, Any]]]]:
    runs: list[tuple[str, list[RolloutEvent], list[TrajectoryGroup[Any, Any, Any]]]] = []
    for way in ("sync", "threads", "lock step", "async", "collect", "acollect"):
        events: list[RolloutEvent] = []
        more: dict[str, Any] = {"on_event": events.append, "seed": 1, **arguments}
        make_env, amake_env = script(ScriptedEnv, faults), script(AsyncScriptedEnv, faults)
        if way == "sync":
            groups = [rollout_group("item", make_env, policy, item_id="x", **more)]
        elif way == "threads":
            more["timeouts"] = Timeouts()
            groups = [rollout_group("item", make_env, policy, item_id="x", **more)]
        elif way == "lock step":
            groups = [rollout_group("item", make_env, BatchedPolicy(answer), item_id="x", **more)]
        elif way == "async":
            groups = [await arollout_group("item", amake_env, apolicy, item_id="x", **more)]
        elif way == "collect":
            groups = list(collect(["x"], make_env, policy, get_item_id=str, **more))
        else:
            collector = acollect(["x"], amake_env, apolicy, get_item_id=str, concurrency=1, **more)
            groups = [group async for group in collector]
        runs.append((way, events, groups))
    return runs


async def test_an_episode_tells_of_its_beginning_its_steps_and_its_end() -> None:
    for way, events, [group] in await in_every_way([]):
        assert [event.kind for event in events] == ["started", "step", "step", "finished"], way
        [trajectory] = group.trajectories
        for event in events:
            assert (event.item_id, event.index, event.attempt) == ("x", 0, 0)
            assert event.seed == trajectory.seed
            assert event.error is None
        assert [event.trajectory for event in events] == [None, None, None, trajectory]
        assert [event.progress for event in events] == [
            Progress(started=1),
            Progress(started=1, steps=1, tokens=2),
            Progress(started=1, steps=2, tokens=4),
            Progress(started=1, steps=2, tokens=4, completed=1),
        ]
        assert [event.progress.running for event in events] == [1, 1, 1, 0]


async def test_failures_and_further_attempts_are_told() -> None:
    faults: list[dict[str, BaseException]] = [
        {"step 1": ConnectionError("lost")},
        {"reset": ConnectionError("refused")},
        {"step 0": ConnectionError("broken")},
    ]
    for way, events, [group] in await in_every_way(faults, retry=SOON):
        assert [(event.kind, event.attempt) for event in events] == [
            ("started", 0),
            ("step", 0),
            ("retried", 0),
            ("retried", 1),
            ("failed", 2),
        ], way
        errors = [event.error for event in events if event.error is not None]
        assert errors == [*group.retried, *group.errors]
        assert [event.seed for event in events][-3:] == [error.seed for error in errors]
        # The tokens of the two steps that failed were sampled too.
        assert events[-1].progress == Progress(started=1, failed=1, retried=2, steps=1, tokens=6)


async def test_truncated_episodes_are_counted_apart() -> None:
    for _, events, _ in await in_every_way([], max_steps=1):
        assert events[-1].kind == "finished"
        assert events[-1].progress == Progress(started=1, truncated=1, steps=1, tokens=2)


async def test_an_end_is_told_when_the_environment_has_been_closed() -> None:
    for _, events, [group] in await in_every_way([{"close": OSError("busy")}]):
        assert events[-1].trajectory == group.trajectories[0]
        assert "close_error" in group.trajectories[0].metadata


async def test_in_async_code_events_come_on_the_event_loop() -> None:
    threads: set[int] = set()
    await arollout_group(
        "item",
        lambda _: ScriptedEnv(),
        policy,
        num_rollouts=3,
        concurrency=3,
        on_event=lambda event: threads.add(threading.get_ident()),
    )
    assert threads == {threading.get_ident()}


faults = st.lists(
    st.sampled_from(
        [
            {},
            {},
            {"reset": ConnectionError()},
            {"step 1": ConnectionError()},
            {"step 0": KeyError()},
        ]
    ),
    max_size=12,
)


@given(faults=faults, num_rollouts=st.integers(1, 5), max_steps=st.none() | st.integers(0, 2))
@settings(max_examples=15)
def test_the_counts_add_up(
    faults: list[dict[str, BaseException]], num_rollouts: int, max_steps: int | None
) -> None:
    async def main() -> None:
        arguments: dict[str, Any] = {"num_rollouts": num_rollouts, "max_steps": max_steps}
        for way, events, [group] in await in_every_way(faults, retry=SOON, **arguments):
            last = events[-1].progress
            failed = [error.phase for error in (*group.errors, *group.retried)].count("step")
            assert last == Progress(
                started=num_rollouts,
                completed=group.num_completed,
                truncated=group.num_truncated,
                failed=group.num_failed,
                retried=len(group.retried),
                steps=last.steps,
                tokens=2 * (last.steps + failed),
            ), way
            assert last.running == 0
            kinds = Counter(event.kind for event in events)
            assert kinds["step"] == last.steps
            assert kinds["retried"] == last.retried
            before = Progress()
            for event in events:
                now = event.progress
                assert now.running >= 0
                assert now.started + now.steps + now.retried + now.failed >= (
                    before.started + before.steps + before.retried + before.failed
                )
                before = now

    anyio.run(main)


async def test_a_function_that_fails_is_not_called_again_and_harms_nothing(
    caplog: pytest.LogCaptureFixture,
) -> None:
    calls: list[str] = []

    def fail(event: RolloutEvent) -> None:
        calls.append(event.kind)
        if event.kind == "step":
            msg = "the display is gone"
            raise OSError(msg)

    runs = await in_every_way([], on_event=fail)
    assert all(group.num_completed == 1 for _, _, [group] in runs)
    assert calls == ["started", "step"] * len(runs)
    records = [record for record in caplog.records if record.levelno == logging.ERROR]
    assert len(records) == len(runs)
    for record in records:
        assert "is not called again" in record.getMessage()
        assert record.exc_info is not None
        assert "the display is gone" in str(record.exc_info[1])


@pytest.mark.parametrize("kind", ["started", "step", "finished"])
async def test_an_interrupt_that_comes_in_the_function_comes_out(kind: str) -> None:
    for way in ("sync", "lock step"):
        opened: list[ScriptedEnv] = []

        def make_env(item: object, opened: list[ScriptedEnv] = opened) -> ScriptedEnv:
            opened.append(ScriptedEnv())
            return opened[-1]

        def interrupt(event: RolloutEvent) -> None:
            if event.kind == kind:
                raise KeyboardInterrupt

        play: Any = policy if way == "sync" else BatchedPolicy(answer)
        with pytest.raises(KeyboardInterrupt) as caught:
            rollout_group("item", make_env, play, num_rollouts=2, on_event=interrupt)
        assert [environment.log.open for environment in opened] == [0] * len(opened)
        assert TrajectoryGroup.from_exception(caught.value) is not None


async def test_without_a_function_no_event_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: Any, **kwargs: Any) -> None:
        raise AssertionError(args)

    for name in ("RolloutEvent", "Progress", "Reporter"):
        monkeypatch.setattr(_events, name, refuse)
    for _, events, [group] in await in_every_way([{"reset": KeyError()}], on_event=None):
        assert events == []
        assert group.num_requested == 1


@pytest.mark.parametrize("wrong", [3, "print", apolicy])
async def test_it_must_be_a_plain_function(wrong: Any) -> None:
    with pytest.raises(TypeError, match="on_event must be a function that is not asynchronous"):
        rollout_group("item", lambda _: ScriptedEnv(), policy, on_event=wrong)
    with pytest.raises(TypeError, match="on_event must be a function that is not asynchronous"):
        await arollout_group("item", lambda _: ScriptedEnv(), policy, on_event=wrong)
