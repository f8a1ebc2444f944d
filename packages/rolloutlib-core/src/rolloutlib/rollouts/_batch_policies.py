"""Functions that choose the actions of many episodes at once: how they are called and read."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import replace
from typing import Generic, Protocol, TypeAlias, cast

import numpy as np

from rolloutlib._values import snapshot
from rolloutlib.rollouts._policies import (
    ActionT,
    ObservationT,
    PolicyActionT,
    PolicyOutput,
    accepted,
)
from rolloutlib.rollouts._versions import version_of

Answer: TypeAlias = ActionT | PolicyOutput[ActionT] | Exception
"""What a batch function says for one observation."""


class BatchPolicy(Protocol[ObservationT, PolicyActionT]):
    """A synchronous batch function: any callable from some observations to as many actions.

    One that declares parameters named `seeds` or `steps` is given, by keyword, lists of the
    episodes' seeds and of the numbers of their steps, from 0, in the order of the observations; None
    stands for what is not known. One with an attribute `version`, an integer or text, has it
    recorded with each action, as it was when the call began.
    """

    def __call__(
        self, observations: list[ObservationT], /
    ) -> Sequence[PolicyActionT | PolicyOutput[PolicyActionT] | Exception]:
        """Choose an action for each observation.

        Args:
            observations: What the environments show, a list of its own of at least one.

        Returns:
            As many entries, in the same order: an action, alone or in a `PolicyOutput`, or an
            exception, which is raised for that episode alone.
        """
        ...


class AsyncBatchPolicy(Protocol[ObservationT, PolicyActionT]):
    """A batch function that may return its entries, or an awaitable of them.

    `seeds`, `steps` and `version` are as for `BatchPolicy`.
    """

    def __call__(
        self, observations: list[ObservationT], /
    ) -> (
        Sequence[PolicyActionT | PolicyOutput[PolicyActionT] | Exception]
        | Awaitable[Sequence[PolicyActionT | PolicyOutput[PolicyActionT] | Exception]]
    ):
        """Choose an action for each observation.

        Args:
            observations: What the environments show, a list of its own of at least one.

        Returns:
            As many entries, in the same order, at once or when awaited: an action, alone or in a
            `PolicyOutput`, or an exception, which is raised for that episode alone.
        """
        ...


class BatchFunction(Generic[ObservationT, ActionT]):
    """A user's batch function: how it is called, and how what it returns is read."""

    def __init__(self, batch: AsyncBatchPolicy[ObservationT, ActionT]) -> None:
        if not callable(cast("object", batch)):
            msg = f"batch must be a function of a sequence of observations, got {batch!r}"
            raise TypeError(msg)
        self.batch = batch
        self._names = accepted(batch, ("seeds", "steps"))

    @property
    def version(self) -> int | str | None:
        return version_of(self.batch)

    def prepare(
        self, seeds: Sequence[int | None], steps: Sequence[int | None]
    ) -> tuple[int | str | None, AsyncBatchPolicy[ObservationT, ActionT]]:
        """Return the version that a batch is begun with, and what to call with its observations."""
        offered = {"seeds": seeds, "steps": steps}
        taken = {name: list(offered[name]) for name in self._names}
        function = functools.partial(self.batch, **taken) if taken else self.batch
        return self.version, cast("AsyncBatchPolicy[ObservationT, ActionT]", function)

    def read(self, result: object, count: int, version: int | str | None) -> list[Answer[ActionT]]:
        """Return what the function returned, entry by entry, and each with the version.

        Raises:
            TypeError: It returned no sequence.
            ValueError: It returned another number of entries than `count`.
        """
        if inspect.iscoroutine(result):
            result.close()
            msg = f"{self.batch!r} is asynchronous, got {result!r}: use AsyncBatchedPolicy"
            raise TypeError(msg)
        if not hasattr(result, "__getitem__") or isinstance(result, (str, bytes, Mapping)):
            msg = f"{self.batch!r} must return a sequence of {count} entries, got {result!r}"
            raise TypeError(msg)
        rows = cast("Sequence[Answer[ActionT]]", result)
        # Rows of an array are views, and the function may write its next batch into it.
        entries = list(snapshot(rows) if isinstance(rows, np.ndarray) else rows)
        if len(entries) != count:
            msg = (
                f"{self.batch!r} must return one entry for each of {count} observations, "
                f"got {len(entries)}"
            )
            raise ValueError(msg)
        return [self._read_entry(entry, version) for entry in entries]

    def _read_entry(self, entry: Answer[ActionT], version: int | str | None) -> Answer[ActionT]:
        if isinstance(entry, Exception):
            return entry
        if isinstance(entry, BaseException):  # `asyncio.gather` returns cancellations, for one
            error = RuntimeError(f"{self.batch!r} gave {entry!r} for an observation")
            error.__cause__ = entry
            return error
        if version is None:
            return entry
        if not isinstance(entry, PolicyOutput):
            return PolicyOutput(entry, version=version)
        output = cast("PolicyOutput[ActionT]", entry)
        return replace(output, version=version) if output.version is None else output
