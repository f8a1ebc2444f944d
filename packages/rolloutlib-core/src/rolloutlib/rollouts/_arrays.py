"""Token ids and log probabilities: compact in memory, read like the tuples they stand for."""

from __future__ import annotations

from abc import abstractmethod
from array import array
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Generic, Self, TypeVar, cast, overload

import numpy as np
from numpy.typing import NDArray

from rolloutlib.rollouts._array_reading import is_array, read_array, to_float32

NumberT = TypeVar("NumberT", int, float)


class NumberArray(Sequence[NumberT], Generic[NumberT]):
    """An immutable sequence of numbers over a one-dimensional NumPy array.

    Equal to every sequence or array of the same numbers; `numpy.asarray` gives the array itself,
    read-only, without a copy.

    Attributes:
        numbers: The array.
    """

    __slots__ = ("numbers",)

    numbers: NDArray[Any]

    @classmethod
    def view(cls, values: NDArray[Any]) -> Self:
        """Return a sequence over an array, which nobody may write to any more."""
        self = cls.__new__(cls)
        self.numbers = values
        values.flags.writeable = False
        return self

    @classmethod
    @abstractmethod
    def of(cls, values: Iterable[NumberT], name: str) -> Self:
        """Return the values as such a sequence; `name` says in errors what they are."""

    @staticmethod
    def stored(numbers: NDArray[Any]) -> NDArray[Any]:
        """Return many numbers in the smallest type that holds them all."""
        return numbers

    @overload
    def __getitem__(self, index: int) -> NumberT: ...
    @overload
    def __getitem__(self, index: slice) -> Self: ...
    def __getitem__(self, index: int | slice) -> NumberT | Self:
        if isinstance(index, slice):
            return self.view(self.numbers[index])
        return self.numbers[index].item()

    def __len__(self) -> int:
        return len(self.numbers)

    def __iter__(self) -> Iterator[NumberT]:
        return iter(cast("list[NumberT]", self.numbers.tolist()))

    def __eq__(self, other: object) -> bool:
        if isinstance(other, NumberArray):
            return np.array_equal(self.numbers, cast("NumberArray[Any]", other).numbers)
        if isinstance(other, (list, tuple, array, np.ndarray)):
            try:
                # A float64 equals the float32 that is stored for it.
                values = np.asarray(cast("Any", other)).astype(self.numbers.dtype)
            except (TypeError, ValueError, OverflowError):
                return False
            return np.array_equal(self.numbers, values)
        return NotImplemented

    def __add__(self, other: Iterable[NumberT]) -> tuple[NumberT, ...]:
        return (*self, *other)

    def __radd__(self, other: Iterable[NumberT]) -> tuple[NumberT, ...]:
        return (*other, *self)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        if copy is None:
            return np.asarray(self.numbers, dtype=dtype)
        return np.array(self.numbers, dtype=dtype, copy=copy)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self).view, (self.numbers,)

    def __repr__(self) -> str:
        return repr(tuple(self))


_STORED = (np.dtype(np.int32), np.dtype(np.int64))


class TokenIds(NumberArray[int]):
    """Token ids, in a column stored as int32, or as int64 where one needs it."""

    __slots__ = ()

    @classmethod
    def of(cls, values: Iterable[int], name: str) -> TokenIds:
        """Return token ids as a compact sequence, a copy.

        Raises:
            TypeError: The values are not integers in one dimension.
        """
        if isinstance(values, TokenIds):
            return values
        if is_array(values):
            ids = read_array(values, name, "integers", kinds="iu")
            if ids.dtype == np.uint64 and ids.size and ids.max() >= 2**63:
                msg = f"{name} must be integers of at most 64 bits, sign included: got {ids.max()}"
                raise TypeError(msg)
            return cls.view(ids.copy() if ids.dtype in _STORED else ids.astype(np.int64))
        try:
            items = values if isinstance(values, (list, tuple)) else list(values)
            try:
                return cls.view(np.frombuffer(array("i", items), np.int32))
            except OverflowError:
                return cls.view(np.array(array("q", items), np.int64))
        except (TypeError, OverflowError) as error:
            msg = f"{name} must be integers of at most 64 bits: {error}"
            raise TypeError(msg) from error

    @staticmethod
    def stored(numbers: NDArray[Any]) -> NDArray[Any]:
        """Return the ids as int32, or as int64 if one needs it."""
        if numbers.dtype == np.int32 or not numbers.size:
            return numbers.astype(np.int32)
        small = numbers.min() >= -(2**31) and numbers.max() < 2**31
        return numbers.astype(np.int32) if small else numbers

    def __hash__(self) -> int:
        return hash(tuple(self))


