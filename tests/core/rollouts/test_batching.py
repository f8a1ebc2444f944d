"""Policies over batch functions: lengths, order, errors, cancellation, seeds and versions."""

from __future__ import annotations

import asyncio
import functools
import itertools
import math
import threading
import traceback
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, assert_type

import anyio
import anyio.lowlevel
import numpy as np
import pytest
import trio
import trio.testing
from anyio.abc import TaskGroup
from hypothesis import given, settings
from hypothesis import strategies as st

from core.rollouts.scripted import AsyncScriptedEnv, ScriptedEnv, policy
from rolloutlib import PolicyOutput, arollout, arollout_group, rollout
from rolloutlib.rollouts import (
    AsyncBatchedPolicy,
    AsyncBatchPolicy,
    BatchedPolicy,
    BatchPolicy,
)

pytestmark = pytest.mark.anyio


def double(observations: Sequence[int]) -> list[str]:
    return [str(2 * observation) for observation in observations]


class Notes:
    """A batch function notes its batches here, and can be made to fail.

    Args:
        version: The version of its weights.
    """

    def __init__(self, version: int | str | None = None) -> None:
        self.version = version
        self.batches: list[list[int]] = []
        self.outcome: Callable[[Sequence[int]], Any] = double


class Engine(Notes):
    """A batch function for the tests."""

    def __call__(self, observations: Sequence[int], /) -> list[str]:
        self.batches.append(list(observations))
        return self.outcome(observations)


class AsyncEngine(Notes):
    """One that takes until it is let go, if it is held."""

    def __init__(self, version: int | str | None = None) -> None:
        super().__init__(version)
        self.begun = anyio.Event()
        self.held: anyio.Event | None = None

    async def __call__(self, observations: Sequence[int], /) -> list[str]:
        held = self.held
        self.batches.append(list(observations))
        self.begun.set()
        if held is not None:
            await held.wait()
        return self.outcome(observations)


class Interrupt(BaseException):
    """Like `KeyboardInterrupt`, which asyncio lets end the event loop and with it the test."""


def fail(observations: Sequence[int]) -> list[str]:
    msg = f"no answer to {observations}"
    raise LookupError(msg)


def one_short(observations: Sequence[int]) -> list[str]:
    return double(observations)[1:]


async def ask(
    policy: AsyncBatchedPolicy[int, Any], observation: int, answers: dict[int, Any], **known: int
) -> None:
    """Keep what a call returns or raises."""
    try:
        answers[observation] = await policy(observation, **known)
    except Exception as error:
        answers[observation] = error


async def ask_all(policy: AsyncBatchedPolicy[int, Any], observations: Sequence[int]) -> list[Any]:
    """Ask from as many tasks at the same time, which call in no fixed order."""
    answers: dict[int, Any] = {}
    async with anyio.create_task_group() as tasks:
        for observation in observations:
            tasks.start_soon(ask, policy, observation, answers)
    return [answers[observation] for observation in observations]


