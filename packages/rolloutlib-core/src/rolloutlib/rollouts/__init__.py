"""Rollouts: episodes of an environment and a policy, and their records."""

from rolloutlib.rollouts._batch_policies import AsyncBatchPolicy, BatchPolicy
from rolloutlib.rollouts._batching import AsyncBatchedPolicy, BatchedPolicy
from rolloutlib.rollouts._codec import UnstorableError
from rolloutlib.rollouts._collect import acollect, collect
from rolloutlib.rollouts._collector import AsyncCollector
from rolloutlib.rollouts._events import Progress, RolloutEvent
from rolloutlib.rollouts._group import arollout_group, rollout_group
from rolloutlib.rollouts._identity import derive_seed
from rolloutlib.rollouts._policies import (
    ActionT,
    AsyncPolicy,
    EpisodeTruncated,
    ObservationT,
    Policy,
    PolicyOutput,
)
from rolloutlib.rollouts._retries import Retry
from rolloutlib.rollouts._rollout import arollout, rollout
from rolloutlib.rollouts._run import StalledError
from rolloutlib.rollouts._steps import Step
from rolloutlib.rollouts._stop_reasons import StopReason
from rolloutlib.rollouts._stores import Store
from rolloutlib.rollouts._summary import Summary, summarize
from rolloutlib.rollouts._timeouts import Timeouts
from rolloutlib.rollouts._trajectories import (
    ItemT,
    RolloutError,
    Trajectory,
    TrajectoryGroup,
)

__all__ = [
    "ActionT",
    "AsyncBatchPolicy",
    "AsyncBatchedPolicy",
    "AsyncCollector",
    "AsyncPolicy",
    "BatchPolicy",
    "BatchedPolicy",
    "EpisodeTruncated",
    "ItemT",
    "ObservationT",
    "Policy",
    "PolicyOutput",
    "Progress",
    "Retry",
    "RolloutError",
    "RolloutEvent",
    "StalledError",
    "Step",
    "StopReason",
    "Store",
    "Summary",
    "Timeouts",
    "Trajectory",
    "TrajectoryGroup",
    "UnstorableError",
    "acollect",
    "arollout",
    "arollout_group",
    "collect",
    "derive_seed",
    "rollout",
    "rollout_group",
    "summarize",
]
