"""What a policy is offered beside the observation, and what is recorded of its version."""

from __future__ import annotations

import functools
import json
import operator
from collections.abc import Callable
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest

from core.rollouts.scripted import AsyncScriptedEnv, ScriptedEnv
from rolloutlib import PolicyOutput, Trajectory, arollout, rollout
from rolloutlib.rollouts import Step

pytestmark = pytest.mark.anyio

NOTHING: dict[str, Any] = {}
BOTH = {"seed": 42, "step": 1}


def both(observation: str, *, seed: int = 0, step: int = 0) -> PolicyOutput[str]:
    return PolicyOutput("a", {"seed": seed, "step": step})


def neither(observation: str, **kwargs: Any) -> PolicyOutput[str]:
    return PolicyOutput("a", kwargs)


def positional(observation: str, seed: int = 0, /) -> PolicyOutput[str]:
    return PolicyOutput("a", {"seed": seed} if seed else {})


def seed_is_shown(seed: str) -> PolicyOutput[str]:
    return PolicyOutput("a", {"shown": seed})


def prefixed(prefix: str, observation: str, seed: int = 0) -> PolicyOutput[str]:
    return PolicyOutput("a", {"prefix": prefix, "seed": seed})


class Methods:
    """Policies that belong to an object or a class, and one that is an object."""

    def method(self, observation: str, seed: int = 0) -> PolicyOutput[str]:
        return PolicyOutput("a", {"seed": seed})

    @staticmethod
    def static(observation: str, *, seed: int = 0) -> PolicyOutput[str]:
        return PolicyOutput("a", {"seed": seed})

    @classmethod
    def of_class(cls, observation: str, *, step: int = 0) -> PolicyOutput[str]:
        return PolicyOutput("a", {"step": step})

    def __call__(self, observation: str, **kwargs: Any) -> PolicyOutput[str]:
        return PolicyOutput("a", kwargs)


