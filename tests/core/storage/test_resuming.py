"""Runs that were interrupted, and are gone on with."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest

from core.rollouts.scripted import AsyncScriptedEnv, ScriptedEnv, apolicy, policy
from core.storage.runs import AnyGroup, Factory, begin, make_env
from rolloutlib import acollect, collect
from rolloutlib.rollouts import (
    Retry,
    StalledError,
    Timeouts,
    derive_seed,
)
from rolloutlib.storage import GroupStore, read_groups, read_settings

pytestmark = pytest.mark.anyio


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.parametrize(
    ("kind", "order"), [("sync", "dataset"), ("async", "dataset"), ("async", "completion")]
)
def test_a_run_that_is_killed_anywhere_ends_as_one_that_is_not(
    tmp_path: Path, kind: str, order: str
) -> None:
    script = Path(__file__).with_name("killed.py")
    process = subprocess.run(
        [sys.executable, str(script), str(tmp_path), kind, order],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
        capture_output=True,
        text=True,
        check=False,
    )
    assert process.stderr == ""
    assert int(process.stdout) > 20


@pytest.mark.filterwarnings("ignore::rolloutlib.storage.TornLineWarning")
def test_a_run_whose_file_ends_anywhere_ends_as_one_that_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    arguments: dict[str, Any] = {"make_env": make_env, "policy": policy, "seed": 7}
    groups = list(collect([*"abac"], store=GroupStore(path), **arguments))
    data = path.read_bytes()
    for cut in range(0, len(data), 97):
        path.write_bytes(data[:cut])
        assert list(collect([*"abac"], store=GroupStore(path), **arguments)) == groups
        assert path.read_bytes() == data


@pytest.mark.parametrize("order", ["dataset", "completion"])
async def test_finished_groups_are_handed_out_and_not_played(tmp_path: Path, order: Any) -> None:
    path = tmp_path / "new" / "run.jsonl"
    items = [{"n": number} for number in range(6)]
    made: list[Any] = []

    def amake_env(item: Any) -> AsyncScriptedEnv:
        made.append(item["n"])
        return AsyncScriptedEnv()

    async def play(items: Any, **arguments: Any) -> list[AnyGroup]:
        run = acollect(
            items, amake_env, apolicy, num_rollouts=2, order=order, concurrency=4, **arguments
        )
        async with run as groups:
            return [group async for group in groups]

    expected = await play(items, seed=3)
    made.clear()
    first = await play(items[:4], store=GroupStore(path), seed=3)
    assert sorted(made) == [0, 0, 1, 1, 2, 2, 3, 3]
    made.clear()
    second = await play(items, store=GroupStore(path))
    assert sorted(made) == [4, 4, 5, 5]
    made.clear()
    third = await play(items, store=GroupStore(path))
    assert made == []

    def by_item(groups: list[AnyGroup]) -> list[AnyGroup]:
        return sorted(groups, key=lambda group: group.item["n"])

    if order == "dataset":
        assert second == third == expected
        assert first == expected[:4]
    assert by_item(second) == by_item(third) == by_item(expected)
    assert by_item(list(read_groups(path))) == by_item(expected)


@pytest.mark.parametrize("concurrency", [1, 3])
def test_synchronous_runs_go_on_too(tmp_path: Path, concurrency: int) -> None:
    path = tmp_path / "run.jsonl"
    factory = Factory()
    begin(path, "abcd", 2, make_env=factory, policy=policy, num_rollouts=2, seed=0)
    groups = collect(
        [*"abcd"],
        factory,
        policy,
        num_rollouts=2,
        store=GroupStore(path),
        concurrency=concurrency,
        order="dataset",
    )
    assert list(groups) == list(collect([*"abcd"], factory, policy, num_rollouts=2, seed=0))
    assert Counter(factory.made[:8]) == dict.fromkeys("abcd", 2)


def test_the_seed_of_a_run_is_that_of_its_file(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    [first, _] = collect([*"ab"], make_env, policy, store=GroupStore(path))
    settings = read_settings(path)
    assert settings is not None
    assert first.seed == derive_seed(settings["seed"], 0)
    groups = list(collect([*"abc"], make_env, policy, store=GroupStore(path)))
    assert groups[2].seed == derive_seed(settings["seed"], 2)


def test_a_run_that_was_closed_early_goes_on(tmp_path: Path) -> None:
    store = GroupStore(tmp_path / "run.jsonl")
    for concurrency in (1, 2):
        groups = collect([*"abcdef"], make_env, policy, store=store, concurrency=concurrency)
        next(groups)
        groups.close()
    assert len(list(collect([*"abcdef"], make_env, policy, store=store))) == 6


def test_items_that_are_equal_are_played_once_each(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    begin(path, "aaaa", 2, make_env=make_env, policy=policy, seed=0)
    groups = list(collect([*"aaaa"], make_env, policy, store=GroupStore(path)))
    assert len({group.item_id for group in groups}) == 1
    assert len({group.trajectories[0].seed for group in groups}) == 4
    assert groups == list(collect([*"aaaa"], make_env, policy, seed=0))


def test_truncated_failed_and_retried_episodes_stay_what_they_are(tmp_path: Path) -> None:
    def make(item: str) -> ScriptedEnv:
        faults: dict[str, dict[str, BaseException]] = {
            "fails": {"step 1": KeyError("lost")},
            "retried": {"reset": ConnectionError("gone")},
        }
        ends = "truncated" if item == "truncated" else "terminated"
        return ScriptedEnv(faults=faults.get(item), ends=ends)

    def play(items: Any, **more: Any) -> list[AnyGroup]:
        retry = Retry(attempts=2, initial_delay=0)
        return list(
            collect(
                items, make, policy, num_rollouts=2, seed=5, retry=retry, get_item_id=str, **more
            )
        )

    items = ["ends", "fails", "truncated", "retried", "last"]
    path = tmp_path / "run.jsonl"
    play(items[:4], store=GroupStore(path))
    groups = play(items, store=GroupStore(path))
    # Tracebacks tell lines and addresses of another run, which is none of ours.
    assert strip(groups) == strip(play(items))
    assert [group.num_failed for group in groups] == [0, 2, 0, 2, 0]
    assert groups[1].errors[0].trajectory is not None
    assert len(groups[1].errors[0].trajectory.steps) == 1
    assert "KeyError" in groups[1].errors[0].traceback
    assert len(groups[3].retried) == 2
    rows = Counter(
        (group.item_id, episode.member, episode.attempt)
        for group in read_groups(path)
        for episode in group.trajectories
    )
    assert set(rows.values()) == {1}


def strip(groups: list[AnyGroup]) -> list[Any]:
    forms = [group.to_dict() for group in groups]
    for form in forms:
        for error in (*form["errors"], *form["retried"]):
            del error["traceback"]
    return forms


def test_groups_whose_lines_are_left_out_are_played_again(tmp_path: Path) -> None:
    outage = True

    def unreliable_policy(observation: str, *, seed: int = 0) -> str:
        if outage and seed % 3 == 0:
            raise ConnectionError
        return f"{observation} {seed}"

    def play(**more: Any) -> list[AnyGroup]:
        items = range(10)
        return list(collect(items, make_env, unreliable_policy, num_rollouts=2, seed=1, **more))

    path = tmp_path / "run.jsonl"
    failed = sum(group.num_failed > 0 for group in play(store=GroupStore(path)))
    assert 0 < failed < 10
    header, *lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    good = [line for line in lines if not json.loads(line)["group"]["errors"]]
    assert len(good) == 10 - failed
    path.write_text("".join([header, *good]), encoding="utf-8")
    outage = False
    assert play(store=GroupStore(path)) == play()
    assert len(list(read_groups(path))) == 10


async def test_an_episode_that_took_too_long_is_stored_with_its_steps(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"

    async def slow_policy(observation: str) -> str:
        if observation == "o1":
            await anyio.sleep_forever()
        return observation

    timeouts = Timeouts(policy=0.01)
    run = acollect(
        [*"a"], lambda _: AsyncScriptedEnv(), slow_policy, timeouts=timeouts, store=GroupStore(path)
    )
    async with run as groups:
        [group] = [group async for group in groups]
    assert list(read_groups(path)) == [group]
    [error] = group.errors
    assert error.error_type == "TimeoutError"
    assert error.trajectory is not None
    assert error.trajectory.actions == ("o0",)


def test_what_was_finished_before_a_run_stalled_is_there(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"

    def failing_policy(observation: str) -> str:
        raise ValueError(observation)

    with pytest.raises(StalledError):
        list(collect([*"abcdef"], make_env, failing_policy, max_failures=3, store=GroupStore(path)))
    assert len(list(read_groups(path))) == 2


@pytest.mark.parametrize("concurrency", [1, 4])
def test_items_are_stored_as_they_were_played(tmp_path: Path, concurrency: int) -> None:
    def reused() -> Iterator[dict[str, int]]:
        item = {"number": 0}
        for number in range(4):
            item["number"] = number
            yield item

    path = tmp_path / "run.jsonl"
    for _ in range(2):
        groups = collect(
            reused(), make_env, policy, concurrency=concurrency, store=GroupStore(path)
        )
        assert sorted(group.item["number"] for group in groups) == [0, 1, 2, 3]
    assert sorted(group.item["number"] for group in read_groups(path)) == [0, 1, 2, 3]


def test_lines_that_another_program_wrote_anew_are_read(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    groups = list(collect([*"ab"], make_env, policy, store=GroupStore(path)))
    header, *lines = path.read_text().splitlines()
    lines = [json.dumps(json.loads(line), sort_keys=True) for line in lines]
    path.write_text("\n".join([header, *lines, ""]))
    factory = Factory()
    assert list(collect([*"ab"], make_env, policy, store=GroupStore(path))) == groups
    assert factory.made == []


@pytest.mark.parametrize("rest", [0, 1, 40, -2, -1])
def test_a_run_that_was_killed_in_the_first_line_goes_on(tmp_path: Path, rest: int) -> None:
    path = tmp_path / "run.jsonl"
    collect([*"ab"], make_env, policy, store=GroupStore(path)).close()
    path.write_bytes(path.read_bytes()[:rest])
    assert len(list(collect([*"ab"], make_env, policy, store=GroupStore(path)))) == 2
