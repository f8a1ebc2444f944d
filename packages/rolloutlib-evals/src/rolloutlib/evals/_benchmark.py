"""Named collections of items, each of which becomes an environment."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar, cast

from rolloutlib._values import to_bool
from rolloutlib.datasets import RLDataset

__all__ = ["Benchmark"]

ItemT = TypeVar("ItemT")


@dataclass(frozen=True)
class Benchmark(Generic[ItemT]):
    """Items, and how to make an environment of one.

    Attributes:
        name: What results are filed under; not empty.
        items: The items, kept as a tuple.
        make_env: Makes a fresh environment of an item.
        metadata: Facts about the benchmark, which its results repeat.
        item_id: Names an item, the same in every run; without it an item is named by its index.
        inline: Whether its environments never block, so that asynchronous runs may call them on the event
            loop; otherwise each synchronous environment has a thread of its own.

    Raises:
        TypeError: A field has the wrong type.
        ValueError: The name is empty.
    """

    name: str
    items: Sequence[ItemT]
    make_env: Callable[[ItemT], Any]
    metadata: Mapping[str, Any] = field(default_factory=dict[str, Any])
    item_id: Callable[[ItemT], str] | None = None
    inline: bool = field(default=False, kw_only=True)

    def __post_init__(self) -> None:
        if not isinstance(cast("object", self.name), str):
            msg = f"the name of a benchmark must be text, got {self.name!r}"
            raise TypeError(msg)
        if not self.name:
            msg = "the name of a benchmark must not be empty"
            raise ValueError(msg)
        for name, value in (("make_env", self.make_env), ("item_id", self.item_id)):
            if not callable(value) and (name, value) != ("item_id", None):
                msg = f"{name} of benchmark {self.name!r} must be callable, got {value!r}"
                raise TypeError(msg)
        if not isinstance(cast("object", self.metadata), Mapping):
            msg = f"metadata of benchmark {self.name!r} must be a mapping, got {self.metadata!r}"
            raise TypeError(msg)
        object.__setattr__(self, "inline", to_bool(self.inline, "inline"))
        object.__setattr__(self, "items", tuple(self.items))
        object.__setattr__(self, "metadata", dict(self.metadata))

    def to_dataset(self) -> RLDataset[ItemT, Any]:
        """Return the items as a data set to train on, in the same environments and by the same names."""
        return RLDataset(
            self.items, dict(self.metadata), make_env=self.make_env, get_item_id=self.item_id
        )
