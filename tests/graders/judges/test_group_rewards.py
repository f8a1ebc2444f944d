"""Judges of groups as `grade_group` of `collect` and its kin."""

from __future__ import annotations

import itertools
import re
from pathlib import Path
from typing import Any, assert_type

import anyio
import anyio.lowlevel
import gymnasium as gym
import pytest

from rolloutlib import SingleTurnEnv, acollect, arollout_group, collect, rollout_group
from rolloutlib.graders import (
    Criterion,
    JudgeModel,
    JudgeTemplate,
    ListwiseJudge,
    PairwiseJudge,
    Score,
)
from rolloutlib.storage import GroupStore
from rolloutlib.types import Chat

pytestmark = pytest.mark.anyio

LARGER = Criterion(id="larger", description="Which is larger?")


class Number(SingleTurnEnv[str, str]):
    observation_space = gym.spaces.Text(100)
    action_space = gym.spaces.Text(100)

    def initial_observation(self, *, options: dict[str, Any] | None = None) -> tuple[str, Any]:
        return "Say a number.", {}

    def evaluate(self, action: str) -> float:
        return 0.0

    def terminal_observation(self, action: str) -> str:
        return ""


def model(chat: Chat) -> str:
    text = str(chat[1]["content"])
    found = re.findall(r"<candidate-(\w+)-(\w+)>\n(.*)\n</candidate-", text)
    order = sorted(found, key=lambda each: -float(each[2]))
    letters = [letter for letter, _, _ in order]
    quoted = ", ".join([f'"{letter}"' for letter in letters])
    asked = '"winner": "<' in text
    verdict = f'"winner": "{letters[0]}"' if asked else f'"ranking": [{quoted}]'
    return f'{{{verdict}, "id": "{found[0][1]}"}}'


async def amodel(chat: Chat) -> str:
    await anyio.lowlevel.checkpoint()
    return model(chat)


def numbers() -> Any:
    count = itertools.cycle([3, 1, 2])
    return lambda observation: str(next(count))


@pytest.mark.parametrize("kind", [PairwiseJudge, ListwiseJudge])
async def test_each_trajectory_of_a_group_gets_a_reward(kind: Any) -> None:
    judge = kind(model, LARGER)
    groups = [
        rollout_group("i", lambda _: Number(), numbers(), num_rollouts=3, grade_group=judge),
        *collect(["i"], lambda _: Number(), numbers(), num_rollouts=3, grade_group=judge),
    ]
    for awaited in (judge, kind(amodel, LARGER), kind(amodel, LARGER).ascore):
        arguments: Any = {"num_rollouts": 3, "grade_group": awaited, "concurrency": 1}
        groups.append(await arollout_group("i", lambda _: Number(), numbers(), **arguments))
        async with acollect(["i"], lambda _: Number(), numbers(), **arguments) as taken:
            groups += [group async for group in taken]
    assert len(groups) == 8
    for group in groups:
        assert group.rewards == (1.0, 0.0, 0.5)
        assert group.scores[0].metadata["judge"]["failures"] == 0


async def test_a_synchronous_model_is_asked_at_the_same_time_by_acollect() -> None:
    # Each call waits for another, so that one after the other would never end.
    meeting = anyio.Event()
    waiting = 0

    def blocking(chat: Chat) -> str:
        async def meet() -> None:
            nonlocal waiting
            waiting += 1
            if waiting == 2:
                meeting.set()
            await meeting.wait()

        anyio.from_thread.run(meet)
        return model(chat)

    judge = PairwiseJudge(blocking, LARGER)
    group = await arollout_group(
        "i", lambda _: Number(), numbers(), num_rollouts=2, grade_group=judge
    )
    assert group.rewards == (1.0, 0.0)


def test_an_asynchronous_model_is_refused_by_collect() -> None:
    with pytest.raises(TypeError, match="use arollout_group or acollect"):
        rollout_group(
            "i",
            lambda _: Number(),
            numbers(),
            num_rollouts=2,
            on_error="raise",
            grade_group=PairwiseJudge(amodel, LARGER),
        )


def test_a_judge_that_fails_fails_the_group_and_keeps_the_episodes() -> None:
    judge = PairwiseJudge(lambda chat: "I like both.", LARGER, max_retries=0)
    group = rollout_group("i", lambda _: Number(), numbers(), num_rollouts=2, grade_group=judge)
    assert group.trajectories == ()
    assert {error.phase for error in group.errors} == {"grade"}
    assert all(error.trajectory is not None for error in group.errors)
    assert "VerdictError" in group.errors[0].error_type


def test_rewards_go_to_disk_and_back(tmp_path: Path) -> None:
    store = GroupStore(tmp_path / "run.jsonl")

    def run() -> list[Any]:
        judge = PairwiseJudge(model, LARGER)
        arguments: Any = {"num_rollouts": 3, "seed": 1, "store": store, "grade_group": judge}
        groups = [*collect(["i"], lambda _: Number(), numbers(), **arguments)]
        return [[group.scores for group in groups], judge.usage.calls]

    first, calls = run()
    assert calls == 6
    assert run() == [first, 0]


@pytest.mark.parametrize(
    ("options", "kind", "complaint"),
    [
        ({"model": None}, TypeError, "model must be a function of a chat"),
        ({"rubric": "better"}, TypeError, "a judge judges by a Criterion or a Rubric"),
        ({"on_error": "ignore"}, ValueError, "on_error must be one of"),
        ({"template": JudgeTemplate(scale=(1, 5))}, ValueError, "neither words nor a scale"),
        ({"concurrency": 0}, ValueError, "concurrency"),
        ({"max_retries": -1}, ValueError, "max_retries must be at least 0"),
    ],
)
def test_options_that_make_no_sense_are_refused(options: Any, kind: Any, complaint: str) -> None:
    make: Any = PairwiseJudge
    with pytest.raises(kind, match=complaint):
        make(**{"model": model, "rubric": LARGER, **options})


def test_what_a_type_checker_infers() -> None:
    judge = PairwiseJudge(model, LARGER)
    assert_type(judge.score(["1"]), list[Score])
    group = rollout_group("i", lambda _: Number(), numbers(), num_rollouts=2, grade_group=judge)
    assert_type(judge.score(group), list[Score])
    chat_model: JudgeModel = amodel
    assert PairwiseJudge(chat_model, LARGER).usage.calls == 0
