"""An asynchronous environment in synchronous code."""

from __future__ import annotations

import asyncio
import copy
import gc
import pickle
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar
from typing import Any

import anyio
import anyio.lowlevel
import anyio.to_thread
import gymnasium as gym
import pytest
from gymnasium.utils.env_checker import check_env as check_by_gymnasium

from rolloutlib import AsyncEnv, Env, as_sync, check_env
from rolloutlib.envs import AsyncWrapper, SyncFromAsync


class Recording(AsyncEnv[Any, Any]):
    action_space = gym.spaces.Discrete(10)
    observation_space = gym.spaces.Discrete(10)

    def __init__(self) -> None:
        self.calls: list[tuple[str, threading.Thread, object]] = []

    async def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[int, dict[str, Any]]:
        await super().reset(seed=seed)
        await self._note("reset")
        return 0, {}

    async def step(self, action: int) -> tuple[int, float, bool, bool, dict[str, Any]]:
        await self._note("step")
        return action, 1.0, True, False, {}

    async def close(self) -> None:
        await self._note("close")

    async def _note(self, call: str) -> None:
        await anyio.lowlevel.checkpoint()
        token = anyio.lowlevel.current_token()
        self.calls.append((call, threading.current_thread(), token))


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_every_call_runs_on_one_thread_and_loop(backend: str) -> None:
    env = Recording()
    with as_sync(env, backend=backend) as adapted:
        assert adapted.reset(seed=3) == (0, {})
        assert adapted.step(4) == (4, 1.0, True, False, {})
        assert adapted.np_random_seed == 3
    assert [name for name, _, _ in env.calls] == ["reset", "step", "close"]
    [thread] = {thread for _, thread, _ in env.calls}
    assert len({token for _, _, token in env.calls}) == 1
    assert thread is not threading.current_thread()
    assert not thread.is_alive()


@pytest.mark.parametrize("outer", ["asyncio", "trio"])
@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_it_works_where_an_event_loop_runs(backend: str, outer: str) -> None:
    async def main() -> None:
        with as_sync(Recording(), backend=backend) as adapted:
            adapted.reset()
            assert adapted.step(2)[0] == 2

    anyio.run(main, backend=outer)


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_context_variables_of_the_caller_are_seen(backend: str) -> None:
    variable = ContextVar[str]("variable")

    class Looking(Recording):
        async def step(self, action: int) -> tuple[Any, float, bool, bool, dict[str, Any]]:
            return variable.get(), 1.0, True, False, {}

    with as_sync(Looking(), backend=backend) as adapted:
        for value in ("first", "second"):
            variable.set(value)
            assert adapted.step(1)[0] == value


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_calls_of_several_threads_are_served_one_at_a_time(backend: str) -> None:
    class Alone(Recording):
        inside = 0

        async def step(self, action: int) -> tuple[int, float, bool, bool, dict[str, Any]]:
            self.inside += 1
            await anyio.lowlevel.checkpoint()
            self.inside -= 1
            return self.inside, 1.0, False, False, {}

    with as_sync(Alone(), backend=backend) as adapted, ThreadPoolExecutor(8) as pool:
        results = pool.map(adapted.step, range(80))
        assert {observation for observation, *_ in results} == {0}


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_a_call_from_the_environment_itself_is_refused(backend: str) -> None:
    class Circular(Recording):
        async def step(self, action: int) -> Any:
            return adapted.step(action)

    with as_sync(Circular(), backend=backend) as adapted:
        with pytest.raises(RuntimeError, match="from its own event loop, which would wait for its"):
            adapted.step(1)
        adapted.reset()


def test_a_call_that_waits_while_another_thread_closes_is_refused() -> None:
    class Slow(Recording):
        closing, go = threading.Event(), threading.Event()

        async def close(self) -> None:
            self.closing.set()
            await anyio.to_thread.run_sync(self.go.wait, 30)

    env = Slow()
    adapted = as_sync(env)
    with ThreadPoolExecutor(2) as pool:
        closing = pool.submit(adapted.close)
        assert env.closing.wait(30)
        waiting = pool.submit(adapted.step, 1)
        env.go.set()
        closing.result(30)
        with pytest.raises(RuntimeError, match="was closed"):
            waiting.result(30)


