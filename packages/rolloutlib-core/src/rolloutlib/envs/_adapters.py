"""Adapters between synchronous and asynchronous environments."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import gymnasium as gym

from rolloutlib.envs._core import ActT, AsyncEnv, ObsT
from rolloutlib.envs._forwarding import ForwardsAttributes
from rolloutlib.envs._portal import Portal
from rolloutlib.envs._worker import Worker

if TYPE_CHECKING:
    from gymnasium.core import RenderFrame

__all__ = ["AsyncFromSync", "SyncFromAsync", "as_async", "as_sync"]


class AsyncFromSync(ForwardsAttributes, AsyncEnv[ObsT, ActT]):
    """A synchronous environment in asynchronous code.

    The environment lives on a thread of its own: `reset`, `step`, `render` and `close` run there,
    one at a time and always the same thread, so that blocking calls hold up neither the event loop
    nor other environments.

    When the caller of a running call is cancelled, by a deadline for example, it gets control back
    at once. The call cannot be stopped and is left to run out; then the environment is closed. Until
    then and after it, further calls raise `RuntimeError`, while `close` returns at once, and
    `wait_abandoned` when the environment is closed.

    Args:
        env: The environment to adapt.
        inline: Call the environment on the event loop instead, for one that never blocks.

    Raises:
        TypeError: `env` is not a `gymnasium.Env`.
    """

    env: gym.Env[ObsT, ActT]

    def __init__(self, env: gym.Env[ObsT, ActT], *, inline: bool = False) -> None:
        if not isinstance(cast("object", env), gym.Env):
            msg = f"AsyncFromSync adapts a gymnasium.Env, got {env!r}"
            raise TypeError(msg)
        self.env = env
        self._worker = None if inline else Worker(f"rolloutlib environment {env}", env.close)

    async def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[ObsT, dict[str, Any]]:
        """Begin an episode.

        Raises:
            RuntimeError: The environment is closed, or was abandoned during a call.
        """
        if self._worker is None:
            return self.env.reset(seed=seed, options=options)
        worker = self._open_worker("reset")
        return await worker.run(lambda: self.env.reset(seed=seed, options=options))

    async def step(self, action: ActT) -> tuple[ObsT, float, bool, bool, dict[str, Any]]:
        """Act once.

        Raises:
            RuntimeError: The environment is closed, or was abandoned during a call.
        """
        if self._worker is None:
            result = self.env.step(action)
        else:
            result = await self._open_worker("step").run(lambda: self.env.step(action))
        # As it is: whoever records the step turns its numbers into Python's, and knows its place.
        return cast("tuple[ObsT, float, bool, bool, dict[str, Any]]", result)

    async def render(self) -> RenderFrame | list[RenderFrame] | None:
        """Draw the environment.

        Raises:
            RuntimeError: The environment is closed, or was abandoned during a call.
        """
        if self._worker is None:
            return self.env.render()
        return await self._open_worker("render").run(self.env.render)

    async def close(self) -> None:
        """Close the environment on its thread, after any running call, and end the thread."""
        if self._worker is None:
            self.env.close()
        else:
            await self._worker.close()

    async def wait_abandoned(self) -> None:
        """Wait until a call whose caller was cancelled has run out, and the environment is closed.

        Without such a call it returns at once. It is for the event loop of that caller.
        """
        if self._worker is not None:
            await self._worker.wait_abandoned()

    def _open_worker(self, method: str) -> Worker:
        worker = cast("Worker", self._worker)
        if worker.closed:
            msg = (
                f"{method}() of {self}: the environment was closed, or a call was abandoned when its "
                "caller was cancelled; make a new environment"
            )
            raise RuntimeError(msg)
        return worker


class SyncFromAsync(ForwardsAttributes, gym.Env[ObsT, ActT]):
    """An asynchronous environment in synchronous code.

    The environment lives on an event loop of its own, on a thread of its own, for its whole life; the
    tasks that it starts there go on between calls. It works in a thread that runs an event loop
    itself, such as a notebook's: that loop waits for each call. An interrupt (Ctrl-C) cancels the
    running call and comes out within a few seconds, whatever the environment does; a second one comes
    out at once. A call that does not react to it is left to run out; then the environment is closed.

    Args:
        env: The environment to adapt.
        backend: The event loop to run it on: "asyncio" or "trio".

    Raises:
        TypeError: `env` is not an `AsyncEnv`.
        ValueError: There is no such backend.
    """

    env: AsyncEnv[ObsT, ActT]

    def __init__(self, env: AsyncEnv[ObsT, ActT], *, backend: str = "asyncio") -> None:
        if not isinstance(cast("object", env), AsyncEnv):
            msg = f"SyncFromAsync adapts an AsyncEnv, got {env!r}"
            raise TypeError(msg)
        self.env = env
        self._portal = Portal(f"rolloutlib environment {env}", backend, env.close)

    @property
    def unwrapped(self) -> gym.Env[ObsT, ActT]:
        """The adapter itself: what it adapts is not a `gymnasium.Env`."""
        return self

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[ObsT, dict[str, Any]]:
        """Begin an episode.

        Raises:
            RuntimeError: The environment is closed.
        """
        portal = self._open_portal("reset")
        return portal.run(lambda: self.env.reset(seed=seed, options=options))

    def step(self, action: ActT) -> tuple[ObsT, float, bool, bool, dict[str, Any]]:
        """Act once.

        Raises:
            RuntimeError: The environment is closed.
        """
        return self._open_portal("step").run(lambda: self.env.step(action))

    def render(self) -> RenderFrame | list[RenderFrame] | None:
        """Draw the environment.

        Raises:
            RuntimeError: The environment is closed.
        """
        return self._open_portal("render").run(self.env.render)

    def close(self) -> None:
        """Close the environment on its loop, and end the loop; closing twice does no harm."""
        self._portal.close()

    def _open_portal(self, method: str) -> Portal:
        if self._portal.closed:
            msg = (
                f"{method}() of {self}: the environment was closed, or a call did not react to an "
                "interrupt; make a new environment"
            )
            raise RuntimeError(msg)
        return self._portal


def as_async(
    env: AsyncEnv[ObsT, ActT] | gym.Env[ObsT, ActT], *, inline: bool = False
) -> AsyncEnv[ObsT, ActT]:
    """Return an environment for asynchronous code: an `AsyncEnv` as it is, another one adapted.

    Args:
        env: The environment.
        inline: Call a synchronous environment on the event loop, not on a thread of its own.

    Raises:
        TypeError: `env` is no environment of either kind.
    """
    if isinstance(env, AsyncEnv):
        return env
    if isinstance(cast("object", env), gym.Env):
        return AsyncFromSync(env, inline=inline)
    msg = f"expected a rolloutlib.AsyncEnv or gymnasium.Env, got {env!r}"
    raise TypeError(msg)


def as_sync(
    env: gym.Env[ObsT, ActT] | AsyncEnv[ObsT, ActT], *, backend: str = "asyncio"
) -> gym.Env[ObsT, ActT]:
    """Return an environment for synchronous code: a `gymnasium.Env` as it is, another one adapted.

    Args:
        env: The environment.
        backend: The event loop that an asynchronous environment runs on: "asyncio" or "trio".

    Raises:
        TypeError: `env` is no environment of either kind.
        ValueError: There is no such backend.
    """
    if isinstance(env, gym.Env):
        return env
    if isinstance(cast("object", env), AsyncEnv):
        return SyncFromAsync(env, backend=backend)
    msg = f"expected a gymnasium.Env or rolloutlib.AsyncEnv, got {env!r}"
    raise TypeError(msg)
