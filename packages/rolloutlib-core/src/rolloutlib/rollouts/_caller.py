"""How policies are called: on which thread, and with what beside the observation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, cast

from rolloutlib._calls import call, is_async
from rolloutlib.rollouts._policies import (
    ActionT,
    AsyncPolicy,
    ObservationT,
    Policy,
    accepted,
)
from rolloutlib.rollouts._recorder import Recorder
from rolloutlib.rollouts._versions import version_of


class Caller(Generic[ObservationT, ActionT]):
    """Looks once at a policy, for all episodes of a run.

    Args:
        policy: The policy.

    Raises:
        TypeError: It cannot be called.
    """

    def __init__(
        self, policy: Policy[ObservationT, ActionT] | AsyncPolicy[ObservationT, ActionT]
    ) -> None:
        if not callable(policy):
            msg = f"a policy must be callable, got {policy!r}"
            raise TypeError(msg)
        self.policy = policy
        self._takes = accepted(policy, ("seed", "step"))
        self._has_version = hasattr(policy, "version")

    def bind(self, recorder: Recorder[ObservationT, ActionT]) -> Callable[[ObservationT], Any]:
        """Return the policy as one of the observation alone, for the episode of a recorder."""
        if not self._takes and not self._has_version:
            return self.policy
        policy = cast("Any", self.policy)

        def bound(observation: ObservationT) -> Any:
            if self._has_version:
                recorder.stamp(version_of(policy))
            keywords: dict[str, Any] = {}
            if "seed" in self._takes:
                keywords["seed"] = recorder.seed
            if "step" in self._takes:
                keywords["step"] = recorder.num_steps
            return policy(observation, **keywords)

        return bound


class AsyncCaller(Caller[ObservationT, ActionT]):
    """The same in asynchronous code, where a policy that is not a coroutine function may block.

    Args:
        policy: The policy.
        inline: Call it on the event loop, whatever it is.
    """

    def __init__(self, policy: AsyncPolicy[ObservationT, ActionT], *, inline: bool) -> None:
        super().__init__(policy)
        self._on_loop = inline or is_async(policy)

    def bind(self, recorder: Recorder[ObservationT, ActionT]) -> Callable[[ObservationT], Any]:
        """Return a function that gives the policy's choice, or an awaitable of it."""
        bound = super().bind(recorder)
        return bound if self._on_loop else lambda observation: call(bound, observation)
