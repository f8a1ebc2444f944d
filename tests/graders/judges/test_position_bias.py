"""`position_bias`: what becomes of preferences when the order is swapped."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import anyio
import pytest

from rolloutlib.graders import (
    Criterion,
    JudgeTemplate,
    JudgeUsage,
    PairCase,
    PairwiseJudge,
    PositionBias,
    aposition_bias,
    position_bias,
)
from rolloutlib.types import Chat

pytestmark = pytest.mark.anyio

LARGER = Criterion(id="larger", description="Which is larger?")


def judge(choose: Callable[[str, str], str], **options: Any) -> PairwiseJudge:
    def model(chat: Chat) -> str:
        found = re.findall(r"<candidate-.*>\n(.*)\n</", str(chat[1]["content"]))
        return f'{{"winner": "{choose(*found)}"}}'

    template = JudgeTemplate(verdict_id=False)
    return PairwiseJudge(model, LARGER, template=template, max_retries=0, **options)


async def both_ways(one: PairwiseJudge, pairs: list[PairCase]) -> PositionBias:
    result = position_bias(one, pairs)
    assert await aposition_bias(one, pairs) == result
    return result


VERDICTS = {
    # Of each pair, the verdicts when it is shown as it is and when it is swapped.
    ("a", "b"): ("A", "B"),  # a, in both orders
    ("c", "d"): ("B", "A"),  # d, in both
    ("e", "f"): ("tie", "tie"),
    ("g", "h"): ("A", "A"),  # the first, in both
    ("i", "j"): ("A", "tie"),
    ("k", "l"): ("B", "B"),  # the second, in both
    ("m", "n"): ("neither", "A"),
}


def scripted(first: str, second: str) -> str:
    if (first, second) in VERDICTS:
        return VERDICTS[first, second][0]
    return VERDICTS[second, first][1]


async def test_each_pair_is_consistent_or_leans_or_failed() -> None:
    golds: list[Any] = ["first", "first", "tie", "first", "tie", None, "first"]
    pairs = [PairCase(*names, gold) for names, gold in zip(VERDICTS, golds, strict=True)]
    result = await both_ways(judge(scripted), pairs)
    assert result.num_pairs == 7
    assert result.num_consistent == 3
    assert result.num_toward_first == 2
    assert result.num_toward_second == 1
    assert (result.num_failures, result.errors) == (1, {"VerdictError": 1})
    assert result.consistency == 0.5
    # a is right, d is not, the tie is, and what is inconsistent is a tie: wrong, right, not labelled.
    assert (result.num_labelled, result.num_agreeing, result.accuracy) == (5, 3, 0.6)
    assert result.table() == (
        "7 pairs in both orders\n"
        "  failed             0.143  1 of 7: 1 VerdictError\n"
        "  consistent         0.500  3 of 6\n"
        "  toward the first   0.333  2 of 6\n"
        "  toward the second  0.167  1 of 6\n"
        "  agreement          0.600  3 of 5\n"
        "  calls                 13  0 retries; 0 + 0 tokens, 13 calls told none"
    )
    form = json.loads(json.dumps(result.to_dict()))
    assert (form["consistency"], form["accuracy"]) == (0.5, 0.6)


async def test_a_judge_of_position_alone_is_found_out() -> None:
    pairs = [PairCase(str(number), str(number + 1), "second") for number in range(10)]
    result = await both_ways(judge(lambda first, second: "A"), pairs)
    assert (result.num_toward_first, result.consistency, result.accuracy) == (10, 0.0, 0.0)
    fair = await both_ways(judge(lambda a, b: "A" if int(a) > int(b) else "B"), pairs)
    assert (fair.num_toward_first, fair.consistency, fair.accuracy) == (0, 1.0, 1.0)
    assert fair.usage == JudgeUsage(verdicts=20, calls=20, untold_calls=20)


async def test_nothing_is_said_where_nothing_was_judged() -> None:
    result = await both_ways(judge(lambda a, b: "?"), [PairCase("a", "b")])
    assert (result.num_failures, result.consistency, result.accuracy) == (1, None, None)
    assert "consistent         " in result.table()


async def test_pairs_are_compared_at_the_same_time() -> None:
    running = 0
    full = anyio.Event()

    async def model(chat: Chat) -> str:
        nonlocal running
        running += 1
        if running == 4:
            full.set()
        await full.wait()
        return '{"winner": "tie"}'

    one = PairwiseJudge(model, LARGER, template=JudgeTemplate(verdict_id=False))
    pairs = [PairCase("a", "b", "tie"), PairCase("c", "d", "tie")]
    assert (await aposition_bias(one, pairs, concurrency=2)).accuracy == 1


def test_what_cannot_be_measured_is_refused() -> None:
    wrong: Any = "A"
    with pytest.raises(ValueError, match="gold must be one of"):
        PairCase("a", "b", wrong)
    with pytest.raises(ValueError, match="got none"):
        position_bias(judge(scripted), [])
    with pytest.raises(TypeError, match="must be a PairCase"):
        position_bias(judge(scripted), [("a", "b", "tie")])  # pyright: ignore[reportArgumentType]
