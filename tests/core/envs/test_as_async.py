"""A synchronous environment in asynchronous code."""

from __future__ import annotations

import copy
import gc
import pickle
import queue
import threading
from contextvars import ContextVar
from typing import Any

import anyio
import anyio.lowlevel
import gymnasium as gym
import numpy as np
import pytest

from rolloutlib import AsyncEnv, Env, as_async
from rolloutlib.envs import AsyncFromSync

pytestmark = pytest.mark.anyio


class Recording(Env[Any, Any]):
    """Writes down which thread called what; a step of action 9 waits for `go`."""

    action_space = gym.spaces.Discrete(10)
    observation_space = gym.spaces.Discrete(10)

    def __init__(self) -> None:
        self.calls: list[tuple[str, threading.Thread]] = []
        self.began = threading.Event()
        self.go = threading.Event()
        self.closed = threading.Event()
        self.reward: Any = 1.0

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[int, dict[str, Any]]:
        super().reset(seed=seed)
        self._note("reset")
        return 0, {}

    def step(self, action: int) -> tuple[int, Any, bool, bool, dict[str, Any]]:
        self._note(f"step {action}")
        if action == 9:
            self.began.set()
            assert self.go.wait(30)
        return action, self.reward, False, False, {}

    def render(self) -> None:
        self._note("render")

    def close(self) -> None:
        self._note("close")
        self.closed.set()

    def _note(self, call: str) -> None:
        self.calls.append((call, threading.current_thread()))

    @property
    def names(self) -> list[str]:
        return [name for name, _ in self.calls]


async def until(event: threading.Event) -> None:
    assert await anyio.to_thread.run_sync(event.wait, 30)


async def test_every_call_runs_on_one_thread_that_is_not_the_callers() -> None:
    env = Recording()
    async with as_async(env) as adapted:
        await adapted.reset(seed=1)
        await adapted.step(1)
        await adapted.render()
    assert env.names == ["reset", "step 1", "render", "close"]
    [thread] = {thread for _, thread in env.calls}
    assert thread is not threading.current_thread()
    thread.join(30)
    assert not thread.is_alive()


async def test_a_hundred_and_twenty_eight_environments_block_at_once() -> None:
    barrier = threading.Barrier(128)

    class Meeting(Recording):
        def step(self, action: int) -> tuple[int, Any, bool, bool, dict[str, Any]]:
            barrier.wait(60)
            return super().step(action)

    environments = [as_async(Meeting()) for _ in range(128)]
    async with anyio.create_task_group() as tasks:
        for environment in environments:
            tasks.start_soon(environment.step, 1)
    for environment in environments:
        await environment.close()


async def test_calls_of_several_tasks_are_served_one_at_a_time_in_order() -> None:
    env = Recording()
    async with as_async(env) as adapted, anyio.create_task_group() as tasks:
        tasks.start_soon(adapted.step, 9)
        await until(env.began)
        for action in range(5):
            tasks.start_soon(adapted.step, action)
            await anyio.wait_all_tasks_blocked()
        assert env.names == ["step 9"]
        env.go.set()
    assert env.names == ["step 9", *[f"step {action}" for action in range(5)], "close"]


async def test_a_deadline_is_honoured_while_the_environment_blocks() -> None:
    env = Recording()
    adapted = as_async(env)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(adapted.step, 9)
        await until(env.began)
        tasks.cancel_scope.cancel()
    # The step is still blocked, and the caller is here already.
    assert not env.closed.is_set()
    with pytest.raises(RuntimeError, match=r"step\(\) of <AsyncFromSync.*make a new environment"):
        await adapted.step(1)
    await adapted.close()
    assert env.names == ["step 9"]
    env.go.set()
    await until(env.closed)
    await adapted.close()
    assert env.names == ["step 9", "close"]
    assert len({thread for _, thread in env.calls}) == 1


async def test_a_call_cancelled_in_the_queue_never_runs_and_does_no_harm() -> None:
    env = Recording()
    async with as_async(env) as adapted, anyio.create_task_group() as tasks:
        tasks.start_soon(adapted.step, 9)
        await until(env.began)
        with anyio.CancelScope() as scope:
            async with anyio.create_task_group() as inner:
                inner.start_soon(adapted.step, 1)
                await anyio.wait_all_tasks_blocked()
                scope.cancel()
        env.go.set()
        await adapted.step(2)
    assert env.names == ["step 9", "step 2", "close"]


async def test_a_cancelled_close_still_closes_once() -> None:
    env = Recording()
    adapted = as_async(env)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(adapted.step, 9)
        await until(env.began)
        with anyio.CancelScope() as scope:
            async with anyio.create_task_group() as inner:
                inner.start_soon(adapted.close)
                await anyio.wait_all_tasks_blocked()
                scope.cancel()
        await adapted.close()
        env.go.set()
    await until(env.closed)
    assert env.names == ["step 9", "close"]


@pytest.mark.parametrize("error", [KeyError("lost"), KeyboardInterrupt(), SystemExit(3)])
async def test_exceptions_come_out_as_they_are(error: BaseException) -> None:
    class Failing(Recording):
        def step(self, action: int) -> tuple[int, Any, bool, bool, dict[str, Any]]:
            raise error

    async with as_async(Failing()) as adapted:
        caught: BaseException | None = None
        try:
            await adapted.step(1)
        except BaseException as raised:
            caught = raised
        assert caught is error
        await adapted.reset()


