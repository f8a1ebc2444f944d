"""Names and seeds that are the same in every process."""

from __future__ import annotations

import dataclasses
import enum
import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from core.rollouts.scripted import ScriptedEnv, policy
from processes import outputs_under_hash_seeds
from rolloutlib import rollout_group
from rolloutlib.rollouts import derive_seed


def make_env(item: Any) -> ScriptedEnv:
    return ScriptedEnv(length=1)


def make_other(item: Any) -> ScriptedEnv:
    return ScriptedEnv(length=1)


def name(item: Any, factory: Callable[[Any], ScriptedEnv] = make_env) -> str:
    return rollout_group(item, factory, policy).item_id


class Problem(BaseModel):
    question: str
    tags: set[str] = set()


@dataclasses.dataclass
class Task:
    question: str
    image: Any = None


class Level(enum.Enum):
    EASY = 1
    HARD = 2


class Plain:
    def __init__(self, question: str) -> None:
        self.question = question


class Opaque:
    __slots__ = ()


DIFFERENT: list[Any] = [
    None,
    True,
    1,
    1.5,
    "1",
    b"1",
    [1, 2],
    [1, [2]],
    {"a": 1},
    {"a": 2},
    {1: "a"},
    {"1": "a"},
    {1, 2},
    Problem(question="q"),
    Problem(question="r"),
    Task("q"),
    Task("r"),
    Task("q", np.zeros(3)),
    Task("q", np.zeros(4)),
    Level.EASY,
    Level.HARD,
    Plain("q"),
    Plain("r"),
    np.zeros(3),
    np.zeros(3, np.float32),
    int,
    len,
]


def test_different_items_have_different_names() -> None:
    names = [name(item) for item in DIFFERENT]
    assert len(set(names)) == len(DIFFERENT)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
        ({"x", "y", "z"}, {"z", "y", "x"}),
        (Problem(question="q", tags={"a", "b"}), Problem(question="q", tags={"b", "a"})),
        (Task("q", np.arange(3)), Task("q", np.arange(3))),
        (Plain("q"), Plain("q")),
        (np.float64(1.5), 1.5),
    ],
)
def test_equal_items_have_equal_names(first: Any, second: Any) -> None:
    assert name(first) == name(second)


def test_items_whose_contents_cannot_be_told_never_share_a_name() -> None:
    cycle: list[Any] = []
    cycle.append(cycle)
    assert name(Opaque()) != name(Opaque())
    assert name(cycle) != name(cycle)


def test_the_same_item_in_another_environment_has_another_name() -> None:
    assert name("item") != name("item", make_other)
    lambdas = (lambda item: make_env(item), lambda item: make_other(item))  # noqa: PLW0108
    assert name("item", lambdas[0]) != name("item", lambdas[1])


def make_of_length(length: int, client: object, item: Any) -> ScriptedEnv:
    return ScriptedEnv(length=length)


class Maker:
    def make(self, item: Any) -> ScriptedEnv:
        return ScriptedEnv(length=1)


class OtherMaker(Maker): ...


def in_module(module: str) -> Callable[[Any], ScriptedEnv]:
    def make_env(item: Any) -> ScriptedEnv:
        return ScriptedEnv(length=1)

    make_env.__module__ = module
    return make_env


def test_factories_differ_by_module_class_and_bound_arguments() -> None:
    factories = [
        functools.partial(make_of_length, 1, Opaque()),
        functools.partial(make_of_length, 2, Opaque()),
        functools.partial(make_of_length, client=Opaque(), length=1),
        functools.partial(make_of_length, client=Opaque(), length=2),
        Maker().make,
        OtherMaker().make,
        in_module("sums"),
        in_module("products"),
    ]
    assert len({name("item", factory) for factory in factories}) == len(factories)
    assert name("item", factories[0]) == name(
        "item", functools.partial(make_of_length, 1, Opaque())
    )
    assert name("item", Maker().make) == name("item", Maker().make)
    client = Plain("fresh")
    factory = functools.partial(make_of_length, 1, client)
    before = name("item", factory)
    client.question = "used"
    assert name("item", factory) == before


def test_an_item_that_cannot_be_looked_at_still_gets_a_name() -> None:
    class Unreadable:
        def __repr__(self) -> str:
            raise KeyError(0)

    assert name(Unreadable()) != name(Unreadable())


SCRIPT = """
from rolloutlib.rollouts._identity import content_id, derive_seed
print(content_id({"q": {"b", "a", "c"}, "n": [1, 2.5, None]}, print), derive_seed(1, "x", 2))
"""


def test_names_and_seeds_are_the_same_in_every_process() -> None:
    assert len(outputs_under_hash_seeds(SCRIPT)) == 1


def test_the_derivation_of_seeds_is_fixed() -> None:
    assert derive_seed(0, "problem-17", 0) == 1487703784
    assert derive_seed(0, "problem-17", 1) == 95166576
    assert derive_seed(1, "problem-17", 0) == 239698805


@given(st.integers(0, 2**70), st.text(), st.integers(0, 1000))
def test_seeds_fit_into_31_bits(seed: int, item_id: str, member: int) -> None:
    derived = derive_seed(seed, item_id, member)
    assert 0 <= derived < 2**31
    assert derived == derive_seed(seed, item_id, member)


def test_neighbours_have_different_seeds() -> None:
    seeds = {
        derive_seed(run, item, member) for run in range(9) for item in "abc" for member in range(40)
    }
    assert len(seeds) == 9 * 3 * 40


def test_each_environment_is_reset_with_the_seed_in_its_record() -> None:
    group = rollout_group("item", make_env, policy, num_rollouts=3, seed=9, item_id="x")
    for member, trajectory in enumerate(group.trajectories):
        assert trajectory.member == member
        assert trajectory.seed == trajectory.initial_info["seed"] == derive_seed(9, "x", member)
