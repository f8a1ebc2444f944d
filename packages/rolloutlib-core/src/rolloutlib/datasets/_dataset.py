"""Sequences of items, held as they are."""

from __future__ import annotations

import copy
import itertools
import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, Self, SupportsIndex, TypeVar, cast, overload

import numpy as np

ItemT = TypeVar("ItemT")
HeldT = TypeVar("HeldT", covariant=True)
OutputT = TypeVar("OutputT")
EnvT = TypeVar("EnvT")


@dataclass(frozen=True, eq=False)
class Dataset(Sequence[ItemT], Generic[ItemT]):
    """An immutable sequence of items, with facts about the whole.

    Args:
        items: The items. Whatever has a length and takes an integer index is held as it is, without
            a copy, and read when an item is asked for: a Hugging Face `datasets.Dataset`, a NumPy
            array, a sequence of one's own. A list is copied into a tuple, and so is an iterator.
        metadata: Facts about the dataset, such as its name and split.

    Raises:
        TypeError: `items` is a mapping (of splits, perhaps: choose one), or no collection.
    """

    items: Items[ItemT] = ()
    metadata: dict[str, Any] = field(default_factory=dict[str, Any])

    def __post_init__(self) -> None:
        object.__setattr__(self, "items", _held(self.items))
        object.__setattr__(self, "metadata", dict(self.metadata))

    @overload
    def __getitem__(self, index: SupportsIndex) -> ItemT: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[ItemT, ...]: ...
    def __getitem__(self, index: SupportsIndex | slice) -> ItemT | tuple[ItemT, ...]:
        if isinstance(index, slice):
            return tuple([self.items[i] for i in range(*index.indices(len(self)))])
        return self.items[self._position(index)]

    def __len__(self) -> int:
        return len(self.items)

    def __iter__(self) -> Iterator[ItemT]:
        # Not beyond the length, which not all that is read by index minds.
        return itertools.islice(self.items, len(self))

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return NotImplemented
        dataset = cast("Dataset[Any]", other)
        return self._facts() == dataset._facts() and (
            self.items is dataset.items
            or (len(self) == len(dataset) and all(map(_same, self, dataset)))
        )

    def item_id(self, index: int) -> str:
        """Return the name of an item: its position, from 0.

        Args:
            index: The position; a negative one counts from the end.

        Raises:
            IndexError: There is no such item.
        """
        return str(self._position(index))

    def map(self, function: Callable[[ItemT], OutputT]) -> Dataset[OutputT]:
        """Return a dataset of what the function makes of each item, at once."""
        return Dataset([function(item) for item in self], self.metadata)

    def filter(self, predicate: Callable[[ItemT], bool]) -> Self:
        """Return a dataset of the items that the predicate holds for, in order."""
        positions = [position for position, item in enumerate(self) if predicate(item)]
        return self._replaced(items=_selected(self.items, positions))

    def take(self, limit: int | None) -> Self:
        """Return a dataset of the first items, or all of them if the limit is None.

        Raises:
            ValueError: The limit is negative.
        """
        if limit is None:
            return self
        if operator.index(limit) < 0:
            msg = f"limit must not be negative, got {limit!r}"
            raise ValueError(msg)
        return self._replaced(items=_selected(self.items, range(min(limit, len(self)))))

    def with_metadata(self, **metadata: Any) -> Self:
        """Return a dataset of the same items with more facts about it."""
        return self._replaced(metadata={**self.metadata, **metadata})

    def _replaced(self, **fields: object) -> Self:
        """Return a copy with other fields, which needs not the arguments of a subclass."""
        changed = copy.copy(self)
        for name, value in fields.items():
            object.__setattr__(changed, name, value)
        return changed

    def _facts(self) -> tuple[Any, ...]:
        return (self.metadata,)

    def _position(self, index: SupportsIndex) -> int:
        position = operator.index(index)
        if position < 0:
            position += len(self)
        if not 0 <= position < len(self):
            msg = f"index {index!r} is out of range for a dataset of {len(self)} items"
            raise IndexError(msg)
        return position


