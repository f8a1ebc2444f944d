"""Wrappers of asynchronous environments, after Gymnasium's."""

from __future__ import annotations

import inspect
from abc import abstractmethod
from collections.abc import Awaitable
from typing import TYPE_CHECKING, Any, Generic, cast

from typing_extensions import TypeVar

from rolloutlib.envs._core import ActT, AsyncEnv, ObsT
from rolloutlib.envs._forwarding import ForwardsAttributes

if TYPE_CHECKING:
    from gymnasium.core import RenderFrame

__all__ = [
    "AsyncActionWrapper",
    "AsyncObservationWrapper",
    "AsyncRewardWrapper",
    "AsyncWrapper",
]

WrapperObsT = TypeVar("WrapperObsT", default=Any)
WrapperActT = TypeVar("WrapperActT", default=Any)
ValueT = TypeVar("ValueT")


class AsyncWrapper(
    ForwardsAttributes,
    AsyncEnv[WrapperObsT, WrapperActT],
    Generic[WrapperObsT, WrapperActT, ObsT, ActT],
):
    """An environment made from another: everything not overridden is the inner environment's.

    The type parameters are the observations and actions seen from outside, then those of the
    environment inside. A subclass that changes either overrides `reset` or `step`.

    Args:
        env: The environment to wrap.

    Raises:
        TypeError: It is not an `AsyncEnv`.
    """

    env: AsyncEnv[ObsT, ActT]

    def __init__(self, env: AsyncEnv[ObsT, ActT]) -> None:
        if not isinstance(cast("object", env), AsyncEnv):
            msg = (
                f"{type(self).__name__} wraps an AsyncEnv, got {env!r}; "
                "adapt a gymnasium.Env with as_async() first"
            )
            raise TypeError(msg)
        self.env = env

    @property
    def unwrapped(self) -> AsyncEnv[Any, Any]:
        """The environment under all wrappers."""
        return self.env.unwrapped

    async def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[WrapperObsT, dict[str, Any]]:
        """Begin an episode of the inner environment."""
        result = await self.env.reset(seed=seed, options=options)
        return cast("tuple[WrapperObsT, dict[str, Any]]", result)

    async def step(
        self, action: WrapperActT
    ) -> tuple[WrapperObsT, float, bool, bool, dict[str, Any]]:
        """Act once in the inner environment."""
        result = await self.env.step(cast("ActT", action))
        return cast("tuple[WrapperObsT, float, bool, bool, dict[str, Any]]", result)

    async def render(self) -> RenderFrame | list[RenderFrame] | None:
        """Draw the inner environment."""
        return await self.env.render()

    async def close(self) -> None:
        """Close the inner environment."""
        await self.env.close()


class AsyncObservationWrapper(
    AsyncWrapper[WrapperObsT, ActT, ObsT, ActT], Generic[WrapperObsT, ActT, ObsT]
):
    """A wrapper that changes what is observed: implement `observation`, set `observation_space`.

    `observation` may be a coroutine function or an ordinary one, which runs on the event loop.
    """

    async def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[WrapperObsT, dict[str, Any]]:
        """Begin an episode, and change its first observation."""
        observation, info = await self.env.reset(seed=seed, options=options)
        return await _value(self.observation(observation)), info

    async def step(self, action: ActT) -> tuple[WrapperObsT, float, bool, bool, dict[str, Any]]:
        """Act once, and change the observation that follows."""
        observation, reward, terminated, truncated, info = await self.env.step(action)
        seen = await _value(self.observation(observation))
        return seen, reward, terminated, truncated, info

    @abstractmethod
    def observation(self, observation: ObsT) -> WrapperObsT | Awaitable[WrapperObsT]:
        """Return what is observed in place of an observation of the inner environment."""


class AsyncActionWrapper(
    AsyncWrapper[ObsT, WrapperActT, ObsT, ActT], Generic[ObsT, WrapperActT, ActT]
):
    """A wrapper that changes what is done: implement `action`, set `action_space`.

    `action` may be a coroutine function or an ordinary one, which runs on the event loop.
    """

    async def step(self, action: WrapperActT) -> tuple[ObsT, float, bool, bool, dict[str, Any]]:
        """Act once, by the action that the inner environment understands."""
        return await self.env.step(await _value(self.action(action)))

    @abstractmethod
    def action(self, action: WrapperActT) -> ActT | Awaitable[ActT]:
        """Return the inner environment's action for an action from outside."""


class AsyncRewardWrapper(AsyncWrapper[ObsT, ActT, ObsT, ActT], Generic[ObsT, ActT]):
    """A wrapper that changes the reward: implement `reward`.

    `reward` may be a coroutine function or an ordinary one, which runs on the event loop.
    """

    async def step(self, action: ActT) -> tuple[ObsT, float, bool, bool, dict[str, Any]]:
        """Act once, and change the reward."""
        observation, reward, terminated, truncated, info = await self.env.step(action)
        paid = await _value(self.reward(reward))
        return observation, paid, terminated, truncated, info

    @abstractmethod
    def reward(self, reward: float) -> float | Awaitable[float]:
        """Return what is paid in place of a reward of the inner environment."""


async def _value(value: ValueT | Awaitable[ValueT]) -> ValueT:
    if inspect.isawaitable(value):
        return cast("ValueT", await value)
    return value
