"""What judges cost."""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from rolloutlib.scores import Score


@dataclass(frozen=True, slots=True)
class JudgeUsage:
    """What a judge was asked, and what it used.

    `verdicts + failures` is how often it was asked; `calls - retries` too, unless it was cancelled.
    Usages can be added.

    Attributes:
        verdicts: How many verdicts it gave.
        failures: How often it gave none.
        calls: How often the model was called.
        retries: How many of the calls came after a reply without a verdict.
        prompt_tokens: Tokens that the model read, in the calls whose response tells.
        completion_tokens: Tokens that it wrote, in the same calls.
        untold_calls: How many calls did not tell their tokens.
    """

    verdicts: int = 0
    failures: int = 0
    calls: int = 0
    retries: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    untold_calls: int = 0

    def __add__(self, other: JudgeUsage) -> JudgeUsage:
        return JudgeUsage(**{name: getattr(self, name) + getattr(other, name) for name in _NAMES})

    @classmethod
    def of(cls, score: Score) -> JudgeUsage:
        """Return what the judges of a score and of its components used, as its metadata tells.

        Something else under "judge", as the name of a model, tells nothing.
        """
        told: object = score.metadata.get("judge")
        own = cls()
        if isinstance(told, Mapping):
            counts = cast("Mapping[str, Any]", told)
            if set(counts) == set(_NAMES) and all(type(each) is int for each in counts.values()):
                own = cls(**counts)
        return sum([cls.of(part) for part in score.components.values()], own)

    def to_dict(self) -> dict[str, int]:
        """Return the counts by name, as they stand in the metadata of a judge's score."""
        return dataclasses.asdict(self)


_NAMES = tuple([field.name for field in dataclasses.fields(JudgeUsage)])


class Meter:
    """Adds up usages, from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._usage = JudgeUsage()

    @property
    def usage(self) -> JudgeUsage:
        """What was used until now."""
        return self._usage

    def add(self, usage: JudgeUsage) -> None:
        """Add what was used."""
        with self._lock:
            self._usage += usage
