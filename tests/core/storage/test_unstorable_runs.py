"""Runs with something that cannot be stored."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from core.rollouts.scripted import Log, ScriptedEnv, policy
from core.storage.runs import Factory, make_env
from rolloutlib import Dataset, TrajectoryGroup, acollect, collect
from rolloutlib.rollouts import (
    BatchedPolicy,
    Retry,
    UnstorableError,
)
from rolloutlib.storage import GroupStore, read_groups


@pytest.mark.parametrize(
    ("arguments", "place"),
    [
        ({"metadata": {"m": [object()]}}, r"settings\['metadata'\]\['m'\]\[0\]"),
        ({"options": {"o": object()}}, r"settings\['options'\]\['o'\]"),
        ({"items": [{"a": object()}]}, r"item 0\['a'\]"),
        ({"items": Dataset([object(), 2])}, "item 0"),
    ],
)
@pytest.mark.parametrize("start", [collect, acollect])
def test_what_cannot_be_stored_is_refused_before_the_run(
    tmp_path: Path, start: Callable[..., Any], arguments: dict[str, Any], place: str
) -> None:
    arguments = {"items": ["a"], **arguments, "store": GroupStore(tmp_path / "run.jsonl")}
    with pytest.raises(UnstorableError, match=f"^{place} is of type .*object"):
        start(make_env=make_env, policy=policy, **arguments)


@pytest.mark.parametrize("concurrency", [1, 2])
def test_an_item_that_cannot_be_stored_is_refused_before_it_is_played(
    tmp_path: Path, concurrency: int
) -> None:
    factory = Factory()
    groups = collect(
        [0, 1, object()],
        factory,
        policy,
        concurrency=concurrency,
        store=GroupStore(tmp_path / "run.jsonl"),
    )
    with pytest.raises(UnstorableError, match=r"^item 2 is of type builtins\.object"):
        list(groups)
    assert factory.made == [0, 1]


class Action:
    def __len__(self) -> int:
        return 1


class Opaque(ScriptedEnv):
    """Says something that cannot be stored, in one of its calls."""

    place = "reset"

    def reset(self, **arguments: Any) -> Any:
        observation, info = super().reset(**arguments)
        return observation, {"it": object()} if self.place == "reset" else info

    def step(self, action: str) -> Any:
        result = super().step(action)
        return (*result[:4], {"it": object()}) if self.place == "step" else result


@pytest.mark.parametrize("concurrency", [1, 4])
@pytest.mark.parametrize("place", ["reset", "step", "policy"])
def test_what_an_episode_cannot_store_is_refused_at_its_first_step(
    tmp_path: Path, place: str, concurrency: int
) -> None:
    calls: list[str] = []

    def make(item: object) -> ScriptedEnv:
        environment = Opaque(length=100)
        environment.place = place
        return environment

    def a_policy(observation: str) -> Any:
        calls.append(observation)
        return Action() if place == "policy" else observation

    groups = collect(
        range(100),
        make,
        a_policy,
        num_rollouts=10,
        concurrency=concurrency,
        retry=Retry(transient=Exception, initial_delay=0),
        store=GroupStore(tmp_path / "run.jsonl"),
    )
    names = {"reset": r"initial_info", "step": r"steps\.infos\[0\]", "policy": r"steps\.actions"}
    with pytest.raises(UnstorableError, match=rf"^trajectory\.{names[place]}.* is of type"):
        list(groups)
    assert len(calls) <= concurrency
    assert list(read_groups(tmp_path / "run.jsonl")) == []


def test_lock_step_ends_with_the_first_step_that_cannot_be_stored(tmp_path: Path) -> None:
    calls: list[int] = []

    def decide(observations: Sequence[str]) -> list[Any]:
        calls.append(len(observations))
        return [Action() for _ in observations]

    log = Log()
    groups = collect(
        range(9),
        lambda _: ScriptedEnv(length=100, log=log),
        BatchedPolicy(decide),
        num_rollouts=4,
        store=GroupStore(tmp_path / "run.jsonl"),
    )
    with pytest.raises(UnstorableError, match=r"^trajectory\.steps\.actions\[0\]"):
        list(groups)
    assert calls == [4]
    assert (log.opened, log.open) == (4, 0)


def test_what_turns_out_too_late_comes_with_the_group(tmp_path: Path) -> None:
    def late_policy(observation: str) -> Any:
        return Action() if observation == "o1" else observation

    with pytest.raises(
        UnstorableError, match=r"^group 0\.trajectories\[0\]\.steps\.actions\[1\]"
    ) as e:
        list(collect([*"ab"], make_env, late_policy, store=GroupStore(tmp_path / "run.jsonl")))
    [group] = TrajectoryGroup.all_from_exception(e.value)
    assert group.num_completed == 1


class Note:
    def __init__(self, text: str) -> None:
        self.text = text

    def __repr__(self) -> str:
        return f"Note({self.text!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Note) and self.text == other.text


def encode(value: Any) -> str:
    if isinstance(value, Note):
        return value.text
    raise TypeError


def decode(name: str, value: Any) -> Note:
    return Note(value)


def test_types_of_ones_own_are_gone_on_with(tmp_path: Path) -> None:
    def note_policy(observation: str) -> Any:
        return policy(observation)

    path = tmp_path / "run.jsonl"
    items = [Note("a"), Note("b")]
    for _ in range(2):
        store = GroupStore(path, encode=encode, decode=decode)
        groups = list(collect(items, make_env, note_policy, metadata={"n": Note("c")}, store=store))
        assert [group.item for group in groups] == items
        assert groups[0].metadata == {"n": Note("c")}


def test_items_of_ones_own_types_are_told_apart_by_their_contents(tmp_path: Path) -> None:
    store = GroupStore(tmp_path / "run.jsonl", encode=encode, decode=decode)
    arguments: dict[str, Any] = {"get_item_id": lambda _: "id", "store": store}
    list(collect([Note("a"), Note("b")], make_env, policy, **arguments))
    with pytest.raises(ValueError, match=r"item 1 was Note\('b'\) and is Note\('x'\), with the id"):
        list(collect([Note("a"), Note("x")], make_env, policy, **arguments))
