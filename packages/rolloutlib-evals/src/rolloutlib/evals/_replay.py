"""Grading samples by giving their actions to the environments of a benchmark again."""

from __future__ import annotations

import dataclasses
from typing import Any, cast

import gymnasium as gym

from rolloutlib._calls import is_async
from rolloutlib._values import same, snapshot
from rolloutlib.envs import AsyncEnv, as_sync
from rolloutlib.evals._benchmark import Benchmark
from rolloutlib.evals._records import EvaluationRecord
from rolloutlib.evals._samples import item_names
from rolloutlib.rollouts import PolicyOutput, Trajectory, rollout
from rolloutlib.scores import Score

__all__ = ["OtherBenchmarkError", "Replay"]


class OtherBenchmarkError(ValueError):
    """Raised when a log has samples that the benchmark does not have."""


class Replay:
    """Grades samples by the environments of a benchmark.

    Args:
        benchmark: The benchmark.
        max_steps: The most steps that an episode of the log may have, or None.

    Raises:
        TypeError: Its environments are made asynchronously.
    """

    def __init__(self, benchmark: Benchmark[Any], *, max_steps: int | None) -> None:
        if is_async(benchmark.make_env):
            msg = f"make_env must be synchronous to grade a log anew, got {benchmark.make_env!r}"
            raise TypeError(msg)
        self._benchmark = benchmark
        self._max_steps = max_steps
        self._items = dict(zip(item_names(benchmark), benchmark.items, strict=True))

    def grade(self, record: EvaluationRecord) -> tuple[Trajectory[Any, Any], Score] | None:
        """Return the trajectory of a sample and its new score.

        Args:
            record: The sample. If it failed in a step, its trajectory has the policy's answer as the
                last one, in whose place comes what is made of it now.

        Returns:
            None if the episode does not end with that answer.

        Raises:
            OtherBenchmarkError: The benchmark has no such item, or asks it otherwise.
            BaseException: What an environment raises.
        """
        name = self._benchmark.name
        if record.item_id not in self._items:
            msg = (
                f"benchmark {name!r} has no item {record.item_id!r}, of which the log has a sample"
            )
            raise OtherBenchmarkError(msg)
        trajectory = cast("Trajectory[Any, Any]", record.trajectory)
        answers: list[Any] = list(trajectory.actions)
        if record.output is not None:
            answers[-1] = record.output
        replayed = self._play(record.item_id, trajectory, answers)
        if record.output is None:
            return trajectory, replayed.score
        if len(replayed.steps) < len(answers):
            return None
        last = replayed.steps[-1]
        if not (last.terminated or last.truncated or len(answers) == self._max_steps):
            return None
        finished = dataclasses.replace(
            trajectory,
            steps=(*trajectory.steps[:-1], last),
            terminated=replayed.terminated,
            truncated=replayed.truncated,
            metadata=replayed.metadata,
        )
        return finished, replayed.score

    def _play(
        self, item_id: str, trajectory: Trajectory[Any, Any], answers: list[Any]
    ) -> Trajectory[Any, Any]:
        environment = _sync(self._benchmark.make_env(snapshot(self._items[item_id])))
        try:

            def policy(observation: Any, *, step: int = 0) -> Any | PolicyOutput[Any]:
                if step == 0 and not same(observation, trajectory.initial_observation):
                    msg = (
                        f"item {item_id!r} of benchmark {self._benchmark.name!r} begins with "
                        f"{observation!r}, and that of the log with "
                        f"{trajectory.initial_observation!r}: what the log has is no answer to that"
                    )
                    raise OtherBenchmarkError(msg)
                return answers[step]

            return rollout(environment, policy, seed=trajectory.seed, max_steps=len(answers))
        finally:
            environment.close()


def _sync(environment: Any) -> gym.Env[Any, Any]:
    if isinstance(environment, AsyncEnv):
        return as_sync(cast("AsyncEnv[Any, Any]", environment))
    return environment
