"""How a composite grades by one rubric: who grades what, and what is made of the scores."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from math import isfinite
from typing import Any, Generic, NoReturn, TypeAlias, TypeVar

from rolloutlib._exceptions import add_note
from rolloutlib._values import to_float
from rolloutlib.graders._aggregators import Aggregator, bind, is_enough
from rolloutlib.graders._criteria import Criterion
from rolloutlib.graders._made_scores import composed_score
from rolloutlib.graders._rubric import Rubric, columns_of, rubric_label
from rolloutlib.rollouts import RolloutError
from rolloutlib.scores import Score, ScoreValue

InputT = TypeVar("InputT")

Grade: TypeAlias = Callable[[InputT, Criterion], ScoreValue | Awaitable[ScoreValue]]
AsyncGrade: TypeAlias = Callable[[InputT, Criterion], Awaitable[ScoreValue]]

_LARGEST = sys.float_info.max
_ATOMS = frozenset({type(None), bool, int, float, str})


# Criterion, its id, its grader, that one's asynchronous form, the lowest and the highest value of its
# scores, what these are called in error messages. A plain tuple, which is taken apart the fastest.
Part: TypeAlias = tuple[Criterion, str, Grade[InputT], AsyncGrade[InputT], float, float, str]


def make_part(
    criterion: Criterion, grade: Grade[InputT], agrade: AsyncGrade[InputT]
) -> Part[InputT]:
    """Return the part of a criterion; no NaN or infinity lies between its lowest and highest value."""
    low, high = criterion.scale or (-_LARGEST, _LARGEST)
    place = f"the score of criterion {criterion.id!r}"
    return criterion, criterion.id, grade, agrade, low, high, place


class Plan(Generic[InputT]):
    """How a composite grades by one rubric.

    Args:
        rubric: The rubric.
        parts: Its criteria, in their order.
        aggregate: Combines their scores.
        metadata: Goes into each score.
    """

    def __init__(
        self,
        rubric: Rubric,
        parts: Sequence[Part[InputT]],
        aggregate: Aggregator,
        metadata: Mapping[str, Any],
    ) -> None:
        self.rubric = rubric
        self.parts = tuple(parts)
        self._aggregate = aggregate
        self._combine = bind(aggregate, rubric)
        self._metadata = Score(0.0, metadata=metadata).metadata
        self._gated = [(each.id, each.gate) for each in rubric.criteria if each.gate is not None]
        # Lists and dictionaries in metadata can be changed, so that no two scores may share them.
        self._simple = not self._gated and _ATOMS.issuperset(map(type, self._metadata.values()))

    def combine(self, scores: dict[str, Score]) -> Score:
        """Return the composite score of the criteria's scores.

        Raises:
            TypeError: The aggregate is no number.
            ValueError: It is NaN or infinite.
            BaseException: What the aggregation raises.
        """
        value = self._total(self._combine, scores)
        if self._simple:
            return composed_score(value, scores, self._metadata)
        return self._capped(value, scores, {})

    def combine_rest(self, scores: dict[str, Score], failed: Mapping[str, Exception]) -> Score:
        """Return the composite score of the criteria that could be graded.

        Args:
            scores: The scores of these, by criterion id.
            failed: The errors of the others.

        Raises:
            Exception: The first of the errors, if what is left cannot stand for the rubric.
        """
        names = [name for name in columns_of(self.rubric).ids if name in failed]
        rest = tuple([each for each in self.rubric.criteria if each.id not in failed])
        if not rest:
            self._give_up(names, failed, "no criterion")
        rubric = self.rubric.model_copy(update={"criteria": rest})
        if not is_enough(self._aggregate, self.rubric, rubric):
            self._give_up(names, failed, "not enough criteria of every kind")
        value = self._total(bind(self._aggregate, rubric), scores)
        errors = {name: RolloutError.from_exception(failed[name]) for name in names}
        described = {
            name: {"error_type": error.error_type, "error_message": error.error_message}
            for name, error in errors.items()
        }
        metadata = {"num_failed_criteria": len(names), "failed_criteria": described}
        return self._capped(value, scores, metadata)

    def note(self, error: BaseException, name: str) -> None:
        """Tell on an error which criterion it is about."""
        add_note(error, f"while grading criterion {name!r} of {rubric_label(self.rubric)}")

    def _total(
        self, combine: Callable[[Mapping[str, Score]], float], scores: dict[str, Score]
    ) -> float:
        try:
            value = combine(scores)
            if type(value) is float and isfinite(value):
                return value
            return to_float(value, "the aggregate")
        except Exception as error:
            values = {name: score.value for name, score in scores.items()}
            add_note(error, f"while combining {values} by {rubric_label(self.rubric)}")
            raise

    def _capped(self, value: float, scores: dict[str, Score], metadata: dict[str, Any]) -> Score:
        """Apply the gates, and tell of it."""
        shut = {name: gate for name, gate in self._gated if scores[name].value < gate.threshold}
        if shut:
            described = {
                name: {"value": scores[name].value, **gate.model_dump()}
                for name, gate in shut.items()
            }
            metadata = {**metadata, "failed_gates": described, "uncapped_value": value}
            value = min(value, *[gate.cap for gate in shut.values()])
        return Score(value, scores, {**self._metadata, **metadata})

    def _give_up(
        self, names: Sequence[str], failed: Mapping[str, Exception], rest: str
    ) -> NoReturn:
        error = failed[names[0]]
        self.note(error, names[0])
        others = [f"{name!r}: {type(failed[name]).__qualname__}" for name in names[1:]]
        add_note(error, ", ".join([f"of which {rest} could be graded", *others]))
        raise error
