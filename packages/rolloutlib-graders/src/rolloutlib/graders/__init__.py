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
from rolloutlib.graders._judges._calibration import (
    Calibration,
    CalibrationCase,
    acalibrate,
    calibrate,
)
from rolloutlib.graders._judges._candidates import Candidate, chat_text
from rolloutlib.graders._judges._exchanges import JudgeModel
from rolloutlib.graders._judges._judge import Judge
from rolloutlib.graders._judges._listwise import ListwiseJudge
from rolloutlib.graders._judges._pairwise import PairwiseJudge
from rolloutlib.graders._judges._position_bias import (
    PairCase,
    PositionBias,
    aposition_bias,
    position_bias,
)
from rolloutlib.graders._judges._prompts import JudgePrompt
from rolloutlib.graders._judges._replies import VerdictError
from rolloutlib.graders._judges._tallies import Comparison
from rolloutlib.graders._judges._templates import JudgeTemplate
from rolloutlib.graders._judges._usage import JudgeUsage
from rolloutlib.graders._judges._verdicts import parse_verdict
from rolloutlib.graders._judges._voting import VotingGrader
from rolloutlib.graders._llm import LLMGrader
from rolloutlib.graders._matches._choice import ChoiceMatch
from rolloutlib.graders._matches._exact import ExactMatch
from rolloutlib.graders._matches._execution import ExecutionGrader, ExecutionTimeoutError
from rolloutlib.graders._matches._math import MathMatch
from rolloutlib.graders._matches._numeric import NumericMatch
from rolloutlib.graders._matches._parts import Part
from rolloutlib.graders._matches._references import Match, Reference
from rolloutlib.graders._matches._regex import RegexMatch
from rolloutlib.graders._matches._schema import SchemaMatch
from rolloutlib.graders._regrade import aregrade, regrade
from rolloutlib.graders._rubric import Rubric
from rolloutlib.scores import Grader, Score, ScoreValue

__all__ = [
    "Aggregator",
    "CachedGrader",
    "Calibration",
    "CalibrationCase",
    "Candidate",
    "ChoiceMatch",
    "Comparison",
    "CompositeGrader",
    "Criterion",
    "ExactMatch",
    "ExecutionGrader",
    "ExecutionTimeoutError",
    "Gate",
    "GradeCache",
    "Grader",
    "Judge",
    "JudgeModel",
    "JudgePrompt",
    "JudgeTemplate",
    "JudgeUsage",
    "LLMGrader",
    "ListwiseJudge",
    "Match",
    "MathMatch",
    "NumericMatch",
    "PairCase",
    "PairwiseJudge",
    "Part",
    "PositionBias",
    "Reference",
    "RegexMatch",
    "Rubric",
    "SchemaMatch",
    "Score",
    "ScoreValue",
    "VerdictError",
    "VotingGrader",
    "acalibrate",
    "all_pass",
    "aposition_bias",
    "aregrade",
    "asymmetric_mean",
    "calibrate",
    "chat_text",
    "parse_verdict",
    "position_bias",
    "regrade",
    "weighted_mean",
    "weighted_sum",
]
