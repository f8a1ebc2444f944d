"""Scores: what they take, and that nothing of them is lost."""

from __future__ import annotations

import copy
import dataclasses
import json
import pickle
from decimal import Decimal
from fractions import Fraction
from typing import Any, assert_type

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter

from rolloutlib import Score
from rolloutlib.scores import Grader

SCORE = Score(
    0.75,
    {
        "correctness": Score(1.0, feedback="Correct."),
        "format": Score(0.5, {"heading": 0.0}, {"seen": ["a"]}),
    },
    {"rubric_id": "r"},
    feedback="Nearly.",
)


class Tensor:
    def __init__(self, value: Any) -> None:
        self.value = value

    def item(self) -> Any:
        return self.value


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (1, 1.0),
        (True, 1.0),
        (np.float32(0.5), 0.5),
        (np.array([0.5]), 0.5),
        (np.array(2), 2.0),
        (Decimal("0.25"), 0.25),
        (Fraction(1, 8), 0.125),
        (Tensor(0.5), 0.5),
    ],
)
def test_one_number_of_any_library_is_a_value(value: Any, expected: float) -> None:
    score = Score(value, {"part": value})
    assert type(score.value) is float
    assert score.value == expected
    assert score.component_values == {"part": expected}


@pytest.mark.parametrize(
    ("value", "error"),
    [
        (float("nan"), ValueError),
        (float("-inf"), ValueError),
        (np.float64("nan"), ValueError),
        (10**400, ValueError),
        ("1.0", TypeError),
        (None, TypeError),
        (1j, TypeError),
        ([1.0], TypeError),
        (np.array([1.0, 2.0]), TypeError),
        (object(), TypeError),
    ],
)
def test_what_is_not_a_finite_number_is_refused(value: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match=r"^score must be"):
        Score(value)
    with pytest.raises(error, match=r"^component 'part' must be"):
        Score(1.0, {"part": value})


plain = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(codec=None)),
    lambda items: st.lists(items) | st.dictionaries(st.text(), items),
    max_leaves=8,
)
scores = st.recursive(
    st.builds(Score, st.floats(allow_nan=False, allow_infinity=False)),
    lambda parts: st.builds(
        Score,
        st.floats(allow_nan=False, allow_infinity=False),
        st.dictionaries(st.text(), parts, max_size=3),
        st.dictionaries(st.text(), plain, max_size=3),
        feedback=st.none() | st.text(),
    ),
    max_leaves=5,
)


@given(scores)
def test_nothing_is_lost_on_the_way_through_json(score: Score) -> None:
    form = json.loads(json.dumps(score.to_dict(), allow_nan=False))
    assert Score.from_dict(form) == score
    info = json.loads(json.dumps(score.as_info(), allow_nan=False))
    assert Score.from_info(info) == score
    assert pickle.loads(pickle.dumps(score)) == score  # noqa: S301
    assert copy.deepcopy(score) == score
    assert hash(copy.copy(score)) == hash(score)


def test_the_forms_are_those_that_are_documented() -> None:
    assert SCORE.to_dict() == {
        "value": 0.75,
        "components": {
            "correctness": {
                "value": 1.0,
                "components": {},
                "metadata": {},
                "feedback": "Correct.",
            },
            "format": {
                "value": 0.5,
                "components": {"heading": {"value": 0.0, "components": {}, "metadata": {}}},
                "metadata": {"seen": ["a"]},
            },
        },
        "metadata": {"rubric_id": "r"},
        "feedback": "Nearly.",
    }
    assert SCORE.as_info() == {"score": SCORE.to_dict()}
    assert Score.from_dict({"value": 1, "components": {"part": 0.5}}) == Score(1.0, {"part": 0.5})
    assert repr(Score(0.5, {"a": 1.0}, {"m": 1}, feedback="f")) == (
        "Score(0.5, {'a': Score(1.0)}, metadata={'m': 1}, feedback='f')"
    )


def test_metadata_is_made_of_what_json_has() -> None:
    score = Score(
        1.0,
        metadata={
            "tuple": (1, (2,)),
            "array": np.arange(3),
            "scalar": np.float32(0.5),
            "flag": np.bool_(True),
            "score": Score(0.5),
        },
    )
    assert score.metadata == {
        "tuple": [1, [2]],
        "array": [0, 1, 2],
        "scalar": 0.5,
        "flag": True,
        "score": Score(0.5).to_dict(),
    }


