"""What the tests of other processes run there."""

from __future__ import annotations

import json

from core.rollouts.scripted import ScriptedEnv, policy
from rolloutlib import RolloutError, TrajectoryGroup, collect


def make_env(item: int) -> ScriptedEnv:
    """Make an environment which fails for odd items."""
    return ScriptedEnv(faults={"step 1": KeyError("lost")} if item % 2 else {})


def play(items: list[int], seed: int) -> list[TrajectoryGroup[int, str, str]]:
    """Collect groups, also on threads, which a forked process could not start from."""
    return list(
        collect(items, make_env, policy, num_rollouts=2, concurrency=2, order="dataset", seed=seed)
    )


def read(text: str) -> RolloutError:
    """Read the JSON of an error."""
    return RolloutError.from_dict(json.loads(text))
