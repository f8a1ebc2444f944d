"""`ListwiseJudge`: ranks over several orders."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rolloutlib.graders import (
    Candidate,
    Criterion,
    JudgeTemplate,
    JudgeUsage,
    ListwiseJudge,
    VerdictError,
)
from rolloutlib.types import Chat

pytestmark = pytest.mark.anyio

BETTER = Criterion(id="better", description="Which is larger?")


def shown(chat: Chat) -> tuple[str, dict[str, str]]:
    """Return the nonce, and the candidates by their letters."""
    text = str(chat[1]["content"])
    found = re.findall(r"<candidate-(\w+)-(\w+)>\n(.*?)\n</candidate-\1-\2>", text, re.DOTALL)
    return found[0][1], {letter: candidate for letter, _, candidate in found}


def ranking(
    order: Callable[[dict[str, str]], list[Any]], seen: Any = None
) -> Callable[[Chat], str]:
    def model(chat: Chat) -> str:
        nonce, candidates = shown(chat)
        if seen is not None:
            seen.append(list(candidates.values()))
        return json.dumps({"ranking": order(candidates), "id": nonce})

    return model


def largest(candidates: dict[str, str]) -> list[str]:
    return sorted(candidates, key=lambda letter: -float(candidates[letter]))


def first(candidates: dict[str, str]) -> list[str]:
    return list(candidates)


async def test_a_score_is_the_place_in_the_ranking() -> None:
    seen: list[list[str]] = []
    judge = ListwiseJudge(ranking(largest, seen), BETTER, metadata={"k": 1})
    for scores in (judge.score(["1", "4", "2", "3"]), await judge.ascore(["1", "4", "2", "3"])):
        assert [score.value for score in scores] == pytest.approx([0, 1, 1 / 3, 2 / 3])
        assert scores[2].metadata["ranking"] == {
            "ranks": [3, 3],
            "num_ranked": 4,
            "inconsistent": 0,
            "failed": 0,
        }
        assert JudgeUsage.of(scores[2]) == JudgeUsage(verdicts=2, calls=2, untold_calls=2)
        assert scores[2].metadata["k"] == 1
    assert seen[0] == seen[1][::-1]
    assert judge.usage.calls == 4
    assert [judge.num_calls(size) for size in (0, 1, 2, 64)] == [0, 0, 2, 2]


async def test_a_ranking_by_position_says_nothing_and_is_seen() -> None:
    judge = ListwiseJudge(ranking(first), BETTER)
    scores = judge.score(["1", "2", "3"])
    assert [score.value for score in scores] == [0.5, 0.5, 0.5]
    assert [score.metadata["ranking"]["inconsistent"] for score in scores] == [2, 2, 2]
    once = ListwiseJudge(ranking(first), BETTER, num_orders=1).score(["1", "2", "3"])
    assert sorted(score.value for score in once) == [0, 0.5, 1]


def test_orders_are_new_each_time_unless_seeded() -> None:
    texts = [str(number) for number in range(10)]
    for seed in (None, 3):
        seen: list[list[str]] = []
        judge = ListwiseJudge(
            ranking(largest, seen), BETTER, num_orders=4, template=JudgeTemplate(seed=seed)
        )
        judge.score(texts)
        judge.score(texts[::-1])
        assert seen[0] != seen[2]
        assert [seen[1], seen[3]] == [seen[0][::-1], seen[2][::-1]]
        assert all(sorted(order) == texts for order in seen)
        assert (seen[:4] == seen[4:]) == (seed is not None)


async def test_equal_texts_share_their_score_and_lone_ones_need_no_judge() -> None:
    judge = ListwiseJudge(ranking(largest), BETTER)
    scores = judge.score([Candidate("1"), Candidate("2"), Candidate("1")])
    assert [score.value for score in scores] == [0, 1, 0]
    assert scores[0].metadata["ranking"]["num_ranked"] == 2
    calls = judge.usage.calls
    for texts in (["1"], ["1", "1"], []):
        for same in (judge.score(texts), await judge.ascore(texts)):
            assert [score.value for score in same] == [0.5] * len(texts)
    assert judge.usage.calls == calls


@pytest.mark.parametrize(
    ("order", "complaint"),
    [
        (["A"], "ranking must have each of .* once"),
        (["A", "A"], "ranking must have each of"),
        (["A", "B", "B"], "ranking must have each of"),
        (["A", "B", "C"], "ranking must have each of"),
        (["a", "b"], "ranking must have each of"),
        ("AB", "ranking must be one list of"),
        (None, "ranking must be one list of"),
    ],
)
def test_a_ranking_has_each_candidate_once(order: Any, complaint: str) -> None:
    judge = ListwiseJudge(ranking(lambda _: order), BETTER, max_retries=0)
    with pytest.raises(VerdictError, match=complaint) as caught:
        judge.score(["1", "2"])
    assert "while ranking 2 candidates" in caught.value.__notes__


async def test_a_ranking_that_fails_may_be_left_out_and_counted() -> None:
    replies = iter([True, False] * 2)

    def sometimes(candidates: dict[str, str]) -> list[str]:
        return largest(candidates) if next(replies) else []

    judge = ListwiseJudge(
        ranking(sometimes), BETTER, max_retries=0, on_error="record", concurrency=1
    )
    for scores in (judge.score(["1", "2"]), await judge.ascore(["1", "2"])):
        assert [score.value for score in scores] == [0, 1]
        assert scores[0].metadata["ranking"]["ranks"] == [2]
        assert scores[0].metadata["ranking"]["failed"] == 1
        assert scores[0].metadata["judge"]["failures"] == 1
    silent = ListwiseJudge(lambda chat: "no", BETTER, max_retries=0, on_error="record")
    with pytest.raises(VerdictError, match="all 2 rankings failed, the last with VerdictError"):
        silent.score(["1", "2"])
    with pytest.raises(VerdictError, match="all 2 rankings failed"):
        await silent.ascore(["1", "2"])


async def test_rankings_are_asked_for_at_the_same_time() -> None:
    running = 0
    both = anyio.Event()

    async def model(chat: Chat) -> str:
        nonlocal running
        running += 1
        if running == 2:
            both.set()
        await both.wait()
        return ranking(largest)(chat)

    scores = ListwiseJudge(model, BETTER)(["1", "2"])
    assert not isinstance(scores, list)
    assert [score.value for score in await scores] == [0, 1]


def test_large_groups_have_letters_enough() -> None:
    texts = [str(number) for number in range(60)]
    seen: list[set[str]] = []

    def order(candidates: dict[str, str]) -> list[str]:
        seen.append(set(candidates))
        return largest(candidates)

    scores = ListwiseJudge(ranking(order), BETTER).score(texts)
    assert {"A", "Z", "AA", "AZ", "BA", "BH"} <= seen[0]
    assert scores[59].value == 1


@pytest.mark.parametrize(("num_orders", "kind"), [(0, ValueError), (1.5, TypeError)])
def test_orders_are_counted(num_orders: Any, kind: Any) -> None:
    with pytest.raises(kind, match="num_orders"):
        ListwiseJudge(ranking(first), BETTER, num_orders=num_orders)


@given(numbers=st.lists(st.integers(0, 99), unique=True, min_size=2, max_size=8))
def test_a_judge_that_knows_best_gives_the_ranks(numbers: list[int]) -> None:
    scores = ListwiseJudge(ranking(largest), BETTER, num_orders=3).score(list(map(str, numbers)))
    places = sorted(numbers)
    expected = [places.index(number) / (len(numbers) - 1) for number in numbers]
    assert [score.value for score in scores] == pytest.approx(expected)
