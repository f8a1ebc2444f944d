"""What is judged: a criterion, the scale of its scores, and what it may do to the total."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any, ClassVar, Self, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from rolloutlib.scores import Score

Scale: TypeAlias = tuple[float, float]
"""The lowest and the highest value that a score may have."""

UNIT: Scale = (0.0, 1.0)


class Gate(BaseModel):
    """What becomes of the total when a criterion fails: it is capped.

    Immutable. A criterion with a gate fails if its score is below the threshold. However good the
    other scores are, `CompositeGrader` then gives at most `cap`, whatever the aggregation, and says so
    in the score's metadata.

    Attributes:
        threshold: The lowest score that passes, on the scale of the criterion's scores.
        cap: The highest total that is possible when the criterion fails.

    Raises:
        ValidationError: A field has no usable value, or there is no such field; a `ValueError`.
    """

    model_config: ClassVar[ConfigDict] = ConfigDict(extra="forbid", frozen=True)

    threshold: float = Field(allow_inf_nan=False)
    cap: float = Field(default=0.0, allow_inf_nan=False)


class Criterion(BaseModel):
    """One thing that is judged.

    Immutable. Text is stripped of surrounding white space, and must not be empty.

    Attributes:
        id: The name of the criterion, and of its score among a composite score's components.
        description: What is asked for.
        weight: How much the criterion counts beside the others; finite, not negative.
        kind: What an aggregation may treat differently: `asymmetric_mean` knows "required",
            "bonus" and "penalty", the other aggregations make no difference.
        references: Texts that a grader may compare with, such as correct answers.
        metadata: Data that JSON can hold, copied; tuples become lists.
        scale: The lowest and the highest value that the criterion's score may have, or None for any
            number. A value outside is an error, not a score. Aggregations count a score by its place
            on the scale.
        gate: Caps the total when the criterion fails, or None. A weight of 0 makes a criterion that
            does nothing else.

    Raises:
        ValidationError: A field has no usable value, or there is no such field; a `ValueError`.
    """

    model_config: ClassVar[ConfigDict] = ConfigDict(extra="forbid", frozen=True)

    id: str
    description: str
    weight: float = Field(default=1.0, ge=0)
    kind: str = "required"
    references: tuple[str, ...] = ()
    metadata: dict[str, Any] = Field(default_factory=dict)
    scale: Scale | None = UNIT
    gate: Gate | None = None

    @field_validator("id", "description", "kind")
    @classmethod
    def _check_text(cls, value: str) -> str:
        return check_text(value)

    @field_validator("weight")
    @classmethod
    def _check_weight(cls, value: float) -> float:
        if not math.isfinite(value):
            msg = f"a weight must be finite, got {value!r}"
            raise ValueError(msg)
        return abs(value)  # no -0.0, which would equal 0.0 and have another fingerprint

    @field_validator("references")
    @classmethod
    def _check_references(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        return tuple([check_text(reference) for reference in value])

    @field_validator("metadata")
    @classmethod
    def _check_metadata(cls, value: dict[str, Any]) -> dict[str, Any]:
        return check_metadata(value)

    @model_validator(mode="after")
    def _check_scale(self) -> Self:
        if self.scale is None:
            return self
        check_scale(self.scale)
        low, high = self.scale
        if self.gate is not None and not low < self.gate.threshold <= high:
            msg = (
                f"the threshold of a gate lies on the scale, above its lowest value {low!r}, which "
                f"would never fail, and not above {high!r}; got {self.gate.threshold!r}"
            )
            raise ValueError(msg)
        return self


def check_scale(scale: Scale) -> None:
    """Refuse what is no scale.

    Raises:
        TypeError: It is no pair of numbers.
        ValueError: It is not a lower and a higher finite number.
    """
    low, high = scale
    if not (math.isfinite(high - low) and low < high):
        msg = f"a scale is a lower and a higher finite number, not infinitely far apart, got {scale!r}"
        raise ValueError(msg)


def check_metadata(metadata: dict[str, Any]) -> dict[str, Any]:
    """Return a copy of metadata that JSON can hold, in Unicode.

    Raises:
        ValueError: JSON cannot hold it.
    """
    plain = plain_metadata(metadata)
    _check_unicode(json.dumps(plain, ensure_ascii=False))
    return plain


def plain_metadata(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Return a copy that JSON can hold, by the rule for the metadata of scores.

    Raises:
        ValueError: JSON cannot hold it; the message says where.
    """
    try:
        return Score(0.0, metadata=metadata).to_dict()["metadata"]
    except TypeError as error:  # pydantic reports errors of values alone
        raise ValueError(*error.args) from error


def check_text(value: str) -> str:
    """Return a text without white space around it.

    Raises:
        ValueError: It is empty, or holds half of a character.
    """
    stripped = value.strip()
    if not stripped:
        msg = "must not be empty"
        raise ValueError(msg)
    _check_unicode(stripped)
    return stripped


def _check_unicode(text: str) -> None:
    """Refuse halves of characters, which pydantic cannot write as JSON."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        msg = f"holds half of a character, {text[error.start]!r}"
        raise ValueError(msg) from error