class TestBatchedPolicy:
    def test_called_for_one_observation_it_is_a_batch_of_one(self) -> None:
        engine = Engine()
        assert BatchedPolicy(engine)(3) == "6"
        assert engine.batches == [[3]]

    def test_plays_an_episode_as_the_policy_alone_does(self) -> None:
        batched = BatchedPolicy[str, str](
            lambda observations: [policy(one) for one in observations]
        )
        alone = rollout(ScriptedEnv(), policy, seed=1)
        assert rollout(ScriptedEnv(), batched, seed=1) == alone

    @given(count=st.integers(0, 20), max_size=st.none() | st.integers(1, 7))
    def test_splits_by_the_largest_size_and_keeps_the_order(
        self, count: int, max_size: int | None
    ) -> None:
        engine = Engine()
        observations = list(range(count))
        assert BatchedPolicy(engine, max_size=max_size).decide_all(observations) == double(
            observations
        )
        assert list(itertools.chain(*engine.batches)) == observations
        assert all(0 < len(batch) <= (max_size or count) for batch in engine.batches)
        assert len(engine.batches) == math.ceil(count / (max_size or max(count, 1)))

    @pytest.mark.parametrize("max_size", [None, 2])
    def test_refuses_another_number_of_entries_before_any_is_returned(
        self, max_size: int | None
    ) -> None:
        engine = Engine()
        engine.outcome = lambda observations: double([one for one in observations if one != 3])
        batched = BatchedPolicy(engine, max_size=max_size)
        given, got = (4, 3) if max_size is None else (2, 1)
        with pytest.raises(ValueError, match=f"each of {given} observations, got {got}"):
            batched.decide_all([0, 1, 2, 3])

    @pytest.mark.parametrize("result", [None, "a", b"a", {0: "a"}, {"a"}, iter("a"), np.array(1)])
    def test_refuses_what_is_no_sequence(self, result: Any) -> None:
        engine = Engine()
        engine.outcome = lambda _: result
        with pytest.raises(TypeError):
            BatchedPolicy(engine)(1)

    def test_refuses_a_coroutine_function(self) -> None:
        async def batch(observations: Sequence[int]) -> list[str]:
            return double(observations)

        wrong: Any = batch
        with pytest.raises(TypeError, match="use AsyncBatchedPolicy"):
            BatchedPolicy(wrong)(1)

    def test_an_exception_in_a_place_is_of_that_place_alone(self) -> None:
        engine = Engine()
        error = LookupError("1 has no answer")
        engine.outcome = lambda observations: [
            error if one == 1 else str(one) for one in observations
        ]
        batched = BatchedPolicy(engine)
        assert batched.decide_all([0, 1, 2]) == ["0", error, "2"]
        assert batched(0) == "0"
        with pytest.raises(LookupError, match="1 has no answer"):
            batched(1)

    def test_what_the_function_raises_is_of_its_batch_alone(self) -> None:
        engine = Engine()
        engine.outcome = lambda observations: (fail if 1 in observations else double)(observations)
        first, second, third = BatchedPolicy(engine, max_size=2).decide_all([0, 1, 2])
        assert isinstance(first, LookupError)
        assert first is second
        assert third == "4"

    def test_an_interrupt_comes_out(self) -> None:
        engine = Engine()

        def interrupt(observations: Sequence[int]) -> list[str]:
            raise KeyboardInterrupt

        engine.outcome = interrupt
        with pytest.raises(KeyboardInterrupt):
            BatchedPolicy(engine).decide_all([1])

    def test_a_cancellation_in_a_place_is_an_error(self) -> None:
        engine = Engine()
        engine.outcome = lambda _: [asyncio.CancelledError()]  # from asyncio.gather, say
        with pytest.raises(RuntimeError, match="CancelledError"):
            BatchedPolicy(engine)(1)

    def test_offers_seeds_and_steps_in_the_order_of_the_observations(self) -> None:
        seen: list[Any] = []

        def batch(
            observations: Sequence[int], *, seeds: Sequence[Any] = (), steps: Sequence[Any] = ()
        ) -> list[str]:
            seen.append((list(observations), seeds, steps))
            return double(observations)

        batched = BatchedPolicy(batch, max_size=2)
        batched.decide_all([1, 2, 3], seeds=[10, 20, 30], steps=[0, 4, None])
        batched.decide_all([1])
        batched(7, seed=70, step=2)
        assert seen == [
            ([1, 2], [10, 20], [0, 4]),
            ([3], [30], [None]),
            ([1], [None], [None]),
            ([7], [70], [2]),
        ]

    def test_offers_what_the_function_declares_alone(self) -> None:
        seen: list[Any] = []

        def batch(
            observations: Sequence[int],
            seeds: Sequence[Any] = (),
            steps: Sequence[Any] = (),
            **more: Any,
        ) -> list[str]:
            seen.append((seeds, steps, more))
            return double(observations)

        BatchedPolicy(functools.partial(batch, steps=[9]))(7, seed=70, step=2)
        assert seen == [([70], [9], {})]

    def test_each_action_tells_the_version_that_its_batch_began_with(self) -> None:
        engine = Engine("a")
        batched = BatchedPolicy(engine, max_size=1)
        own = PolicyOutput("own", version="z")

        def update(observations: Sequence[int]) -> list[Any]:
            engine.version = "b"
            return [own if 2 in observations else PolicyOutput("x", stop_reason="stop")]

        assert batched.decide_all([1]) == [PolicyOutput("2", version="a")]
        engine.outcome = update
        assert batched.decide_all([1, 1, 2]) == [
            PolicyOutput("x", stop_reason="stop", version="a"),
            PolicyOutput("x", stop_reason="stop", version="b"),
            own,
        ]
        assert batched.version == "b"

    def test_without_a_version_actions_stay_as_they_are(self) -> None:
        batched = BatchedPolicy(double)
        assert batched.version is None
        assert batched(1) == "2"

    def test_a_reused_array_changes_no_earlier_action(self) -> None:
        buffer = np.zeros((1, 2))

        def batch(observations: Sequence[int]) -> Any:
            buffer[:] = observations[0]
            return buffer

        actions: list[Any] = [*BatchedPolicy[int, Any](batch, max_size=1).decide_all([1, 2])]
        assert [action.tolist() for action in actions] == [[1, 1], [2, 2]]

    def test_refuses_arguments_of_no_use(self) -> None:
        wrong: Any = "x"
        for kind in (BatchedPolicy[int, str], AsyncBatchedPolicy[int, str]):
            with pytest.raises(TypeError, match="'x'"):
                kind(wrong)
            with pytest.raises(TypeError, match="'x'"):
                kind(double, max_size=wrong)
            with pytest.raises(ValueError, match="0"):
                kind(double, max_size=0)
        for seconds in (-1.0, math.nan):
            with pytest.raises(ValueError, match="max_wait"):
                AsyncBatchedPolicy(double, max_wait=seconds)


