"""Failures that are tried again: which, how often, when, and what the records tell of them."""

from __future__ import annotations

import functools
import math
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.rollouts.scripted import AsyncScriptedEnv, Log, ScriptedEnv, policy
from rolloutlib import TrajectoryGroup, acollect, arollout_group, collect, rollout, rollout_group
from rolloutlib.rollouts import BatchedPolicy, Retry, StalledError, derive_seed

pytestmark = pytest.mark.anyio

SOON = functools.partial(Retry, initial_delay=0)


class Script:
    """Environments that fail in an event, so many times for each item.

    Args:
        failures: How many attempts fail before one does not.
        event: What fails: an event of `ScriptedEnv`, or "make_env" or "policy".
        error: Makes what is raised.
    """

    def __init__(
        self,
        failures: float,
        event: str = "step 1",
        error: Callable[[], BaseException] = ConnectionError,
    ) -> None:
        self.log = Log()
        self.attempts = 0
        self._failures = failures
        self._event = event
        self._error = error

    def make_env(self, item: object) -> ScriptedEnv:
        self.attempts += 1
        fails = self.attempts <= self._failures
        if fails and self._event == "make_env":
            raise self._error()
        return ScriptedEnv(faults={self._event: self._error()} if fails else {}, log=self.log)

    def amake_env(self, item: object) -> AsyncScriptedEnv:
        environment = AsyncScriptedEnv()
        environment.twin = self.make_env(item)
        return environment

    def policy(self, observation: str) -> Any:
        if self._event == "policy" and self.attempts <= self._failures:
            raise self._error()
        return policy(observation)

    def answer(self, observations: Sequence[str]) -> list[Any]:
        return [self.policy(observation) for observation in observations]


async def in_every_way(
    make: Callable[[], Script], **arguments: Any
) -> list[tuple[Script, TrajectoryGroup[Any, Any, Any]]]:
    """Play one group of each kind."""
    arguments = {"seed": 3, "item_id": "x", **arguments}
    runs: list[tuple[Script, TrajectoryGroup[Any, Any, Any]]] = []
    script = make()
    runs.append((script, rollout_group("item", script.make_env, script.policy, **arguments)))
    script = make()
    batched = BatchedPolicy[Any, Any](script.answer)
    runs.append((script, rollout_group("item", script.make_env, batched, **arguments)))
    script = make()
    runs.append(
        (script, await arollout_group("item", script.amake_env, script.policy, **arguments))
    )
    script = make()
    inline: dict[str, Any] = {"inline": True, **arguments}
    runs.append((script, await arollout_group("item", script.make_env, script.policy, **inline)))
    for script, group in runs:
        assert script.log.opened == script.log.closed
        assert group.num_requested == arguments.get("num_rollouts", 1)
    return runs


@pytest.mark.parametrize("event", ["make_env", "reset", "policy", "step 0", "step 1"])
@pytest.mark.parametrize("failures", [0, 1, 2])
async def test_an_attempt_that_works_is_the_episode_and_the_others_are_history(
    event: str, failures: int
) -> None:
    for script, group in await in_every_way(lambda: Script(failures, event), retry=SOON()):
        [trajectory] = group.trajectories
        assert script.attempts == failures + 1
        assert (trajectory.attempt, trajectory.member) == (failures, 0)
        assert [step.observation for step in trajectory.steps] == ["o0", "o1"]
        assert [error.attempt for error in group.retried] == list(range(failures))
        for error in group.retried:
            assert (error.index, error.phase) == (0, event.split(maxsplit=1)[0])
            assert error.error_type == "ConnectionError"
            if error.trajectory is not None:
                assert len(error.trajectory.steps) == (event == "step 1")
                assert error.trajectory.attempt == error.attempt
        path = ("x", 0, failures) if failures else ("x", 0)
        assert trajectory.seed == derive_seed(3, *path)
        seeds = [error.seed for error in group.retried] + [trajectory.seed]
        assert len(set(seeds)) == failures + 1
        again = rollout(ScriptedEnv(), policy, seed=trajectory.seed)
        assert again.steps == trajectory.steps


async def test_the_last_attempt_is_the_failure() -> None:
    for script, group in await in_every_way(lambda: Script(math.inf), retry=SOON(attempts=4)):
        assert script.attempts == 4
        [error] = group.errors
        assert error.attempt == 3
        assert [error.attempt for error in group.retried] == [0, 1, 2]


async def test_without_a_policy_for_it_nothing_is_tried_again() -> None:
    for script, group in await in_every_way(lambda: Script(1)):
        assert script.attempts == 1
        assert group.num_failed == 1
        assert group.retried == ()


class CustomError(Exception):
    """One that no default knows."""


