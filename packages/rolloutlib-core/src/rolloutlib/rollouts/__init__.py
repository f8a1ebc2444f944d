"""Rollouts: episodes of an environment and a policy, and their records."""

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
from rolloutlib.rollouts._rollout import arollout, rollout
from rolloutlib.rollouts._steps import Step
from rolloutlib.rollouts._trajectories import (
    ItemT,
    RolloutError,
    Trajectory,
    TrajectoryGroup,
)

__all__ = [
    "ActionT",
    "AsyncPolicy",
    "EpisodeTruncated",
    "ItemT",
    "ObservationT",
    "Policy",
    "PolicyOutput",
    "RolloutError",
    "Step",
    "Trajectory",
    "TrajectoryGroup",
    "arollout",
    "arollout_group",
    "derive_seed",
    "rollout",
    "rollout_group",
]