async def test_a_batch_is_begun_when_it_is_full() -> None:
    engine = Engine()
    async with AsyncBatchedPolicy(engine, max_size=3, max_wait=math.inf) as batched:
        assert await ask_all(batched, range(6)) == double(range(6))
    assert [len(batch) for batch in engine.batches] == [3, 3]
    assert sorted(itertools.chain(*engine.batches)) == list(range(6))


async def test_calls_without_company_are_answered() -> None:
    engine = Engine()
    async with AsyncBatchedPolicy(engine, max_wait=0) as batched:
        assert [await batched(1), await batched(2)] == ["2", "4"]
    async with AsyncBatchedPolicy(engine) as batched:
        assert await batched(3) == "6"
    assert engine.batches == [[1], [2], [3]]


def test_a_batch_is_begun_when_its_first_call_has_waited_longest() -> None:
    engine = Engine()
    begun: list[float] = []

    def note(observations: Sequence[int]) -> list[str]:
        begun.append(trio.current_time() - start)
        return double(observations)

    async def ask_at(batched: Any, seconds: float, observation: int, patience: float) -> None:
        await trio.sleep(seconds)
        with trio.move_on_after(patience):
            await batched(observation)

    async def main() -> None:
        nonlocal start
        start = trio.current_time()
        async with (
            AsyncBatchedPolicy(engine, max_wait=5, inline=True) as batched,
            trio.open_nursery() as nursery,
        ):
            nursery.start_soon(ask_at, batched, 0, 0, math.inf)
            nursery.start_soon(ask_at, batched, 3, 1, math.inf)
            nursery.start_soon(ask_at, batched, 6, 2, 1)  # gives up, so the next one is the first
            nursery.start_soon(ask_at, batched, 6.5, 3, math.inf)

    start = 0.0
    engine.outcome = note
    trio.run(main, clock=trio.testing.MockClock(autojump_threshold=0))
    assert engine.batches == [[0, 1], [3]]
    assert begun == [5, 11.5]


