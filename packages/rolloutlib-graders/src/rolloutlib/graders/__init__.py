"""Rubrics, and graders that score rollouts by them."""

from rolloutlib.graders._aggregators import (
    Aggregator,
    all_pass,
    asymmetric_mean,
    weighted_mean,
    weighted_sum,
)
from rolloutlib.graders._cache import GradeCache
from rolloutlib.graders._cached import CachedGrader
from rolloutlib.graders._composite import CompositeGrader
from rolloutlib.graders._criteria import Criterion, Gate
from rolloutlib.graders._llm import LLMGrader
from rolloutlib.graders._rubric import Rubric
from rolloutlib.scores import Grader, Score, ScoreValue

__all__ = [
    "Aggregator",
    "CachedGrader",
    "CompositeGrader",
    "Criterion",
    "Gate",
    "GradeCache",
    "Grader",
    "LLMGrader",
    "Rubric",
    "Score",
    "ScoreValue",
    "all_pass",
    "asymmetric_mean",
    "weighted_mean",
    "weighted_sum",
]
