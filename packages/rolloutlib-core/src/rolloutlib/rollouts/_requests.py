"""What the adapters of model backends have in common: their options, seeds and joint requests."""

from __future__ import annotations

import difflib
import threading
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from typing import Any

from rolloutlib._calls import check_count
from rolloutlib._values import to_float
from rolloutlib.rollouts._identity import derive_seed


class IncompleteAnswers:
    """Counts answers that lack what was asked for; threads may share it.

    Args:
        most: How many there may be; None means any number.
        place: What is asked of which model, for messages.
        error: The kind of error that tells of one too many.

    Attributes:
        count: How many there were.
    """

    def __init__(self, most: int | None, place: str, error: type[Exception]) -> None:
        self.count = 0
        self._most = most
        self._place = place
        self._error = error
        self._lock = threading.Lock()

    def add(self, problem: str) -> None:
        """Count an answer.

        Args:
            problem: What it lacks.

        Raises:
            Exception: There are too many, of the kind given.
        """
        with self._lock:
            self.count += 1
            if self._most is None or self.count <= self._most:
                return
        bound = f"max_incomplete={self._most} lets no further such answer pass, None any"
        msg = f"{self._place} gave an answer with {problem}; {bound}"
        raise self._error(msg)


def check_names(given: Iterable[str], known: Collection[str], otherwise: str) -> None:
    """Refuse arguments of unknown names.

    Args:
        given: The names.
        known: Those that there are.
        otherwise: What to do about a name that is like none of these.

    Raises:
        TypeError: A name is unknown.
    """
    for name in given:
        if name not in known:
            near = difflib.get_close_matches(name, known, 1)
            hint = f"did you mean {near[0]!r}?" if near else otherwise
            msg = f"unknown argument {name!r}: {hint}"
            raise TypeError(msg)


def check_numbers(given: Mapping[str, Any], counts: Mapping[str, int]) -> None:
    """Refuse numbers out of their range; those that are None or not given are left alone.

    Args:
        given: The options, of which "timeout", "temperature" and "top_p" are looked at too.
        counts: The least that each whole number may be.

    Raises:
        TypeError: One is no number, or no whole one.
        ValueError: One is out of its range.
    """
    for name, least in counts.items():
        if given.get(name) is not None:
            check_count(name, given[name], least=least)
    for name in ("timeout", "temperature", "top_p"):
        if given.get(name) is None:
            continue
        number = to_float(given[name], name)
        if number < 0 or (name == "timeout" and not number):
            msg = f"{name} must be {'positive' if name == 'timeout' else 'at least 0'}, got {number!r}"
            raise ValueError(msg)
        if name == "top_p" and number > 1:
            msg = f"top_p must be at most 1, got {number!r}"
            raise ValueError(msg)


def request_seed(options: Mapping[str, Any], seed: int | None, step: int | None) -> int | None:
    """Return the seed of a request, of 31 bits: llama.cpp takes no more than 32.

    Args:
        options: Those of the policy, with "seed" and "send_seed".
        seed: The episode's.
        step: The number of the episode's step.
    """
    own = options.get("seed")
    if options.get("send_seed") is False or (own is None and seed is None):
        return None
    return derive_seed(own or 0, *(part for part in (seed, step) if part is not None))


def pair_up(
    size: int, seeds: Sequence[int | None] | None, steps: Sequence[int | None] | None
) -> list[tuple[int | None, int | None]]:
    """Return the seed and the step of each observation of a batch.

    Args:
        size: How many observations there are.
        seeds: The episodes' seeds, or None.
        steps: The numbers of the episodes' steps, or None.

    Raises:
        ValueError: There are more or fewer of them than observations.
    """
    for name, given in (("seeds", seeds), ("steps", steps)):
        if given is not None and len(given) != size:
            msg = f"{name} must have an entry for each of {size} observations, got {len(given)}"
            raise ValueError(msg)
    none = [None] * size
    each = zip(none if seeds is None else seeds, none if steps is None else steps, strict=True)
    return list(each)


def join_equal(keys: Sequence[Hashable], max_samples: int | None) -> list[list[int]]:
    """Return which positions of a batch make a request together.

    Args:
        keys: Equal for equal prompts; for None, nothing is asked.
        max_samples: The most samples of a request.
    """
    equal: dict[Hashable, list[int]] = {}
    for position, key in enumerate(keys):
        if key is not None:
            equal.setdefault(key, []).append(position)
    size = max_samples or max(len(keys), 1)
    return [
        positions[start : start + size]
        for positions in equal.values()
        for start in range(0, len(positions), size)
    ]
