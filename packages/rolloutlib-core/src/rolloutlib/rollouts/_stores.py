"""Where a run keeps its groups, so that another one can go on with them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, TypeAlias, cast, runtime_checkable

import anyio
import anyio.to_thread

from rolloutlib._exceptions import attach
from rolloutlib.rollouts._codec import UnstorableError
from rolloutlib.rollouts._events import EventKind, Reporter
from rolloutlib.rollouts._identity import describe_function, member_seed, same_contents
from rolloutlib.rollouts._trajectories import RolloutError, Trajectory, TrajectoryGroup

AnyGroup: TypeAlias = TrajectoryGroup[Any, Any, Any]


@runtime_checkable
class Store(Protocol):
    """Keeps the groups of a run; `rolloutlib.storage.GroupStore` does it in a file.

    A run calls `read_seed` and `prepare` before anything is played, `load` for each item, `save` for
    each group that it plays, and `finish` if it comes to the end of the items. It calls `close` once
    at its end, whatever that is, but not if no group was asked for. All may be called on several
    threads, one at a time, but for `check`, which asynchronous runs call on the event loop at any time.
    One with a true attribute `inline` is called on the event loop for everything, since it never blocks
    for long: two changes of threads an item cost more than most that it does.
    """

    def read_seed(self) -> int | None:
        """Return the seed of the run that is kept, or None if there is none."""
        ...

    def prepare(self, settings: Mapping[str, Any]) -> None:
        """Get ready, or raise: for lack of space, say, or since a run with other settings is kept."""
        ...

    def check(self, value: object) -> None:
        """Raise an `UnstorableError` if a record, or a value for one, cannot be kept."""
        ...

    def load(self, position: int) -> AnyGroup | None:
        """Return the group of the item at a position, from 0, or None if it is not kept."""
        ...

    def save(self, position: int, group: AnyGroup) -> None:
        """Keep a group that is finished."""
        ...

    def finish(self, num_items: int) -> None:
        """Take note that there are so many items and no more, or raise if groups of more are kept."""
        ...

    def close(self) -> None:
        """Let go of what is held."""
        ...


class RunStore:
    """A run's dealings with its store.

    Args:
        store: The store.
        num_rollouts: How many episodes a group of the run has.
        reporter: Is told of the episodes of groups that were kept.

    Attributes:
        verified: Whether the store was seen to be able to keep what this run's episodes are made of.
    """

    def __init__(self, store: Store, num_rollouts: int, reporter: Reporter | None) -> None:
        self.verified: bool = False
        self._store = store
        self._inline: bool = getattr(store, "inline", False)
        self._num_rollouts = num_rollouts
        self._reporter = reporter
        self._limiter: anyio.CapacityLimiter | None = None

    def prepare(self, settings: Mapping[str, Any], items: object) -> None:
        """Check all that can be checked before anything is played."""
        self._store.prepare(settings)
        if isinstance(items, Sequence) and items:
            self._check(cast("Sequence[Any]", items)[0], "item 0")

    def check(self, trajectory: Trajectory[Any, Any] | None) -> None:
        """Refuse the first step of an episode that cannot be kept, before more of it is paid for."""
        if not self.verified:
            self._check(trajectory, "trajectory")
            self.verified = True

    def find(self, position: int, item: object, item_id: str, seed: int) -> AnyGroup | None:
        """Return the group of an item if it is kept.

        Args:
            position: Which item it is.
            item: The item.
            item_id: Its name.
            seed: The integer that the seeds of its episodes are derived from.

        Raises:
            ValueError: Another group is kept at the position.
            UnstorableError: None is kept, and the item cannot be.
        """
        group = self._load(position, item, item_id, seed)
        self._report(group)
        return group

    async def afind(self, position: int, item: object, item_id: str, seed: int) -> AnyGroup | None:
        """The asynchronous twin of `find`."""
        group = await self._on_thread(self._load, position, item, item_id, seed)
        self._report(group)
        return group

    def keep(self, position: int, group: AnyGroup) -> None:
        """Keep a finished group; it travels with the exception if that fails."""
        try:
            self._store.save(position, group)
        except BaseException as error:
            if isinstance(error, UnstorableError):
                error.path.append(f"group {position}")
            attach(error, group=group)
            raise

    async def akeep(self, position: int, group: AnyGroup) -> None:
        """The asynchronous twin of `keep`, also in a run that is being cancelled."""
        if self._inline:
            self.keep(position, group)
            return
        with anyio.CancelScope(shield=True):
            await self._on_thread(self.keep, position, group)

    def finish(self, num_items: int) -> None:
        """Take note of the end of the items."""
        self._store.finish(num_items)

    async def afinish(self, num_items: int) -> None:
        """The asynchronous twin of `finish`."""
        await self._on_thread(self.finish, num_items)

    def close(self) -> None:
        """Let go of the store."""
        self._store.close()

    async def _on_thread(self, function: Callable[..., Any], *args: Any) -> Any:
        """Call the store, which may block, on a thread; one call at a time."""
        if self._inline:
            return function(*args)
        if self._limiter is None:  # made here, since it belongs to the event loop of the run
            self._limiter = anyio.CapacityLimiter(1)
        return await anyio.to_thread.run_sync(function, *args, limiter=self._limiter)

    def _check(self, value: object, name: str) -> None:
        try:
            self._store.check(value)
        except UnstorableError as error:
            error.path.append(name)
            raise

    def _load(self, position: int, item: object, item_id: str, seed: int) -> AnyGroup | None:
        group = self._store.load(position)
        if group is None:
            self._check(item, f"item {position}")
            return None
        if group.item_id != item_id:
            change = f"was {group.item_id!r} and is {item_id!r}"
        elif not same_contents(group.item, item):
            change = f"was {group.item!r} and is {item!r}, with the id {group.item_id!r}"
        elif _members(group, seed) != list(range(self._num_rollouts)):
            change = "is kept with episodes that are not those of this run"
        else:
            return group
        msg = f"item {position} {change}: go on with the items that the run was begun with"
        raise ValueError(msg)

    def _report(self, group: AnyGroup | None) -> None:
        """Tell of the episodes of a kept group; their steps are not made now, and not counted."""
        reporter = self._reporter
        if group is None or reporter is None:
            return

        def report(kind: EventKind, episode: Trajectory[Any, Any] | RolloutError) -> None:
            is_error = isinstance(episode, RolloutError)
            records: dict[str, Any] = {}
            if kind != "started":
                records["error" if is_error else "trajectory"] = episode
            reporter.report(
                kind,
                item_id=group.item_id,
                index=(episode.index if is_error else episode.member) or 0,
                attempt=episode.attempt,
                seed=episode.seed or 0,
                **records,
            )

        for trajectory in group.trajectories:
            report("started", trajectory)
            report("finished", trajectory)
        for error in group.errors:
            report("started", error)
            if error.phase == "grade" and error.trajectory is not None:
                report("finished", error.trajectory)  # and then its group could not be graded
            report("failed", error)
        for error in group.retried:
            report("retried", error)


def run_settings(run: Any) -> dict[str, Any]:
    """Return the settings of a run that decide what is played, by their names."""
    return {
        "seed": run.seed,
        "make_env": describe_function(run.make_env),
        "num_rollouts": int(run.num_rollouts),  # also one of NumPy's
        "max_steps": None if run.max_steps is None else int(run.max_steps),
        "options": run.options,
        "metadata": run.metadata,
        "grade_group": None if run.grade_group is None else describe_function(run.grade_group),
    }


def _members(group: AnyGroup, seed: int) -> list[int]:
    """Return which members a group has, in order; those alone that have the seed of such."""
    episodes = [
        *[(episode.member, episode.attempt, episode.seed) for episode in group.trajectories],
        *[(error.index, error.attempt, error.seed) for error in group.errors],
    ]
    return sorted(
        member
        for member, attempt, found in episodes
        if member is not None and found == member_seed(seed, group.item_id, member, attempt)
    )
