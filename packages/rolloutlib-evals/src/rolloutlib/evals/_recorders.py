"""Keeping the samples of several benchmarks that are played in one run."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from rolloutlib.evals._recorder import AnyGroup, Recorder
from rolloutlib.evals._results import BenchmarkResult
from rolloutlib.evals._samples import Sample
from rolloutlib.evals._stopping import Stopping

__all__ = ["Recorders"]

Place: TypeAlias = tuple[int, Sample]
"""Which of the benchmarks it is, from 0, and a sample of it: an item of the run."""


class Recorders:
    """The recorders of several benchmarks as one: to the engine they are one store.

    Args:
        recorders: Their samples are begun one recorder after the other, in this order.
    """

    def __init__(self, recorders: Sequence[Recorder]) -> None:
        self.inline = True
        self._recorders = recorders
        self._begun: list[tuple[int, int]] = []  # by position: whose sample, and its position there
        self._counts = [0] * len(recorders)

    @property
    def prepared(self) -> bool:
        """Whether all was found to be in order, and the run is about to begin."""
        return all(recorder.prepared for recorder in self._recorders)

    @property
    def stoppings(self) -> Sequence[Stopping]:
        """What tells when the benchmarks may stop early, if anything does."""
        return [stopping for recorder in self._recorders for stopping in recorder.stoppings]

    @property
    def samples(self) -> _Places:
        """The samples to play. They have a length, as what need not be read on a thread."""
        return _Places(self._places, sum(len(recorder.samples) for recorder in self._recorders))

    def item_id(self, place: Place) -> str:
        """Return the name of a sample's item."""
        return self._recorders[place[0]].item_id(place[1])

    def seed_of(self, place: Place) -> int:
        """Return a sample's seed."""
        return self._recorders[place[0]].seed_of(place[1])

    def make_env(self, place: Place) -> Any:
        """Make the environment of a sample."""
        return self._recorders[place[0]].make_env(place[1])

    async def amake_env(self, place: Place) -> Any:
        """The asynchronous twin of `make_env`."""
        return await self._recorders[place[0]].amake_env(place[1])

    def results(self) -> dict[str, BenchmarkResult]:
        """Return the figures so far of the benchmarks that were begun, in their order."""
        num_begun = 1 + max((number for number, _ in self._begun), default=0)
        results = [recorder.results() for recorder in self._recorders[:num_begun]]
        return {name: result for each in results for name, result in each.items()}

    def rescue(self, group: AnyGroup) -> None:
        """Record a sample that has ended and that an exception kept from being handed out."""
        number: int = group.item[0]
        self._recorders[number].rescue(_unplaced(group))

    def read_rest(self) -> None:
        """Take what the logs have of a run that was stopped before it asked for all of it."""
        for recorder in self._recorders:
            recorder.read_rest()

    def read_seed(self) -> int | None:
        """Return the seed of the run."""
        return self._recorders[0].read_seed()

    def prepare(self, settings: Mapping[str, Any]) -> None:
        """Begin the logs, or check that they are those of this very run."""
        for recorder in self._recorders:
            recorder.prepare(settings)

    def check(self, value: object) -> None:
        """Refuse what the logs cannot hold."""
        self._recorders[0].check(value)

    def load(self, position: int) -> AnyGroup | None:
        """Return a sample that a log has."""
        number, position = self._begun[position]
        group = self._recorders[number].load(position)
        return None if group is None else dataclasses.replace(group, item=(number, group.item))

    def save(self, position: int, group: AnyGroup) -> None:
        """Keep a sample that has ended."""
        number, position = self._begun[position]
        self._recorders[number].save(position, _unplaced(group))

    def finish(self, num_items: int) -> None:
        """Take note of the end of the samples."""
        del num_items  # of all
        for recorder, count in zip(self._recorders, self._counts, strict=True):
            recorder.finish(count)

    def close(self) -> None:
        """Let go of the logs."""
        with contextlib.ExitStack() as stack:  # whatever one raises
            for recorder in self._recorders:
                stack.callback(recorder.close)

    def _places(self) -> Iterator[Place]:
        for number, recorder in enumerate(self._recorders):
            for sample in recorder.samples:
                self._begun.append((number, self._counts[number]))
                self._counts[number] += 1
                yield number, sample


class _Places:
    def __init__(self, places: Callable[[], Iterator[Place]], length: int) -> None:
        self._places = places
        self._length = length

    def __len__(self) -> int:
        return self._length

    def __iter__(self) -> Iterator[Place]:
        return self._places()


def _unplaced(group: AnyGroup) -> AnyGroup:
    """Return a group of a sample, as the recorder of its benchmark knows it."""
    return dataclasses.replace(group, item=group.item[1])