async def test_calls_gather_while_a_batch_runs() -> None:
    engine = AsyncEngine()
    engine.held = anyio.Event()
    answers: dict[int, Any] = {}
    async with (
        AsyncBatchedPolicy(engine, max_wait=0) as batched,
        anyio.create_task_group() as tasks,
    ):
        tasks.start_soon(ask, batched, 0, answers)
        await engine.begun.wait()
        for observation in (1, 2, 3):
            tasks.start_soon(ask, batched, observation, answers)
        await anyio.wait_all_tasks_blocked()
        assert engine.batches == [[0]]
        engine.held.set()
    assert [sorted(batch) for batch in engine.batches] == [[0], [1, 2, 3]]
    assert answers == {one: str(2 * one) for one in range(4)}


@pytest.mark.parametrize("kind", ["thread", "inline", "coroutine", "awaitable"])
async def test_a_function_that_may_block_is_called_off_the_event_loop(kind: str) -> None:
    threads: list[int] = []

    def batch(observations: Sequence[int]) -> list[str]:
        threads.append(threading.get_ident())
        return double(observations)

    async def abatch(observations: Sequence[int], *, steps: Sequence[int] = ()) -> list[str]:
        await anyio.lowlevel.checkpoint()
        return batch(observations)

    functions: dict[str, AsyncBatchPolicy[int, str]] = {
        "coroutine": abatch,
        "awaitable": lambda observations: abatch([*observations]),
    }
    function = functions.get(kind, batch)
    async with AsyncBatchedPolicy(function, max_wait=0, inline=kind == "inline") as batched:
        assert await batched(1) == "2"
    assert (threads == [threading.get_ident()]) == (kind != "thread")


async def test_other_tasks_run_between_batches_on_the_event_loop() -> None:
    engine = Engine()
    answered_before: list[int] = []
    answers: dict[int, Any] = {}

    def note(observations: Sequence[int]) -> list[str]:
        answered_before.append(len(answers))
        return double(observations)

    engine.outcome = note
    async with (
        AsyncBatchedPolicy(engine, max_size=1, max_wait=0, inline=True) as batched,
        anyio.create_task_group() as tasks,
    ):
        for observation in range(5):
            tasks.start_soon(ask, batched, observation, answers)
    assert answered_before[-1] > 0


async def test_a_call_that_is_cancelled_while_it_waits_is_not_dispatched() -> None:
    engine = Engine()
    async with AsyncBatchedPolicy(engine, max_size=2, max_wait=math.inf) as batched:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(batched, 0)
            await anyio.wait_all_tasks_blocked()
            tasks.cancel_scope.cancel()
        assert await ask_all(batched, [1, 2]) == ["2", "4"]
    assert [sorted(batch) for batch in engine.batches] == [[1, 2]]


async def test_a_call_that_is_cancelled_while_its_batch_runs_harms_no_other() -> None:
    engine = AsyncEngine()
    held = engine.held = anyio.Event()
    answers: dict[int, Any] = {}
    async with (
        AsyncBatchedPolicy(engine, max_size=2, max_wait=math.inf) as batched,
        anyio.create_task_group() as tasks,
    ):
        tasks.start_soon(ask, batched, 0, answers)
        async with anyio.create_task_group() as cancelled:
            cancelled.start_soon(ask, batched, 1, answers)
            await engine.begun.wait()
            cancelled.cancel_scope.cancel()
        assert answers == {}
        held.set()
    assert answers == {0: "0"}
    assert [sorted(batch) for batch in engine.batches] == [[0, 1]]


