"""Rewards from comparing the members of a group two at a time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rolloutlib._exceptions import add_note
from rolloutlib.graders._criteria import Criterion
from rolloutlib.graders._judges._candidates import Candidate, to_candidates
from rolloutlib.graders._judges._comparisons import GroupJudge, GroupT, render_pair
from rolloutlib.graders._judges._many import amap_all, map_all
from rolloutlib.graders._judges._prompts import JudgePrompt
from rolloutlib.graders._judges._replies import VerdictError, sum_usage
from rolloutlib.graders._judges._tallies import (
    Asked,
    Comparison,
    all_pairs,
    both_orders,
    comparison,
    tally,
)
from rolloutlib.graders._rubric import Rubric
from rolloutlib.rollouts import Trajectory
from rolloutlib.scores import Score


class PairwiseJudge(GroupJudge[GroupT]):
    """Compares each member of a group with each other, and gives each its share of wins.

    For `collect(..., grade_group=PairwiseJudge(model, rubric))` and its kin, whatever the model. Each
    pair is shown in both orders, which takes n (n - 1) calls for a group of n; a pair whose verdict
    depends on the order is a tie, and counted as inconsistent. A member's score is the mean over the
    others of 1 for a win, 0.5 for a tie and 0 for a loss, the count of Borda, which ranks as well as any
    model of the comparisons can (Shah and Wainwright, "Simple, Robust and Optimal Ranking from Pairwise
    Comparisons", JMLR 18, 2018). Members with the same text tie without a call. A group of one has 0.5.

    A score's metadata has under "comparisons" how many `wins`, `losses` and `ties` there were, how many of
    the ties were `inconsistent`, and how many comparisons `failed`; and under "judge" what the whole
    group's comparisons used, the same in each score.

    Args:
        model: Takes a chat and returns a reply; any policy over chats is one.
        rubric: What to judge by.
        template: Makes the prompts; without words and scale.
        read: Makes the candidates of a group, in the order of its trajectories. By default the first
            observation is the question, and the last action the answer.
        on_error: What becomes of a comparison that fails. "raise" ends the grading; `collect` then tries
            again or gives up the group, as it is told. "record" leaves the pair out, and counts it; a
            member without any comparison still ends the grading.
        max_retries: How many replies without a verdict are answered with a complaint.
        metadata: Goes into the metadata of each score, a copy of it.
        concurrency: How many comparisons each call of `ascore` makes at once. A `CapacityLimiter` may be
            shared with others.
        inline: In `ascore`, call a synchronous model on the event loop, if it never blocks.

    Raises:
        TypeError: An argument has the wrong type.
        ValueError: An argument has no usable value.
    """

    @staticmethod
    def num_calls(group_size: int) -> int:
        """Return how many calls a group takes, without retries and if no two texts are the same."""
        return group_size * (group_size - 1)

    def compare(
        self,
        first: str | Candidate | Trajectory[Any, Any],
        second: str | Candidate | Trajectory[Any, Any],
    ) -> Comparison:
        """Compare two candidates in both orders.

        Raises:
            VerdictError: The judge gave no verdict.
            ValueError: The candidates answer different questions.
            TypeError: The model is asynchronous.
        """
        asked = both_orders(to_candidates([first, second]), 0, 1)
        return comparison(*map(self._ask, asked))

    async def acompare(
        self,
        first: str | Candidate | Trajectory[Any, Any],
        second: str | Candidate | Trajectory[Any, Any],
    ) -> Comparison:
        """Compare two candidates in both orders, at the same time.

        Raises:
            VerdictError: The judge gave no verdict.
            ValueError: The candidates answer different questions.
        """
        asked = both_orders(to_candidates([first, second]), 0, 1)
        verdicts = await amap_all(
            self._aask, asked, on_error="raise", concurrency=self._concurrency
        )
        in_order, swapped = (each for each in verdicts if isinstance(each, Score))
        return comparison(in_order, swapped)

    def score(self, group: GroupT, /) -> list[Score]:
        """Compare one pair after another; return one score for each candidate, in their order.

        Raises:
            VerdictError: A comparison failed, and `on_error` is "raise", or all of a candidate did.
            TypeError: The model is asynchronous, or the group cannot be read.
            ValueError: The candidates answer different questions.
            BaseException: What the model raises.
        """
        candidates = self._candidates(group)
        asked = all_pairs(candidates)
        verdicts = map_all(self._ask, asked, on_error=self._on_error)
        return self._rewards(len(candidates), asked, verdicts)

    async def ascore(self, group: GroupT, /) -> list[Score]:
        """Compare several pairs at a time; return one score for each candidate, in their order.

        Raises:
            VerdictError: A comparison failed, and `on_error` is "raise", or all of a candidate did.
            TypeError: The group cannot be read.
            ValueError: The candidates answer different questions.
            BaseException: What the model raises.
        """
        candidates = self._candidates(group)
        asked = all_pairs(candidates)
        verdicts = await amap_all(
            self._aask, asked, on_error=self._on_error, concurrency=self._concurrency
        )
        return self._rewards(len(candidates), asked, verdicts)

    def _render(self, candidates: Sequence[Candidate], rubric: Criterion | Rubric) -> JudgePrompt:
        return render_pair(self._template, candidates, rubric)

    def _ask(self, asked: Asked) -> Score:
        try:
            return self._grader.score(asked.shown, self._rubric)
        except Exception as error:
            add_note(error, asked.place)
            raise

    async def _aask(self, asked: Asked) -> Score:
        try:
            return await self._grader.ascore(asked.shown, self._rubric)
        except Exception as error:
            add_note(error, asked.place)
            raise

    def _rewards(
        self, size: int, asked: Sequence[Asked], verdicts: Sequence[Score | Exception]
    ) -> list[Score]:
        answers = {
            (each.first, each.second): verdict
            for each, verdict in zip(asked, verdicts, strict=True)
        }
        used = sum_usage(verdicts)
        try:
            shares = [(each.share, each.to_dict()) for each in tally(size, answers)]
        except VerdictError as error:
            error.usage = used
            raise
        return [self._score(share, "comparisons", counts, used) for share, counts in shares]
