"""The user's functions and environments, each with a probe before it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import gymnasium as gym

from rolloutlib._calls import is_async, is_awaitable
from rolloutlib.envs import AsyncEnv, AsyncWrapper
from rolloutlib.rollouts import BatchedPolicy, RolloutEvent
from rolloutlib.rollouts._policies import accepted
from rolloutlib.testing._faults import Episode, Function
from rolloutlib.testing._probe import Call, Probe


@dataclass
class Watch:
    """The life of one environment."""

    probe: Probe
    episode: Episode | None = None
    closed: int = 0

    def begin(self, function: Function) -> Call:
        """Take note of a call that begins."""
        call = self.probe.begin(function, self.episode)
        if self.closed:
            self.probe.problems.append(f"{call.place} was called on a closed environment")
        if function == "close":
            self.closed += 1
        return call


class ProbedEnv(gym.Wrapper[Any, Any, Any, Any]):
    """An environment with a probe before its methods."""

    def __init__(self, env: gym.Env[Any, Any], watch: Watch) -> None:
        super().__init__(env)  # pyright: ignore[reportUnknownMemberType]
        self._watch = watch

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        """Begin an episode."""
        self._watch.episode = self._watch.probe.episode(seed)
        call = self._watch.begin("reset")
        return self._watch.probe.call(call, self.env.reset, seed=seed, options=options)

    def step(self, action: Any) -> Any:
        """Act once."""
        return self._watch.probe.call(self._watch.begin("step"), self.env.step, action)

    def close(self) -> None:
        """Close the environment."""
        self._watch.probe.call(self._watch.begin("close"), self.env.close)


class AsyncProbedEnv(AsyncWrapper[Any, Any, Any, Any]):
    """The asynchronous twin."""

    def __init__(self, env: AsyncEnv[Any, Any], watch: Watch) -> None:
        super().__init__(env)
        self._watch = watch

    async def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        """Begin an episode."""
        self._watch.episode = self._watch.probe.episode(seed)
        call = self._watch.begin("reset")
        return await self._watch.probe.acall(call, self.env.reset, seed=seed, options=options)

    async def step(self, action: Any) -> Any:
        """Act once."""
        return await self._watch.probe.acall(self._watch.begin("step"), self.env.step, action)

    async def close(self) -> None:
        """Close the environment."""
        await self._watch.probe.acall(self._watch.begin("close"), self.env.close)


class Factory:
    """Makes environments with probes, with a user's function `make_env`.

    Attributes:
        opened: What became of each.
        synchronous: Whether they are all synchronous.
    """

    def __init__(self, probe: Probe, make_env: Callable[..., Any]) -> None:
        self.opened: list[Watch] = []
        self.synchronous = True
        self._probe = probe
        self._make_env = make_env

    def __call__(self, item: Any) -> Any:
        """Make an environment, or return an awaitable of one."""
        begun = self._probe.begin("make_env", None)
        made = self._probe.call(begun, self._make_env, item)
        return self._finish(made) if is_awaitable(made) else self._wrap(made)

    async def _finish(self, made: Any) -> Any:
        return self._wrap(await made)

    def _wrap(self, made: Any) -> Any:
        watch = Watch(self._probe)
        if isinstance(made, gym.Env):
            wrapped: Any = ProbedEnv(made, watch)  # pyright: ignore[reportUnknownArgumentType]
        elif isinstance(made, AsyncEnv):
            self.synchronous = False
            wrapped = AsyncProbedEnv(made, watch)  # pyright: ignore[reportUnknownArgumentType]
        else:
            return made  # which the run will complain about
        self.opened.append(watch)
        return wrapped


class AsyncFactory(Factory):
    """The same for a coroutine function."""

    async def __call__(self, item: Any) -> Any:
        """Make an environment."""
        begun = self._probe.begin("make_env", None)
        return self._wrap(await self._probe.acall(begun, self._make_env, item))


class ProbedPolicy:
    """A policy with a probe before it."""

    def __init__(self, probe: Probe, policy: Callable[..., Any]) -> None:
        self._probe = probe
        self._policy = policy
        self._takes = accepted(policy, ("seed", "step"))

    @property
    def version(self) -> Any:
        """The policy's version; without one, it has none here either."""
        return getattr(self._policy, "version")  # noqa: B009 - AttributeError is wanted

    def __call__(self, observation: Any, /, *, seed: Any = None, step: Any = None) -> Any:
        """Choose an action."""
        call = self._probe.begin("policy", self._probe.episode(seed))
        return self._probe.call(call, self._policy, observation, **self._taken(seed, step))

    def _taken(self, seed: Any, step: Any) -> dict[str, Any]:
        offered = {"seed": seed, "step": step}
        return {name: offered[name] for name in self._takes}


class AsyncProbedPolicy(ProbedPolicy):
    """The same for a coroutine function."""

    async def __call__(self, observation: Any, /, *, seed: Any = None, step: Any = None) -> Any:
        """Choose an action."""
        call = self._probe.begin("policy", self._probe.episode(seed))
        return await self._probe.acall(call, self._policy, observation, **self._taken(seed, step))


class ProbedBatchedPolicy(BatchedPolicy[Any, Any]):
    """A policy that plays in lock step, with a probe before each batch."""

    def __init__(self, probe: Probe, policy: BatchedPolicy[Any, Any]) -> None:
        self._probe = probe
        self._policy = policy

    @property
    def version(self) -> int | str | None:
        """The policy's version."""
        return self._policy.version

    def decide_all(self, observations: Sequence[Any], **keywords: Any) -> list[Any]:
        """Choose an action for each observation."""
        call = self._probe.begin("policy", None)
        return self._probe.call(call, self._policy.decide_all, observations, **keywords)


def probed_policy(probe: Probe, policy: Any, *, lock_step: bool) -> Any:
    """Return a policy of the same kind with a probe before it."""
    if lock_step and isinstance(policy, BatchedPolicy):
        return ProbedBatchedPolicy(probe, policy)  # pyright: ignore[reportUnknownArgumentType]
    return (AsyncProbedPolicy if is_async(policy) else ProbedPolicy)(probe, policy)


def probed_factory(probe: Probe, make_env: Callable[..., Any]) -> Factory:
    """Return a function like `make_env` with probes before all that it makes."""
    return (AsyncFactory if is_async(make_env) else Factory)(probe, make_env)


def probed_function(
    probe: Probe, name: Function, function: Callable[..., Any]
) -> Callable[..., Any]:
    """Return a function of one argument of the same kind with a probe before it."""

    def call(argument: Any) -> Any:
        return probe.call(probe.begin(name, None), function, argument)

    async def acall(argument: Any) -> Any:
        return await probe.acall(probe.begin(name, None), function, argument)

    return acall if is_async(function) else call


def probed_listener(
    probe: Probe, on_event: Callable[[RolloutEvent], object] | None
) -> Callable[[RolloutEvent], object]:
    """Return a function that tells the probe how many episodes go on, then calls the user's."""

    def listen(event: RolloutEvent) -> object:
        probe.count_running(event.progress.running)
        if on_event is None:
            return None
        return probe.call(probe.begin("on_event", probe.episode(event.seed)), on_event, event)

    return listen
