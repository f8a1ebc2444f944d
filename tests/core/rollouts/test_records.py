"""Steps, trajectories, groups and errors."""

from __future__ import annotations

import copy
import dataclasses
import json
import pickle
import sys
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.rollouts.scripted import ScriptedEnv, policy
from rolloutlib import (
    PolicyOutput,
    RolloutError,
    Score,
    Step,
    Trajectory,
    TrajectoryGroup,
    rollout,
    rollout_group,
)
from rolloutlib.rollouts import EpisodeTruncated

STEPS = (
    Step(
        "o0", "a", 1.0, "o1", False, False, {"k": 1}, {"p": 1}, (1, 2), (-0.5, -1.0), "stop", (7,)
    ),
    Step("o1", "b", 0.5, "o2", True, False, policy_tokens=(), policy_logprobs=()),
    Step("o2", "c", 0.0, "o3", True, False),
)


@pytest.mark.parametrize("record", [PolicyOutput[str]("a"), STEPS[0], Trajectory("o0", STEPS)])
def test_records_refuse_assignment(record: Any) -> None:
    for name in ("action", "steps", "unknown"):
        with pytest.raises(dataclasses.FrozenInstanceError, match=name):
            setattr(record, name, "b")


def test_records_may_be_made_of_stated_types() -> None:
    output = PolicyOutput[str]("a", tokens=[1])
    step = Step[str, str]("o0", "a", 1.0, "o1", True, False)
    trajectory = Trajectory[str, str]("o0", (step,), terminated=True)
    group = TrajectoryGroup[int, str, str](1, "1", (trajectory,))
    assert output == PolicyOutput("a", tokens=[1])
    assert group == TrajectoryGroup(1, "1", (Trajectory("o0", (step,), terminated=True),))