async def test_what_the_function_raises_reaches_its_batch_and_the_next_one_runs() -> None:
    engine = Engine()
    engine.outcome = lambda observations: (fail if 5 in observations else double)(observations)
    async with AsyncBatchedPolicy(engine, max_size=5, max_wait=math.inf) as batched:
        errors = await ask_all(batched, [5, 6, 7, 8, 9])
        assert await ask_all(batched, [0, 1, 2, 3, 4]) == double(range(5))
    assert all(isinstance(error, LookupError) for error in errors)
    places = [frame.name for frame in traceback.extract_tb(errors[0].__traceback__)]
    assert places.count("fail") == 1
    assert places.count("ask") == 1  # not once for each call that it was raised in


async def test_an_exception_in_a_place_reaches_that_call_alone() -> None:
    engine = Engine()
    engine.outcome = lambda observations: [
        LookupError(one) if one == 1 else str(one) for one in observations
    ]
    async with AsyncBatchedPolicy(engine, max_size=3, max_wait=math.inf) as batched:
        first, second, third = await ask_all(batched, range(3))
    assert (first, third) == ("0", "2")
    assert isinstance(second, LookupError)


async def test_another_number_of_entries_is_an_error_of_the_whole_batch() -> None:
    engine = Engine()
    engine.outcome = one_short
    async with AsyncBatchedPolicy(engine, max_size=3, max_wait=math.inf) as batched:
        errors = await ask_all(batched, range(3))
        engine.outcome = double
        assert await ask_all(batched, range(3)) == double(range(3))
    assert all(isinstance(error, ValueError) for error in errors)
    assert "one entry for each of 3 observations, got 2" in str(errors[0])


async def test_leaving_answers_the_calls_that_wait() -> None:
    engine = AsyncEngine()
    engine.held = anyio.Event()
    answers: dict[int, Any] = {}
    async with (
        anyio.create_task_group() as tasks,
        AsyncBatchedPolicy(engine, max_size=2, max_wait=0) as batched,
    ):
        for observation in range(5):
            tasks.start_soon(ask, batched, observation, answers)
        await anyio.wait_all_tasks_blocked()
    assert [len(batch) for batch in engine.batches] == [2]
    assert len(answers) == 5
    for error in answers.values():
        assert isinstance(error, RuntimeError)
        assert "was closed while a call waited" in str(error)


async def test_leaving_takes_no_answer_back() -> None:
    engine = Engine()
    asked = anyio.Event()

    def tell(observations: Sequence[int]) -> list[str]:
        asked.set()
        return double(observations)

    engine.outcome = tell
    answers: dict[int, Any] = {}
    async with (
        anyio.create_task_group() as tasks,
        AsyncBatchedPolicy(engine, max_wait=0, inline=True) as batched,
    ):
        tasks.start_soon(ask, batched, 1, answers)
        await asked.wait()
    assert answers == {1: "2"}


async def test_leaving_answers_calls_before_the_function_has_cleaned_up() -> None:
    answered = anyio.Event()
    seen: list[bool] = []

    async def batch(observations: Sequence[int]) -> list[str]:
        try:
            await anyio.sleep_forever()
        finally:
            with anyio.move_on_after(1, shield=True):
                await answered.wait()
            seen.append(answered.is_set())
        return []

    async def ask_and_tell(batched: AsyncBatchedPolicy[int, str]) -> None:
        await ask(batched, 1, {})
        answered.set()

    async with (
        anyio.create_task_group() as tasks,
        AsyncBatchedPolicy(batch, max_wait=0) as batched,
    ):
        tasks.start_soon(ask_and_tell, batched)
        await anyio.wait_all_tasks_blocked()
    assert seen == [True]


async def test_a_shielded_call_does_not_wait_for_ever_when_the_context_is_cancelled() -> None:
    answers: dict[int, Any] = {}
    with anyio.CancelScope() as outer:
        async with AsyncBatchedPolicy(double, max_size=2, max_wait=math.inf) as batched:
            with anyio.move_on_after(1, shield=True):
                outer.cancel()
                await ask(batched, 1, answers)
    assert isinstance(answers[1], RuntimeError)


