"""What all spaces have in common: membership, equality, seeds, copies, JSON."""

from __future__ import annotations

import copy
import json
import pickle
from typing import Any, assert_type, cast

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env as gymnasium_check_env
from hypothesis import given
from hypothesis import strategies as st

from processes import outputs_under_hash_seeds
from rolloutlib import Env, SingleTurnEnv, check_env, spaces
from rolloutlib.envs import EvaluationResult
from rolloutlib.types import Chat, Message, ToolCall


def draw_int(generator: np.random.Generator) -> int:
    return int(generator.integers(100))


def tools() -> dict[str, gym.Space[Any]]:
    arguments = gym.spaces.Dict(
        {
            "query": spaces.text.text(min_length=1),
            "box": gym.spaces.Box(-1, 1, (2, 2)),
            "pair": gym.spaces.Tuple((gym.spaces.Discrete(3), gym.spaces.MultiBinary(2))),
        }
    )
    return {"search": arguments, "stop": gym.spaces.Dict({})}


def make(seed: int | None = None) -> dict[str, gym.Space[Any]]:
    return {
        "text": spaces.text.text(min_length=2, max_length=9, seed=seed),
        "token": spaces.tokens.id(50, start=3, seed=seed),
        "tokens": spaces.tokens.sequence(50, start=3, seed=seed),
        "stacked tokens": spaces.tokens.sequence(50, start=3, stack=True, seed=seed),
        "message": spaces.messages.message(roles=("user", "bot"), seed=seed),
        "short message": spaces.messages.message(
            content_space=spaces.text.text(max_length=3), seed=seed
        ),
        "chat": spaces.messages.chat(min_length=1, max_length=4, seed=seed),
        "call": spaces.tools.call(tools(), seed=seed),
        "call with id": spaces.tools.call(tools(), include_id_in_samples=True, seed=seed),
        "calls": spaces.tools.calls(tools(), seed=seed),
        "pydantic": spaces.PydanticSpace(int, sampler=draw_int, seed=seed),
        "inside": gym.spaces.Dict(
            {"a": spaces.text.text(), "b": spaces.messages.chat()}, seed=seed
        ),
    }


NAMES = list(make())


def plain(value: Any) -> Any:
    """Arrays as lists, so that samples can be compared."""
    if isinstance(value, (np.ndarray, np.generic)):
        return value.tolist()
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    return [plain(item) for item in value] if isinstance(value, (list, tuple)) else value


def draw(space: gym.Space[Any], count: int = 5) -> list[Any]:
    return [plain(space.sample()) for _ in range(count)]


@pytest.mark.parametrize("name", NAMES)
@given(seed=st.integers(0, 2**32))
def test_every_sample_is_a_member(name: str, seed: int) -> None:
    space = make(seed)[name]
    for _ in range(5):
        sample = space.sample()
        assert space.contains(sample)
        assert sample in space


@pytest.mark.parametrize("name", NAMES)
def test_a_seed_fixes_the_samples(name: str) -> None:
    space, again, other = make(7)[name], make(7)[name], make(8)[name]
    samples = draw(space)
    assert draw(again) == samples
    assert draw(other) != samples
    space.seed(7)
    assert draw(space) == samples


@pytest.mark.parametrize("name", NAMES)
def test_equality_is_of_structure(name: str) -> None:
    space = make(1)[name]
    assert space == make(2)[name]
    assert space == pickle.loads(pickle.dumps(space))  # noqa: S301
    assert space == copy.deepcopy(space)
    assert not any(space == value for key, value in make().items() if key != name)
    assert space != 5
    assert space is not None


@pytest.mark.parametrize("seed", [3, None])
@pytest.mark.parametrize("name", [name for name in NAMES if name != "inside"])
def test_copies_go_on_with_the_same_samples(name: str, seed: int | None) -> None:
    space = make(seed)[name]
    if seed is not None:
        draw(space)
    pickled, copied = pickle.loads(pickle.dumps(space)), copy.deepcopy(space)  # noqa: S301
    assert draw(space) == draw(pickled) == draw(copied)


@pytest.mark.parametrize("name", NAMES)
def test_json_holds_samples_without_loss(name: str) -> None:
    space = make(5)[name]
    samples = [space.sample() for _ in range(4)]
    form = json.loads(json.dumps(space.to_jsonable(samples)))
    again = space.from_jsonable(form)
    assert plain(list(again)) == plain(samples)
    assert all(sample in space for sample in again)


def test_ids_of_any_form_become_json() -> None:
    for stack, form in ((False, (1, 2)), (True, np.array([1, 2]))):
        space = spaces.tokens.sequence(9, stack=stack)
        given_ids = [[1, 2], (1, 2), np.array([1, 2], np.int32), [], np.array([], np.int64)]
        written = json.loads(json.dumps(space.to_jsonable(given_ids)))
        assert written == [[1, 2], [1, 2], [1, 2], [], []]
        again = space.from_jsonable(written)
        assert type(again[0]) is type(form)
        assert plain(again) == written
        assert all(ids in space for ids in again)


