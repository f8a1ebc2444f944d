"""Prompts that compare candidates, and what judges of groups share."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Generic, cast

import anyio
from typing_extensions import TypeVar

from rolloutlib._calls import is_async, read_concurrency
from rolloutlib.graders._composite import DEFAULT_CONCURRENCY
from rolloutlib.graders._criteria import Criterion, plain_metadata
from rolloutlib.graders._judges._candidates import Candidate, to_candidates
from rolloutlib.graders._judges._exchanges import Exchange, JudgeModel, identity
from rolloutlib.graders._judges._many import OnError, check_on_error
from rolloutlib.graders._judges._prompts import (
    JudgePrompt,
    check_rubric,
    fence_for,
    json_form,
    labels,
    write_chat,
)
from rolloutlib.graders._judges._replies import read_object, reason, refuse
from rolloutlib.graders._judges._templates import JudgeTemplate
from rolloutlib.graders._judges._usage import JudgeUsage
from rolloutlib.graders._llm import LLMGrader
from rolloutlib.graders._rubric import Rubric, rubric_names
from rolloutlib.rollouts import Trajectory, TrajectoryGroup
from rolloutlib.scores import Score

GroupT = TypeVar(
    "GroupT",
    default=TrajectoryGroup[Any, Any, Any] | Sequence[str | Candidate | Trajectory[Any, Any]],
)


class GroupJudge(Generic[GroupT]):
    """What judges that compare the members of a group share; see `PairwiseJudge`."""

    def __init__(
        self,
        model: JudgeModel,
        rubric: Criterion | Rubric,
        *,
        template: JudgeTemplate | None = None,
        read: Callable[[GroupT], Sequence[str | Candidate | Trajectory[Any, Any]]] | None = None,
        on_error: OnError = "raise",
        max_retries: int = 2,
        metadata: Mapping[str, Any] | None = None,
        concurrency: int | anyio.CapacityLimiter = DEFAULT_CONCURRENCY,
        inline: bool = False,
    ) -> None:
        prompts = JudgeTemplate() if template is None else template
        if prompts.words is not None or prompts.scale is not None:
            msg = f"a comparison has neither words nor a scale, got {prompts!r}"
            raise ValueError(msg)
        check_rubric(rubric)
        check_on_error(on_error)
        read_concurrency(concurrency, 1)  # refuses what is no bound
        self._template = prompts
        self._rubric = rubric
        self._read = read
        self._on_error: OnError = on_error
        self._metadata = {**rubric_names(rubric), **plain_metadata(metadata or {})}
        self._concurrency = concurrency
        self._exchange = Exchange(model, max_retries=max_retries, inline=inline)
        self._is_async = is_async(model)

        self._grader: LLMGrader[Sequence[Candidate], Criterion | Rubric, JudgePrompt, Score] = (
            LLMGrader(
                sample=self._exchange.sample, render=self._render, parse=identity, inline=inline
            )
        )

    def __call__(self, group: GroupT, /) -> Any:
        """Return the scores, or an awaitable of them if the model is a coroutine function.

        `score` and `ascore` are for callers who know which of the two they want.
        """
        return self.ascore(group) if self._is_async else self.score(group)

    def score(self, group: GroupT, /) -> list[Score]:
        """Ask one question after another; return one score for each candidate, in their order."""
        raise NotImplementedError

    async def ascore(self, group: GroupT, /) -> list[Score]:
        """Ask several questions at a time; return one score for each candidate, in their order."""
        raise NotImplementedError

    @property
    def usage(self) -> JudgeUsage:
        """What the judge was asked until now, and what it used, failures included."""
        return self._exchange.meter.usage

    def _render(self, candidates: Sequence[Candidate], rubric: Criterion | Rubric) -> JudgePrompt:
        raise NotImplementedError

    def _candidates(self, group: GroupT) -> list[Candidate]:
        return to_candidates(group if self._read is None else self._read(group))

    def _score(self, value: float, name: str, facts: Mapping[str, Any], used: JudgeUsage) -> Score:
        metadata = {**self._metadata, name: dict(facts), "judge": used.to_dict()}
        return Score(value, metadata=metadata)


def render_pair(
    template: JudgeTemplate, candidates: Sequence[Candidate], rubric: Criterion | Rubric
) -> JudgePrompt:
    """Ask which of two candidates is better; the score is 1 if it is the first, 0.5 for a tie."""
    values = {"A": 1.0, "B": 0.0, "tie": 0.5}

    def parse(reply: dict[str, Any]) -> Score:
        winner = reply.get("winner")
        if not isinstance(winner, str) or winner not in values:
            refuse(f"winner must be one of {list(values)}, not {winner!r:.60}")
        return Score(values[winner], feedback=reason(reply))

    return _render(
        template,
        candidates,
        rubric,
        "Say which candidate answer is better, A or B, or that neither is: a tie. Their order tells "
        "nothing.",
        "winner",
        '"<A, B or tie>"',
        parse,
    )


def render_list(
    template: JudgeTemplate, candidates: Sequence[Candidate], rubric: Criterion | Rubric
) -> JudgePrompt:
    """Ask for a ranking; the score's components are the ranks from 1, by the candidates' indices."""
    names = labels(len(candidates))

    def parse(reply: dict[str, Any]) -> Score:
        ranking: object = reply.get("ranking")
        if not isinstance(ranking, list):
            refuse(f"ranking must be one list of {names}, not {ranking!r:.60}")
        given = [str(name) for name in cast("list[object]", ranking)]
        if sorted(given) != sorted(names):
            refuse(f"ranking must have each of {names} once, not {ranking!r:.200}")
        ranks = {str(names.index(name)): float(rank) for rank, name in enumerate(given, 1)}
        return Score(0.0, ranks, feedback=reason(reply))

    return _render(
        template,
        candidates,
        rubric,
        f"Rank all {len(names)} candidate answers, the best first. Their order here tells nothing.",
        "ranking",
        '["<the letter of the best>", ..., "<the letter of the worst>"]',
        parse,
    )


def _render(
    template: JudgeTemplate,
    candidates: Sequence[Candidate],
    rubric: Criterion | Rubric,
    task: str,
    member: str,
    values: str,
    parse: Callable[[dict[str, Any]], Score],
) -> JudgePrompt:
    fence = fence_for(candidates, rubric, template.instructions, template.seed)
    verdict_id = fence.nonce if template.verdict_id else None
    form = json_form(verdict_id, f'"{member}": {values}')
    chat = write_chat(
        fence,
        candidates,
        rubric,
        task=task,
        form=form,
        instructions=template.instructions,
        system=template.system,
    )
    return JudgePrompt(
        chat, fence.nonce, form, lambda reply: parse(read_object(reply, verdict_id, member))
    )
