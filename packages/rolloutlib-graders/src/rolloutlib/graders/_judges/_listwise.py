"""Rewards from ranking the members of a group."""

from __future__ import annotations

import hashlib
import secrets
import statistics
from collections.abc import Callable, Mapping, Sequence
from itertools import combinations
from typing import Any

import anyio

from rolloutlib._calls import check_count
from rolloutlib._exceptions import add_note
from rolloutlib.graders._composite import DEFAULT_CONCURRENCY
from rolloutlib.graders._criteria import Criterion
from rolloutlib.graders._judges._candidates import Candidate
from rolloutlib.graders._judges._comparisons import GroupJudge, GroupT, render_list
from rolloutlib.graders._judges._exchanges import JudgeModel
from rolloutlib.graders._judges._many import OnError, amap_all, map_all
from rolloutlib.graders._judges._prompts import JudgePrompt
from rolloutlib.graders._judges._replies import VerdictError, sum_usage
from rolloutlib.graders._judges._templates import JudgeTemplate
from rolloutlib.graders._rubric import Rubric
from rolloutlib.rollouts import Trajectory
from rolloutlib.scores import Score


class ListwiseJudge(GroupJudge[GroupT]):
    """Ranks the members of a group, several times in different orders.

    For `grade_group` of `collect`, as `PairwiseJudge`, with `num_orders` calls a group: cheaper for
    large groups, and harder for the judge. The orders are random, every second one the reverse of the
    one before, so that over both each member stands in the middle on average. A member's score is the
    mean over the orders of (n - rank) / (n - 1): 1 for the first of n, 0 for the last (the count of
    Borda). Members with the same text are shown once, and share their score; if all are the same, or
    there is one alone, the score is 0.5, without a call.

    A score's metadata has under "ranking" the `ranks` in the orders that succeeded, from 1, of how many
    (`num_ranked`), with how many others its place is `inconsistent`, that is not the same in all of
    them, and how many orders `failed`; and under "judge" what the whole group's ranking used.

    Args:
        num_orders: How many times the members are ranked.
        on_error: What becomes of a ranking that fails. "raise" ends the grading; "record" leaves it out,
            and counts it; if all fail, the grading still ends.
        model: As for `PairwiseJudge`, and so the other arguments.
        rubric: What to judge by.
        template: Makes the prompts; without words and scale. Its seed fixes the orders too.
        read: Makes the candidates of a group.
        max_retries: How many replies without a verdict are answered with a complaint.
        metadata: Goes into the metadata of each score, a copy of it.
        concurrency: How many rankings each call of `ascore` asks for at once.
        inline: In `ascore`, call a synchronous model on the event loop.

    Raises:
        TypeError: An argument has the wrong type.
        ValueError: An argument has no usable value.
    """

    def __init__(
        self,
        model: JudgeModel,
        rubric: Criterion | Rubric,
        *,
        num_orders: int = 2,
        template: JudgeTemplate | None = None,
        read: Callable[[GroupT], Sequence[str | Candidate | Trajectory[Any, Any]]] | None = None,
        on_error: OnError = "raise",
        max_retries: int = 2,
        metadata: Mapping[str, Any] | None = None,
        concurrency: int | anyio.CapacityLimiter = DEFAULT_CONCURRENCY,
        inline: bool = False,
    ) -> None:
        check_count("num_orders", num_orders)
        super().__init__(
            model,
            rubric,
            template=template,
            read=read,
            on_error=on_error,
            max_retries=max_retries,
            metadata=metadata,
            concurrency=concurrency,
            inline=inline,
        )
        self._num_orders = num_orders

    def num_calls(self, group_size: int) -> int:
        """Return how many calls a group takes, without retries and if not all texts are the same."""
        return self._num_orders if group_size > 1 else 0

    def score(self, group: GroupT, /) -> list[Score]:
        """Rank one order after another; return one score for each candidate, in their order.

        Raises:
            VerdictError: A ranking failed, and `on_error` is "raise", or all did.
            TypeError: The model is asynchronous, or the group cannot be read.
            ValueError: The candidates answer different questions.
            BaseException: What the model raises.
        """
        candidates, distinct = self._distinct(group)
        orders = self._orders(list(distinct))

        def rank(order: Sequence[str]) -> Score:
            try:
                return self._grader.score([distinct[text] for text in order], self._rubric)
            except Exception as error:
                add_note(error, f"while ranking {len(order)} candidates")
                raise

        return self._place(candidates, orders, map_all(rank, orders, on_error=self._on_error))

    async def ascore(self, group: GroupT, /) -> list[Score]:
        """Rank several orders at a time; return one score for each candidate, in their order.

        Raises:
            VerdictError: A ranking failed, and `on_error` is "raise", or all did.
            TypeError: The group cannot be read.
            ValueError: The candidates answer different questions.
            BaseException: What the model raises.
        """
        candidates, distinct = self._distinct(group)
        orders = self._orders(list(distinct))

        async def rank(order: Sequence[str]) -> Score:
            try:
                return await self._grader.ascore([distinct[text] for text in order], self._rubric)
            except Exception as error:
                add_note(error, f"while ranking {len(order)} candidates")
                raise

        rankings = await amap_all(
            rank, orders, on_error=self._on_error, concurrency=self._concurrency
        )
        return self._place(candidates, orders, rankings)

    def _render(self, candidates: Sequence[Candidate], rubric: Criterion | Rubric) -> JudgePrompt:
        return render_list(self._template, candidates, rubric)

    def _distinct(self, group: GroupT) -> tuple[list[Candidate], dict[str, Candidate]]:
        candidates = self._candidates(group)
        return candidates, {candidate.text: candidate for candidate in reversed(candidates)}

    def _orders(self, texts: list[str]) -> list[list[str]]:
        if len(texts) < 2:
            return []
        seed = self._template.seed
        salt = secrets.token_hex(16) if seed is None else repr(seed)
        orders: list[list[str]] = []
        for index in range(self._num_orders):
            orders.append(orders[-1][::-1] if index % 2 else _shuffled(texts, f"{salt} {index}"))
        return orders

    def _place(
        self,
        candidates: Sequence[Candidate],
        orders: Sequence[Sequence[str]],
        rankings: Sequence[Score | Exception],
    ) -> list[Score]:
        failures = [each for each in rankings if isinstance(each, Exception)]
        used = sum_usage(rankings)
        if orders and len(failures) == len(rankings):
            last = failures[-1]
            msg = f"all {len(failures)} rankings failed, the last with {type(last).__qualname__}: {last}"
            error = VerdictError(msg)
            error.usage = used
            raise error from last
        ranks: dict[str, list[int]] = {candidate.text: [] for candidate in candidates}
        for order, ranking in zip(orders, rankings, strict=True):
            if isinstance(ranking, Score):
                for index, text in enumerate(order):
                    ranks[text].append(int(ranking.components[str(index)].value))
        others = len(ranks) - 1
        inconsistent = dict.fromkeys(ranks, 0)
        for one, two in combinations(ranks, 2):
            if len({a < b for a, b in zip(ranks[one], ranks[two], strict=True)}) > 1:
                inconsistent[one] += 1
                inconsistent[two] += 1
        scores: list[Score] = []
        for candidate in candidates:
            own = ranks[candidate.text]
            facts = {
                "ranks": own,
                "num_ranked": len(ranks),
                "inconsistent": inconsistent[candidate.text],
                "failed": len(failures),
            }
            value = statistics.fmean([1 - (rank - 1) / others for rank in own]) if own else 0.5
            scores.append(self._score(value, "ranking", facts, used))
        return scores


def _shuffled(texts: Sequence[str], salt: str) -> list[str]:
    """Return the texts in an order that depends on nothing but the salt and themselves."""

    def key(text: str) -> bytes:
        return hashlib.sha256(f"{salt} {text}".encode("utf-8", "surrogatepass")).digest()

    return sorted(texts, key=key)
