"""Environments: `gymnasium.Env` itself, its asynchronous twin, and what wraps and adapts them."""

from rolloutlib.envs._adapters import AsyncFromSync, SyncFromAsync, as_async, as_sync
from rolloutlib.envs._chat import AsyncChatEnv, ChatEnv
from rolloutlib.envs._checking import check_async_env, check_env
from rolloutlib.envs._core import AsyncEnv, Env
from rolloutlib.envs._grading import AsyncGradingWrapper, GradingWrapper
from rolloutlib.envs._single_turn import AsyncSingleTurnEnv, EvaluationResult, SingleTurnEnv
from rolloutlib.envs._wrappers import (
    AsyncActionWrapper,
    AsyncObservationWrapper,
    AsyncRewardWrapper,
    AsyncWrapper,
)

__all__ = [
    "AsyncActionWrapper",
    "AsyncChatEnv",
    "AsyncEnv",
    "AsyncFromSync",
    "AsyncGradingWrapper",
    "AsyncObservationWrapper",
    "AsyncRewardWrapper",
    "AsyncSingleTurnEnv",
    "AsyncWrapper",
    "ChatEnv",
    "Env",
    "EvaluationResult",
    "GradingWrapper",
    "SingleTurnEnv",
    "SyncFromAsync",
    "as_async",
    "as_sync",
    "check_async_env",
    "check_env",
]
