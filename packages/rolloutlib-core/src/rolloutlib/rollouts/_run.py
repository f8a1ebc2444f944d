"""What the episodes of one call share: what was asked for, and what they have used of it."""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable, Mapping, Sequence
from numbers import Integral
from typing import Any, Generic, Literal, TypeAlias, cast, get_args

import anyio
import gymnasium as gym

from rolloutlib._calls import check_count, is_async
from rolloutlib._values import snapshot
from rolloutlib.envs import AsyncEnv, AsyncFromSync
from rolloutlib.rollouts._caller import Caller
from rolloutlib.rollouts._events import OnEvent, Reporter
from rolloutlib.rollouts._identity import SEED_BITS
from rolloutlib.rollouts._policies import ActionT, ObservationT
from rolloutlib.rollouts._recorder import check_max_steps
from rolloutlib.rollouts._retries import Retry, RetryBudget
from rolloutlib.rollouts._stores import RunStore, Store
from rolloutlib.rollouts._timeouts import Timeouts
from rolloutlib.rollouts._trajectories import ItemT, TrajectoryGroup
from rolloutlib.scores import ScoreValue

OnError: TypeAlias = Literal["record", "raise"]

AnyEnv: TypeAlias = AsyncEnv[ObservationT, ActionT] | gym.Env[ObservationT, ActionT]
AsyncFactory: TypeAlias = Callable[
    [ItemT], AnyEnv[ObservationT, ActionT] | Awaitable[AnyEnv[ObservationT, ActionT]]
]
Group: TypeAlias = TrajectoryGroup[ItemT, ObservationT, ActionT]
GroupGrader: TypeAlias = Callable[[Group[ItemT, ObservationT, ActionT]], Sequence[ScoreValue]]
AsyncGroupGrader: TypeAlias = Callable[
    [Group[ItemT, ObservationT, ActionT]], Sequence[ScoreValue] | Awaitable[Sequence[ScoreValue]]
]


class StalledError(RuntimeError):
    """Raised by `collect` and `acollect` when so many episodes in a row failed that none may succeed.

    Its cause is the last of the failures.
    """


class Failures:
    """Counts episodes that failed in a row, to end a run in which nothing succeeds any more.

    Args:
        most: How many are too many, or None.
    """

    def __init__(self, most: int | None) -> None:
        self._most = most
        self._count = 0

    def reset(self) -> None:
        """Take note of an episode that ended well."""
        self._count = 0

    def add(self, cause: BaseException, *, count: int = 1) -> None:
        """Take note of episodes that failed for good.

        Raises:
            StalledError: Too many of them failed in a row.
        """
        self._count += count
        if self._most is not None and self._count >= self._most:
            msg = (
                f"nothing succeeds any more: {self._count} episodes in a row failed, the last with "
                f"{type(cause).__qualname__}; mend the cause, or raise max_failures"
            )
            raise StalledError(msg) from cause


class Run(Generic[ItemT, ObservationT, ActionT]):
    """The settings and the counts of a run. The arguments are those of `collect`.

    Raises:
        TypeError: An argument has the wrong type.
        ValueError: An argument has no usable value.
    """

    def __init__(
        self,
        make_env: Callable[..., Any],
        caller: Caller[ObservationT, ActionT],
        *,
        num_rollouts: int,
        max_steps: int | None,
        metadata: Mapping[str, Any] | None,
        seed: int | None,
        options: dict[str, Any] | None,
        on_error: OnError,
        retry: Retry | None,
        timeouts: Timeouts | None,
        grade_group: Callable[..., Any] | None,
        on_event: OnEvent | None,
        snapshots: bool,
        inline: bool = False,
        max_failures: int | None = None,
        store: Store | None = None,
    ) -> None:
        if not callable(make_env):
            msg = f"make_env must be a function of an item, got {make_env!r}"
            raise TypeError(msg)
        if grade_group is not None and not callable(grade_group):
            msg = f"grade_group must be a function of a group, got {grade_group!r}"
            raise TypeError(msg)
        for name, value, kind in (("retry", retry, Retry), ("timeouts", timeouts, Timeouts)):
            if value is not None and not isinstance(cast("object", value), kind):
                msg = f"{name} must be a {kind.__name__} or None, got {value!r}"
                raise TypeError(msg)
        check_count("num_rollouts", num_rollouts)
        check_max_steps(max_steps)
        if max_failures is not None:
            check_count("max_failures", max_failures)
        if seed is not None and (not isinstance(cast("object", seed), Integral) or seed < 0):
            msg = f"seed must be a non-negative integer or None, got {seed!r}"
            raise ValueError(msg)
        if on_error not in get_args(OnError):
            msg = f"on_error must be one of {get_args(OnError)}, got {on_error!r}"
            raise ValueError(msg)
        self.make_env = make_env
        self.caller = caller
        self.num_rollouts = num_rollouts
        self.max_steps = max_steps
        self.metadata: dict[str, Any] = snapshot(dict(metadata or {}))
        if store is not None and not isinstance(cast("object", store), Store):
            msg = f"store must be such as rolloutlib.storage.GroupStore(path), got {store!r}"
            raise TypeError(msg)
        if seed is None and store is not None:
            seed = store.read_seed()
        self.seed: int = secrets.randbits(SEED_BITS) if seed is None else int(seed)
        self.options = options
        self.on_error = on_error
        self.timeouts = timeouts
        self.grade_group: Callable[..., Any] | None = grade_group
        self.snapshots = snapshots
        self.inline = inline
        self.retries: RetryBudget = RetryBudget(retry)
        self.reporter: Reporter | None = None if on_event is None else Reporter(on_event)
        self.failures: Failures = Failures(max_failures)
        self.grade_failures: Failures = Failures(max_failures)
        self.abandoned: list[AsyncFromSync[Any, Any]] = []  # in a call as the run was ended
        self.store: RunStore | None = (
            None if store is None else RunStore(store, num_rollouts, self.reporter)
        )

    def refuse_coroutines(self) -> None:
        """Refuse what a synchronous run cannot await.

        Raises:
            TypeError: One of the run's functions is a coroutine function.
        """
        functions = {
            "make_env": self.make_env,
            "policy": self.caller.policy,
            "grade_group": self.grade_group,
        }
        for name, function in functions.items():
            if function is not None and is_async(function):
                msg = (
                    f"{name} is a coroutine function, {function!r}: use arollout_group or acollect"
                )
                raise TypeError(msg)

    async def wait_abandoned(self) -> None:
        """Wait for the calls on threads that the end of the run cut off, as long as for a close."""
        with anyio.move_on_after(self.close_seconds):
            for environment in self.abandoned:
                await environment.wait_abandoned()

    @property
    def close_seconds(self) -> float | None:
        """How long the closing of an asynchronous environment may take."""
        return (self.timeouts or _DEFAULT).close


_DEFAULT = Timeouts()