def test_it_is_an_environment_by_the_checker() -> None:
    with as_sync(Recording()) as adapted:
        assert isinstance(adapted, Env)
        check_env(adapted)


def test_gymnasiums_checker_and_wrappers_take_it() -> None:
    adapted = as_sync(AsyncWrapper[Any, Any, Any, Any](Pausing()))
    check_by_gymnasium(adapted, skip_render_check=True)
    env = gym.wrappers.TimeLimit(adapted, 2)
    env.reset()
    assert env.step(1)[3] is False
    assert env.get_wrapper_attr("closed") == 0
    env.close()


def test_exceptions_come_out_as_they_are() -> None:
    error = KeyError("lost")

    class Failing(Recording):
        async def step(self, action: int) -> tuple[int, float, bool, bool, dict[str, Any]]:
            raise error

    with as_sync(Failing()) as adapted:
        adapted.reset()
        with pytest.raises(KeyError) as caught:
            adapted.step(1)
        assert caught.value is error
        adapted.reset()


def test_what_the_environment_does_between_calls_goes_on() -> None:
    class Beating(Recording):
        beat = threading.Event()

        async def reset(
            self, *, seed: int | None = None, options: dict[str, Any] | None = None
        ) -> tuple[int, dict[str, Any]]:
            self.task = asyncio.create_task(self._heartbeat())
            return await super().reset(seed=seed)

        async def _heartbeat(self) -> None:
            await asyncio.sleep(0)
            self.beat.set()

    with as_sync(Beating()) as adapted:
        adapted.reset()
        assert Beating.beat.wait(30)


def test_closing_twice_closes_once_and_ends_the_use() -> None:
    env = Recording()
    adapted = as_sync(env)
    adapted.reset()
    adapted.close()
    adapted.close()
    assert [name for name, _, _ in env.calls] == ["reset", "close"]
    with pytest.raises(RuntimeError, match=r"step\(\) of <SyncFromAsync.*make a new environment"):
        adapted.step(1)


def pickled(env: Any) -> Any:
    return pickle.loads(pickle.dumps(env))  # noqa: S301


class Pausing(AsyncEnv[Any, Any]):
    """Holds nothing that cannot be copied."""

    action_space = gym.spaces.Discrete(10)
    observation_space = gym.spaces.Discrete(10)
    closed = 0

    async def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[int, dict[str, Any]]:
        await super().reset(seed=seed)
        await anyio.lowlevel.checkpoint()
        return 0, {}

    async def step(self, action: int) -> tuple[int, float, bool, bool, dict[str, Any]]:
        await anyio.lowlevel.checkpoint()
        return action, 1.0, True, False, {}

    async def close(self) -> None:
        self.closed += 1


def forget(objects: list[Any]) -> None:
    objects.clear()
    gc.collect()


def test_a_forgotten_environment_warns() -> None:
    forgotten = [as_sync(Recording())]
    forgotten[0].reset()
    with pytest.warns(ResourceWarning, match="was never closed"):
        forget(forgotten)


def test_a_forgotten_environment_frees_its_thread() -> None:
    env = Recording()
    forgotten = [as_sync(env)]
    forgotten[0].reset()
    [(_, thread, _)] = env.calls
    with pytest.warns(ResourceWarning, match="was never closed"):
        forget(forgotten)
    thread.join(30)
    assert not thread.is_alive()


def test_a_gymnasium_environment_is_returned_as_it_is() -> None:
    env = gym.make("CartPole-v1")
    assert as_sync(env) is env
    with pytest.raises(TypeError, match=r"expected a gymnasium\.Env or rolloutlib\.AsyncEnv"):
        as_sync(5)  # pyright: ignore[reportArgumentType]
    with pytest.raises(TypeError, match="SyncFromAsync adapts an AsyncEnv"):
        SyncFromAsync(env)  # pyright: ignore[reportArgumentType]


