"""Scores, and the protocol of what produces them."""

from __future__ import annotations

from collections.abc import Awaitable, Mapping
from dataclasses import dataclass
from typing import Any, NoReturn, Protocol, TypeAlias, TypeVar, cast, overload

import numpy as np

from rolloutlib._values import snapshot, to_float

__all__ = ["Grader", "Score", "ScoreValue"]

InputT = TypeVar("InputT", contravariant=True)
RubricT = TypeVar("RubricT", contravariant=True)

_FIELDS = frozenset({"value", "components", "metadata", "feedback"})


class _FixedDict(dict[str, Any]):
    """A dictionary that nothing can be added to or taken from; copies and JSON take it as one."""

    def _refuse(self, *args: object, **kwargs: object) -> NoReturn:
        msg = "the parts of a Score cannot be changed: make a new Score"
        raise TypeError(msg)

    __setitem__ = __delitem__ = __ior__ = _refuse  # pyright: ignore[reportAssignmentType]
    clear = pop = popitem = setdefault = update = _refuse  # pyright: ignore[reportAssignmentType]

    def __hash__(self) -> int:  # pyright: ignore[reportIncompatibleVariableOverride]
        return hash(frozenset(self))  # data classes want their fields' defaults to have a hash

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (dict(self),)


_EMPTY: Mapping[str, Any] = _FixedDict()
_MAPPINGS = (dict, Mapping)  # of a dictionary this is known sooner than by the abstract class alone
_set = object.__setattr__


@dataclass(frozen=True, init=False, repr=False, eq=False)
class Score:
    """A graded value, with the named scores that it was made of.

    Immutable, and safe to store as JSON: metadata is copied and checked at construction, so that
    `from_dict(json.loads(json.dumps(score.to_dict())))` equals the score.

    Args:
        value: A finite number; anything that `float` takes for one number (int, bool, Decimal,
            a NumPy or PyTorch scalar), but not text.
        components: Named parts of the grade: scores, or numbers that become scores.
        metadata: Data about the grade that JSON can hold. Tuples become lists; NumPy scalars and
            arrays become numbers and lists.
        feedback: A remark for people, or for the model that is being trained.

    Attributes:
        value: The grade as a float, which environments use as the reward.
        components: A read-only mapping from names to scores.
        metadata: A read-only mapping.
        feedback: Text, or None.

    Raises:
        TypeError: The value, a component or an entry of the metadata has a type that a score cannot
            hold; the message names it.
        ValueError: The value, a component or a number in the metadata is NaN or infinite, or the
            metadata holds itself.
    """

    value: float
    components: Mapping[str, Score] = _EMPTY
    metadata: Mapping[str, Any] = _EMPTY
    feedback: str | None = None

    def __init__(
        self,
        value: float,
        components: Mapping[str, float | Score] | None = None,
        metadata: Mapping[str, Any] | None = None,
        *,
        feedback: str | None = None,
    ) -> None:
        # Most scores are a number alone: what is not given stays with the class.
        _set(self, "value", to_float(value, "score"))
        if components is not None:
            _set(self, "components", _components(components))
        if metadata is not None:
            _set(self, "metadata", _metadata(metadata))
        if feedback is not None:
            if not isinstance(cast("object", feedback), str):
                msg = f"feedback must be text or None, got {feedback!r}"
                raise TypeError(msg)
            _set(self, "feedback", feedback)

    @classmethod
    def from_value(cls, value: float | Score) -> Score:
        """Return a score as it is, and a number as a score without parts."""
        return value if isinstance(value, Score) else cls(value)

    @classmethod
    def from_dict(cls, value: Mapping[str, Any]) -> Score:
        """Read the form that `to_dict` writes; every key but "value" may be left out.

        Raises:
            TypeError: A field has the wrong type.
            ValueError: "value" is missing, or there is a key that no score has.
        """
        if not isinstance(cast("object", value), _MAPPINGS):
            msg = f"the form of a score is a mapping, got {value!r}"
            raise TypeError(msg)
        if "value" not in value or not _FIELDS.issuperset(value):
            msg = f"a score has the keys {sorted(_FIELDS)}, of which 'value' is required; got {dict(value)!r}"
            raise ValueError(msg)
        components: Any = value.get("components")
        if isinstance(components, _MAPPINGS):
            parts = cast("Mapping[str, Any]", components)
            components = {name: _component_from(part) for name, part in parts.items()}
        return cls(
            value["value"],
            components,
            value.get("metadata"),
            feedback=value.get("feedback"),
        )

    @overload
    @classmethod
    def from_info(cls, info: Mapping[str, Any], *, default: Score) -> Score: ...
    @overload
    @classmethod
    def from_info(
        cls, info: Mapping[str, Any], *, default: Score | None = None
    ) -> Score | None: ...
    @classmethod
    def from_info(cls, info: Mapping[str, Any], *, default: Score | None = None) -> Score | None:
        """Return the score that `as_info` put into an environment's info, or the default.

        Raises:
            TypeError: `info["score"]` is neither a score nor the dictionary form of one.
        """
        value = info.get("score")
        if value is None:
            return default
        if isinstance(value, Score):
            return value
        if isinstance(value, _MAPPINGS):
            return cls.from_dict(cast("Mapping[str, Any]", value))
        msg = f"info['score'] must be a Score or a mapping, got {value!r}"
        raise TypeError(msg)

    @property
    def component_values(self) -> dict[str, float]:
        """The values of the components, by name."""
        return {name: score.value for name, score in self.components.items()}

    def to_dict(self) -> dict[str, Any]:
        """Return a form that JSON can hold, a copy; "feedback" is there only if there is any."""
        form: dict[str, Any] = {
            "value": self.value,
            "components": {name: score.to_dict() for name, score in self.components.items()},
            "metadata": snapshot(dict(self.metadata)) if self.metadata else {},
        }
        if self.feedback is not None:
            form["feedback"] = self.feedback
        return form

    def as_info(self) -> dict[str, Any]:
        """Return an entry for an environment's info: the key "score" with `to_dict` under it."""
        return {"score": self.to_dict()}

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Score):
            return NotImplemented
        return (
            self.value == other.value
            and self.components == other.components
            and self.metadata == other.metadata
            and self.feedback == other.feedback
        )

    def __hash__(self) -> int:
        return hash((self.value, self.feedback))

    def __repr__(self) -> str:
        parts = [repr(self.value)]
        if self.components:
            parts.append(repr(self.components))
        if self.metadata:
            parts.append(f"metadata={self.metadata!r}")
        if self.feedback is not None:
            parts.append(f"feedback={self.feedback!r}")
        return f"{type(self).__name__}({', '.join(parts)})"


