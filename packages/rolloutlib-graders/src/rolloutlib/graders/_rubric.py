"""What a grader judges by: rubrics, made of criteria."""

from __future__ import annotations

import hashlib
import json
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from operator import mul
from typing import Any, ClassVar, Self

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from rolloutlib.graders._criteria import UNIT, Criterion, Scale, check_metadata, check_text
from rolloutlib.scores import Score


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
        return None if value is None else check_text(value)

    @field_validator("metadata")
    @classmethod
    def _check_metadata(cls, value: dict[str, Any]) -> dict[str, Any]:
        return check_metadata(value)

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
        `id`, which names a rubric and changes no grade, and but a criterion's `scale` and `gate` where
        they are the default. Scores carry it as "rubric_fingerprint" in their metadata.
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
        for name in ("_digest", "_columns"):  # the copy's content may be another
            vars(copied).pop(name, None)
        return copied

    @cached_property
    def _digest(self) -> str:
        # As any: what a subclass of Criterion adds counts too.
        content = self.model_dump(mode="json", exclude={"id"}, serialize_as_any=True)
        for criterion, form in zip(self.criteria, content["criteria"], strict=True):
            if criterion.scale == UNIT:
                del form["scale"]
            if criterion.gate is None:
                del form["gate"]
        form = json.dumps(content, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(form.encode()).hexdigest()


class Columns:
    """What aggregations need of criteria, all of them or some, looked up once.

    Args:
        criteria: The criteria.

    Attributes:
        ids: Their ids.
        weights: Their weights.
        total: The sum of these.
    """

    __slots__ = ("_scales", "_weighted", "ids", "total", "weights")

    def __init__(self, criteria: Iterable[Criterion]) -> None:
        criteria = tuple(criteria)
        self.ids = tuple([criterion.id for criterion in criteria])
        self.weights = tuple([criterion.weight for criterion in criteria])
        self.total = math.fsum(self.weights)
        self._weighted = any(weight != 1.0 for weight in self.weights)
        scales = [criterion.scale or UNIT for criterion in criteria]
        self._scales: list[Scale] | None = scales if set(scales) - {UNIT} else None

    def places(self, components: Mapping[str, Score]) -> list[float]:
        """Return where the scores stand on their scales, from 0 to 1; without a scale, the score.

        Raises:
            KeyError: A criterion has no score.
        """
        values = [components[name].value for name in self.ids]
        if self._scales is None:
            return values
        return [
            (value - low) / (high - low)
            for value, (low, high) in zip(values, self._scales, strict=True)
        ]

    def sum(self, places: Sequence[float]) -> float:
        """Return the sum of places times weights.

        It is exact, so that the order of the criteria does not show in the last digits.
        """
        return math.fsum(map(mul, self.weights, places) if self._weighted else places)

    def mean(self, components: Mapping[str, Score]) -> float:
        """Return the weighted mean of the places of scores; there has to be a weight."""
        if self._scales is None and not self._weighted:  # the same, for most rubrics, without calls
            return math.fsum([components[name].value for name in self.ids]) / self.total
        return self.sum(self.places(components)) / self.total


def columns_of(rubric: Rubric) -> Columns:
    """Return the columns of all criteria of a rubric, made once."""
    kept = vars(rubric)  # where its fingerprint is kept too
    columns: Columns | None = kept.get("_columns")
    if columns is None:
        columns = kept["_columns"] = Columns(rubric.criteria)
    return columns


def rubric_label(rubric: Rubric) -> str:
    """Name a rubric in an error message."""
    return f"rubric {rubric.id!r}" if rubric.id else f"rubric {rubric.fingerprint[:12]}"


def rubric_names(rubric: object) -> dict[str, Any]:
    """Return the metadata of scores that tells the rubric; none if it is not a `Rubric`."""
    if not isinstance(rubric, Rubric):
        return {}
    names = {"rubric_fingerprint": rubric.fingerprint}
    return names if rubric.id is None else {**names, "rubric_id": rubric.id}