class Torchlike:
    """A scalar tensor, as far as `item()` goes."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def item(self) -> Any:
        return self.value


def test_steps_come_back_as_they_were_given() -> None:
    trajectory = Trajectory("o0", STEPS)
    assert trajectory.steps == STEPS
    assert tuple(trajectory.steps) == STEPS
    assert trajectory.steps[0] == STEPS[0]
    assert trajectory.steps[-1] == STEPS[-1]
    assert trajectory.steps[1:] == STEPS[1:]
    assert trajectory.steps[::-1] == STEPS[::-1]
    assert list(trajectory.steps) == list(STEPS)
    assert len(trajectory.steps) == 3
    assert repr(trajectory.steps) == repr(STEPS)
    assert trajectory.steps != STEPS[:2]
    assert trajectory.steps[1].policy_tokens == ()
    assert trajectory.steps[2].policy_tokens is None
    with pytest.raises(IndexError):
        trajectory.steps[3]


def test_steps_may_come_from_an_iterator_and_can_be_joined() -> None:
    steps = [Step("a", 0, 1.0, "b", False, False), Step("b", 1, 0.5, "c", True, False)]
    trajectory: Any = Trajectory("a", iter(steps))  # pyright: ignore[reportArgumentType]
    assert trajectory.steps == tuple(steps)
    assert trajectory.steps + trajectory.steps == tuple(steps * 2)
    joined: Any = tuple(steps)
    joined += trajectory.steps
    assert joined == tuple(steps * 2)


@dataclasses.dataclass(frozen=True)
class Annotated(Step[Any, Any]):
    advantage: float = 0.0


def test_steps_of_a_subclass_stay_what_they_are() -> None:
    steps: list[Any] = [
        Annotated("a", 0, 1.0, "b", False, False, policy_tokens=[1], advantage=0.5),
        STEPS[1],
    ]
    trajectory = Trajectory("a", steps)
    assert trajectory.steps == tuple(steps)
    assert isinstance(trajectory.steps[0], Annotated)
    assert trajectory.observations == ("a", "b", "o2")
    assert (trajectory.total_reward, trajectory.actions) == (1.5, (0, "b"))
    assert pickle.loads(pickle.dumps(trajectory)) == trajectory  # noqa: S301


def test_a_trajectory_gathers_its_steps() -> None:
    trajectory = Trajectory("o0", STEPS, {"i": 1}, True, False, {"m": 1})
    assert trajectory.observations == ("o0", "o1", "o2", "o3")
    assert trajectory.actions == ("a", "b", "c")
    assert trajectory.rewards == (1.0, 0.5, 0.0)
    assert trajectory.total_reward == 1.5
    assert trajectory.score == Score(1.5)
    assert trajectory.complete
    assert not Trajectory("o0", STEPS).complete
    assert Trajectory("o0").score == Score(0.0)
    assert Trajectory("o0").steps == ()


def test_the_last_steps_score_is_the_trajectorys() -> None:
    score = Score(0.25, {"format": 1.0}, feedback="so so")
    graded = dataclasses.replace(STEPS[1], info=score.as_info())
    assert graded.score == score
    assert STEPS[0].score is None
    assert Trajectory("o0", (STEPS[0], graded)).score == score
    assert Trajectory("o0", (graded, STEPS[0])).score == Score(1.5)


@pytest.mark.parametrize("other", [17, "3:2", {"home": 1}, None])
def test_something_else_under_the_name_of_score_is_no_score(other: Any) -> None:
    step = dataclasses.replace(STEPS[0], info={"score": other})
    assert step.score is None
    assert Trajectory("o0", (step,)).score == Score(1.0)


def test_records_survive_pickling_copying_and_replacing() -> None:
    trajectory = Trajectory("o0", STEPS, {"i": 1}, True, False, {"m": 1}, seed=5, member=2)
    group = TrajectoryGroup("item", "id", [trajectory], seed=1)
    for record in (trajectory, group):
        assert pickle.loads(pickle.dumps(record)) == record  # noqa: S301
        assert copy.deepcopy(record) == record
    changed = dataclasses.replace(trajectory, metadata={"m": 2})
    assert changed.metadata == {"m": 2}
    assert changed.steps == STEPS
    assert changed != trajectory
    assert dataclasses.replace(group, scores=[Score(9)]).rewards == (9.0,)
    with pytest.raises(AttributeError):
        trajectory.terminated = False  # pyright: ignore[reportAttributeAccessIssue]


@pytest.mark.parametrize(
    ("reward", "value"),
    [
        (1, 1.0),
        (True, 1.0),
        (np.float32(0.5), 0.5),
        (np.int64(2), 2.0),
        (np.bool_(True), 1.0),
        (np.array(0.5), 0.5),
        (np.array([0.5]), 0.5),
        (np.array([[0.5]]), 0.5),
        (Decimal("0.25"), 0.25),
        (Fraction(1, 4), 0.25),
        (Torchlike(0.75), 0.75),
    ],
)
def test_a_reward_that_is_one_number_becomes_a_float(reward: Any, value: float) -> None:
    step = Step("o", "a", reward, "n", np.bool_(True), 0)  # pyright: ignore[reportArgumentType]
    assert type(step.reward) is float
    assert step.reward == value
    assert step.terminated is True
    assert step.truncated is False


@pytest.mark.parametrize(
    "reward",
    [
        float("nan"),
        float("inf"),
        np.float32("nan"),
        np.array([1.0, 2.0]),
        np.array([]),
        "1.0",
        None,
        1j,
        10**400,
        Decimal("NaN"),
        Torchlike(None),
        object(),
    ],
)
def test_a_reward_that_is_none_is_refused(reward: Any) -> None:
    with pytest.raises((TypeError, ValueError), match=r"^reward must be"):
        Step("o", "a", reward, "n", True, False)


@pytest.mark.parametrize("flag", [2, -1, "yes", None, 0.5, np.array([True, False])])
def test_a_flag_that_is_no_bool_is_refused(flag: Any) -> None:
    with pytest.raises(TypeError, match=r"^terminated must be a bool"):
        Step("o", "a", 1.0, "n", flag, False)
    with pytest.raises(TypeError, match=r"^truncated must be a bool"):
        Step("o", "a", 1.0, "n", True, flag)


def test_a_group_has_one_score_a_trajectory() -> None:
    trajectories = [Trajectory("o0", STEPS), Trajectory("o0")]
    group = TrajectoryGroup("item", "id", trajectories)
    assert group.scores == (Score(1.5), Score(0.0))
    assert group.rewards == (1.5, 0.0)
    assert TrajectoryGroup("item", "id", trajectories, [Score(1), Score(2)]).rewards == (1.0, 2.0)
    with pytest.raises(ValueError, match=r"one entry per trajectory: group 'id' has 1 .* and 2"):
        TrajectoryGroup("item", "id", trajectories, [Score(1)])
    assert TrajectoryGroup("item", "id", []).rewards == ()


def test_a_group_counts_its_outcomes() -> None:
    group = TrajectoryGroup(
        "item",
        "id",
        [
            Trajectory("o", terminated=True),
            Trajectory("o", truncated=True),
            Trajectory("o", terminated=True, truncated=True),
        ],
        errors=[RolloutError("KeyError", "lost")],
    )
    assert (group.num_completed, group.num_truncated, group.num_failed) == (2, 1, 1)
    assert group.num_requested == 4


def test_an_error_tells_what_happened() -> None:
    def fail() -> None:
        msg = "lost"
        error = OSError(msg)
        error.add_note("by the way")
        raise error

    with pytest.raises(OSError, match="lost") as caught:
        fail()
    record = RolloutError.from_exception(caught.value, index=3, phase="step", seed=5)
    assert (record.error_type, record.error_message) == ("OSError", "lost")
    assert (record.index, record.phase, record.seed) == (3, "step", 5)
    assert "in fail" in record.traceback
    assert "by the way" in record.traceback
    assert record.trajectory is None
    assert RolloutError("a", "b") == RolloutError("a", "b")
    assert (
        RolloutError.from_exception(pickle.PicklingError("x")).error_type == "_pickle.PicklingError"
    )
    assert pickle.loads(pickle.dumps(record)) == record  # noqa: S301


@pytest.mark.parametrize(
    ("error", "name"),
    [
        (EpisodeTruncated("x"), "rolloutlib.rollouts.EpisodeTruncated"),
        (json.JSONDecodeError("x", "", 0), "json.decoder.JSONDecodeError"),  # a public module
    ],
)
def test_the_type_of_an_error_is_named_as_it_is_imported(error: Exception, name: str) -> None:
    assert RolloutError.from_exception(error).error_type == name


def test_an_error_whose_module_is_gone_is_named_by_it() -> None:
    kind = type("LostError", (Exception,), {"__module__": "gone._away"})
    assert RolloutError.from_exception(kind()).error_type == "gone._away.LostError"


@given(
    st.lists(
        st.tuples(
            st.lists(st.integers(0, 10**12), max_size=4) | st.none(),
            st.booleans(),
            st.lists(st.integers(0, 9), max_size=3) | st.none(),
        ),
        max_size=5,
    )
)
def test_columns_keep_every_mixture_of_tokens(rows: list[tuple[Any, bool, Any]]) -> None:
    steps = tuple(
        Step(
            "o",
            "a",
            0.0,
            "n",
            False,
            False,
            policy_tokens=tokens,
            policy_logprobs=[-1.0] * len(tokens or ()) if scored else None,
            policy_prompt_tokens=prompt,
        )
        for tokens, scored, prompt in rows
    )
    assert Trajectory("o", steps).steps == steps


def test_a_trajectory_takes_at_most_nine_bytes_a_token() -> None:
    tokens = list(range(512))
    logprobs = [-1.0] * 512

    def talk(observation: str) -> PolicyOutput[str]:
        return PolicyOutput("a", tokens=tokens, logprobs=logprobs)

    trajectory = rollout(ScriptedEnv(length=100), talk)
    columns: Any = trajectory.steps
    size = sum(deep_size(getattr(columns, name)) for name in ("tokens", "logprobs"))
    assert size / (100 * 512) < 9


def deep_size(value: Any) -> int:
    size = sys.getsizeof(value)
    if isinstance(value, np.ndarray):
        return size if value.base is None else size + deep_size(value.base)
    if isinstance(value, (list, tuple)):
        return size + sum(deep_size(item) for item in value)
    if isinstance(value, dict):
        return size + sum(deep_size(item) for item in value.values())
    slots = getattr(value, "__slots__", ())
    return size + sum(deep_size(getattr(value, name)) for name in slots)


def test_records_of_arrays_can_be_compared() -> None:
    first = Trajectory(np.zeros(3), [Step(np.zeros(3), np.ones(2), 1.0, np.ones(3), True, False)])
    again = copy.deepcopy(first)
    other = Trajectory(np.zeros(3), [Step(np.zeros(3), np.ones(2), 1.0, np.zeros(3), True, False)])
    assert first == again
    assert first != other
    assert first.steps[0] == again.steps[0]
    assert first.steps[0] != other.steps[0]
    assert Trajectory(np.zeros(3)) != Trajectory(np.zeros(4))
    assert Trajectory(np.zeros(3)) != Trajectory(np.zeros(3, np.float32))
    assert Trajectory({"a": np.zeros(3)}) == Trajectory({"a": np.zeros(3)})


def test_groups_of_equal_runs_are_equal() -> None:
    groups = [rollout_group("item", lambda _: ScriptedEnv(), policy, seed=1) for _ in range(2)]
    assert groups[0] == groups[1]