ScoreValue: TypeAlias = float | Score
"""What a grader may return: a number, or a score that keeps its parts."""


class Grader(Protocol[InputT, RubricT]):
    """Anything callable that grades an input by a rubric, at once or when awaited."""

    def __call__(self, input: InputT, rubric: RubricT, /) -> ScoreValue | Awaitable[ScoreValue]:
        """Grade the input.

        Args:
            input: What is graded: an action, a trajectory, or any context of the application.
            rubric: What is asked for.
        """
        ...


def _components(components: Mapping[Any, Any]) -> Mapping[str, Score]:
    if not isinstance(cast("object", components), _MAPPINGS):
        msg = f"components must be a mapping from names to scores, got {components!r}"
        raise TypeError(msg)
    if not components:
        return _EMPTY
    scores: dict[str, Score] = {}
    for name, part in components.items():
        if not isinstance(name, str):
            msg = f"component names must be text, got {name!r}"
            raise TypeError(msg)
        scores[name] = (
            part if isinstance(part, Score) else Score(to_float(part, f"component {name!r}"))
        )
    return _FixedDict(scores)


def _metadata(metadata: Mapping[str, Any]) -> Mapping[str, Any]:
    if not isinstance(cast("object", metadata), _MAPPINGS):
        msg = f"metadata must be a mapping, got {metadata!r}"
        raise TypeError(msg)
    if not metadata:
        return _EMPTY
    try:
        return _FixedDict(_plain_dict(metadata, "metadata"))
    except RecursionError:
        msg = "metadata holds itself or is nested too deeply, which JSON cannot hold"
        raise ValueError(msg) from None


def _component_from(part: Any) -> Any:
    return Score.from_dict(cast("Any", part)) if isinstance(part, _MAPPINGS) else part


_AS_IT_IS = frozenset({type(None), bool, int, str})


def _plain_dict(value: Mapping[Any, Any], place: str) -> dict[str, Any]:
    plain: dict[str, Any] = {}
    for key, item in value.items():
        if not isinstance(key, str):
            msg = f"{place} has the key {key!r}: JSON keys are text, so use {str(key)!r}"
            raise TypeError(msg)
        plain[key] = item if type(item) in _AS_IT_IS else _plain(item, f"{place}[{key!r}]")
    return plain


def _plain(value: Any, place: str) -> Any:
    """Return a copy of a value in the types that JSON has."""
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return to_float(float(value), place)
    if isinstance(value, Score):
        return value.to_dict()
    if isinstance(value, _MAPPINGS):
        return _plain_dict(cast("Mapping[Any, Any]", value), place)
    if isinstance(value, (list, tuple)):
        items = cast("list[Any]", value)
        return [
            item if type(item) in _AS_IT_IS else _plain(item, f"{place}[{index}]")
            for index, item in enumerate(items)
        ]
    if isinstance(value, np.ndarray):
        return _plain(value.tolist(), place)
    if isinstance(value, np.generic):
        return _plain(value.item(), place)
    msg = f"{place} is {value!r}, which JSON cannot hold: store text, numbers, lists or mappings"
    raise TypeError(msg)
