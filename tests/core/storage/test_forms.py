"""The dictionary forms of records."""

from __future__ import annotations

import base64
import dataclasses
import json
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.storage.made import (
    contents,
    errors,
    groups,
    is_identical,
    outputs,
    steps,
    trajectories,
)
from rolloutlib import PolicyOutput, RolloutError, Step, Trajectory, TrajectoryGroup
from rolloutlib.rollouts import UnstorableError

TRAJECTORY = Trajectory(
    "o0",
    [
        Step("o0", "a0", 0.5, "o1", False, False, policy_tokens=[1, 2], policy_logprobs=[-1, -0.5]),
        Step("o1", "a1", 1.0, "o2", False, False, {"k": 1}),
        Step("o2", "a2", 1.0, "o3", True, False, policy_tokens=[], policy_logprobs=[]),
    ],
    terminated=True,
    seed=7,
    member=0,
)


@given(st.one_of(outputs, steps(), trajectories(), errors, groups()))
def test_every_record_comes_back_as_it_was(record: Any) -> None:
    form = record.to_dict()
    text = json.dumps(form, allow_nan=False)
    again = type(record).from_dict(json.loads(text))
    assert json.dumps(again.to_dict()) == text
    assert is_identical(contents(again), contents(record))


def test_the_form_of_a_trajectory_is_as_documented() -> None:
    form = TRAJECTORY.to_dict()
    tokens = base64.b64encode(np.array([1, 2], "<i4").tobytes()).decode()
    logprobs = base64.b64encode(np.array([-1, -0.5], "<f4").tobytes()).decode()
    assert form == {
        "schema": "trajectory/1",
        "initial_observation": "o0",
        "steps": {
            "actions": ["a0", "a1", "a2"],
            "rewards": [0.5, 1.0, 1.0],
            "next_observations": ["o1", "o2", "o3"],
            "terminated": [False, False, True],
            "truncated": [False, False, False],
            "infos": [{}, {"k": 1}, {}],
            "tokens": {"lengths": [2, None, 0], "dtype": "<i4", "base64": tokens},
            "logprobs": {"lengths": [2, None, 0], "dtype": "<f4", "base64": logprobs},
        },
        "initial_info": {},
        "terminated": True,
        "truncated": False,
        "metadata": {},
        "seed": 7,
        "member": 0,
        "attempt": 0,
    }


def test_an_observation_that_two_steps_share_is_shared_when_read() -> None:
    chats = [[{"role": "user", "content": str(i)}] for i in range(3)]
    moves = [Step(chats[i], "a", 0.0, chats[i + 1], False, False) for i in range(2)]
    form = Trajectory(chats[0], moves).to_dict()
    assert "observations" not in form["steps"]
    read = Trajectory[Any, Any].from_dict(form)
    assert read.steps == tuple(moves)
    assert read.steps[1].observation is read.steps[0].next_observation
    assert read.steps[0].observation is read.initial_observation


def test_facts_in_any_mapping_are_stored_as_a_dictionary() -> None:
    info = MappingProxyType({"a": 1})
    step = Step("o", "a", 0.0, "n", True, False, info, info)
    trajectory = Trajectory("o", [step], info, metadata=info)
    read = Trajectory[Any, Any].from_dict(json.loads(json.dumps(trajectory.to_dict())))
    assert read.steps[0].info == read.steps[0].policy_info == read.metadata == {"a": 1}


def test_a_token_array_keeps_its_width() -> None:
    arrays: dict[str, Any] = {
        "tokens": np.array([1, 2**40]),
        "logprobs": np.array([-1e-7, -np.inf]),
    }
    wide = PolicyOutput("a", **arrays)
    form = wide.to_dict()
    assert (form["tokens"]["dtype"], form["logprobs"]["dtype"]) == ("<i8", "<f4")
    read = PolicyOutput[str].from_dict(form)
    assert read == wide
    assert np.asarray(read.logprobs).tolist() == [np.float32(-1e-7), -np.inf]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"schema": "trajectory/2"}, "has the schema 'trajectory/1', got 'trajectory/2'"),
        ({"schema": "step/1"}, "got 'step/1'"),
        ({"extra": 1}, r"missing or unknown: \['extra'\]"),
        ({"steps": {}}, "steps have the columns"),
        ({"steps": None}, "not the form of a Trajectory"),
        ({"initial_info": None}, "facts are a mapping, got None"),
        ({"metadata": [1]}, r"facts are a mapping, got \[1\]"),
    ],
)
def test_another_form_is_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Trajectory[str, str].from_dict({**TRAJECTORY.to_dict(), **change})


