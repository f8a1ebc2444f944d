"""Environments: `gymnasium.Env` itself, its asynchronous twin, and what wraps and adapts them."""

from rolloutlib.envs._core import AsyncEnv, Env
from rolloutlib.envs._single_turn import AsyncSingleTurnEnv, SingleTurnEnv

__all__ = ["AsyncEnv", "AsyncSingleTurnEnv", "Env", "SingleTurnEnv"]