async def test_calls_are_taken_only_inside_the_context() -> None:
    batched = AsyncBatchedPolicy(double, max_wait=0)
    with pytest.raises(RuntimeError, match="only inside `async with`"):
        await batched(1)
    for _ in range(2):
        async with batched:
            assert await batched(1) == "2"
            with pytest.raises(RuntimeError, match="in use"):
                await batched.__aenter__()
        with pytest.raises(RuntimeError, match="only inside `async with`"):
            await batched(1)


@pytest.mark.parametrize("leave", ["cancelled", "done"])
@pytest.mark.parametrize("kind", ["thread", "coroutine"])
async def test_a_function_that_hangs_does_not_hinder_leaving(kind: str, leave: str) -> None:
    release = threading.Event()
    begun = threading.Event()

    def block(observations: Sequence[int]) -> list[str]:
        begun.set()
        release.wait()
        return double(observations)

    async def hang(observations: Sequence[int]) -> list[str]:
        begun.set()
        await anyio.sleep_forever()
        return []

    function: AsyncBatchPolicy[int, str] = block if kind == "thread" else hang
    answers: dict[int, Any] = {}
    scope = anyio.CancelScope()
    try:
        async with anyio.create_task_group() as tasks:
            with scope:
                async with AsyncBatchedPolicy(function, max_wait=0) as batched:
                    tasks.start_soon(ask, batched, 1, answers)
                    while not begun.is_set():
                        await anyio.lowlevel.checkpoint()
                    if leave == "cancelled":
                        scope.cancel()
                        await anyio.sleep_forever()
    finally:
        release.set()
    assert scope.cancelled_caught == (leave == "cancelled")
    assert isinstance(answers[1], RuntimeError)


@pytest.mark.parametrize("inline", [False, True])
async def test_a_stray_cancellation_is_an_error_of_its_batch(inline: bool) -> None:
    engine = Engine()

    def cancel(observations: Sequence[int]) -> list[str]:
        raise asyncio.CancelledError

    engine.outcome = cancel
    async with AsyncBatchedPolicy(engine, max_size=2, max_wait=math.inf, inline=inline) as batched:
        for error in await ask_all(batched, [1, 2]):
            assert isinstance(error, RuntimeError)
            assert "cancellation" in str(error)
        engine.outcome = double
        assert await ask_all(batched, [1, 2]) == ["2", "4"]


async def test_an_interrupt_in_the_function_comes_out_of_the_context() -> None:
    engine = AsyncEngine()
    answers: dict[int, Any] = {}

    def interrupt(observations: Sequence[int]) -> list[str]:
        raise Interrupt

    async def run(tasks: TaskGroup) -> None:
        async with AsyncBatchedPolicy(engine, max_wait=0) as batched:
            tasks.start_soon(ask, batched, 1, answers)
            await anyio.sleep_forever()

    engine.outcome = interrupt
    async with anyio.create_task_group() as tasks:
        with pytest.raises(Interrupt):
            await run(tasks)
    assert isinstance(answers[1], RuntimeError)


@pytest.mark.parametrize(
    "error", [LookupError("mine"), ExceptionGroup("mine", [LookupError()]), Interrupt()]
)
async def test_what_is_raised_inside_the_context_comes_out_as_it_is(error: BaseException) -> None:
    engine = AsyncEngine()
    engine.held = anyio.Event()

    async def run(tasks: TaskGroup) -> None:
        async with AsyncBatchedPolicy(engine, max_wait=0) as batched:
            tasks.start_soon(ask, batched, 1, {})
            await engine.begun.wait()
            raise error

    async with anyio.create_task_group() as tasks:
        with pytest.raises(type(error)) as caught:
            await run(tasks)
        assert caught.value is error