@pytest.mark.parametrize(
    ("transient", "kind", "attempts"),
    [
        (None, ConnectionResetError, 3),
        (None, TimeoutError, 3),
        (None, CustomError, 1),
        (None, ValueError, 1),
        (CustomError, CustomError, 3),
        (CustomError, ConnectionError, 1),
        ((CustomError, LookupError), KeyError, 3),
        ((), KeyError, 1),
        (Exception, KeyError, 3),
        (lambda error: "again" in str(error), lambda: OSError("try again"), 3),
        (lambda error: "again" in str(error), lambda: OSError("never"), 1),
        (lambda error: None, OSError, 1),
    ],
)
async def test_only_errors_that_may_pass_are_tried_again(
    transient: Any, kind: Any, attempts: int
) -> None:
    retry = SOON() if transient is None else SOON(transient=transient)
    for script, _ in await in_every_way(lambda: Script(math.inf, error=kind), retry=retry):
        assert script.attempts == attempts


async def test_a_function_that_cannot_tell_makes_the_failure_final() -> None:
    def tell(error: Exception) -> bool:
        msg = "no status code"
        raise AttributeError(msg)

    for script, group in await in_every_way(lambda: Script(9), retry=SOON(transient=tell)):
        assert script.attempts == 1
        [error] = group.errors
        assert error.error_type == "ConnectionError"
        assert (
            "asking if it may pass failed too: AttributeError('no status code')" in error.traceback
        )


@pytest.mark.parametrize("interrupt", [KeyboardInterrupt, SystemExit])
async def test_an_interrupt_is_never_tried_again(interrupt: type[BaseException]) -> None:
    script = Script(9, error=interrupt)
    asked: list[BaseException] = []
    retry = SOON(transient=lambda error: asked.append(error) or True)
    with pytest.raises(interrupt):
        rollout_group("item", script.make_env, policy, retry=retry)
    assert (script.attempts, asked) == (1, [])


async def test_the_budget_is_that_of_the_whole_run() -> None:
    def failures(groups: Sequence[TrajectoryGroup[Any, Any, Any]]) -> tuple[int, int]:
        assert all(group.num_failed == 2 for group in groups)
        return len(groups), sum(len(group.retried) for group in groups)

    arguments: dict[str, Any] = {"num_rollouts": 2, "retry": SOON(attempts=3, budget=7)}
    script = Script(math.inf)
    groups = list(collect(range(10), script.make_env, policy, **arguments))
    assert failures(groups) == (10, 7)
    assert script.attempts == 20 + 7
    script = Script(math.inf)
    async with acollect(
        range(10), script.amake_env, policy, concurrency=4, inline=True, **arguments
    ) as taken:
        groups = [group async for group in taken]
    assert failures(groups) == (10, 7)
    assert script.attempts == 20 + 7


async def test_a_budget_of_nothing_allows_nothing() -> None:
    for script, group in await in_every_way(lambda: Script(1), retry=SOON(budget=0)):
        assert (script.attempts, group.num_failed) == (1, 1)


async def test_each_attempt_has_an_environment_and_an_item_of_its_own() -> None:
    made: list[ScriptedEnv] = []
    items: list[dict[str, int]] = []

    def make_env(item: dict[str, int]) -> ScriptedEnv:
        assert item == {"n": 1}
        item["n"] += 1
        items.append(item)
        assert all(environment.log.open == 0 for environment in made)  # closed before the next
        made.append(ScriptedEnv(faults={"step 0": TimeoutError()} if len(made) < 2 else {}))
        return made[-1]

    group = rollout_group({"n": 1}, make_env, policy, retry=SOON())
    assert group.num_completed == 1
    assert len({id(environment) for environment in made}) == 3
    assert len({id(item) for item in items}) == 3


async def test_a_final_failure_that_is_raised_carries_the_history() -> None:
    script = Script(math.inf)
    with pytest.raises(ConnectionError) as caught:
        rollout_group("item", script.make_env, policy, retry=SOON(), on_error="raise")
    group = TrajectoryGroup.from_exception(caught.value)
    assert group is not None
    assert [error.attempt for error in (*group.retried, *group.errors)] == [0, 1, 2]


async def test_in_lock_step_the_failed_members_alone_are_tried_again() -> None:
    made = 0
    sizes: list[int] = []

    def make_env(item: object) -> ScriptedEnv:
        nonlocal made
        made += 1
        return ScriptedEnv(faults={"step 1": ConnectionError()} if made in (2, 4, 6) else {})

    def answer(observations: Sequence[str]) -> list[Any]:
        sizes.append(len(observations))
        return [policy(observation) for observation in observations]

    group = rollout_group("item", make_env, BatchedPolicy(answer), num_rollouts=4, retry=SOON())
    assert [trajectory.attempt for trajectory in group.trajectories] == [0, 1, 0, 2]
    assert Counter(error.index for error in group.retried) == {1: 1, 3: 2}
    assert sizes == [4, 4, 2, 2, 1, 1]


async def test_a_failed_batch_is_tried_again_by_all_its_members() -> None:
    script = Script(2, "policy")
    batched = BatchedPolicy[Any, Any](script.answer)
    group = rollout_group("item", script.make_env, batched, num_rollouts=2, retry=SOON())
    assert [trajectory.attempt for trajectory in group.trajectories] == [1, 1]
    assert [error.index for error in group.retried] == [0, 1]


