"""The environment contracts: Gymnasium's own class, and its asynchronous twin."""

from __future__ import annotations

from abc import ABC, abstractmethod
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, Self

import gymnasium as gym
import numpy as np
from gymnasium import Env
from gymnasium.utils import seeding
from typing_extensions import TypeVar

if TYPE_CHECKING:
    from gymnasium.core import RenderFrame
    from gymnasium.envs.registration import EnvSpec

__all__ = ["AsyncEnv", "Env"]

ObsT = TypeVar("ObsT", default=Any)
ActT = TypeVar("ActT", default=Any)


class AsyncEnv(ABC, Generic[ObsT, ActT]):
    """An environment whose methods are coroutines; the values are those of `gymnasium.Env`.

    Subclasses set `action_space` and `observation_space` and implement `reset` and `step`. One
    instance runs one episode at a time; concurrency belongs across instances. As a context manager
    it closes itself:

        async with SearchEnv() as env:
            observation, info = await env.reset(seed=1)

    Attributes:
        action_space: The space of valid actions.
        observation_space: The space of valid observations.
        metadata: Facts about the environment, such as its "render_modes".
        render_mode: The mode in which `render` draws, or None.
        spec: The specification from which the environment was made, or None.
    """

    metadata: dict[str, Any] = {"render_modes": []}  # noqa: RUF012 - Gymnasium's declaration
    render_mode: str | None = None
    spec: EnvSpec | None = None

    action_space: gym.Space[ActT]
    observation_space: gym.Space[ObsT]

    _np_random: np.random.Generator | None = None
    _np_random_seed: int | None = None

    @abstractmethod
    async def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[ObsT, dict[str, Any]]:
        """Begin an episode.

        An implementation awaits `super().reset(seed=seed)` first, which seeds `np_random`.

        Args:
            seed: A non-negative integer that fixes the environment's randomness, or None to go on
                with the present generator.
            options: What else the environment lets its caller choose for this episode.

        Returns:
            The first observation, and a dictionary of further facts.
        """
        if seed is not None:
            self._np_random, self._np_random_seed = seeding.np_random(seed)

    @abstractmethod
    async def step(self, action: ActT) -> tuple[ObsT, float, bool, bool, dict[str, Any]]:
        """Act once.

        Args:
            action: A member of `action_space`.

        Returns:
            The next observation, the reward, whether the task reached its end (terminated), whether
            the episode was cut short (truncated), and a dictionary of further facts.
        """

    async def render(self) -> RenderFrame | list[RenderFrame] | None:
        """Draw the environment in its `render_mode`.

        Raises:
            NotImplementedError: The environment does not draw itself.
        """
        msg = f"{self} does not implement render()"
        raise NotImplementedError(msg)

    async def close(self) -> None:
        """Release what the environment holds; closing twice does no harm."""

    @property
    def unwrapped(self) -> AsyncEnv[Any, Any]:
        """The environment under all wrappers."""
        return self

    @property
    def np_random(self) -> np.random.Generator:
        """The environment's random generator, seeded at random if no reset seeded it."""
        if self._np_random is None:
            self._np_random, self._np_random_seed = seeding.np_random()
        return self._np_random

    @np_random.setter
    def np_random(self, value: np.random.Generator) -> None:
        self._np_random = value
        self._np_random_seed = -1

    @property
    def np_random_seed(self) -> int:
        """The seed of `np_random`, or -1 if the generator was set from outside."""
        if self._np_random_seed is None:
            self._np_random, self._np_random_seed = seeding.np_random()
        return self._np_random_seed

    def has_wrapper_attr(self, name: str) -> bool:
        """Tell whether the environment, or one that it wraps, has the attribute."""
        return hasattr(self, name)

    def get_wrapper_attr(self, name: str) -> Any:
        """Return the attribute of the outermost environment that has it.

        Raises:
            AttributeError: None of them has it.
        """
        return getattr(self, name)

    def set_wrapper_attr(self, name: str, value: Any, *, force: bool = True) -> bool:
        """Set the attribute on the outermost environment that has it.

        Args:
            name: The attribute.
            value: Its new value.
            force: Set it on the innermost environment if none has it.

        Returns:
            Whether it was set.
        """
        if force or hasattr(self, name):
            setattr(self, name, value)
            return True
        return False

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc_value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()

    def __str__(self) -> str:
        name = type(self).__name__
        return f"<{name} instance>" if self.spec is None else f"<{name}<{self.spec.id}>>"
