"""Spaces of values that pydantic can describe."""

from __future__ import annotations

import copy
import functools
import json
from abc import abstractmethod
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Generic, TypeAlias, TypeVar, cast, overload

import gymnasium as gym
import numpy as np
from pydantic import TypeAdapter

__all__ = ["PydanticSpace"]

T = TypeVar("T")

Sampler: TypeAlias = Callable[[np.random.Generator], T]
"""Draws a member of a space; all its randomness comes from the generator."""


class PydanticSpace(gym.Space[T], Generic[T]):
    """The values that an annotation describes, by pydantic's strict validation.

    Args:
        annotation: A type, or anything else that `pydantic.TypeAdapter` takes.
        sampler: Draws a member; without one the space cannot be sampled.
        seed: Seeds the generator that the sampler is given.
    """

    @overload
    def __init__(
        self,
        annotation: type[T],
        *,
        sampler: Sampler[T] | None = None,
        seed: int | None = None,
    ) -> None: ...
    @overload
    def __init__(
        self,
        annotation: Any,
        *,
        sampler: Sampler[T] | None = None,
        seed: int | None = None,
    ) -> None: ...
    def __init__(
        self,
        annotation: Any,
        *,
        sampler: Sampler[T] | None = None,
        seed: int | None = None,
    ) -> None:
        self.annotation = annotation
        self.sampler = sampler
        super().__init__(seed=seed)

    @property
    def is_np_flattenable(self) -> bool:
        """Whether Gymnasium can flatten members into arrays: no."""
        return False

    def validate(self, value: object) -> T:
        """Return a member of the space as it is.

        Raises:
            pydantic.ValidationError: The value is no member; the error, a `ValueError`, says why.
        """
        return _adapter(self.annotation).validate_python(value, strict=True)

    def contains(self, x: object) -> bool:
        """Tell whether a value is a member; of no value whatever does this raise."""
        try:
            self.validate(x)
        except Exception:  # whatever a value does that is looked at
            return False
        return True

    def sample(self, mask: Any | None = None, probability: Any | None = None) -> T:
        """Draw a member.

        Raises:
            NotImplementedError: The space has no sampler, or a mask or probability is given.
        """
        self._refuse_masks(mask, probability)
        if self.sampler is None:
            msg = f"{self} has no sampler: pass sampler= to draw values of {self.annotation!r}"
            raise NotImplementedError(msg)
        return self.sampler(self.np_random)

    def to_jsonable(self, sample_n: Iterable[T]) -> list[Any]:
        """Return members as JSON can hold them."""
        adapter = _adapter(self.annotation)
        return [adapter.dump_python(sample, mode="json") for sample in sample_n]

    def from_jsonable(self, sample_n: Sequence[Any]) -> list[T]:
        """Return the members that `to_jsonable` was given.

        Raises:
            pydantic.ValidationError: What was read is no member.
        """
        adapter = _adapter(self.annotation)
        return [adapter.validate_json(json.dumps(sample), strict=True) for sample in sample_n]

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return False
        return self._parts() == cast("PydanticSpace[T]", other)._parts()

    def __repr__(self) -> str:
        name = getattr(self.annotation, "__name__", None) or repr(self.annotation)
        return f"{type(self).__name__}({name})"

    def _parts(self) -> tuple[Any, ...]:
        """What makes two spaces of one class equal."""
        return (self.annotation, self.sampler)

    def _refuse_masks(self, mask: object, probability: object) -> None:
        if mask is not None or probability is not None:
            msg = f"{self} cannot be sampled with a mask or with probabilities"
            raise NotImplementedError(msg)


class StructuredSpace(PydanticSpace[T], Generic[T]):
    """A space that looks at its members itself, where pydantic would be slow or too narrow.

    Members are made of what JSON has; subclasses say what is wrong with a value, and draw members.
    """

    @abstractmethod
    def _problem(self, value: Any) -> str | None:
        """Say why a value is no member, or return None for a member; may raise instead."""

    @abstractmethod
    def _draw(self) -> T:
        """Draw a member."""

    def validate(self, value: object) -> T:
        """Return a member of the space as it is.

        Raises:
            ValueError: The value is no member; the error says why.
        """
        problem = self._problem(value)
        if problem is not None:
            msg = f"not in {self}: {problem}"
            raise ValueError(msg)
        return cast("T", value)

    def contains(self, x: object) -> bool:
        """Tell whether a value is a member; of no value whatever does this raise."""
        try:
            return self._problem(x) is None
        except Exception:  # whatever a value does that is looked at
            return False

    def sample(self, mask: Any | None = None, probability: Any | None = None) -> T:
        """Draw a member.

        Raises:
            NotImplementedError: A mask or a probability is given.
        """
        self._refuse_masks(mask, probability)
        return self._draw()

    def to_jsonable(self, sample_n: Iterable[T]) -> list[Any]:
        """Return members as JSON can hold them: copies."""
        return copy.deepcopy(list(sample_n))

    def from_jsonable(self, sample_n: Sequence[Any]) -> list[T]:
        """Return the members that `to_jsonable` was given.

        Raises:
            ValueError: What was read is no member.
        """
        return [self.validate(sample) for sample in copy.deepcopy(list(sample_n))]

    def _seed_parts(self, seed: int | None, parts: Iterable[gym.Space[Any]]) -> list[int]:
        """Seed the space, then its parts from it; return all seeds."""
        own = super().seed(seed)
        if seed is None:
            return [own, *_flat([part.seed(None) for part in parts])]
        limit = np.iinfo(np.int32).max
        return [own, *_flat([part.seed(int(self.np_random.integers(limit))) for part in parts])]


def _flat(seeds: Any) -> list[int]:
    if isinstance(seeds, dict):
        return _flat(list(cast("dict[Any, Any]", seeds).values()))
    if isinstance(seeds, (list, tuple)):
        return [seed for item in cast("list[Any]", seeds) for seed in _flat(item)]
    return [int(seeds)]


@functools.cache
def _cached_adapter(annotation: Any) -> TypeAdapter[Any]:
    return TypeAdapter(annotation)


def _adapter(annotation: Any) -> TypeAdapter[Any]:
    """Return the validator of an annotation, built once a process where it can be looked up."""
    try:
        return _cached_adapter(annotation)
    except TypeError:  # an annotation that cannot be hashed
        return TypeAdapter(annotation)
