"""Reading scores out of what judges reply."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from rolloutlib.graders._aggregators import Aggregator, weighted_mean
from rolloutlib.graders._composite import CompositeGrader
from rolloutlib.graders._criteria import UNIT, Criterion, Scale, check_scale
from rolloutlib.graders._judges._prose import check_words, read_rating, read_word
from rolloutlib.graders._judges._replies import Twice, number, read_object, reason, refuse
from rolloutlib.graders._rubric import Rubric
from rolloutlib.scores import Score


def parse_verdict(
    reply: str,
    rubric: Criterion | Rubric,
    /,
    *,
    verdict_id: str | None = None,
    scale: Scale | None = None,
    words: Mapping[str, float] | None = None,
    aggregate: Aggregator = weighted_mean,
) -> Score:
    """Read the score that a judge's reply gives.

    By a criterion, the verdict is a JSON object such as `{"reason": "...", "score": 0.5}`; by a
    rubric, one such as `{"reason": "...", "criteria": {"a": 1, "b": 0}}` with all its criteria and no
    others. Anything may stand before it, thinking and a Markdown fence included. The last complete
    object is the verdict.

    Fits `LLMGrader(parse=parse_verdict)`.

    Args:
        reply: What the judge wrote.
        rubric: What was judged by. A score is on the criterion's scale.
        verdict_id: What the object must have under "id", its last member; beside it, a reason and the
            verdict it may have no others then. The prompts of a `JudgeTemplate` give it to the judge. A candidate cannot know it, so that no verdict quoted from one is taken for the
            judge's own; quotations may even follow the verdict. Without it, nothing with a brace may,
            and a rating such as "[[5]]" is a verdict if there is no brace in the reply.
        scale: The lowest and the highest score that the judge could give, which is mapped linearly
            onto the criterion's scale; by default the same.
        words: Verdicts in words instead of JSON, with their values from 0 to 1, as
            `{"yes": 1, "no": 0}`. One alone may be in the reply, outside quotations.
        aggregate: Makes the score of a rubric from those of its criteria, whose gates then hold as in a
            `CompositeGrader`.

    Returns:
        A score with the reason as its feedback, and the criteria's scores of a rubric as components.

    Raises:
        VerdictError: There is no verdict, or one that is not as it should be: a number off the scale,
            NaN, a bool, text or null, a key that is given twice, a criterion that is missing. The
            message says what, in words for the judge.
        TypeError: The reply is not text, or there are words for a rubric.
        ValueError: The scale or the words make no sense.
    """
    if scale is not None:
        check_scale(scale)
    if words is not None:
        check_words(words.items())
        return _by_word(reply, rubric, words)
    if verdict_id is None and isinstance(rubric, Criterion) and "{" not in reply:
        rating = read_rating(reply)
        if rating is not None:
            return Score(_on_scale(rating, "the rating", rubric, scale))
    single = isinstance(rubric, Criterion)
    verdict = read_object(reply, verdict_id, "score" if single else "criteria")
    if isinstance(rubric, Criterion):
        if "score" not in verdict:
            refuse("the JSON object has no score")
        value = _on_scale(verdict["score"], "score", rubric, scale)
        return Score(value, feedback=reason(verdict))
    values = {
        criterion.id: _on_scale(value, f"the score of {criterion.id!r}", criterion, scale)
        for criterion, value in _members(verdict, rubric)
    }
    total = CompositeGrader(_given, aggregate=aggregate).score(values, rubric)
    return Score(total.value, total.components, total.metadata, feedback=reason(verdict))


def scale_of(criterion: Criterion) -> Scale:
    """Return the lowest and the highest score of a criterion: 0 and 1 if it takes any number."""
    return UNIT if criterion.scale is None else criterion.scale


def _given(values: Mapping[str, float], criterion: Criterion) -> float:
    return values[criterion.id]


def _by_word(reply: str, rubric: Criterion | Rubric, words: Mapping[str, float]) -> Score:
    if not isinstance(rubric, Criterion):
        msg = "words judge by one Criterion, not by a Rubric"
        raise TypeError(msg)
    return Score(_mapped(read_word(reply, words), UNIT, scale_of(rubric)))


def _members(verdict: dict[str, Any], rubric: Rubric) -> list[tuple[Criterion, object]]:
    criteria: object = verdict.get("criteria")
    if isinstance(criteria, Twice) or not isinstance(criteria, dict):
        refuse("the JSON object has not one object under criteria, with a score for each")
    given = cast("dict[str, object]", criteria)
    wanted = [criterion.id for criterion in rubric.criteria]
    if missing := [name for name in wanted if name not in given]:
        refuse(f"criteria lacks {missing}")
    if unknown := [name for name in given if name not in wanted]:
        refuse(f"criteria has {unknown!r:.200}, and should have {wanted} alone")
    return [(criterion, given[criterion.id]) for criterion in rubric.criteria]


def _on_scale(value: object, name: str, criterion: Criterion, scale: Scale | None) -> float:
    target = scale_of(criterion)
    source = target if scale is None else scale
    return _mapped(number(value, name, source), source, target)


def _mapped(value: float, source: Scale, target: Scale) -> float:
    if source == target:
        return value
    share = (value - source[0]) / (source[1] - source[0])
    return target[0] * (1 - share) + target[1] * share