@dataclass(frozen=True, eq=False)
class RLDataset(Dataset[ItemT], Generic[ItemT, EnvT]):
    """A dataset that knows how to make an environment for each of its items.

    Args:
        items: The items, as in `Dataset`.
        metadata: Facts about the dataset.
        make_env: Makes an environment for an item.
        get_item_id: Names an item; an integer becomes text. By default the position names it,
            which `filter` changes.

    Raises:
        TypeError: As in `Dataset`, or `make_env` or `get_item_id` cannot be called.
    """

    make_env: Callable[[ItemT], EnvT] = field(kw_only=True)
    get_item_id: Callable[[ItemT], str] | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not callable(self.make_env):
            msg = f"make_env must be a function of an item, got {self.make_env!r}"
            raise TypeError(msg)
        if self.get_item_id is not None and not callable(self.get_item_id):
            msg = f"get_item_id must be a function of an item, got {self.get_item_id!r}"
            raise TypeError(msg)

    def item_id(self, index: int) -> str:
        """Return the name of an item.

        Args:
            index: The position; a negative one counts from the end.

        Raises:
            IndexError: There is no such item.
            TypeError: `get_item_id` returned neither text nor an integer.
        """
        if self.get_item_id is None:
            return super().item_id(index)
        item_id = cast("object", self.get_item_id(self[index]))
        if isinstance(item_id, str):
            return item_id
        if isinstance(item_id, SupportsIndex):
            return str(operator.index(item_id))
        msg = f"get_item_id must return text, got {item_id!r} for item {index}"
        raise TypeError(msg)

    def _facts(self) -> tuple[Any, ...]:
        return (self.metadata, self.make_env, self.get_item_id)


class Items(Protocol[HeldT]):
    """What a dataset needs of its items: less than a `Sequence`, so that libraries' own fit."""

    def __len__(self) -> int: ...
    def __getitem__(self, index: int, /) -> HeldT: ...
    def __iter__(self) -> Iterator[HeldT]: ...


class _Selection(Sequence[ItemT], Generic[ItemT]):
    """Some items of a sequence, in place."""

    def __init__(self, items: Items[ItemT], positions: Sequence[int]) -> None:
        self._items = items
        self._positions = positions

    @overload
    def __getitem__(self, index: int) -> ItemT: ...
    @overload
    def __getitem__(self, index: slice) -> _Selection[ItemT]: ...
    def __getitem__(self, index: int | slice) -> ItemT | _Selection[ItemT]:
        if isinstance(index, slice):
            return _Selection(self._items, self._positions[index])
        return self._items[self._positions[index]]

    def __len__(self) -> int:
        return len(self._positions)

    def __repr__(self) -> str:
        return f"<{len(self)} of {len(self._items)} items>"


def _selected(items: Items[ItemT], positions: Sequence[int]) -> Sequence[ItemT]:
    if isinstance(items, tuple):
        return tuple([items[position] for position in positions])
    return _Selection(items, positions)


def _same(one: Any, two: Any) -> bool:
    """Compare two items, of which arrays would compare element by element."""
    if isinstance(one, np.ndarray):
        return np.array_equal(cast("Any", one), two)
    return bool(one == two)


def _held(items: Any) -> Items[Any]:
    if isinstance(items, (Mapping, str, bytes)):
        msg = f"items must be a sequence of items, got {cast('object', items)!r}"
        raise TypeError(msg)
    if isinstance(items, Dataset):
        return cast("Dataset[Any]", items).items
    if isinstance(items, list) or not (hasattr(items, "__len__") and hasattr(items, "__getitem__")):
        if not isinstance(items, Iterable):
            msg = f"items must be a sequence of items, got {items!r}"
            raise TypeError(msg)
        return tuple(cast("Iterable[Any]", items))
    return items