class Logprobs(NumberArray[float]):
    """Natural logarithms of probabilities, stored as float32."""

    __slots__ = ()

    @classmethod
    def of(cls, values: Iterable[float], name: str) -> Logprobs:
        """Return log probabilities as a compact sequence, a copy.

        Raises:
            TypeError: The values are not numbers in one dimension; None among them counts as such.
            ValueError: One of them is NaN.
        """
        if isinstance(values, Logprobs):
            return values
        if is_array(values):
            numbers = to_float32(read_array(values, name, "numbers", kinds="fiu"))
        else:
            try:
                items = values if isinstance(values, (list, tuple)) else list(values)
                numbers = np.frombuffer(array("f", items), np.float32)
            except (TypeError, OverflowError) as error:
                msg = f"{name} must be numbers: {error}"
                raise TypeError(msg) from error
        nan = np.isnan(numbers)
        if nan.any():
            msg = f"{name} must not be NaN, but number {int(nan.argmax())} of {len(numbers)} is"
            raise ValueError(msg)
        return cls.view(numbers)


ArrayT = TypeVar("ArrayT", TokenIds, Logprobs)


class ArrayColumn(Sequence["ArrayT | None"], Generic[ArrayT]):
    """One compact array a step, or None, kept as one array for all steps."""

    __slots__ = ("_kind", "_offsets", "_present", "_values")

    def __init__(self, kind: type[ArrayT], arrays: Sequence[ArrayT | None]) -> None:
        present = [item.numbers for item in arrays if item is not None]
        lengths = [0 if item is None else item.numbers.size for item in arrays]
        self._kind = kind
        self._offsets = np.cumsum([0, *lengths], dtype=np.int64)
        self._present = np.array([item is not None for item in arrays], dtype=np.bool_)
        self._values = kind.stored(np.concatenate(present)) if present else np.empty(0)

    @classmethod
    def split(cls, numbers: ArrayT, lengths: Sequence[int | None]) -> Self:
        """Return the column that has all numbers, and so many of them for each step, or None.

        Raises:
            ValueError: There are more or fewer numbers.
        """
        self = cls.__new__(cls)
        self._kind = type(numbers)
        self._offsets = np.cumsum([0, *[length or 0 for length in lengths]], dtype=np.int64)
        self._present = np.array([length is not None for length in lengths], dtype=np.bool_)
        self._values = numbers.numbers
        if self._offsets[-1] != len(numbers) or np.diff(self._offsets).min(initial=0) < 0:
            msg = f"{len(numbers)} numbers cannot be split into so many: {lengths}"
            raise ValueError(msg)
        return self

    @classmethod
    def of_parts(cls, numbers: ArrayT, offsets: NDArray[Any], present: NDArray[np.bool_]) -> Self:
        """Return the column that has these parts, which are not checked; see `parts`."""
        self = cls.__new__(cls)
        self._kind = type(numbers)
        self._offsets, self._present, self._values = offsets, present, numbers.numbers
        return self

    def parts(self) -> tuple[NDArray[Any], NDArray[Any], NDArray[np.bool_]]:
        """Return what the column is made of, to be read only.

        Returns:
            All numbers; where those of each step end, after a zero; whether each step has any array.
        """
        return self._values, self._offsets, self._present

    def joined(self) -> ArrayT:
        """Return the numbers of all steps."""
        return self._kind.view(self._values)

    def lengths(self) -> list[int | None]:
        """Return how many numbers each step has, or None."""
        stops = self._offsets.tolist()
        return [
            stop - start if present else None
            for start, stop, present in zip(stops, stops[1:], self._present.tolist(), strict=False)
        ]

    @overload
    def __getitem__(self, index: int) -> ArrayT | None: ...
    @overload
    def __getitem__(self, index: slice) -> list[ArrayT | None]: ...
    def __getitem__(self, index: int | slice) -> ArrayT | list[ArrayT | None] | None:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        if not self._present[index]:
            return None
        start, stop = self._offsets[:-1][index], self._offsets[1:][index]
        return self._kind.view(self._values[start:stop])

    def arrays(self) -> list[NDArray[Any] | None]:
        """Return the array of each step, or None: views, to be read only."""
        stops = self._offsets.tolist()
        values = self._values
        return [
            values[start:stop] if present else None
            for start, stop, present in zip(stops, stops[1:], self._present.tolist(), strict=False)
        ]

    def __len__(self) -> int:
        return len(self._present)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ArrayColumn):
            return NotImplemented
        column = cast("ArrayColumn[Any]", other)
        return (
            np.array_equal(self._present, column._present)
            and np.array_equal(self._offsets, column._offsets)
            and np.array_equal(self._values, column._values)
        )


def compact(kind: type[ArrayT], arrays: Sequence[Sequence[Any] | None]) -> Sequence[ArrayT | None]:
    """Return one column for the arrays of all steps; they are of the kind, or None, already."""
    if all(item is None for item in arrays):
        return (None,) * len(arrays)
    return ArrayColumn(kind, cast("Sequence[ArrayT | None]", arrays))


def arrays_of(column: Sequence[NumberArray[Any] | None]) -> list[NDArray[Any] | None]:
    """Return the arrays of a column that `compact` made, to be read only; None where unknown."""
    if isinstance(column, ArrayColumn):
        return cast("ArrayColumn[Any]", column).arrays()
    return [None if item is None else item.numbers for item in column]


def lengths_of(column: Sequence[NumberArray[Any] | None]) -> list[int | None]:
    """Return how many numbers each step has in such a column, or None."""
    if isinstance(column, ArrayColumn):
        return cast("ArrayColumn[Any]", column).lengths()
    return [None if item is None else len(item) for item in column]
