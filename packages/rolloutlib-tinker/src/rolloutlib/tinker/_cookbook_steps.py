"""What tinker-cookbook is told of a step."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

from rolloutlib._values import to_float
from rolloutlib.scores import Score

if TYPE_CHECKING:
    import tinker

StopCondition: TypeAlias = list[str] | list[int]
"""What ends an answer: texts, or ids of tokens."""


@dataclass
class CookbookStep:
    """What a step returns: the fields of tinker-cookbook's `StepResult`, old and new, which are read.

    Attributes:
        reward: The reward of the step.
        episode_done: Whether the episode is over.
        next_observation: The next prompt, empty after the last step.
        next_stop_condition: What ends the next answer: texts, or ids of tokens.
        metrics: Numbers, of which the cookbook logs means.
        logs: Texts, which it shows.
    """

    reward: float
    episode_done: bool
    next_observation: tinker.ModelInput
    next_stop_condition: StopCondition
    metrics: dict[str, float] = field(default_factory=dict[str, float])
    logs: dict[str, str | int | float] = field(default_factory=dict[str, str | int | float])


def read_metrics(info: Mapping[str, Any]) -> dict[str, float]:
    """Return the numbers in an info, and those of its score."""
    metrics: dict[str, float] = {}
    for name, fact in info.items():
        with suppress(TypeError, ValueError):  # no number, or none that has a mean
            metrics[name] = to_float(fact, name)
    if (score := Score.from_info(info)) is not None:
        metrics |= score_metrics(score)
    return metrics


def score_metrics(score: Score) -> dict[str, float]:
    """Return the numbers of a score."""
    parts = {f"score/{name}": value for name, value in score.component_values.items()}
    return {"score": score.value, **parts}
