"""`CompositeGrader`: what its score is made of, and what it refuses before anything is spent."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from decimal import Decimal
from functools import partial
from typing import Any

import anyio
import anyio.lowlevel
import gymnasium as gym
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rolloutlib import GradingWrapper, SingleTurnEnv
from rolloutlib.graders import (
    CompositeGrader,
    Criterion,
    Rubric,
    Score,
    all_pass,
    asymmetric_mean,
    weighted_sum,
)

pytestmark = pytest.mark.anyio

Values = Mapping[str, Any]


def make_rubric(*names: str, rubric_id: str | None = "R") -> Rubric:
    return Rubric(id=rubric_id, criteria=tuple(Criterion(id=n, description="d") for n in names))


def look_up(values: Values, criterion: Criterion) -> Any:
    return values[criterion.id]


async def alook_up(values: Values, criterion: Criterion) -> Any:
    await anyio.lowlevel.checkpoint()
    return values[criterion.id]


class Counting:
    """A grader that counts its calls."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, input: object, criterion: Criterion) -> float:
        self.calls += 1
        return 1.0


RUBRIC = make_rubric("a", "b")


def test_a_composite_score_keeps_the_criteria_s_scores_and_names_the_rubric() -> None:
    detailed = Score(0.5, {"part": 1.0}, {"k": 1}, feedback="so so")
    score = CompositeGrader(look_up, metadata={"judge": 7}).score({"a": detailed, "b": 1}, RUBRIC)
    assert score == Score(
        0.75,
        {"a": detailed, "b": 1.0},
        {"rubric_id": "R", "rubric_fingerprint": RUBRIC.fingerprint, "judge": 7},
    )


def test_a_rubric_without_id_is_named_by_its_fingerprint_alone() -> None:
    rubric = make_rubric("a", rubric_id=None)
    score = CompositeGrader(look_up).score({"a": 1}, rubric)
    assert score.metadata == {"rubric_fingerprint": rubric.fingerprint}


def test_metadata_of_the_grader_comes_before_the_rubric_s_names_and_is_a_copy() -> None:
    given_metadata: dict[str, Any] = {"rubric_id": "mine", "list": [1]}
    grader = CompositeGrader(look_up, metadata=given_metadata)
    given_metadata["list"].append(2)
    metadata = grader.score({"a": 1, "b": 1}, RUBRIC).metadata
    assert (metadata["rubric_id"], metadata["list"]) == ("mine", [1])


def test_calling_a_composite_is_scoring() -> None:
    grader = CompositeGrader(look_up)
    assert grader({"a": 1, "b": 0}, RUBRIC) == grader.score({"a": 1, "b": 0}, RUBRIC)


def test_one_composite_serves_rubrics_with_and_without_an_override() -> None:
    composite = CompositeGrader[object](lambda *_: 0.0, overrides={"a": lambda *_: 1.0})
    other = Rubric(criteria=(Criterion(id="c", description="Of its own."),))
    assert composite.score(None, RUBRIC).component_values == {"a": 1.0, "b": 0.0}
    assert composite.score(None, other).component_values == {"c": 0.0}


def test_overrides_come_before_the_grader_and_before_a_mapping() -> None:
    def half(input: object, criterion: Criterion) -> float:
        return 0.5

    values = {"a": 1, "b": 1}
    for grader in (look_up, {"a": look_up, "b": look_up}, {"a": look_up}):
        composite = CompositeGrader[Values](grader, overrides={"b": half})
        assert composite.score(values, RUBRIC).component_values == {"a": 1.0, "b": 0.5}


def test_names_are_those_of_the_criteria_with_a_grader_of_their_own() -> None:
    assert CompositeGrader(look_up).names == ()
    assert CompositeGrader(look_up, overrides={"b": look_up}).names == ("b",)
    mapping = {"z": look_up, "a": look_up}
    assert CompositeGrader(mapping, overrides={"b": look_up, "a": look_up}).names == ("z", "a", "b")


def test_a_mapping_may_serve_several_rubrics_in_turn() -> None:
    grader = CompositeGrader({"a": look_up, "b": look_up, "c": look_up})
    values = {"a": 1, "b": 0, "c": 0.5}
    for names in (("a", "b"), ("c",), ("a", "b")):
        assert list(grader.score(values, make_rubric(*names)).components) == list(names)


