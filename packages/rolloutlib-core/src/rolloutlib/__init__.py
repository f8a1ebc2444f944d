"""Environments, rollouts and their records for reinforcement learning of language agents."""

import pkgutil

# The siblings (rolloutlib.graders, rolloutlib.evals, ...) may lie in another folder on sys.path.
__path__ = pkgutil.extend_path(__path__, __name__)

import importlib
from types import ModuleType

from rolloutlib import datasets, envs, rollouts, scores, spaces, tools, types
from rolloutlib.datasets import Dataset, RLDataset
from rolloutlib.envs import (
    AsyncChatEnv,
    AsyncEnv,
    AsyncGradingWrapper,
    AsyncSingleTurnEnv,
    ChatEnv,
    Env,
    GradingWrapper,
    SingleTurnEnv,
    as_async,
    as_sync,
    check_async_env,
    check_env,
)
from rolloutlib.rollouts import (
    AsyncPolicy,
    Policy,
    PolicyOutput,
    RolloutError,
    Step,
    Trajectory,
    TrajectoryGroup,
    acollect,
    arollout,
    arollout_group,
    collect,
    rollout,
    rollout_group,
)
from rolloutlib.scores import Score
from rolloutlib.tools import Tool

__all__ = [
    "AsyncChatEnv",
    "AsyncEnv",
    "AsyncGradingWrapper",
    "AsyncPolicy",
    "AsyncSingleTurnEnv",
    "ChatEnv",
    "Dataset",
    "Env",
    "GradingWrapper",
    "Policy",
    "PolicyOutput",
    "RLDataset",
    "RolloutError",
    "Score",
    "SingleTurnEnv",
    "Step",
    "Tool",
    "Trajectory",
    "TrajectoryGroup",
    "__version__",
    "acollect",
    "arollout",
    "arollout_group",
    "as_async",
    "as_sync",
    "check_async_env",
    "check_env",
    "collect",
    "datasets",
    "envs",
    "rollout",
    "rollout_group",
    "rollouts",
    "scores",
    "spaces",
    "tools",
    "types",
]

__version__ = "0.3.0"


def __getattr__(name: str) -> ModuleType:
    """Import a part of rolloutlib when it is first asked for; it may not be installed."""
    if name.startswith("_") or not name.islower():
        msg = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(msg)
    module = f"{__name__}.{name}"
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name != module:
            raise
        msg = (
            f"module {__name__!r} has no attribute {name!r}; if it is a part of rolloutlib, "
            f"install it with: pip install rolloutlib-{name}"
        )
        raise AttributeError(msg) from error
