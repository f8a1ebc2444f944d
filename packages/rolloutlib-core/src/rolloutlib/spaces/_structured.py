"""The base of spaces that look at their members themselves."""

from __future__ import annotations

import copy
from abc import abstractmethod
from collections.abc import Iterable, Sequence
from typing import Any, Generic, TypeVar, cast

import gymnasium as gym
import numpy as np
import pydantic

from rolloutlib.spaces._pydantic import PydanticSpace
from rolloutlib.spaces._seeding import seed_each

T = TypeVar("T")


class StructuredSpace(PydanticSpace[T], Generic[T]):
    """A space that looks at its members itself, where pydantic would be slow or too narrow.

    Subclasses say what is wrong with a value, and draw members. They are equal if the arguments
    that they were made with are, but for the seed.

    Args:
        annotation: The type of the members.
        parts: The spaces that this one is made of, which it seeds.
        seed: Seeds the space and its parts.
    """

    def __init__(
        self, annotation: type[T], *, parts: Iterable[gym.Space[Any]] = (), seed: int | None
    ) -> None:
        self._parts = tuple(parts)
        super().__init__(annotation, seed=seed)
        if isinstance(cast("object", seed), np.random.Generator):
            seed_each(self.np_random, self._parts)

    @abstractmethod
    def _problem(self, value: Any) -> str | None:
        """Say why a value is no member, or return None for a member; may raise instead."""

    @abstractmethod
    def _draw(self) -> T:
        """Draw a member."""

    @abstractmethod
    def _settings(self) -> tuple[Any, ...]:
        """What makes two spaces of one class equal."""

    def validate(self, value: object) -> T:
        """Return a member of the space as it is.

        Raises:
            pydantic.ValidationError: The value is no member; the error, a `ValueError`, says why.
        """
        problem = self._reason(value)
        if problem is not None:
            raise pydantic.ValidationError.from_exception_data(
                type(self).__name__,
                [
                    {
                        "type": "value_error",
                        "input": value,
                        "ctx": {"error": f"not in {self}: {problem}"},
                    }
                ],
            )
        return cast("T", value)

    def contains(self, x: object) -> bool:
        """Tell whether a value is a member; of no value whatever does this raise."""
        try:
            return self._problem(x) is None
        except Exception:  # whatever a value does that is looked at
            return False

    def to_jsonable(self, sample_n: Iterable[T]) -> list[Any]:
        """Return members as JSON can hold them: copies."""
        return copy.deepcopy(list(sample_n))

    def from_jsonable(self, sample_n: Sequence[Any]) -> list[T]:
        """Return the members that `to_jsonable` was given.

        Raises:
            pydantic.ValidationError: What was read is no member.
        """
        return [self.validate(sample) for sample in copy.deepcopy(list(sample_n))]

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return NotImplemented
        return self._settings() == cast("StructuredSpace[T]", other)._settings()

    def _reason(self, value: object) -> str | None:
        try:
            return self._problem(value)
        except Exception as error:  # whatever a value does that is looked at
            return f"looking at it raises {type(error).__name__}"

    def _seed_all(self, seed: int | None) -> list[int]:
        """Seed the space, then its parts from it; return all seeds."""
        own = super().seed(seed)
        return [own, *seed_each(self.np_random, self._parts)]

    def _prepare(self) -> None:
        """Build no validator: none is needed."""
