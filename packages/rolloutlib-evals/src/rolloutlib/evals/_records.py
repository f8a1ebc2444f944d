"""What became of a sample: a score, or an error, and how it came to that."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias, cast

from rolloutlib._values import snapshot, to_bool
from rolloutlib.rollouts import PolicyOutput, StopReason, Trajectory, TrajectoryGroup
from rolloutlib.scores import Score

__all__ = ["Evaluation", "EvaluationRecord", "Outcome"]

Outcome: TypeAlias = Literal["credited", "wrong", "no_answer", "truncated", "failed"]
"""What became of a sample.

- "failed": it has no score, but an error.
- "truncated": it was cut short, whatever it scored.
- "credited": it scored more than 0; of a score with the component "correct", that did.
- "no_answer": it was not credited since the reply gives no answer, or several, as its score tells.
- "wrong": it was not credited otherwise.
"""


@dataclass(frozen=True)
class Evaluation:
    """What evaluating one item gave.

    Attributes:
        score: The grade; a number becomes a score without parts.
        truncated: Whether the episode was cut short. Its score counts in a result's `score`, and not
            in its `score_completed`.
        metadata: Further facts, of which a copy is kept.

    Raises:
        TypeError: The score is neither a score nor a number, or `truncated` is no flag.
        ValueError: The score is a number but not finite.
    """

    score: Score
    truncated: bool = False
    metadata: Mapping[str, Any] = field(default_factory=dict[str, Any])

    def __post_init__(self) -> None:
        object.__setattr__(self, "score", Score.from_value(self.score))
        object.__setattr__(self, "truncated", to_bool(self.truncated, "truncated"))
        object.__setattr__(self, "metadata", _copied(self.metadata))


@dataclass(frozen=True)
class EvaluationRecord:
    """The outcome of one sample, which is an item in an epoch: a score, or an error.

    What follows `error` is known of samples that a policy has played, not of those of a callback.

    Attributes:
        index: The item's position in its benchmark.
        item_id: What the benchmark's `item_id` gives, else the index as text; None if `item_id`
            failed.
        score: The grade, or None if the sample failed.
        truncated: Whether the episode was cut short, or the reply: within its thinking, or, as the
            policy's stop reason tells, by the most tokens that it may have, a time-out or a fault.
        metadata: What the evaluation said. A failed sample has "error_type" and "traceback", and the
            "phase" in which a policy's sample failed. Where closing the environment failed too,
            "close_error" says how.
        error: The error's message, or None.
        epoch: Which time it is that the item was played, from 0.
        item: The item as plain data: models and data classes are dictionaries, and what a log cannot
            hold is None.
        trajectory: The episode; of a failed one what was played of it, or None.
        output: What the policy had returned for a step that failed, or None. The judge was down, say.
        seed: The seed of the episode, by which it can be played alone.
        attempts: How many attempts were made.
        position: Which sample of its run it is, from 0, in the order in which they are begun.
        started: When the first of them began, in UTC and ISO 8601.
        seconds: How long it took until the last had ended.
    """

    index: int
    item_id: str | None = None
    score: Score | None = None
    truncated: bool = False
    metadata: Mapping[str, Any] = field(default_factory=dict[str, Any])
    error: str | None = None
    epoch: int = field(default=0, kw_only=True)
    item: Any = field(default=None, kw_only=True, repr=False)
    trajectory: Trajectory[Any, Any] | None = field(default=None, kw_only=True, repr=False)
    output: PolicyOutput[Any] | None = field(default=None, kw_only=True, repr=False)
    seed: int | None = field(default=None, kw_only=True)
    attempts: int = field(default=1, kw_only=True)
    position: int | None = field(default=None, kw_only=True)
    started: str | None = field(default=None, kw_only=True)
    seconds: float | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        object.__setattr__(self, "metadata", _copied(self.metadata))

    @classmethod
    def from_group(cls, group: TrajectoryGroup[Any, Any, Any]) -> EvaluationRecord:
        """Return the record of a sample that `read_groups` reads from a log, graded anew or not.

        Raises:
            ValueError: The group is no sample of an evaluation.
        """
        sample: Any = group.item
        if not isinstance(sample, dict) or "epoch" not in sample or group.num_requested != 1:
            msg = f"{group!r} is no sample of an evaluation, but a group of the item {sample!r}"
            raise ValueError(msg)
        sample = cast("dict[str, Any]", sample)
        facts: dict[str, Any] = {
            "epoch": sample["epoch"],
            "item": sample["item"],
            "attempts": 1 + len(group.retried),
            "position": group.metadata.get("position"),
            "started": group.metadata.get("started"),
            "seconds": group.metadata.get("seconds"),
        }
        if group.errors:
            [error] = group.errors
            return cls(
                sample["index"],
                group.item_id,
                metadata={
                    "error_type": error.error_type,
                    "phase": error.phase,
                    "traceback": error.traceback,
                },
                error=error.error_message or error.error_type,
                trajectory=error.trajectory,
                output=error.output,
                seed=error.seed,
                **facts,
            )
        [trajectory], [score] = group.trajectories, group.scores
        return cls(
            sample["index"],
            group.item_id,
            score,
            not trajectory.terminated
            or _status(score) == "truncated"
            or _finish(trajectory) not in (None, "stop", "tool_calls"),
            trajectory.metadata,
            trajectory=trajectory,
            seed=trajectory.seed,
            **facts,
        )

    @property
    def response(self) -> Any:
        """The last action that the policy chose, also if the step then failed; None without one."""
        if self.output is not None:
            return self.output.action
        if self.trajectory is None or not self.trajectory.steps:
            return None
        return self.trajectory.steps[-1].action

    @property
    def outcome(self) -> Outcome:
        """What became of the sample, in one word."""
        if self.score is None:
            return "failed"
        if self.truncated:
            return "truncated"
        if self.score.component_values.get("correct", self.score.value) > 0:
            return "credited"
        return "wrong" if _status(self.score) in ("found", None) else "no_answer"


def _status(score: Score) -> object:
    """Return what became of the extraction of an answer, or None if the score does not tell."""
    return score.metadata.get("status")


def _finish(trajectory: Trajectory[Any, Any]) -> StopReason | None:
    """Return why the sampling of the last action ended, or None if the policy does not tell."""
    return trajectory.steps[-1].policy_finish if trajectory.steps else None


def _copied(metadata: Mapping[str, Any]) -> Mapping[str, Any]:
    if not isinstance(cast("object", metadata), Mapping):
        msg = f"metadata must be a mapping, got {metadata!r}"
        raise TypeError(msg)
    return snapshot(dict(metadata))