async def test_cancelling_what_is_inside_leaves_what_is_outside_alone() -> None:
    with anyio.CancelScope() as outer:
        async with AsyncBatchedPolicy(double, max_wait=0) as batched:
            outer.cancel()
            await batched(1)
        pytest.fail("the cancellation was swallowed")
    assert outer.cancelled_caught
    await anyio.lowlevel.checkpoint()


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_a_task_that_asyncio_cancels_inside_ends_cancelled(anyio_backend: str) -> None:
    async def body() -> None:
        async with AsyncBatchedPolicy(double, max_wait=math.inf) as batched:
            await batched(1)

    task = asyncio.create_task(body())
    await anyio.wait_all_tasks_blocked()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert task.cancelled()


async def test_seeds_and_steps_are_in_the_order_of_the_observations() -> None:
    seen: list[tuple[int, int | None, int | None]] = []

    async def batch(
        observations: Sequence[int], *, seeds: Sequence[Any] = (), steps: Sequence[Any] = ()
    ) -> list[str]:
        seen.extend(zip(observations, seeds, steps, strict=True))
        return double(observations)

    async with (
        AsyncBatchedPolicy(batch, max_size=3, max_wait=math.inf) as batched,
        anyio.create_task_group() as tasks,
    ):
        tasks.start_soon(functools.partial(ask, batched, 1, {}, seed=10, step=0))
        tasks.start_soon(functools.partial(ask, batched, 2, {}, seed=20))
        tasks.start_soon(functools.partial(ask, batched, 3, {}, step=5))
    assert sorted(seen) == [(1, 10, 0), (2, 20, None), (3, None, 5)]


async def test_the_version_at_dispatch_travels_with_each_action() -> None:
    engine = AsyncEngine(version=1)
    held = engine.held = anyio.Event()
    answers: dict[int, Any] = {}
    async with (
        AsyncBatchedPolicy(engine, max_size=2, max_wait=0) as batched,
        anyio.create_task_group() as tasks,
    ):
        assert batched.version == 1
        tasks.start_soon(ask, batched, 0, answers)
        await engine.begun.wait()
        tasks.start_soon(ask, batched, 1, answers)
        await anyio.wait_all_tasks_blocked()
        engine.version = 2
        held.set()
    assert answers == {0: PolicyOutput("0", version=1), 1: PolicyOutput("2", version=2)}
    assert batched.version == 2
    assert AsyncBatchedPolicy(double).version is None


async def test_episodes_are_the_same_in_batches_as_alone() -> None:
    def batch(observations: Sequence[str]) -> list[PolicyOutput[str]]:
        sizes.append(len(observations))
        return [policy(observation) for observation in observations]

    sizes: list[int] = []
    arguments: dict[str, Any] = {"num_rollouts": 4, "concurrency": 4, "seed": 5}
    alone = await arollout_group("item", lambda _: AsyncScriptedEnv(), policy, **arguments)
    async with AsyncBatchedPolicy(batch, max_size=4, max_wait=math.inf) as batched:
        together = await arollout_group(
            "item", lambda _: AsyncScriptedEnv(), batched, **arguments, item_id=alone.item_id
        )
    assert sizes == [4, 4]
    assert together.trajectories == alone.trajectories