def test_samples_of_ids_are_those_of_gymnasium() -> None:
    ours = spaces.tokens.sequence(10, seed=1)
    theirs = gym.spaces.Sequence(gym.spaces.Discrete(10), seed=1)
    assert draw(ours) == draw(theirs)
    assert draw(spaces.tokens.sequence(10, seed=1), 2) == [[2, 5, 4, 3], [1, 5]]


@pytest.mark.parametrize("name", [name for name in NAMES if name != "inside"])
def test_a_generator_seeds_all_parts(name: str) -> None:
    def made(seed: int) -> gym.Space[Any]:
        return make(cast("Any", np.random.default_rng(seed)))[name]

    assert draw(made(1)) == draw(made(1)) != draw(made(2))


class Hostile:
    """Raises whatever one asks of it."""

    def __getattribute__(self, name: str) -> Any:
        raise RuntimeError(name)

    def __eq__(self, other: object) -> bool:
        raise RuntimeError

    def __len__(self) -> int:
        raise RuntimeError

    __hash__ = None  # pyright: ignore[reportAssignmentType]


class HostileStr(str):
    __slots__ = ()

    def __len__(self) -> int:
        raise RuntimeError


def deep() -> list[Any]:
    value: list[Any] = []
    for _ in range(100_000):
        value = [value]
    return value


def cyclic() -> list[Any]:
    value: list[Any] = []
    value.append(value)
    return value


ODD: list[Any] = [
    None,
    True,
    10**400,
    float("nan"),
    1j,
    b"ab",
    "\ud800",
    Hostile(),
    HostileStr("abc"),
    [Hostile()],
    (Hostile(), Hostile()),
    {"role": Hostile(), "content": Hostile()},
    {"role": [], "content": {}},
    {Hostile: 1},
    {1: 2},
    [{"role": "user", "content": [Hostile()]}],
    {"name": [], "arguments": Hostile()},
    {"name": "search", "arguments": {"query": Hostile()}},
    {"name": "search", "arguments": {"query": "x", "box": "y", "pair": (1,)}},
    [[[]]],
    cyclic(),
    np.array([[1]]),
    np.array([object()]),
    np.array(5),
    range(3),
    iter([]),
    object,
    lambda: None,
]


@pytest.mark.parametrize("name", [name for name in NAMES if name != "inside"])
def test_no_value_makes_membership_raise(name: str) -> None:
    space = make()[name]
    for value in [*ODD, deep()]:
        assert space.contains(value) in (True, False)


@given(st.recursive(st.none() | st.text() | st.integers() | st.floats(), st.lists))
def test_nor_does_any_json(value: Any) -> None:
    for name, space in make().items():
        if name != "inside":
            assert space.contains(value) in (True, False)


SCRIPT = """
import json, gymnasium as gym
from rolloutlib import spaces
tools = {"b": gym.spaces.Dict({"q": spaces.text.text()}), "a": gym.spaces.Dict({})}
print([spaces.tools.call(tools, seed=1).sample(), spaces.messages.chat(seed=1).sample(),
       spaces.tokens.sequence(9, seed=1).sample(), spaces.text.text(seed=1).sample()])
"""


def test_samples_are_the_same_in_every_process() -> None:
    assert len(outputs_under_hash_seeds(SCRIPT)) == 1


class Talk(SingleTurnEnv[Chat, str]):
    observation_space = spaces.messages.chat()
    action_space = spaces.text.text()

    def initial_observation(
        self, *, options: dict[str, Any] | None = None
    ) -> tuple[Chat, dict[str, Any]]:
        return [{"role": "user", "content": "hello"}], {}

    def evaluate(self, action: str) -> EvaluationResult:
        return 1.0

    def terminal_observation(self, action: str) -> Chat:
        return [{"role": "assistant", "content": action}]


def test_environments_with_these_spaces_pass_the_checkers() -> None:
    check_env(Talk())
    env: Env[Any, Any] = Talk()
    gymnasium_check_env(env, skip_render_check=True)


def test_types_are_carried_through() -> None:
    assert_type(spaces.text.text().sample(), str)
    assert_type(spaces.messages.message().sample(), Message)
    assert_type(spaces.messages.chat().validate([]), Chat)
    assert_type(spaces.tools.call({"a": gym.spaces.Dict({})}).sample(), ToolCall)
    assert_type(spaces.PydanticSpace(int), spaces.PydanticSpace[int])
    assert_type(spaces.PydanticSpace(int, sampler=draw_int).sample(), int)
    assert_type(spaces.PydanticSpace[list[int]](list[int]).validate([]), list[int])