@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        ("rewards", [0.5, 1.0], "columns of steps must have one length"),
        ("rewards", [0.5, 1.0, "x"], "reward must be a real number"),
        ("terminated", [0, 0, 5], "terminated must be a bool"),
        ("unknown", [], "steps have the columns"),
        ("infos", [{}, 1, {}], "facts are a mapping, got 1"),
        ("policy_infos", [None, "x", {}], "facts are a mapping, got 'x'"),
        (
            "tokens",
            {"lengths": [10**40, None, 0], "dtype": "<i4", "base64": "AQAAAA=="},
            "not the form of a Trajectory",
        ),
        (
            "tokens",
            {"lengths": [1, None, 0], "dtype": "<i4", "base64": "AQAAAAIAAAA="},
            "2 numbers",
        ),
        (
            "tokens",
            {"lengths": [1, None, 0], "dtype": "<i4", "base64": "AQAAAA=="},
            "step 0 has 1 tok",
        ),
        ("logprobs", {"lengths": [2, None, 0], "dtype": "<f4", "base64": "AADAfwAAwH8="}, "NaN"),
        ("versions", [7, None, 0.5], "step 2: version must be an integer or text"),
        ("versions", [True, None, None], "step 0: version must be an integer or text"),
        ("versions", [[[7, 1], [8, 2]], None, None], "step 0: version must .* there are 2 tokens"),
        ("versions", [None, [[7, 1]], None], "step 1: version must .* no tokens are given"),
        (
            "logprobs",
            {"lengths": [2, None, 0], "dtype": "<U1", "base64": "AADAfwAAwH8="},
            "numbers",
        ),
    ],
)
def test_columns_that_do_not_fit_are_refused(column: str, value: Any, message: str) -> None:
    form = TRAJECTORY.to_dict()
    form["steps"][column] = value
    with pytest.raises(ValueError, match=message):
        Trajectory[str, str].from_dict(form)


@pytest.mark.parametrize("form", [None, [], "trajectory/1", {}])
def test_what_is_no_form_of_a_record_is_refused(form: Any) -> None:
    for kind in (PolicyOutput, Step, Trajectory, RolloutError, TrajectoryGroup):
        with pytest.raises(ValueError, match=f"the form of a {kind.__name__}"):
            kind.from_dict(form)


@dataclasses.dataclass(frozen=True)
class Annotated(Step[Any, Any]):
    note: Any = None


def test_what_cannot_be_stored_is_told_by_its_place_in_the_record() -> None:
    bad = dataclasses.replace(TRAJECTORY.steps[1], info={"x": [0, object()]})
    trajectory = Trajectory("o0", [TRAJECTORY.steps[0], bad])
    error = RolloutError("a", "b", trajectory=trajectory)
    for record, place in (
        (trajectory, r"steps\.infos\[1\]\['x'\]\[1\]"),
        (TrajectoryGroup("i", "id", [TRAJECTORY, trajectory]), r"trajectories\[1\]\.steps\.infos"),
        (TrajectoryGroup("i", "id", [], errors=[error]), r"errors\[0\]\.trajectory\.steps\.infos"),
        (RolloutError("a", "b", output=PolicyOutput("a", {"x": object()})), r"output\.info\['x'\]"),
        (TrajectoryGroup(object(), "id", []), "item"),
        (TrajectoryGroup("i", "id", [], metadata={"m": {1: object()}}), r"metadata\['m'\]\[1\]"),
        (
            Trajectory("o", [Annotated("o", 1, 0.0, "o", True, False)]),
            "steps are of a .* Annotated",
        ),
    ):
        with pytest.raises(UnstorableError, match=f"^{place}"):
            record.to_dict()


def test_a_subclass_has_a_form_of_its_own() -> None:
    step = Annotated("o", 1, 0.0, "o", True, False, note=(1,))
    assert Annotated.from_dict(step.to_dict()) == step
    assert Annotated.from_dict(step.to_dict()).note == (1,)
