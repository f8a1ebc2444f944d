"""One attempt at a member of a group: from making its environment to closing it."""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Generator
from typing import Any, cast

import anyio
import gymnasium as gym

from rolloutlib._calls import RefuseStrayCancellation, is_awaitable, uncancelled
from rolloutlib._exceptions import add_note, read_error
from rolloutlib.envs import AsyncEnv, AsyncFromSync, as_async
from rolloutlib.rollouts._caller import AsyncCaller, Caller
from rolloutlib.rollouts._member import Member
from rolloutlib.rollouts._policies import ActionT, ObservationT
from rolloutlib.rollouts._rollout import arun_episode, run_episode
from rolloutlib.rollouts._run import Run
from rolloutlib.rollouts._timeouts import Timer
from rolloutlib.rollouts._trajectories import ItemT


def run_member(
    run: Run[ItemT, ObservationT, ActionT],
    caller: Caller[ObservationT, ActionT],
    member: Member[ItemT, ObservationT, ActionT],
) -> float | None:
    """Play one attempt.

    Returns:
        How many seconds to wait before the next one, or None if there is none.

    Raises:
        BaseException: As `Member.fail`.
    """
    environment: gym.Env[ObservationT, ActionT] | None = None
    try:
        environment = make_sync_env(run, member)
        member.keep(run_episode(environment, caller, member.record(environment), run.options))
    except BaseException as error:
        return fail_member(member, environment, error)
    finish_member(member, environment)
    return None


def finish_member(member: Member[Any, Any, Any], environment: gym.Env[Any, Any]) -> None:
    """Close the environment of an episode that ended well."""
    try:
        environment.close()
    except Exception as error:  # whatever an environment raises
        member.note_close_error(error)
    member.finish()


def fail_member(
    member: Member[Any, Any, Any], environment: gym.Env[Any, Any] | None, error: BaseException
) -> float | None:
    """Close the environment, if it was made, of an episode that failed.

    Returns:
        As `Member.fail`.

    Raises:
        BaseException: As `Member.fail`.
    """
    try:
        if environment is not None:
            with noting(error, environment):
                environment.close()
    except BaseException as interrupt:
        error = interrupt
    return member.fail(error)


async def arun_member(
    run: Run[ItemT, ObservationT, ActionT],
    caller: AsyncCaller[ObservationT, ActionT],
    member: Member[ItemT, ObservationT, ActionT],
) -> float | None:
    """Play one attempt.

    Returns:
        How many seconds to wait before the next one, or None if there is none.

    Raises:
        BaseException: As `Member.fail`.
    """
    # Around all that happens, since an environment may open scopes and task groups of its own in
    # make_env or reset, and end them in close: scopes have to be nested.
    with anyio.CancelScope() as scope:
        timer = None if run.timeouts is None else Timer(run.timeouts, scope)
        environment: Any = None

        async def make_env() -> None:
            nonlocal environment  # also one that was made too late has to be closed
            made: Any = run.make_env(member.item)
            if is_awaitable(made):
                made = await made
            environment = as_async(made, inline=run.inline)

        try:
            with RefuseStrayCancellation(member):
                try:
                    await (make_env if timer is None else timer.timed("reset", make_env))()
                    recorder = member.record(environment)
                    member.keep(
                        await arun_episode(environment, caller, recorder, run.options, timer)
                    )
                except BaseException as error:
                    if environment is not None:
                        with noting(error, environment):
                            await _close(environment, scope, run.close_seconds)
                    raise
        except BaseException as error:
            if uncancelled(error) is None:
                if isinstance(environment, AsyncFromSync):
                    run.abandoned.append(cast("AsyncFromSync[Any, Any]", environment))
                raise
            return member.fail(error)
        try:
            await _close(environment, scope, run.close_seconds)
        except Exception as error:  # whatever an environment raises
            member.note_close_error(error)
        member.finish()
    return None


def make_sync_env(
    run: Run[ItemT, ObservationT, ActionT], member: Member[ItemT, ObservationT, ActionT]
) -> gym.Env[ObservationT, ActionT]:
    """Make the environment of a synchronous episode.

    Raises:
        TypeError: What was made is no such environment.
    """
    environment = run.make_env(member.item)
    if inspect.iscoroutine(environment):
        environment.close()
        msg = (
            f"make_env must return a gymnasium.Env, got the coroutine {environment!r}: what returns "
            "one has to be a coroutine function, and asynchronous runs take it"
        )
        raise TypeError(msg)
    if not isinstance(environment, gym.Env):
        msg = f"make_env must return a gymnasium.Env, got {environment!r}"
        raise TypeError(msg)
    return cast("gym.Env[ObservationT, ActionT]", environment)


@contextlib.contextmanager
def noting(error: BaseException, environment: object) -> Generator[None]:
    """Turn a failure to close into a note on the error that came before it."""
    try:
        yield
    except Exception as close_error:  # whatever an environment raises
        add_note(error, f"closing {environment} failed too: {read_error(close_error, repr)}")


async def _close(
    environment: AsyncEnv[Any, Any], scope: anyio.CancelScope, seconds: float | None
) -> None:
    """Close an environment inside a scope, also if the scope is in one that is being cancelled."""
    if scope.cancel_called:  # its time is over, so it cannot protect what happens in it
        with anyio.CancelScope() as inner:
            await _close(environment, inner, seconds)
        return
    scope.shield = True
    if seconds is not None:
        scope.deadline = anyio.current_time() + seconds
    try:
        with RefuseStrayCancellation(environment):
            await environment.close()
    except BaseException as error:
        if not scope.cancel_called or uncancelled(error) is not None:
            raise
        msg = f"closing {environment} took longer than {seconds} s"
        raise TimeoutError(msg) from error
    finally:
        scope.shield = False  # the deadline does no harm any more