@pytest.mark.parametrize(
    ("aggregate", "value"),
    [
        (weighted_sum, 1.5),
        (all_pass, 0.0),
        (partial(asymmetric_mean, bonus_weight=2.0), 0.75),
        (lambda rubric, scores: min(score.value for score in scores.values()), 0.5),
        (lambda rubric, scores: np.float32(len(rubric.criteria)), 2.0),
    ],
)
def test_the_aggregation_is_a_choice(aggregate: Any, value: float) -> None:
    assert (
        CompositeGrader(look_up, aggregate=aggregate).score({"a": 1, "b": 0.5}, RUBRIC).value
        == value
    )


@pytest.mark.parametrize(
    ("result", "value"),
    [(1, 1.0), (np.float32(0.5), 0.5), (np.array([0.5]), 0.5), (Decimal("0.5"), 0.5)],
)
async def test_numbers_of_any_kind_become_scores(result: object, value: float) -> None:
    grader = CompositeGrader(look_up)
    assert grader.score({"a": result, "b": 0}, RUBRIC).components["a"] == Score(value)
    assert await grader.ascore({"a": result, "b": 0}, RUBRIC) == grader.score(
        {"a": result, "b": 0}, RUBRIC
    )


@pytest.mark.parametrize(
    ("result", "error"),
    [
        (math.nan, ValueError),
        (math.inf, ValueError),
        ("1", TypeError),
        (None, TypeError),
        ((1.0,), TypeError),
        (np.array([1.0, 2.0]), TypeError),
        (True, TypeError),
        (np.False_, TypeError),
        (np.array([True]), TypeError),
        (1.0000001, ValueError),
        (-1, ValueError),
        (np.float32(2), ValueError),
        (Decimal("9e124"), ValueError),
        (Score(2.0), ValueError),
    ],
)
async def test_what_is_not_a_score_is_refused_by_the_criterion_s_name(
    result: object, error: type[Exception]
) -> None:
    grader = CompositeGrader(look_up)
    with pytest.raises(error, match="the score of criterion 'b' must be"):
        grader.score({"a": 1, "b": result}, RUBRIC)
    with pytest.raises(error, match="the score of criterion 'b' must be"):
        await grader.ascore({"a": 1, "b": result}, RUBRIC)


@pytest.mark.parametrize("grader", [alook_up, lambda *_: alook_up({"a": 1}, RUBRIC.criteria[0])])
def test_score_refuses_an_asynchronous_grader_and_leaves_no_coroutine_behind(grader: Any) -> None:
    with pytest.raises(TypeError, match="score of criterion 'a' has to be awaited: use ascore"):
        CompositeGrader(grader).score({"a": 1, "b": 1}, RUBRIC)


async def test_a_grader_s_own_error_comes_out_with_a_note_that_names_the_criterion() -> None:
    grader = CompositeGrader(look_up)
    with pytest.raises(KeyError) as caught:
        grader.score({"a": 1}, RUBRIC)
    assert caught.value.__notes__ == ["while grading criterion 'b' of rubric 'R'"]
    with pytest.raises(KeyError) as acaught:
        await grader.ascore({"a": 1}, RUBRIC)
    assert acaught.value.__notes__ == caught.value.__notes__


@dataclasses.dataclass(frozen=True)
class FrozenError(Exception):
    """Takes no notes."""

    code: int


@pytest.mark.parametrize("asynchronous", [False, True])
async def test_an_error_that_takes_no_notes_comes_out_too(asynchronous: bool) -> None:
    def grade(values: object, criterion: Criterion) -> float:
        raise FrozenError(7)

    async def agrade(values: object, criterion: Criterion) -> float:
        raise FrozenError(7)

    grader = CompositeGrader(agrade if asynchronous else grade)
    with pytest.raises(FrozenError):
        await grader.ascore("x", RUBRIC)
    with pytest.raises(TypeError if asynchronous else FrozenError):
        grader.score("x", RUBRIC)


@pytest.mark.parametrize("result", [math.nan, None, Score(1.0)])
def test_an_aggregate_that_is_no_number_is_refused_and_the_scores_are_told(result: Any) -> None:
    grader = CompositeGrader(look_up, aggregate=lambda rubric, scores: result)
    with pytest.raises((TypeError, ValueError), match="the aggregate must be") as caught:
        grader.score({"a": 1, "b": 0.5}, RUBRIC)
    assert caught.value.__notes__ == ["while combining {'a': 1.0, 'b': 0.5} by rubric 'R'"]


def zero_weights() -> Rubric:
    return Rubric(criteria=(Criterion(id="a", description="d", weight=0),))


