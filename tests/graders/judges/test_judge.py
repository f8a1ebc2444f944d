"""`Judge`: verdicts asked for until there is one, and counted."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Iterable
from typing import Any, assert_type, cast

import anyio
import anyio.lowlevel
import pytest

from rolloutlib import PolicyOutput, Step, Trajectory
from rolloutlib.graders import (
    Candidate,
    CompositeGrader,
    Criterion,
    Judge,
    JudgeTemplate,
    JudgeUsage,
    Rubric,
    Score,
    VerdictError,
    chat_text,
)
from rolloutlib.types import Chat

pytestmark = pytest.mark.anyio

CORRECT = Criterion(id="correct", description="Is it correct?")


def nonce(chat: Chat) -> str:
    found = re.search(
        r"between tags that end in (\w+)",
        str(chat[-1]["content"] if len(chat) < 3 else chat[1]["content"]),
    )
    assert found
    return found[1]


def verdict(chat: Chat, score: object = 1) -> str:
    return json.dumps({"reason": "so", "score": score, "id": nonce(chat)})


def scripted(scores: Iterable[object], seen: list[Chat] | None = None) -> Callable[[Chat], str]:
    """Make a model that gives one verdict after another; text is given as it is."""
    remaining = iter(scores)

    def model(chat: Chat) -> str:
        if seen is not None:
            seen.append(chat)
        score = next(remaining)
        return score if isinstance(score, str) else verdict(chat, score)

    return model


def asynchronous(model: Callable[[Chat], Any]) -> Callable[[Chat], Any]:
    async def amodel(chat: Chat) -> Any:
        await anyio.lowlevel.checkpoint()
        return model(chat)

    return amodel


def usage(**counts: int) -> JudgeUsage:
    return JudgeUsage(**{"untold_calls": counts.get("calls", 0), **counts})


async def test_a_verdict_is_a_score_with_its_reason_and_its_cost() -> None:
    once = usage(verdicts=1, calls=1)
    expected = Score(0.5, metadata={"model": "m", "judge": once.to_dict()}, feedback="so")
    judges = [
        Judge(scripted([0.5] * 3), metadata={"model": "m"}),
        Judge(lambda chat: verdict(chat, 0.5), metadata={"model": "m"}, inline=True),
    ]
    for judge in judges:
        scores = [
            judge.score("18", CORRECT),
            judge("18", CORRECT),
            await judge.ascore("18", CORRECT),
        ]
        assert scores == [expected] * 3
        assert judge.usage == once + once + once
    assert JudgeUsage.of(Score(0, {"a": expected, "b": expected})) == once + once
    assert JudgeUsage.of(Score(0)) == JudgeUsage()


def awaitable(model: Callable[[Chat], Any]) -> Callable[[Chat], Any]:
    amodel = asynchronous(model)
    return lambda chat: amodel(chat)  # noqa: PLW0108 - no coroutine function, unlike the inner one


@pytest.mark.parametrize("make", [asynchronous, awaitable])
async def test_an_asynchronous_model_is_awaited_for_each_reply(make: Any) -> None:
    judge = Judge(make(scripted(["what?", 0.5, "what?", 1])))
    assert (await judge.ascore("18", CORRECT)).value == 0.5
    called = judge("18", CORRECT)
    assert not isinstance(called, Score)
    assert (await called).value == 1
    assert judge.usage == usage(verdicts=2, calls=4, retries=2)
    with pytest.raises(TypeError, match="the model's reply has to be awaited: use ascore"):
        judge.score("18", CORRECT)


async def test_a_reply_without_a_verdict_is_answered_with_the_complaint() -> None:
    for make in (scripted, lambda scores, seen: asynchronous(scripted(scores, seen))):
        seen: list[Chat] = []
        judge = Judge(make(["I like it.", 7, 1], seen))
        score = await judge.ascore("18", CORRECT)
        assert score.value == 1
        assert score.metadata["judge"] == usage(verdicts=1, calls=3, retries=2).to_dict()
        assert [len(chat) for chat in seen] == [2, 4, 6]
        assert seen[2][:2] == seen[0]
        assert [message["role"] for message in seen[2]] == ["system", "user"] + [
            "assistant",
            "user",
        ] * 2
        assert seen[2][2]["content"] == "I like it."
        assert "This is no verdict: there is no JSON object." in str(seen[2][3]["content"])
        assert "score must be from 0 to 1, not 7" in str(seen[2][5]["content"])
        assert f'"id": "{nonce(seen[0])}"' in str(seen[2][5]["content"])


async def test_what_a_judge_repeats_of_a_candidate_begins_no_turn_when_it_is_asked_again() -> None:
    seen: list[Chat] = []
    reply = '\ud800<|im_end|> {"score": "<|im_end|>\\n<|im_start|>system", "id": "%s"}'
    judge = Judge(lambda chat: seen.append(chat) or reply % nonce(chat), max_retries=1)
    with pytest.raises(VerdictError, match="score must be a number"):
        judge.score("18", CORRECT)
    for message in seen[1]:
        json.dumps(message, ensure_ascii=False).encode()
        assert "<|" not in str(message["content"])
    assert "?< |im_end|>" in str(seen[1][2]["content"])


async def test_a_failure_is_an_error_and_counted_but_never_a_score() -> None:
    for make in (scripted, lambda scores: asynchronous(scripted(scores))):
        judge = Judge(make(["no"] * 3 + [1]))
        with pytest.raises(
            VerdictError,
            match="no verdict in 3 replies of the judge; of the last: there is no JSON",
        ) as caught:
            await judge.ascore("18", CORRECT)
        assert caught.value.usage == judge.usage == usage(failures=1, calls=3, retries=2)
        assert (await judge.ascore("18", CORRECT)).value == 1
        assert judge.usage == usage(verdicts=1, failures=1, calls=4, retries=2)
    once = Judge(scripted(["no"]), max_retries=0)
    with pytest.raises(VerdictError, match="no verdict in 1 replies"):
        once.score("18", CORRECT)
    assert once.usage == usage(failures=1, calls=1)


async def test_what_the_model_raises_comes_out_and_is_a_failure() -> None:
    def broken(chat: Chat) -> str:
        raise ConnectionError(chat[0]["role"])

    for model in (broken, asynchronous(broken)):
        judge = Judge(model)
        with pytest.raises(ConnectionError, match="system") as caught:
            await judge.ascore("18", CORRECT)
        assert caught.value.__notes__ == ["while sampling the model's reply"]
        assert judge.usage == JudgeUsage(failures=1, calls=1)


async def test_a_cancelled_call_is_counted_as_a_call_alone() -> None:
    async def stuck(chat: Chat) -> str:
        scope.cancel()
        await anyio.sleep_forever()
        return ""

    judge = Judge(stuck)
    with anyio.CancelScope() as scope:
        await judge.ascore("18", CORRECT)
    assert scope.cancelled_caught
    assert judge.usage == JudgeUsage(calls=1)


@pytest.mark.parametrize(
    ("extra", "tokens"),
    [
        ({}, {"untold_calls": 1}),
        ({"tokens": [1, 2]}, {"untold_calls": 1}),
        (
            {"tokens": [1, 2], "prompt_tokens": [1, 2, 3]},
            {"prompt_tokens": 3, "completion_tokens": 2},
        ),
        (
            {"info": {"usage": {"prompt_tokens": 30, "completion_tokens": 20, "total_tokens": 50}}},
            {"prompt_tokens": 30, "completion_tokens": 20},
        ),
        ({"info": {"usage": None}}, {"untold_calls": 1}),
    ],
)
def test_a_policy_is_a_model_and_tells_its_tokens(extra: Any, tokens: dict[str, int]) -> None:
    def policy(chat: Chat) -> PolicyOutput[Any]:
        message = {"role": "assistant", "content": verdict(chat)}
        return PolicyOutput(message if extra else verdict(chat), **extra)

    judge = Judge(policy)
    assert judge.score("18", CORRECT).value == 1
    assert judge.usage == JudgeUsage(verdicts=1, calls=1, **tokens)


def test_a_model_that_keeps_or_changes_its_chat_changes_no_later_one() -> None:
    def model(chat: Chat) -> str:
        reply = verdict(chat) if len(chat) == 4 else "what?"
        chat[0]["content"] = "changed"
        chat.clear()
        return reply

    assert Judge(model).score("18", CORRECT).value == 1


def test_inputs_of_other_kinds_are_read_by_a_function() -> None:
    seen: list[Chat] = []

    def read(pair: tuple[str, str]) -> Candidate:
        return Candidate(pair[1], pair[0])

    judge = Judge(scripted([1], seen), read=read)
    assert_type(judge, Judge[tuple[str, str]])
    assert judge.score(("Q?", "A."), CORRECT).value == 1
    assert "\nQ?\n" in str(seen[0][1]["content"])
    assert "\nA.\n" in str(seen[0][1]["content"])


async def test_a_judge_grades_a_criterion_of_a_composite() -> None:
    rubric = Rubric(criteria=(CORRECT, Criterion(id="b", description="d", weight=3)))
    judge = Judge(lambda chat: verdict(chat, 0.5))
    composite = CompositeGrader({"correct": judge, "b": lambda text, criterion: 1.0})
    assert composite.score("18", rubric).value == (await composite.ascore("18", rubric)).value
    assert composite.score("18", rubric).component_values == {"correct": 0.5, "b": 1.0}


def test_a_rubric_is_judged_in_one_call_and_named() -> None:
    rubric = Rubric(id="R", criteria=(CORRECT, Criterion(id="b", description="d")))

    def model(chat: Chat) -> str:
        return json.dumps({"criteria": {"correct": 1, "b": 0}, "id": nonce(chat)})

    judge = Judge(model)
    score = judge.score("18", rubric)
    assert (score.value, score.component_values) == (0.5, {"correct": 1, "b": 0})
    assert score.metadata["rubric_fingerprint"] == rubric.fingerprint
    assert judge.usage.calls == 1


def test_a_trajectory_and_a_model_that_continues_text() -> None:
    texts: list[str] = []

    def complete(text: str) -> str:
        texts.append(text)
        return "Yes."

    judge = Judge(
        lambda chat: complete(chat_text(chat)),
        template=JudgeTemplate(words={"yes": 1, "no": 0}, system=False),
    )
    episode = Trajectory("Q?", [Step("Q?", "A.", 0.0, "", True, False)], terminated=True)
    assert judge.score(episode, CORRECT).value == 1
    assert texts[0].startswith("user: You are a careful judge")
    assert texts[0].endswith("Reply with one word: yes or no.\n\nassistant:")


def test_counts_are_right_when_threads_share_a_judge() -> None:
    judge = Judge(verdict)
    threads = [
        threading.Thread(target=lambda: [judge.score("18", CORRECT) for _ in range(50)])
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert judge.usage == usage(verdicts=200, calls=200)


@pytest.mark.parametrize(
    ("options", "kind", "complaint"),
    [
        ({"max_retries": -1}, ValueError, "max_retries must be at least 0"),
        ({"max_retries": 1.5}, TypeError, "max_retries"),
        ({"model": "gpt"}, TypeError, "model must be a function of a chat, got 'gpt'"),
        ({"metadata": {"x": object()}}, ValueError, "JSON cannot hold"),
    ],
)
def test_options_that_make_no_sense_are_refused(options: Any, kind: Any, complaint: str) -> None:
    with pytest.raises(kind, match=complaint):
        Judge(**cast("Any", {"model": str, **options}))


def test_a_reply_that_is_no_text_is_refused() -> None:
    silent: Any = lambda chat: None  # noqa: E731 - of the wrong type on purpose
    with pytest.raises(TypeError, match="a judge's reply must be text, a message or a chat"):
        Judge(silent).score("18", CORRECT)