async def test_failures_are_in_the_order_of_members_whichever_was_first() -> None:
    second = anyio.Event()  # the second attempt at the last member

    class Env(AsyncScriptedEnv):
        def __init__(self, number: int) -> None:
            super().__init__()
            self.number = number

        async def reset(self, **kwargs: Any) -> Any:
            if self.number == 0:
                await second.wait()
            elif self.number == 2:
                second.set()
            if self.number < 2:
                raise ConnectionError(self.number)
            return await super().reset(**kwargs)

    numbers = iter(range(4))
    group = await arollout_group(
        "item",
        lambda _: Env(next(numbers)),
        policy,
        num_rollouts=2,
        concurrency=2,
        retry=SOON(),
    )
    assert [(error.index, error.error_message) for error in group.retried] == [(0, "0"), (1, "1")]


async def test_a_limit_on_concurrency_is_free_while_an_attempt_waits() -> None:
    limiter = anyio.CapacityLimiter(1)
    failed = anyio.Event()

    def make_env(item: int) -> AsyncScriptedEnv:
        if item == 0:
            failed.set()
            raise ConnectionError
        return AsyncScriptedEnv()

    async def run_other() -> None:
        await failed.wait()
        await arollout_group(1, make_env, policy, concurrency=limiter, inline=True)
        tasks.cancel_scope.cancel()

    retry = Retry(initial_delay=3600, max_delay=3600)  # an hour at the most, half of it on average
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(run_other)
        await arollout_group(0, make_env, policy, concurrency=limiter, retry=retry, inline=True)
    assert tasks.cancel_scope.cancel_called


@pytest.mark.parametrize("retry", [None, SOON(attempts=3)])
async def test_a_run_in_which_nothing_ends_stops_with_cause_and_records(retry: Any) -> None:
    for error in (PermissionError("401"), ConnectionError("503")):
        script = Script(math.inf, "make_env", error=lambda error=error: error)
        groups = acollect(
            range(10**6), script.amake_env, policy, max_failures=10, retry=retry, concurrency=4
        )
        named = f"10 episodes in a row failed, the last with {type(error).__name__}"
        with pytest.raises(StalledError, match=named) as caught:
            [None async for _ in groups]
        assert caught.value.__cause__ is error
        assert 10 <= script.attempts < 100
        for group in TrajectoryGroup.all_from_exception(caught.value):
            assert all(record.error_message in ("401", "503") for record in group.errors)


def test_one_that_ends_sets_the_count_of_failures_back() -> None:
    def make_env(item: int) -> ScriptedEnv:
        return ScriptedEnv(faults={} if item % 5 == 4 else {"reset": KeyError()})

    assert len(list(collect(range(60), make_env, policy, max_failures=5))) == 60
    with pytest.raises(StalledError):
        list(collect(range(60), make_env, policy, max_failures=4))


def test_without_a_limit_on_failures_a_run_goes_on() -> None:
    def make_env(item: int) -> ScriptedEnv:
        raise KeyError(item)

    groups = list(collect(range(300), make_env, policy, max_failures=None))
    assert sum(group.num_failed for group in groups) == 300


@given(
    initial=st.floats(0, 1e300),
    longest=st.floats(0, 1e300),
    attempt=st.integers(0, 10**6),
)
def test_waits_are_drawn_within_bounds_that_double(
    initial: float, longest: float, attempt: int
) -> None:
    retry = Retry(initial_delay=initial, max_delay=longest)
    delay = retry.delay(attempt)
    assert 0 <= delay <= longest
    assert delay <= initial * 2.0 ** min(attempt, 64)


def test_waits_differ_and_fill_their_range() -> None:
    retry = Retry(initial_delay=1, max_delay=8)
    for attempt, bound in ((0, 1), (1, 2), (2, 4), (3, 8), (4, 8), (50, 8)):
        delays = [retry.delay(attempt) for _ in range(2000)]
        assert len(set(delays)) > 1000
        assert min(delays) < bound / 10
        assert bound * 0.9 < max(delays) <= bound


async def test_without_an_initial_delay_nothing_is_slept(monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []
    monkeypatch.setattr("time.sleep", slept.append)
    assert {Retry(initial_delay=0).delay(attempt) for attempt in range(100)} == {0.0}
    script = Script(2)
    rollout_group("item", script.make_env, policy, retry=SOON())
    assert set(slept) <= {0}


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"attempts": 0}, ValueError),
        ({"attempts": 1.5}, TypeError),
        ({"budget": -1}, ValueError),
        ({"budget": 1.5}, TypeError),
        ({"initial_delay": -1}, ValueError),
        ({"max_delay": -1}, ValueError),
        ({"max_delay": math.inf}, ValueError),
        ({"initial_delay": math.nan}, ValueError),
        ({"initial_delay": "1"}, TypeError),
        ({"transient": 3}, TypeError),
        ({"transient": (KeyError, 3)}, TypeError),
    ],
)
def test_bad_policies_are_refused(arguments: dict[str, Any], error: type[Exception]) -> None:
    [name] = arguments
    with pytest.raises(error, match=name):
        Retry(**arguments)
