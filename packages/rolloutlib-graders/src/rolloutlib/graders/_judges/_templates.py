"""Prompts for judges."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

from rolloutlib.graders._aggregators import Aggregator, check_aggregation, weighted_mean
from rolloutlib.graders._criteria import Criterion, Scale, check_scale
from rolloutlib.graders._judges._candidates import to_candidate
from rolloutlib.graders._judges._prompts import (
    JudgePrompt,
    Seed,
    check_rubric,
    fence_for,
    json_form,
    write_chat,
)
from rolloutlib.graders._judges._prose import check_words
from rolloutlib.graders._judges._verdicts import parse_verdict, scale_of
from rolloutlib.graders._rubric import Rubric
from rolloutlib.scores import Score


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeTemplate:
    """Makes prompts that ask a model to judge a candidate.

    The candidate, its question and the references stand each between tags of their own that end in
    a nonce, fresh for each prompt and not part of any of these texts, so that none can end its tag
    or begin another's. Before and after them the judge is told that what is between such tags is
    data. No text is ever searched for placeholders. Tokens with which chat templates end a turn, as
    `<|im_end|>`, are broken by a space in the data, since local model servers may obey them.

    Attributes:
        instructions: What the judge is told besides, at the beginning.
        scale: The lowest and the highest score that the judge is asked for, mapped linearly onto the
            criterion's; by default that.
        words: Verdicts in words, with their values from 0 to 1, instead of JSON: for models that are
            too small for it. One word cannot carry the id of the prompt, so that a judge that repeats
            what the candidate says gives its verdict.
        verdict_id: Whether the JSON must repeat the prompt's id, which a candidate cannot know.
        aggregate: Makes the score of a rubric from those of its criteria, whose gates then hold as in a
            `CompositeGrader`.
        system: Whether the first message is one of the role "system"; else all is in one message.
        seed: By default the nonce is random. A seed, to be kept from whoever makes the candidates,
            makes the prompt a function of its contents, for caches and tests.

    Raises:
        ValueError: The scale or the words make no sense, or there are both.
    """

    instructions: str = ""
    scale: Scale | None = None
    words: Mapping[str, float] | None = None
    verdict_id: bool = True
    aggregate: Aggregator = weighted_mean
    system: bool = True
    seed: Seed = None

    def __post_init__(self) -> None:
        if self.scale is not None:
            check_scale(self.scale)
        if self.words is not None:
            check_words(self.words.items())
            if self.scale is not None:
                msg = f"words have values of their own, and no scale, got {self.scale!r}"
                raise ValueError(msg)

    def render(self, candidate: object, rubric: Criterion | Rubric, /) -> JudgePrompt:
        """Make the prompt for a candidate.

        Args:
            candidate: A text, a `Candidate`, or a `Trajectory`, of which the initial observation is
                the question and the last action the answer.
            rubric: What to judge by; its references and instructions are told.

        Raises:
            TypeError: The candidate or the rubric is something else, or there are words and the
                rubric is no single criterion.
            ValueError: The rubric's criteria cannot be aggregated.
        """
        shown = to_candidate(candidate)
        check_rubric(rubric)
        if isinstance(rubric, Rubric):
            check_aggregation(self.aggregate, rubric)
            if self.words is not None:
                msg = f"words judge by one Criterion, got {rubric!r}"
                raise TypeError(msg)
        fence = fence_for([shown], rubric, self.instructions, self.seed)
        form = self._form(rubric, fence.nonce)

        def parse(reply: str) -> Score:
            return parse_verdict(
                reply,
                rubric,
                verdict_id=fence.nonce if self.verdict_id else None,
                scale=self.scale,
                words=self.words,
                aggregate=self.aggregate,
            )

        chat = write_chat(
            fence,
            [shown],
            rubric,
            task="Judge the candidate answer.",
            form=form,
            instructions=self.instructions,
            system=self.system,
        )
        return JudgePrompt(chat, fence.nonce, form, parse)

    def _form(self, rubric: Criterion | Rubric, nonce: str) -> str:
        if self.words is not None:
            return f"Reply with one word: {' or '.join(self.words)}."
        if isinstance(rubric, Criterion):
            members = f'"score": {_range(rubric, self.scale)}'
        else:
            scores = [
                f"{json.dumps(each.id)}: {_range(each, self.scale)}" for each in rubric.criteria
            ]
            members = f'"criteria": {{{", ".join(scores)}}}'
        return json_form(nonce if self.verdict_id else None, members)


def _range(criterion: Criterion, scale: Scale | None) -> str:
    low, high = scale_of(criterion) if scale is None else scale
    return f"<a number from {low:g} (not at all) to {high:g} (fully)>"
