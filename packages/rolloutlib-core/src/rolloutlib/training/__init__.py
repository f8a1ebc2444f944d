"""Training: exact tokens from rollouts to a trainer."""

from rolloutlib.training._advantages import (
    Estimator,
    Rewards,
    group_mean,
    group_normalized,
    leave_one_out,
)
from rolloutlib.training._assembly import assemble_rows
from rolloutlib.training._chat_tokenizer import ChatTokenizer
from rolloutlib.training._chats import Chats
from rolloutlib.training._columns import to_columns
from rolloutlib.training._conversations import to_messages
from rolloutlib.training._deltas import ChatTokens, find_rewrites
from rolloutlib.training._divergence import KLEstimate, estimate_kl
from rolloutlib.training._exporting import row_rewards
from rolloutlib.training._inspection import AnyRow
from rolloutlib.training._problems import InvalidRowsError, ProblemKind, RowProblem
from rolloutlib.training._reports import RowBreak, RowReport
from rolloutlib.training._rewrites import ChatRewrite, RewriteCause
from rolloutlib.training._sequences import TokenSequence, TokenSpan
from rolloutlib.training._skyrl import to_skyrl
from rolloutlib.training._trl import to_prompt_completion, to_trl_rollouts
from rolloutlib.training._verification import check_rows, verify_rows
from rolloutlib.training._verl import to_verl

__all__ = [
    "AnyRow",
    "ChatRewrite",
    "ChatTokenizer",
    "ChatTokens",
    "Chats",
    "Estimator",
    "InvalidRowsError",
    "KLEstimate",
    "ProblemKind",
    "Rewards",
    "RewriteCause",
    "RowBreak",
    "RowProblem",
    "RowReport",
    "TokenSequence",
    "TokenSpan",
    "assemble_rows",
    "check_rows",
    "estimate_kl",
    "find_rewrites",
    "group_mean",
    "group_normalized",
    "leave_one_out",
    "row_rewards",
    "to_columns",
    "to_messages",
    "to_prompt_completion",
    "to_skyrl",
    "to_trl_rollouts",
    "to_verl",
    "verify_rows",
]