def odd_kind() -> Rubric:
    return Rubric(criteria=(Criterion(id="a", description="d", kind="optional"),))


@pytest.mark.parametrize(
    ("make", "rubric", "message"),
    [
        (
            lambda grade: CompositeGrader({"a": grade}),
            RUBRIC,
            r"no grader for \['b'\] of rubric 'R'",
        ),
        (CompositeGrader, zero_weights(), "all weights are 0"),
        (
            lambda grade: CompositeGrader(grade, aggregate=asymmetric_mean),
            odd_kind(),
            "'a' is 'optional'",
        ),
        (
            lambda grade: CompositeGrader(
                grade, aggregate=partial(asymmetric_mean, bonus_weight=-1.0)
            ),
            RUBRIC,
            "bonus_weight",
        ),
    ],
)
async def test_a_rubric_that_cannot_be_graded_is_refused_before_any_grader_is_called(
    make: Any, rubric: Rubric, message: str
) -> None:
    counting = Counting()
    grader = make(counting)
    for _ in range(2):
        with pytest.raises(ValueError, match=message):
            grader.score("x", rubric)
        with pytest.raises(ValueError, match=message):
            await grader.ascore("x", rubric)
    assert counting.calls == 0


def test_what_is_not_a_rubric_is_refused() -> None:
    grader: Any = CompositeGrader(look_up)
    with pytest.raises(TypeError, match="grades by a Rubric, got None"):
        grader.score("x", None)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"grader": {}}, ValueError, "at least one grader"),
        ({"grader": 1}, TypeError, "grader.* must be callable, got 1"),
        ({"grader": {"a": 1}}, TypeError, "the grader of criterion 'a' must be callable, got 1"),
        ({"overrides": {"a": 1}}, TypeError, "the grader of criterion 'a' must be callable"),
        ({"aggregate": "mean"}, TypeError, "aggregate must be callable, got 'mean'"),
        ({"concurrency": 0}, ValueError, "concurrency must be at least 1, got 0"),
        ({"concurrency": 1.5}, TypeError, "concurrency must be an integer"),
        ({"concurrency": True}, TypeError, "concurrency must be an integer"),
        ({"metadata": {"k": object()}}, ValueError, r"metadata\['k'\]"),
        ({"timeout": 0}, ValueError, "timeout must be positive, got 0"),
        ({"timeout": math.nan}, ValueError, "timeout must be finite"),
        ({"timeout": "1"}, TypeError, "timeout must be a real number"),
        ({"on_error": "ignore"}, ValueError, "on_error must be one of .*, got 'ignore'"),
    ],
)
def test_unusable_arguments_are_refused_at_construction(
    arguments: dict[str, Any], error: type[Exception], message: str
) -> None:
    make: Any = CompositeGrader
    with pytest.raises(error, match=message):
        make(**{"grader": look_up, **arguments})


@given(
    st.dictionaries(
        st.text(min_size=1).filter(lambda text: text == text.strip()),
        st.floats(min_value=0, max_value=1),
        min_size=1,
        max_size=20,
    ),
    st.integers(min_value=1, max_value=5),
)
def test_score_and_ascore_agree(values: dict[str, float], concurrency: int) -> None:
    rubric = make_rubric(*values)
    expected = CompositeGrader(look_up).score(values, rubric)
    assert expected.component_values == values
    for grade in (look_up, alook_up):
        grader = CompositeGrader(grade, concurrency=concurrency, inline=True)
        score = anyio.run(grader.ascore, values, rubric)
        assert score == expected
        assert list(score.components) == list(expected.components)


class Guess(SingleTurnEnv[str, str]):
    observation_space = gym.spaces.Text(10)
    action_space = gym.spaces.Text(10)

    def initial_observation(self, *, options: dict[str, Any] | None = None) -> tuple[str, Any]:
        return "guess", {}

    def evaluate(self, action: str) -> float:
        return 0.0

    def terminal_observation(self, action: str) -> str:
        return action


def test_a_composite_makes_the_reward_of_an_environment() -> None:
    env = GradingWrapper(
        Guess(),
        rubric=RUBRIC,
        grader=CompositeGrader(look_up),
        make_input=lambda env, action: {"a": float(action == "x"), "b": 0.5},
    )
    env.reset()
    _, reward, _, _, info = env.step("x")
    assert reward == 0.75
    assert Score.from_info(info) == CompositeGrader(look_up).score({"a": 1, "b": 0.5}, RUBRIC)
