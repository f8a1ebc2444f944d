"""A composite grader, against a weighted mean written by hand."""

from __future__ import annotations

from measuring import Effort, Row, Sides, timed
from rolloutlib.graders import CompositeGrader, Criterion, Rubric


def composite(effort: Effort) -> Sides:
    """Grade five criteria with one trivial grader."""
    names = ("correct", "complete", "concise", "polite", "formatted")
    rubric = Rubric(criteria=tuple([Criterion(id=name, description=name) for name in names]))

    def grade(text: str, criterion: Criterion) -> float:
        return 0.5

    def hand(text: str) -> tuple[float, dict[str, float]]:
        scores: dict[str, float] = {}
        total = weights = 0.0
        for criterion in rubric.criteria:
            score = scores[criterion.id] = grade(text, criterion)
            total += criterion.weight * score
            weights += criterion.weight
        return total / weights, scores

    grader = CompositeGrader(grade)
    return Sides(
        timed(lambda: grader.score("text", rubric), effort),
        timed(lambda: hand("text"), effort),
    )


ROWS = [Row("composite", "composite grader of 5 criteria", "us", composite, 4)]