@pytest.mark.parametrize(
    ("metadata", "error", "message"),
    [
        ({"raw": object()}, TypeError, r"metadata\['raw'\] is <object"),
        ({"a": [{"b": b"x"}]}, TypeError, r"metadata\['a'\]\[0\]\['b'\] is b'x'"),
        ({"a": {1: 2}}, TypeError, r"metadata\['a'\] has the key 1.*so use '1'"),
        ({"a": float("nan")}, ValueError, r"metadata\['a'\] must be finite, got nan"),
        ({"a": {1, 2}}, TypeError, r"metadata\['a'\] is \{1, 2\}, which JSON cannot hold"),
    ],
)
def test_metadata_that_json_cannot_hold_is_refused_by_its_place(
    metadata: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        Score(1.0, metadata=metadata)


def test_metadata_that_holds_itself_is_refused() -> None:
    cycle: list[Any] = []
    cycle.append(cycle)
    with pytest.raises(ValueError, match="metadata holds itself or is nested too deeply"):
        Score(1.0, metadata={"cycle": cycle})


@pytest.mark.parametrize("value", [[0.5], [], 0, "a"])
def test_components_and_metadata_are_mappings(value: Any) -> None:
    for make in (
        lambda: Score(1.0, value),
        lambda: Score.from_dict({"value": 1.0, "components": value}),
    ):
        with pytest.raises(TypeError, match="components must be a mapping from names to scores"):
            make()
    with pytest.raises(TypeError, match="metadata must be a mapping, got"):
        Score(1.0, metadata=value)
    with pytest.raises(TypeError, match="the form of a score is a mapping, got"):
        Score.from_dict(value)


class Graded(Score):
    """A subclass that a user may make, with a constructor of its own."""

    def __init__(self, right: bool) -> None:
        super().__init__(right, {"a": 1.0}, {"right": [right]}, feedback="f")


def test_a_subclass_is_kept_by_copies() -> None:
    score = Graded(right=True)
    for copied in (copy.deepcopy(score), copy.copy(score), pickle.loads(pickle.dumps(score))):  # noqa: S301
        assert type(copied) is Graded
        assert copied == score


def test_a_score_is_a_snapshot_and_cannot_be_changed() -> None:
    seen, parts = ["a"], {"part": 1.0}
    score = Score(1.0, parts, {"seen": seen})
    seen.append("b")
    parts["part"] = 0.0
    form = score.to_dict()
    form["metadata"]["seen"].append("c")
    assert score == Score(1.0, {"part": 1.0}, {"seen": ["a"]})
    changed: Any = score
    with pytest.raises(dataclasses.FrozenInstanceError, match="cannot assign to field 'value'"):
        changed.value = 2.0
    with pytest.raises(dataclasses.FrozenInstanceError, match="cannot delete field 'value'"):
        del changed.value
    for part in (changed.components, changed.metadata):
        with pytest.raises(TypeError, match="cannot be changed"):
            part["other"] = 1
        with pytest.raises(TypeError, match="cannot be changed"):
            part.update(other=1)
        with pytest.raises(TypeError, match="cannot be changed"):
            part.clear()


def test_a_score_is_a_dataclass_of_plain_parts() -> None:
    assert dataclasses.replace(SCORE, value=1.0) == Score(
        1.0, SCORE.components, SCORE.metadata, feedback="Nearly."
    )
    assert dataclasses.asdict(SCORE)["components"]["format"]["metadata"] == {"seen": ["a"]}
    assert json.loads(json.dumps(dataclasses.asdict(SCORE)))["value"] == 0.75
    assert json.loads(json.dumps(SCORE.metadata)) == {"rubric_id": "r"}
    assert copy.deepcopy(SCORE.components) == SCORE.components
    assert TypeAdapter(list[Score]).validate_python([SCORE]) == [SCORE]


def test_equality_is_of_all_parts() -> None:
    again = Score.from_dict(SCORE.to_dict())
    assert again == SCORE
    assert len({again, SCORE}) == 1
    for other in (
        Score(0.5, SCORE.components, SCORE.metadata, feedback=SCORE.feedback),
        Score(0.75, {}, SCORE.metadata, feedback=SCORE.feedback),
        Score(0.75, SCORE.components, {}, feedback=SCORE.feedback),
        Score(0.75, SCORE.components, SCORE.metadata),
        0.75,
    ):
        assert other != SCORE


def test_a_score_is_found_in_an_info() -> None:
    default = Score(0.5)
    assert Score.from_info({}) is None
    assert Score.from_info({"score": None}) is None
    assert Score.from_info({}, default=default) is default
    assert Score.from_info({"score": SCORE}) is SCORE
    assert Score.from_info(SCORE.as_info(), default=default) == SCORE
    for wrong in (17, "3:2", [1]):
        with pytest.raises(TypeError, match=r"info\['score'\] must be a Score or a mapping, got"):
            Score.from_info({"score": wrong})
    assert_type(Score.from_info({}, default=default), Score)
    assert_type(Score.from_info({}), Score | None)


@pytest.mark.parametrize(
    "form", [{}, {"components": {}}, {"value": 1, "points": 2}, {"value": 1, "Feedback": "x"}]
)
def test_a_form_of_other_keys_is_refused(form: Any) -> None:
    with pytest.raises(ValueError, match="a score has the keys"):
        Score.from_dict(form)


def test_values_become_scores() -> None:
    assert Score.from_value(SCORE) is SCORE
    assert Score.from_value(1) == Score(1.0)
    with pytest.raises(TypeError, match="feedback must be text or None, got 5"):
        Score(1.0, feedback=5)  # pyright: ignore[reportArgumentType]
    with pytest.raises(TypeError, match="component names must be text, got 1"):
        Score(1.0, {1: 1.0})  # pyright: ignore[reportArgumentType]


def test_any_callable_of_the_form_is_a_grader() -> None:
    def grade(answer: str, rubric: object) -> float:
        return float(answer == "42")

    grader: Grader[str, object] = grade
    assert grader("42", None) == 1.0
