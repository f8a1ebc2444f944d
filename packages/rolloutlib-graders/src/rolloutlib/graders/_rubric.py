"""What is judged: criteria, and rubrics made of them."""

from __future__ import annotations

import hashlib
import json
import math
from collections import Counter
from collections.abc import Mapping
from functools import cached_property
from typing import Any, ClassVar, Self

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from rolloutlib.scores import Score


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

    @field_validator("id", "description", "kind")
    @classmethod
    def _check_text(cls, value: str) -> str:
        return _text(value)

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
        return tuple([_text(reference) for reference in value])

    @field_validator("metadata")
    @classmethod
    def _check_metadata(cls, value: dict[str, Any]) -> dict[str, Any]:
        return _metadata(value)


class Rubric(BaseModel):
    """What a grader judges by: one criterion or more.

    Immutable, and equal to what comes back from its JSON form. Text is stripped of surrounding
    white space, and must not be empty.

    Attributes:
        id: A name, which scores carry as "rubric_id" in their metadata.
        criteria: The criteria, in the order in which they are graded; their ids differ.
        instructions: What holds for all criteria.
        metadata: Data that JSON can hold, copied; tuples become lists.

    Raises:
        ValidationError: A field has no usable value, or there is no such field; a `ValueError`.
    """

    model_config: ClassVar[ConfigDict] = ConfigDict(extra="forbid", frozen=True)

    id: str | None = None
    criteria: tuple[Criterion, ...] = Field(min_length=1)
    instructions: str | None = None
    metadata: dict[str, Any] = Field(default_factory=dict)

    @field_validator("id", "instructions")
    @classmethod
    def _check_text(cls, value: str | None) -> str | None:
        return None if value is None else _text(value)

    @field_validator("metadata")
    @classmethod
    def _check_metadata(cls, value: dict[str, Any]) -> dict[str, Any]:
        return _metadata(value)

    @model_validator(mode="after")
    def _check_criteria(self) -> Self:
        counts = Counter(criterion.id for criterion in self.criteria)
        repeated = [name for name, count in counts.items() if count > 1]
        if repeated:
            msg = f"criterion ids must differ, got more than one {', '.join(map(repr, repeated))}"
            raise ValueError(msg)
        if not math.isfinite(sum(criterion.weight for criterion in self.criteria)):
            msg = "the weights are too large: their sum is infinite"
            raise ValueError(msg)
        return self

    @property
    def fingerprint(self) -> str:
        """The rubric's content as 64 hexadecimal digits, the same in every process.

        The SHA-256 of the canonical JSON form (sorted keys, no white space, ASCII) of all fields but
        `id`, which names a rubric and changes no grade. Scores carry it as "rubric_fingerprint" in
        their metadata.
        """
        return self._digest

    def criterion(self, criterion_id: str) -> Criterion:
        """Return the criterion of that id.

        Raises:
            KeyError: There is none.
        """
        for criterion in self.criteria:
            if criterion.id == criterion_id:
                return criterion
        ids = [criterion.id for criterion in self.criteria]
        msg = f"no criterion {criterion_id!r} in {rubric_label(self)}, which has {ids}"
        raise KeyError(msg)

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """Return a copy with some fields replaced, unchecked as pydantic does it.

        Args:
            update: The new values of fields.
            deep: Copy what the fields hold, too.
        """
        copied = super().model_copy(update=update, deep=deep)
        vars(copied).pop("_digest", None)  # the copy's content may be another
        return copied

    @cached_property
    def _digest(self) -> str:
        # As any: what a subclass of Criterion adds counts too.
        content = self.model_dump(mode="json", exclude={"id"}, serialize_as_any=True)
        form = json.dumps(content, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(form.encode()).hexdigest()


def rubric_label(rubric: Rubric) -> str:
    """Name a rubric in an error message."""
    return f"rubric {rubric.id!r}" if rubric.id else f"rubric {rubric.fingerprint[:12]}"


def rubric_names(rubric: object) -> dict[str, Any]:
    """Return the metadata of scores that tells the rubric; none if it is not a `Rubric`."""
    if not isinstance(rubric, Rubric):
        return {}
    names = {"rubric_fingerprint": rubric.fingerprint}
    return names if rubric.id is None else {**names, "rubric_id": rubric.id}


def _metadata(metadata: dict[str, Any]) -> dict[str, Any]:
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


def _text(value: str) -> str:
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