@given(
    callers=st.lists(st.lists(st.integers(0, 4), max_size=4), max_size=8),
    cancelled=st.sets(st.tuples(st.integers(0, 7), st.integers(0, 3))),
    max_size=st.integers(1, 5),
    pauses=st.lists(st.integers(0, 3), max_size=12),
    inline=st.booleans(),
    backend=st.sampled_from(["asyncio", "trio"]),
)
@settings(max_examples=60)
def test_whatever_the_order_each_call_gets_its_own_answer(
    callers: list[list[int]],
    cancelled: set[tuple[int, int]],
    max_size: int,
    pauses: list[int],
    inline: bool,
    backend: str,
) -> None:
    """Each caller calls after so many turns of the event loop; the function takes some, too."""
    batches: list[list[tuple[int, int]]] = []
    answers: dict[tuple[int, int], Any] = {}

    async def wait(turns: int) -> None:
        for _ in range(turns):
            await anyio.lowlevel.checkpoint()

    async def slowly(observations: Sequence[tuple[int, int]]) -> list[tuple[str, tuple[int, int]]]:
        await wait(pauses[len(batches) % len(pauses)] if pauses else 0)
        return at_once(observations)

    def at_once(observations: Sequence[tuple[int, int]]) -> list[tuple[str, tuple[int, int]]]:
        batches.append(list(observations))
        return [("answer to", observation) for observation in observations]

    async def caller(batched: Any, name: int, turns: list[int]) -> None:
        for number, pause in enumerate(turns):
            await wait(pause)
            one = (name, number)
            with anyio.CancelScope() as scope:
                async with anyio.create_task_group() as tasks:
                    if one in cancelled:
                        tasks.start_soon(cancel_after, scope, pause)
                    answers[one] = await batched(one)

    async def cancel_after(scope: anyio.CancelScope, turns: int) -> None:
        await wait(turns)
        scope.cancel()

    async def main() -> None:
        function = at_once if inline else slowly
        async with (
            AsyncBatchedPolicy(function, max_size=max_size, max_wait=0, inline=inline) as batched,
            anyio.create_task_group() as tasks,
        ):
            for name, turns in enumerate(callers):
                tasks.start_soon(caller, batched, name, turns)

    anyio.run(main, backend=backend)
    asked = {(name, number) for name, turns in enumerate(callers) for number in range(len(turns))}
    dispatched = list(itertools.chain(*batches))
    assert all(0 < len(batch) <= max_size for batch in batches)
    assert len(dispatched) == len(set(dispatched))
    assert asked - cancelled <= set(dispatched) <= asked
    assert asked - cancelled <= answers.keys() <= asked
    assert all(answer == ("answer to", one) for one, answer in answers.items())


async def check_what_a_type_checker_infers() -> None:
    def outputs(observations: Sequence[int]) -> list[PolicyOutput[str]]:
        return [PolicyOutput(str(one)) for one in observations]

    def some(observations: Sequence[int]) -> list[str | Exception]:
        return [LookupError(one) if one else "" for one in observations]

    async def later(observations: Sequence[int]) -> list[str | PolicyOutput[str] | Exception]:
        return ["" for _ in observations]

    def seeded(observations: Sequence[int], *, seeds: Sequence[int | None] = ()) -> tuple[str, ...]:
        return tuple("" for _ in observations)

    def awaitable(observations: Sequence[int]) -> Awaitable[list[PolicyOutput[str]]]:
        raise NotImplementedError

    assert_type(BatchedPolicy(double), BatchedPolicy[int, str])
    assert_type(BatchedPolicy(outputs), BatchedPolicy[int, str])
    assert_type(BatchedPolicy(some), BatchedPolicy[int, str])
    assert_type(BatchedPolicy(seeded), BatchedPolicy[int, str])
    assert_type(BatchedPolicy(double)(1), str | PolicyOutput[str])
    assert_type(BatchedPolicy(double).decide_all([1]), list[str | PolicyOutput[str] | Exception])
    assert_type(AsyncBatchedPolicy(double), AsyncBatchedPolicy[int, str])
    assert_type(AsyncBatchedPolicy(outputs), AsyncBatchedPolicy[int, str])
    assert_type(AsyncBatchedPolicy(some), AsyncBatchedPolicy[int, str])
    assert_type(AsyncBatchedPolicy(later), AsyncBatchedPolicy[int, str])
    assert_type(AsyncBatchedPolicy(awaitable), AsyncBatchedPolicy[int, str])
    async with AsyncBatchedPolicy(double) as batched:
        assert_type(batched, AsyncBatchedPolicy[int, str])
        assert_type(await batched(1), str | PolicyOutput[str])

    def text(observations: Sequence[str]) -> list[str]:
        return list(observations)

    both: BatchPolicy[str, str] = text
    rollout(ScriptedEnv(), BatchedPolicy(both))
    await arollout(AsyncScriptedEnv(), AsyncBatchedPolicy(both))
