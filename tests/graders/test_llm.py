"""`LLMGrader`: render, sample, parse, at once or awaited."""

from __future__ import annotations

import dataclasses
import math
import threading
from typing import Any

import anyio
import anyio.lowlevel
import gymnasium as gym
import pytest

from rolloutlib import AsyncGradingWrapper, AsyncSingleTurnEnv
from rolloutlib.graders import CompositeGrader, Criterion, LLMGrader, Rubric, Score

pytestmark = pytest.mark.anyio

RUBRIC = Rubric(id="R", criteria=(Criterion(id="a", description="d"),))
NAMES = {"rubric_id": "R", "rubric_fingerprint": RUBRIC.fingerprint}


def render(answer: str, rubric: object) -> list[str]:
    return [answer, type(rubric).__name__]


def parse(reply: str, rubric: object) -> float:
    return float(reply)


def sample(prompt: list[str]) -> str:
    return prompt[0]


async def asample(prompt: list[str]) -> str:
    await anyio.lowlevel.checkpoint()
    return prompt[0]


def make_judge(**parts: Any) -> LLMGrader[str, Any]:
    make: Any = LLMGrader
    return make(**{"sample": sample, "render": render, "parse": parse, **parts})


async def test_a_prompt_is_rendered_a_reply_sampled_and_a_score_parsed() -> None:
    seen: list[object] = []

    def record(reply: str, rubric: object) -> Score:
        seen.append((reply, rubric))
        return Score(0.5, {"part": 1}, {"k": 1}, feedback="so so")

    def see(prompt: list[str]) -> str:
        seen.append(prompt)
        return "reply"

    expected = Score(0.5, {"part": 1}, {**NAMES, "k": 1}, feedback="so so")
    judge = make_judge(sample=see, parse=record)
    scores = [judge.score("x", RUBRIC), judge("x", RUBRIC), await judge.ascore("x", RUBRIC)]
    assert scores == [expected] * 3
    assert seen == [["x", "Rubric"], ("reply", RUBRIC)] * 3


@pytest.mark.parametrize("asynchronous", [asample, lambda prompt: asample(prompt)])  # noqa: PLW0108
async def test_an_asynchronous_model_is_awaited(asynchronous: Any) -> None:
    judge = make_judge(sample=asynchronous)
    assert await judge.ascore("0.5", RUBRIC) == Score(0.5, metadata=NAMES)
    called = judge("0.5", RUBRIC)
    assert not isinstance(called, Score)
    assert await called == Score(0.5, metadata=NAMES)
    with pytest.raises(TypeError, match="the model's reply has to be awaited: use ascore"):
        judge.score("0.5", RUBRIC)


async def test_a_synchronous_model_runs_off_the_event_loop_unless_inline() -> None:
    def where(prompt: list[str]) -> float:
        return threading.get_ident()

    def is_here(ident: int, rubric: object) -> float:
        return float(ident == threading.get_ident())

    assert (await make_judge(sample=where, parse=is_here).ascore("x", RUBRIC)).value == 0.0
    inline = make_judge(sample=where, parse=is_here, inline=True)
    assert (await inline.ascore("x", RUBRIC)).value == 1.0


def test_what_parse_says_comes_before_the_grader_s_metadata_and_that_before_the_rubric_s() -> None:
    def detailed(reply: str, rubric: object) -> Score:
        return Score(1, metadata={"k": "parse"})

    judge = make_judge(parse=detailed, metadata={"k": "grader", "rubric_id": "mine", "m": 1})
    assert judge.score("x", RUBRIC).metadata == {**NAMES, "rubric_id": "mine", "m": 1, "k": "parse"}


@pytest.mark.parametrize("rubric", ["be strict", RUBRIC.criteria[0], None])
def test_only_a_rubric_is_named_in_the_metadata(rubric: object) -> None:
    assert make_judge().score("0.5", rubric) == Score(0.5)


class TroubleError(Exception):
    """A user's own error."""


def fail(*arguments: object) -> Any:
    raise TroubleError


async def afail(*arguments: object) -> Any:
    raise TroubleError


@pytest.mark.parametrize(
    ("parts", "note"),
    [
        ({"render": fail}, "while rendering the prompt"),
        ({"sample": fail}, "while sampling the model's reply"),
        ({"parse": fail}, "while parsing the model's reply 'x'"),
    ],
)
async def test_an_error_comes_out_as_it_is_and_tells_where_it_arose(
    parts: dict[str, Any], note: str
) -> None:
    judge = make_judge(**parts)
    with pytest.raises(TroubleError) as caught:
        judge.score("x", RUBRIC)
    assert caught.value.__notes__ == [note]
    with pytest.raises(TroubleError) as caught:
        judge("x", RUBRIC)
    assert caught.value.__notes__ == [note]
    with pytest.raises(TroubleError) as caught:
        await judge.ascore("x", RUBRIC)
    assert caught.value.__notes__ == [note]


async def test_an_error_of_an_asynchronous_model_tells_where_it_arose() -> None:
    with pytest.raises(TroubleError) as caught:
        await make_judge(sample=afail).ascore("x", RUBRIC)
    assert caught.value.__notes__ == ["while sampling the model's reply"]


