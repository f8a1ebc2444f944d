"""Statistics of evaluation runs: error bars, comparisons, power, and an honest early stop."""

from rolloutlib.evals.statistics._attempts import avg_at_k, mean_score, pass_at_k, pass_hat_k
from rolloutlib.evals.statistics._comparisons import Comparison, compare, sign_test
from rolloutlib.evals.statistics._estimates import Estimate, ItemEstimate
from rolloutlib.evals.statistics._intervals import Interval, wilson_interval
from rolloutlib.evals.statistics._majority import maj_at_k
from rolloutlib.evals.statistics._power import PowerAnalysis
from rolloutlib.evals.statistics._scores import Scores, group_scores
from rolloutlib.evals.statistics._sequences import ConfidenceSequence

__all__ = [
    "Comparison",
    "ConfidenceSequence",
    "Estimate",
    "Interval",
    "ItemEstimate",
    "PowerAnalysis",
    "Scores",
    "avg_at_k",
    "compare",
    "group_scores",
    "maj_at_k",
    "mean_score",
    "pass_at_k",
    "pass_hat_k",
    "sign_test",
    "wilson_interval",
]
