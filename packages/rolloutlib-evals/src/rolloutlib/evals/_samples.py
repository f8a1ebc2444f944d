"""The samples of a run: items of a benchmark, each once an epoch, with seeds of their own."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from numbers import Integral
from typing import Any, Generic, TypeAlias, TypeVar, cast

from rolloutlib._calls import check_count
from rolloutlib._values import snapshot
from rolloutlib.evals._benchmark import Benchmark
from rolloutlib.evals._plain import fingerprint, to_plain
from rolloutlib.rollouts import derive_seed

__all__ = ["Sample", "Samples", "check_limit", "item_names"]

ItemT = TypeVar("ItemT")

Sample: TypeAlias = dict[str, Any]
"""The "index" of an item in its benchmark, the "epoch" from 0, and the "item" as plain data."""


class Samples(Generic[ItemT]):
    """Which samples a run has, in which order, and with which seeds.

    By default all items are played once before any is played again, so that a run which is stopped early has
    seen as many of them as it could.

    Args:
        benchmark: The benchmark.
        limit: How many items, the first ones of the order; None means all.
        item_ids: Only the items of these names.
        shuffle: Play the items in an order that the seed fixes, not in the benchmark's.
        epochs: How often each item is played.
        seed: What all seeds are derived from.
        by_item: Play all epochs of an item before the next item.

    Attributes:
        benchmark: The benchmark.
        seed: The seed.
        ids: The names of all items of the benchmark.
        item_ids: The names that were asked for, in the order of the items, or None.
        samples: The samples.

    Raises:
        TypeError: An argument has the wrong type.
        ValueError: An argument has no usable value, two items have one name, or a name is of none.
    """

    def __init__(
        self,
        benchmark: Benchmark[ItemT],
        *,
        limit: int | None,
        item_ids: Sequence[str] | None,
        shuffle: bool,
        epochs: int,
        seed: int,
        by_item: bool = False,
    ) -> None:
        check_limit(limit)
        check_count("epochs", epochs)
        check_count("seed", seed, least=0)
        self.benchmark: Benchmark[ItemT] = benchmark
        self.seed = int(seed)
        self.ids: list[str] = item_names(benchmark)
        if isinstance(item_ids, str) or not isinstance(cast("object", item_ids), Iterable | None):
            msg = f"item_ids must be a sequence of names, got {item_ids!r}"
            raise TypeError(msg)
        self.item_ids: list[str] | None = None if item_ids is None else self._known(set(item_ids))
        self._plain: list[Any] = [to_plain(item) for item in benchmark.items]
        indices = self._select(limit, shuffle=shuffle)
        order = [(index, epoch) for epoch in range(epochs) for index in indices]
        if by_item:
            order = [(index, epoch) for index in indices for epoch in range(epochs)]
        self.samples: list[Sample] = [
            {"index": index, "epoch": epoch, "item": self._plain[index]} for index, epoch in order
        ]

    @property
    def fingerprint(self) -> str:
        """Tells the benchmark's items, their names and contents, from others."""
        return fingerprint(self.ids, self._plain)

    def item_id(self, sample: Sample) -> str:
        """Return the name of a sample's item."""
        index: int = sample["index"]
        return self.ids[index]

    def seed_of(self, sample: Sample) -> int:
        """Return a sample's seed, whatever other samples the run has."""
        return derive_seed(self.seed, self.item_id(sample), sample["epoch"])

    def make_env(self, sample: Sample) -> Any:
        """Make the environment of a sample."""
        index: int = sample["index"]
        return self.benchmark.make_env(snapshot(self.benchmark.items[index]))

    def _known(self, wanted: set[str]) -> list[str]:
        """Return names in the order of the items, and each once, so that equal runs have equal ones."""
        if unknown := wanted.difference(self.ids):
            msg = f"benchmark {self.benchmark.name!r} has no items {sorted(unknown, key=str)}"
            raise ValueError(msg)
        return [name for name in self.ids if name in wanted]

    def _select(self, limit: int | None, *, shuffle: bool) -> list[int]:
        indices = list(range(len(self.ids)))
        if self.item_ids is not None:
            wanted = set(self.item_ids)
            indices = [index for index in indices if self.ids[index] in wanted]
        if shuffle:
            indices.sort(key=lambda index: derive_seed(self.seed, "shuffle", self.ids[index]))
        return indices[:limit]


def check_limit(limit: object) -> None:
    """Refuse what is no number of items.

    Raises:
        TypeError: It is neither an integer nor None.
        ValueError: It is negative.
    """
    if limit is None:
        return
    if isinstance(limit, bool) or not isinstance(limit, Integral):
        msg = f"limit must be an integer or None, got {limit!r}"
        raise TypeError(msg)
    if int(limit) < 0:
        msg = f"limit must not be negative, got {limit!r}"
        raise ValueError(msg)


def item_names(benchmark: Benchmark[Any]) -> list[str]:
    """Return the names of a benchmark's items.

    Raises:
        ValueError: Two items have one.
    """
    item_id = benchmark.item_id
    if item_id is None:
        return [str(index) for index in range(len(benchmark.items))]
    ids = [str(item_id(item)) for item in benchmark.items]
    positions: dict[str, int] = {}
    for index, name in enumerate(ids):
        if positions.setdefault(name, index) != index:
            msg = (
                f"the items {positions[name]} and {index} of benchmark {benchmark.name!r} have one "
                f"name, {name!r}: seeds and logs tell items by their names"
            )
            raise ValueError(msg)
    return ids
