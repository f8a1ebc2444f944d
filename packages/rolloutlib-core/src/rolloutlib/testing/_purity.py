"""What a call may leave changed: its arguments, and the random numbers of the whole program."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any, cast

import numpy as np

from rolloutlib._values import same


class RandomState:
    """The state of Python's and of NumPy's global random numbers, when this is made."""

    def __init__(self) -> None:
        self._python = random.getstate()
        self._numpy = np.random.get_state()

    def changed(self) -> list[str]:
        """Name the generators that have been used since."""
        now = RandomState()
        names = ["random"] if now._python != self._python else []
        return [*names, *(["numpy.random"] if not same(now._numpy, self._numpy) else [])]

    def restore(self) -> None:
        """Go back to this state."""
        random.setstate(self._python)
        np.random.set_state(self._numpy)


def seed_all(seed: int) -> None:
    """Seed the global random numbers."""
    random.seed(seed)
    np.random.seed(seed)


def unchanged(before: object, after: object) -> bool:
    """Tell whether an object still has the contents of an earlier copy of it.

    Objects that cannot be compared are compared by their attributes.
    """
    try:
        return _unchanged(before, after)
    except RecursionError:  # it holds itself
        return True


def _unchanged(before: Any, after: Any) -> bool:
    if before is after:
        return True
    if type(before) is not type(after):
        return False
    if isinstance(before, Mapping):
        one, two = cast("Mapping[Any, Any]", before), cast("Mapping[Any, Any]", after)
        return one.keys() == two.keys() and all(_unchanged(one[key], two[key]) for key in one)
    if isinstance(before, (list, tuple)):
        left, right = cast("Sequence[Any]", before), cast("Sequence[Any]", after)
        return len(left) == len(right) and all(map(_unchanged, left, right))
    if type(before).__eq__ is object.__eq__:
        return _unchanged(getattr(before, "__dict__", None), getattr(after, "__dict__", None))
    return same(before, after)