@pytest.mark.parametrize(
    ("value", "error"), [(None, TypeError), ("1", TypeError), (math.nan, ValueError)]
)
def test_what_is_not_a_score_is_refused_and_the_reply_is_told(
    value: object, error: type[Exception]
) -> None:
    judge = make_judge(parse=lambda reply, rubric: value)
    with pytest.raises(error, match="score must be") as caught:
        judge.score("x", RUBRIC)
    assert caught.value.__notes__ == ["while parsing the model's reply 'x'"]


def test_a_long_reply_is_told_in_part() -> None:
    with pytest.raises(ValueError, match="could not convert") as caught:
        make_judge().score("x" * 10_000, RUBRIC)
    assert len(caught.value.__notes__[0]) < 600


@pytest.mark.parametrize("name", ["sample", "render", "parse"])
def test_parts_are_checked_at_construction(name: str) -> None:
    with pytest.raises(TypeError, match=f"{name} must be callable, got 1"):
        make_judge(**{name: 1})
    with pytest.raises(ValueError, match=r"metadata\['k'\]"):
        make_judge(metadata={"k": object()})


@pytest.mark.parametrize("name", ["render", "parse"])
def test_only_sampling_may_be_asynchronous(name: str) -> None:
    async def part(input: object, rubric: object) -> float:
        return 1.0

    with pytest.raises(TypeError, match=f"{name} must be synchronous"):
        make_judge(**{name: part})


@pytest.mark.parametrize("name", ["sample", "render", "parse"])
async def test_an_error_that_takes_no_notes_comes_out_too(name: str) -> None:
    @dataclasses.dataclass(frozen=True)
    class FrozenError(Exception):
        code: int

    def fail(*_: object) -> Any:
        raise FrozenError(7)

    judge = make_judge(**{name: fail})
    with pytest.raises(FrozenError):
        judge.score("0.5", RUBRIC)
    with pytest.raises(FrozenError):
        await judge.ascore("0.5", RUBRIC)


class CachingJudge(LLMGrader[str, Any]):
    """Overrides the call alone."""

    def __call__(self, input: str, rubric: Any, /) -> Score:
        return Score(0.25)


async def test_a_subclass_s_call_is_what_grades() -> None:
    judge = CachingJudge(sample=sample, render=render, parse=parse)
    grader = CompositeGrader(judge)
    assert grader.score("1", RUBRIC).value == 0.25
    assert (await grader.ascore("1", RUBRIC)).value == 0.25
    env = AsyncGradingWrapper(
        Guess(), rubric=RUBRIC, grader=judge, make_input=lambda env, action: action
    )
    await env.reset()
    assert (await env.step("1"))[1] == 0.25


@pytest.mark.parametrize("model", [sample, asample])
async def test_a_judge_grades_a_criterion_of_a_composite(model: Any) -> None:
    grader = CompositeGrader(make_judge(sample=model))
    assert await grader.ascore("0.5", RUBRIC) == Score(0.5, {"a": 0.5}, NAMES)


@pytest.mark.parametrize("asynchronous", [asample, lambda prompt: asample(prompt)])  # noqa: PLW0108
def test_score_of_a_composite_refuses_an_asynchronous_judge_and_leaves_no_coroutine_behind(
    asynchronous: Any,
) -> None:
    with pytest.raises(TypeError, match="criterion 'a' has to be awaited: use ascore"):
        CompositeGrader(make_judge(sample=asynchronous)).score("0.5", RUBRIC)


class Guess(AsyncSingleTurnEnv[str, str]):
    observation_space = gym.spaces.Text(10)
    action_space = gym.spaces.Text(10)

    async def initial_observation(
        self, *, options: dict[str, Any] | None = None
    ) -> tuple[str, Any]:
        return "guess", {}

    async def evaluate(self, action: str) -> float:
        return 0.0

    async def terminal_observation(self, action: str) -> str:
        return action


async def test_a_judge_makes_the_reward_of_an_environment() -> None:
    judge = make_judge(sample=asample)
    env = AsyncGradingWrapper(
        Guess(), rubric=RUBRIC, grader=judge, make_input=lambda env, action: action
    )
    await env.reset()
    _, reward, _, _, info = await env.step("0.5")
    await env.close()
    assert reward == 0.5
    assert Score.from_info(info) == Score(0.5, metadata=NAMES)


@pytest.mark.parametrize(
    ("options", "rubric", "good", "bad"),
    [
        ({}, RUBRIC, ("0", "1"), ("-0.1", "1.1", "9e124", "nan")),
        ({"scale": (1, 5)}, RUBRIC, ("1", "5"), ("0.9", "5.1")),
        ({"scale": None}, RUBRIC, ("-7", "9e124"), ("nan", "inf")),
        ({}, Criterion(id="a", description="d", scale=(1, 5)), ("1", "5"), ("0", "6")),
    ],
)
async def test_a_verdict_off_the_scale_is_no_score(
    options: dict[str, Any], rubric: Any, good: tuple[str, ...], bad: tuple[str, ...]
) -> None:
    judge = make_judge(**options)
    for reply in good:
        assert judge.score(reply, rubric).value == float(reply)
    for reply in bad:
        with pytest.raises(ValueError, match="the score must be"):
            judge.score(reply, rubric)
        with pytest.raises(ValueError, match="the score must be"):
            await judge.ascore(reply, rubric)


@pytest.mark.parametrize("scale", [(1, 0), (0, 0), (0, float("inf")), (float("nan"), 1)])
def test_an_unusable_scale_is_refused_before_the_model_is_asked(scale: Any) -> None:
    with pytest.raises(ValueError, match="a lower and a higher finite number"):
        make_judge(scale=scale)
