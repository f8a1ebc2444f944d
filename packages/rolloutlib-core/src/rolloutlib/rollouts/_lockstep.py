"""Episodes of a group in lock step: one batch of decisions, then one step of each environment."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterable
from typing import Any, Generic

import gymnasium as gym

from rolloutlib._values import snapshot
from rolloutlib.rollouts._batch_policies import Answer
from rolloutlib.rollouts._batching import BatchedPolicy
from rolloutlib.rollouts._episodes import fail_member, finish_member, make_sync_env
from rolloutlib.rollouts._member import Member, Outcomes
from rolloutlib.rollouts._policies import (
    ActionT,
    EpisodeTruncated,
    ObservationT,
    PolicyOutput,
)
from rolloutlib.rollouts._run import Run
from rolloutlib.rollouts._trajectories import ItemT, Trajectory


def run_members(
    run: Run[ItemT, ObservationT, ActionT],
    policy: BatchedPolicy[ObservationT, ActionT],
    outcomes: Outcomes[ItemT, ObservationT, ActionT],
) -> None:
    """Play all members of a group side by side, then again those that are to be tried again.

    Raises:
        BaseException: As `Member.fail`.
    """
    waiting = [(index, 0) for index in range(run.num_rollouts)]
    while waiting:
        members = [outcomes.member(index, attempt) for index, attempt in waiting]
        round_ = _Round(run, policy)
        round_.play(members)
        waiting = [(i, attempt + 1) for i, attempt in waiting if i in round_.delays]
        time.sleep(max(round_.delays.values(), default=0))


def refuse_lock_step(policy: object) -> None:
    """Refuse a policy that means to play in lock step where episodes play at their own pace.

    Raises:
        TypeError: It is such a policy.
    """
    if isinstance(policy, BatchedPolicy):
        msg = (
            f"{policy!r} plays in lock step, which knows neither concurrency nor timeouts; "
            "in asynchronous code use an AsyncBatchedPolicy"
        )
        raise TypeError(msg)


class _Round(Generic[ItemT, ObservationT, ActionT]):
    """One attempt at several members.

    Attributes:
        delays: How many seconds to wait for the next attempt, by members that are to have one.
    """

    def __init__(
        self,
        run: Run[ItemT, ObservationT, ActionT],
        policy: BatchedPolicy[ObservationT, ActionT],
    ) -> None:
        self.delays: dict[int, float] = {}
        self._run = run
        self._policy = policy
        self._playing: dict[int, _Episode[ItemT, ObservationT, ActionT]] = {}

    def play(self, members: Iterable[Member[ItemT, ObservationT, ActionT]]) -> None:
        """Play the episodes to their ends, and close their environments."""
        try:
            for member in members:
                self._begin(member)
            while self._playing:
                self._step()
        except BaseException:
            with contextlib.ExitStack() as stack:  # which closes all, even if one is interrupted
                for episode in self._playing.values():
                    stack.callback(_close_quietly, episode.environment)
            raise

    def _begin(self, member: Member[ItemT, ObservationT, ActionT]) -> None:
        environment: gym.Env[ObservationT, ActionT] | None = None
        try:
            environment = make_sync_env(self._run, member)
            episode = _Episode(self._run, member, environment)
        except BaseException as error:
            self._fail(member, environment, error)
            return
        if episode.recorder.ended:  # no steps are wanted
            self._finish(member, environment, episode.recorder.trajectory())
        else:
            self._playing[member.index] = episode

    def _step(self) -> None:
        episodes = list(self._playing.values())
        try:
            answers: list[Answer[ActionT]] = self._policy.decide_all(
                [episode.observation for episode in episodes],
                seeds=[episode.recorder.seed for episode in episodes],
                steps=[episode.recorder.num_steps for episode in episodes],
            )
        except Exception as error:  # whatever a policy raises
            answers = [error] * len(episodes)
        for episode, answer in zip(episodes, answers, strict=True):
            # Not raised, since its traceback would grow with each episode that it is the answer for.
            failure = answer if isinstance(answer, Exception) else episode.act(answer)
            member, environment, recorder = episode.member, episode.environment, episode.recorder
            if failure is None and not recorder.ended:
                continue
            del self._playing[member.index]
            if failure is None:
                self._finish(member, environment, recorder.trajectory())
            elif isinstance(failure, EpisodeTruncated):
                self._finish(member, environment, recorder.truncate(failure))
            else:
                self._fail(member, environment, failure)

    def _finish(
        self,
        member: Member[ItemT, ObservationT, ActionT],
        environment: gym.Env[ObservationT, ActionT],
        trajectory: Trajectory[ObservationT, ActionT],
    ) -> None:
        member.keep(trajectory)
        finish_member(member, environment)

    def _fail(
        self,
        member: Member[ItemT, ObservationT, ActionT],
        environment: gym.Env[ObservationT, ActionT] | None,
        error: BaseException,
    ) -> None:
        delay = fail_member(member, environment, error)
        if delay is not None:
            self.delays[member.index] = delay


class _Episode(Generic[ItemT, ObservationT, ActionT]):
    """An episode between two decisions."""

    def __init__(
        self,
        run: Run[ItemT, ObservationT, ActionT],
        member: Member[ItemT, ObservationT, ActionT],
        environment: gym.Env[ObservationT, ActionT],
    ) -> None:
        self.member = member
        self.environment = environment
        self.recorder = recorder = member.record(environment)
        options = snapshot(run.options)
        self._record = recorder.start()
        self.observation: ObservationT = self._record(
            environment.reset(seed=recorder.seed, options=options)
        )

    def act(self, answer: ActionT | PolicyOutput[ActionT]) -> BaseException | None:
        """Do what the policy chose, and return what was raised instead of another observation."""
        try:
            self.observation = self._record(self.environment.step(self._record(answer)))
        except BaseException as error:
            return error
        return None


def _close_quietly(environment: gym.Env[Any, Any]) -> None:
    with contextlib.suppress(Exception):  # what comes out is the first failure
        environment.close()
