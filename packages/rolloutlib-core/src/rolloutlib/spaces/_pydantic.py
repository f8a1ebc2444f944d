"""Spaces of values that pydantic can describe."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Generic, TypeAlias, TypeVar, cast, overload

import gymnasium as gym
import numpy as np
import pydantic

from rolloutlib.spaces._seeding import state_with_stream

T = TypeVar("T")

Sampler: TypeAlias = Callable[[np.random.Generator], T]
"""Draws a member of a space; all its randomness comes from the generator."""


class PydanticSpace(gym.Space[T], Generic[T]):
    """The values that an annotation describes, by pydantic's strict validation.

    Strict means that nothing is converted: "1" is no `int`, a list no `tuple`. As pydantic has it,
    a dictionary of a model's fields counts as the model.

    Two spaces are equal if their annotations are.

    Args:
        annotation: A type, or anything else that `pydantic.TypeAdapter` takes.
        sampler: Draws a member; without one the space cannot be sampled.
        seed: Seeds the generator that the sampler is given.

    Raises:
        pydantic.errors.PydanticUserError: Pydantic cannot validate the annotation.
        TypeError: The sampler cannot be called.
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
        if sampler is not None and not callable(sampler):
            msg = f"sampler must be a function of a numpy.random.Generator, got {sampler!r}"
            raise TypeError(msg)
        self.annotation = annotation
        self.sampler = sampler
        self._prepare()
        super().__init__(seed=seed)

    @functools.cached_property
    def adapter(self) -> pydantic.TypeAdapter[T]:
        """Pydantic's validator of the annotation, built once a process."""
        return _adapter(self.annotation)

    @property
    def is_np_flattenable(self) -> bool:
        """Whether Gymnasium can flatten members into arrays: no."""
        return False

    def validate(self, value: object) -> T:
        """Return a member as pydantic reads it: a dictionary of a model's fields as the model.

        Raises:
            pydantic.ValidationError: The value is no member; the error, a `ValueError`, says why.
        """
        return self.adapter.validate_python(value, strict=True)

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
            ValueError: What the sampler draws is no member.
        """
        if mask is not None or probability is not None:
            msg = f"{self} cannot be sampled with a mask or with probabilities"
            raise NotImplementedError(msg)
        return self._draw()

    def to_jsonable(self, sample_n: Iterable[T]) -> list[Any]:
        """Return members as JSON can hold them."""
        return [
            self.adapter.dump_python(
                self.validate(sample), mode="json", by_alias=True, round_trip=True
            )
            for sample in sample_n
        ]

    def from_jsonable(self, sample_n: Sequence[Any]) -> list[T]:
        """Return the members that `to_jsonable` was given.

        Raises:
            pydantic.ValidationError: What was read is no member.
        """
        return [self.adapter.validate_json(json.dumps(sample), strict=True) for sample in sample_n]

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return NotImplemented
        space = cast("PydanticSpace[T]", other)
        # By text too, because `A | B == B | A`, of which pydantic may choose the first. And by what
        # pydantic makes of annotations, because no two `Field(gt=0)` are equal.
        return repr(self.annotation) == repr(space.annotation) and bool(
            self.annotation == space.annotation
            or self.adapter.core_schema == space.adapter.core_schema
        )

    def __getstate__(self) -> dict[str, Any]:
        state = state_with_stream(self)
        state.pop("adapter", None)
        return state

    def __repr__(self) -> str:
        name = getattr(self.annotation, "__name__", None) or repr(self.annotation)
        return f"{type(self).__name__}({name})"

    def _prepare(self) -> None:
        """Find what is wrong with the annotation now, not when the first value is looked at."""
        _ = self.adapter

    def _draw(self) -> T:
        if self.sampler is None:
            msg = f"{self} has no sampler: pass sampler= to draw values of {self.annotation!r}"
            raise NotImplementedError(msg)
        value = self.sampler(self.np_random)
        try:
            return self.validate(value)
        except ValueError as error:
            msg = f"the sampler of {self} drew {value!r}, which is no member"
            raise ValueError(msg) from error


@functools.lru_cache(maxsize=256)
def _cached_adapter(annotation: Any, _text: str) -> pydantic.TypeAdapter[Any]:
    return pydantic.TypeAdapter(annotation)


def _adapter(annotation: Any) -> pydantic.TypeAdapter[Any]:
    """Return the validator of an annotation, built once a process where it can be looked up."""
    try:
        hash(annotation)
    except TypeError:
        return pydantic.TypeAdapter(annotation)
    return _cached_adapter(annotation, repr(annotation))  # the text tells A | B from B | A