def test_an_unknown_backend_is_refused_at_once() -> None:
    with pytest.raises(ValueError, match=r"backend must be one of .*, got 'curio'"):
        as_sync(Recording(), backend="curio")


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
@pytest.mark.parametrize(
    "error",
    [KeyboardInterrupt(), SystemExit(3), GeneratorExit(), BaseExceptionGroup("", [SystemExit()])],
)
def test_what_would_end_a_loop_comes_out_and_leaves_it_running(
    error: BaseException, backend: str
) -> None:
    class Exiting(Recording):
        async def step(self, action: int) -> tuple[int, float, bool, bool, dict[str, Any]]:
            raise error

    env = Exiting()
    adapted = as_sync(env, backend=backend)
    adapted.reset()
    with pytest.raises(type(error)) as caught:
        adapted.step(1)
    assert caught.value is error
    adapted.reset()
    adapted.close()
    assert [name for name, _, _ in env.calls] == ["reset", "reset", "close"]


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_a_cancellation_that_nobody_asked_for_is_an_error(backend: str) -> None:
    class Straying(Recording):
        async def step(self, action: int) -> tuple[int, float, bool, bool, dict[str, Any]]:
            raise asyncio.CancelledError

    adapted = as_sync(Straying(), backend=backend)
    with pytest.raises(RuntimeError, match="its caller did not ask for"):
        adapted.step(1)
    adapted.close()


@pytest.mark.parametrize("duplicate", [copy.deepcopy, pickled])
def test_a_copy_has_a_copy_of_the_environment_and_a_loop_of_its_own(duplicate: Any) -> None:
    env = Pausing()
    adapted = as_sync(env)
    adapted.reset()
    other = duplicate(adapted)
    adapted.close()
    assert other.env is not env
    assert other.step(1)[0] == 1
    other.close()
    assert (env.closed, other.env.closed) == (1, 1)
    with pytest.raises(RuntimeError, match="was closed"):
        duplicate(adapted).reset()


INTERRUPTED = """
import signal, threading
import anyio, gymnasium as gym
from rolloutlib import AsyncEnv, as_sync
from rolloutlib.envs import _portal

_portal.GRACE_SECONDS = {grace}

release, closed = threading.Event(), threading.Event()
main = threading.get_ident()

def interrupt():
    signal.pthread_kill({taker}, signal.SIGINT)

class Waiting(AsyncEnv):
    action_space = observation_space = gym.spaces.Discrete(2)
    async def reset(self, *, seed=None, options=None):
        return 0, {{}}
    async def step(self, action):
        threading.Timer(0.2, interrupt).start()
        try:
            {wait}
        except anyio.get_cancelled_exc_class():
            print("cancelled", flush=True)
            raise
    async def close(self):
        print("closed", flush=True)
        closed.set()

env = as_sync(Waiting(), backend={backend!r})
env.reset()
try:
    env.step(0)
except KeyboardInterrupt:
    print("interrupted", flush=True)
env.close()
{after}
print("end", flush=True)
"""


def interrupt(
    *, backend: str, wait: str, grace: float, after: str = "", taker: str = "main"
) -> list[str]:
    script = INTERRUPTED.format(backend=backend, wait=wait, grace=grace, after=after, taker=taker)
    result = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False
    )
    assert result.returncode == 0, result.stderr
    return result.stdout.split()


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
@pytest.mark.parametrize("taker", ["main", "threading.get_ident()"])
def test_an_interrupt_cancels_the_call_and_leaves_the_environment_closable(
    backend: str, taker: str
) -> None:
    # A signal that another thread takes wakes a wait no more than one that comes just before it.
    output = interrupt(backend=backend, wait="await anyio.sleep_forever()", grace=30, taker=taker)
    assert output == ["cancelled", "interrupted", "closed", "end"]


def test_an_interrupt_comes_out_of_a_call_that_ignores_cancellation() -> None:
    output = interrupt(backend="asyncio", wait="import time; time.sleep(3600)", grace=0.1)
    assert output == ["interrupted", "end"]


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_the_environment_of_an_abandoned_call_is_closed_when_the_call_ends(backend: str) -> None:
    output = interrupt(
        backend=backend,
        wait="release.wait()",
        grace=0.1,
        after="release.set(); assert closed.wait(30)",
    )
    assert output == ["interrupted", "closed", "end"]