def lets_all_through(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    return wrapper


def lets_keywords_through(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def wrapper(observation: Any, **kwargs: Any) -> Any:
        return function(observation, **kwargs)

    return wrapper


def lets_nothing_through(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def wrapper(observation: Any) -> Any:
        return function(observation)

    return wrapper


def has_keywords_of_its_own(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def wrapper(observation: Any, *, patience: float = 1.0) -> Any:
        return function(observation)

    return wrapper


@pytest.mark.parametrize(
    ("policy", "told"),
    [
        (both, BOTH),
        (neither, NOTHING),
        (positional, NOTHING),
        (seed_is_shown, {"shown": "o1"}),
        (lambda _, seed=0: PolicyOutput("a", {"seed": seed}), {"seed": 42}),
        (Methods().method, {"seed": 42}),
        (Methods.static, {"seed": 42}),
        (Methods.of_class, {"step": 1}),
        (Methods(), NOTHING),
        (functools.partial(both, seed=7), {"seed": 7, "step": 1}),
        (functools.partial(prefixed, "p"), {"prefix": "p", "seed": 42}),
        (functools.lru_cache(both), BOTH),
        (lets_all_through(both), BOTH),
        (lets_keywords_through(both), BOTH),
        (lets_nothing_through(both), {"seed": 0, "step": 0}),
        (has_keywords_of_its_own(both), {"seed": 0, "step": 0}),
        (operator.itemgetter(0), NOTHING),
    ],
)
async def test_a_policy_is_offered_the_seed_and_the_step_if_it_declares_them(
    policy: Any, told: dict[str, Any]
) -> None:
    trajectory = rollout(ScriptedEnv(), policy, seed=42)
    assert trajectory.steps[1].policy_info == told
    atrajectory = await arollout(AsyncScriptedEnv(), policy, seed=42)
    assert atrajectory.steps[1].policy_info == told


class Sampler:
    """A policy whose version is what it is given, and changes while it chooses."""

    def __init__(self, *versions: Any) -> None:
        self._later = list(versions[1:])
        self.version = versions[0]

    def __call__(self, observation: str) -> str:
        if self._later:
            self.version = self._later.pop(0)
        return "a"


@pytest.mark.parametrize(
    ("versions", "recorded"),
    [
        ((1, 2, 3), (1, 2)),
        (("a", "b"), ("a", "b")),
        ((None, 5), (None, 5)),
        ((np.int64(3),), (3, 3)),
    ],
)
async def test_a_step_has_the_version_with_which_its_call_began(
    versions: tuple[Any, ...], recorded: tuple[Any, ...]
) -> None:
    for trajectory in (
        rollout(ScriptedEnv(), Sampler(*versions)),
        await arollout(AsyncScriptedEnv(), Sampler(*versions)),
    ):
        stamps = [step.policy_version for step in trajectory.steps]
        assert tuple(stamps) == recorded
        assert all(stamp is None or type(stamp) in (int, str) for stamp in stamps)


@pytest.mark.parametrize("other", [(1, 2), 1.5, True, str.upper])
def test_what_else_goes_by_the_name_of_version_is_not_recorded(other: Any) -> None:
    trajectory = rollout(ScriptedEnv(), Sampler(other))
    assert [step.policy_version for step in trajectory.steps] == [None, None]


def test_a_mock_may_be_a_policy() -> None:
    assert rollout(ScriptedEnv(), Mock(return_value="a")).actions == ("a", "a")


def test_what_the_sampler_says_outranks_the_attribute() -> None:
    class Knowing(Sampler):
        def __call__(self, observation: str) -> Any:
            return PolicyOutput("a", version="own") if observation == "o1" else "a"

    trajectory = rollout(ScriptedEnv(), Knowing(1))
    assert [step.policy_version for step in trajectory.steps] == [1, "own"]


@pytest.mark.parametrize("bad", [1.5, True, ("a",)])
def test_a_record_takes_no_version_of_another_kind(bad: Any) -> None:
    with pytest.raises(TypeError, match="version must be an integer or text"):
        PolicyOutput("a", version=bad)
    with pytest.raises(TypeError, match="version must be an integer or text"):
        Step("o", "a", 0.0, "o", terminated=False, truncated=False, policy_version=bad)
    counted: Any = np.int64(3)
    assert type(PolicyOutput("a", version=counted).version) is int


@pytest.mark.parametrize(
    ("told", "kept"),
    [
        ([(1, 2), ("b", 1)], ((1, 2), ("b", 1))),
        (iter([[np.int64(1), np.int64(1)], (2, 2)]), ((1, 1), (2, 2))),
        ([(1, 1), (2, 0), (1, 1), (2, 1)], ((1, 2), (2, 1))),
        ([(1, 0), (2, 3)], 2),
        ([(1, 3)], 1),
    ],
)
def test_versions_that_changed_within_a_turn_are_kept_in_order(told: Any, kept: Any) -> None:
    output = PolicyOutput("a", tokens=[4, 5, 6], version=told)
    assert output.version == kept
    assert PolicyOutput[str].from_dict(json.loads(json.dumps(output.to_dict()))) == output
    trajectory = rollout(ScriptedEnv(), lambda observation: output)
    assert [step.policy_version for step in trajectory.steps] == [kept, kept]
    form = json.loads(json.dumps(trajectory.to_dict()))
    assert Trajectory[Any, Any].from_dict(form) == trajectory
    assert PolicyOutput("a", tokens=[], version=[(1, 0)]).version == 1


@pytest.mark.parametrize("tokens", [None, [], [4], [4, 5, 6, 7]])
def test_versions_of_another_number_of_tokens_are_refused(tokens: Any) -> None:
    with pytest.raises(ValueError, match="version must tell the version of each token once, but"):
        PolicyOutput("a", tokens=tokens, version=[(1, 2), (2, 1)])


@pytest.mark.parametrize("bad", [[], [1], [(1, 2.0)], [(1.5, 3)], [(1, 2, 3)], {"a": 3}, [None]])
def test_what_are_no_pairs_of_version_and_number_is_refused(bad: Any) -> None:
    with pytest.raises(TypeError, match="version must be an integer or text, or pairs"):
        PolicyOutput("a", tokens=[4, 5, 6], version=bad)
    with pytest.raises(ValueError, match="policy_version must tell"):
        Step("o", "a", 0.0, "o", True, False, policy_tokens=[4], policy_version=[(1, 2), (2, -1)])