async def test_a_failure_to_close_comes_out_of_close() -> None:
    class Leaking(Recording):
        def close(self) -> None:
            msg = "still busy"
            raise OSError(msg)

    adapted = as_async(Leaking())
    await adapted.reset()
    with pytest.raises(OSError, match="still busy"):
        await adapted.close()
    await adapted.close()


async def test_closing_twice_closes_once_and_ends_the_use() -> None:
    env = Recording()
    adapted = as_async(env)
    await adapted.reset()
    await adapted.close()
    await adapted.close()
    assert env.names == ["reset", "close"]
    with pytest.raises(RuntimeError, match="closed"):
        await adapted.reset()


async def test_context_variables_of_the_caller_are_seen() -> None:
    variable = ContextVar[str]("variable")
    seen: list[str] = []

    class Looking(Recording):
        def step(self, action: int) -> tuple[int, Any, bool, bool, dict[str, Any]]:
            seen.append(variable.get())
            return super().step(action)

    variable.set("here")
    async with as_async(Looking()) as adapted:
        await adapted.step(1)
    assert seen == ["here"]


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
async def test_an_environment_may_run_an_event_loop_of_its_own(backend: str) -> None:
    async def meet() -> str:
        await anyio.lowlevel.checkpoint()
        return "met"

    class Looping(Recording):
        def step(self, action: int) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
            return anyio.run(meet, backend=backend), 1.0, False, False, {}

    async with as_async(Looping()) as adapted:
        assert (await adapted.step(1))[0] == "met"


async def test_inline_runs_on_the_event_loop() -> None:
    env = Recording()
    async with as_async(env, inline=True) as adapted:
        await adapted.reset(seed=1)
        await adapted.step(1)
        await adapted.render()
    assert {thread for _, thread in env.calls} == {threading.current_thread()}


@pytest.mark.parametrize("inline", [False, True])
async def test_results_pass_as_they_are(inline: bool) -> None:
    env = Recording()
    async with as_async(env, inline=inline) as adapted:
        env.reward = np.array([0.5])
        assert (await adapted.step(1))[1] is env.reward


async def test_attributes_are_the_environments() -> None:
    env = Recording()
    adapted = as_async(env)
    assert adapted.action_space is env.action_space
    assert adapted.metadata is env.metadata
    await adapted.reset(seed=3)
    assert adapted.np_random_seed == 3
    assert adapted.np_random is env.np_random
    assert adapted.get_wrapper_attr("began") is env.began
    assert adapted.unwrapped is adapted
    await adapted.close()


async def test_an_async_environment_is_returned_as_it_is() -> None:
    adapted = as_async(Recording())
    assert as_async(adapted) is adapted


def test_one_environment_serves_successive_event_loops(anyio_backend_name: str) -> None:
    env = Recording()
    adapted = as_async(env)
    anyio.run(adapted.reset, backend=anyio_backend_name)
    anyio.run(adapted.step, 1, backend=anyio_backend_name)
    anyio.run(adapted.close, backend=anyio_backend_name)
    assert env.names == ["reset", "step 1", "close"]
    assert len({thread for _, thread in env.calls}) == 1


def forget(objects: list[Any]) -> None:
    objects.clear()
    gc.collect()


def test_a_forgotten_environment_warns_and_frees_its_thread() -> None:
    env = Recording()
    forgotten = [as_async(env)]
    anyio.run(forgotten[0].reset)
    with pytest.warns(ResourceWarning, match=r"<Recording instance> was never closed"):
        forget(forgotten)
    [(_, thread)] = env.calls
    thread.join(30)
    assert not thread.is_alive()
    assert not env.closed.is_set()  # whoever else holds the environment may still use it


@pytest.mark.parametrize("wrong", [None, 5, object()])
def test_what_is_no_environment_is_refused(wrong: Any) -> None:
    with pytest.raises(TypeError, match=r"expected a rolloutlib\.AsyncEnv or gymnasium\.Env, got"):
        as_async(wrong)
    with pytest.raises(TypeError, match=r"AsyncFromSync adapts a gymnasium\.Env"):
        AsyncFromSync(wrong)


def test_the_adapter_is_an_async_env() -> None:
    assert isinstance(as_async(Recording()), AsyncEnv)


def pickled(env: Any) -> Any:
    return pickle.loads(pickle.dumps(env))  # noqa: S301


class Copyable(Env[int, int]):
    closed = 0

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[int, dict[str, Any]]:
        return 0, {}

    def close(self) -> None:
        self.closed += 1


@pytest.mark.parametrize("duplicate", [copy.deepcopy, pickled])
async def test_a_copy_has_a_copy_of_the_environment_and_a_thread_of_its_own(duplicate: Any) -> None:
    env = Copyable()
    adapted = as_async(env)
    await adapted.reset()
    other = duplicate(adapted)
    await adapted.close()
    assert await other.reset() == (0, {})
    await other.close()
    assert (env.closed, other.env.closed) == (1, 1)


async def test_a_thread_ends_though_an_interrupt_comes_as_it_is_told_to(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Interrupted(queue.SimpleQueue[Any]):
        puts = 0

        def put(self, item: Any, block: bool = True, timeout: float | None = None) -> None:
            super().put(item, block, timeout)
            self.puts += 1
            if self.puts == 2:  # the thread has the call to close
                raise KeyboardInterrupt

    monkeypatch.setattr(queue, "SimpleQueue", Interrupted)
    recording = Recording()
    env = as_async(recording)
    await env.reset()
    with pytest.raises(KeyboardInterrupt):
        await env.close()
    [(_, thread)] = recording.calls[:1]
    await anyio.to_thread.run_sync(thread.join, 10)
    assert not thread.is_alive()
    assert recording.closed.is_set()
