"""Training: exact tokens from rollouts to a trainer."""

from rolloutlib.training._advantages import (
    Estimator,
    Rewards,
    group_mean,
    group_normalized,
    leave_one_out,
)
from rolloutlib.training._assembly import assemble_rows
from rolloutlib.training._reports import RowBreak, RowReport
from rolloutlib.training._sequences import TokenSequence, TokenSpan

__all__ = [
    "Estimator",
    "Rewards",
    "RowBreak",
    "RowReport",
    "TokenSequence",
    "TokenSpan",
    "assemble_rows",
    "group_mean",
    "group_normalized",
    "leave_one_out",
]
