"""Environments of ours in tinker-cookbook, which is not imported for it."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Iterable, Mapping
from functools import partial
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Generic, NoReturn, TypeAlias, cast

import anyio

from rolloutlib._calls import RefuseStrayCancellation, check_count, is_awaitable
from rolloutlib._values import snapshot, to_float
from rolloutlib.envs import AsyncEnv, AsyncFromSync, Env, as_async
from rolloutlib.rollouts import (
    ActionT,
    EpisodeTruncated,
    ObservationT,
    PolicyOutput,
    Timeouts,
    Trajectory,
)
from rolloutlib.rollouts._episodes import noting
from rolloutlib.rollouts._recorder import Recorder
from rolloutlib.tinker._cookbook_steps import CookbookStep, StopCondition, read_metrics
from rolloutlib.tinker._options import PolicyOptions
from rolloutlib.tinker._outputs import OutputReader
from rolloutlib.tinker._prompts import Prompt, Prompts
from rolloutlib.tinker._renderers import Renderer
from rolloutlib.tinker._sdk import load
from rolloutlib.tinker._tools import with_tools
from rolloutlib.tools import Tools, define_tools

if TYPE_CHECKING:
    import tinker

AnyEnv: TypeAlias = Env[ObservationT, ActionT] | AsyncEnv[ObservationT, ActionT]
# The sampler is the cookbook's, and tells an environment no log probabilities.
_OPTIONS: PolicyOptions = {"max_tokens": 1, "max_incomplete": None, "max_chats": 1}


class CookbookEnv(Generic[ObservationT, ActionT]):
    """One episode of an environment of ours, as tinker-cookbook plays it: its `Env`.

    The environment is made when the episode begins, and closed when it ends, well or not; `close`
    closes one whose episode was broken off. What the environment shows, and how answers become actions,
    is as for `TinkerPolicy`: prompts extend the exact tokens of the turns before. Where the model's
    answer is malformed the environment gets its text all the same, and the metric "malformed" is 1.

    Metrics are also the numbers in a step's info, those of its score ("score", "score/<component>") and,
    at the end, "truncated"; texts in an info are logs. Rewards, flags and infos are checked as in any
    rollout.

    Source: tinker-cookbook, `tinker_cookbook/rl/types.py` at commits 06a755a3 and 30a5f559, and later
    with `step(..., extra=...)`.

    Args:
        make_env: Makes the environment, or an awaitable of it.
        renderer: One of tinker-cookbook's, or a `ChatTemplateRenderer`.
        tools: What the model may call, as for `TinkerPolicy`; with it, actions are messages.
        tokenizer: The model's; by default the renderer's attribute `tokenizer`.
        seed: Goes to `reset`.
        options: Go to `reset`.
        max_steps: After that many steps the episode is cut short.
        member: Which of its group the episode is, for the record.
        attempt: Which attempt at it this is, for the record.
        inline: Call a synchronous environment on the event loop, not on a thread of its own.

    Raises:
        TypeError: An argument has the wrong type.
        ValueError: `max_steps` is less than 1.
    """

    def __init__(
        self,
        make_env: Callable[
            [], AnyEnv[ObservationT, ActionT] | Awaitable[AnyEnv[ObservationT, ActionT]]
        ],
        renderer: Renderer,
        *,
        tools: Tools | None = None,
        tokenizer: Any = None,
        seed: int | None = None,
        options: Mapping[str, Any] | None = None,
        max_steps: int | None = None,
        member: int | None = None,
        attempt: int = 0,
        inline: bool = False,
    ) -> None:
        if not callable(make_env):
            msg = f"make_env must be a function that makes the environment, got {make_env!r}"
            raise TypeError(msg)
        if max_steps is not None:
            check_count("max_steps", max_steps)
        tokenizer = getattr(renderer, "tokenizer", None) if tokenizer is None else tokenizer
        if tokenizer is None:
            msg = f"{renderer!r} has no attribute tokenizer: pass tokenizer="
            raise TypeError(msg)
        definitions = define_tools(tools)
        if tools is not None:
            renderer = with_tools(renderer, definitions)
        self._make_env = make_env
        self._prompts = Prompts(renderer, tokenizer, definitions, _OPTIONS)
        kind = "text" if tools is None else "message"
        place = "tinker-cookbook's sampler"
        self._reader = OutputReader[ActionT](renderer, tokenizer, kind, _OPTIONS, place)
        self._start = partial(
            Recorder[ObservationT, ActionT],
            seed=seed,
            max_steps=max_steps,
            metadata=None,
            snapshots=True,
            member=member,
            attempt=attempt,
        )
        self._options = None if options is None else snapshot(dict(options))
        self._inline = inline
        self._calling = anyio.Lock()  # for a cleanup while others of the group still play
        self._env: AsyncEnv[ObservationT, ActionT] | None = None
        self._recorder: Recorder[ObservationT, ActionT] | None = None
        self._record: Callable[[Any], Any] = _refuse
        self._prompt = Prompt([])
        self._trajectory: Trajectory[ObservationT, ActionT] | None = None
        self._is_closed = False
        self._closed: AsyncEnv[ObservationT, ActionT] | None = None

    @property
    def trajectory(self) -> Trajectory[ObservationT, ActionT] | None:
        """The record of the episode, so far as it has come; None before the first observation.

        It has the tokens that were sampled and read, but no log probabilities.
        """
        if self._trajectory is None and self._recorder is not None:
            return self._recorder.unfinished()
        return self._trajectory

    async def initial_observation(self) -> tuple[tinker.ModelInput, StopCondition]:
        """Begin the episode.

        Raises:
            RuntimeError: It was begun before, or is closed.
            BaseException: What the environment raises.
        """
        async with self._calling:
            if self._is_closed or self._recorder is not None:
                msg = f"{self!r} plays one episode, which has begun before: make another"
                raise RuntimeError(msg)
            try:
                return await self._begin(), self._prompts.stops
            except BaseException as error:
                await self._fail(error)
                raise

    async def step(
        self, action: Iterable[int], *, extra: Mapping[str, Any] | None = None
    ) -> CookbookStep:
        """Act once.

        Args:
            action: The ids that were sampled.
            extra: What newer versions of the cookbook tell of them: "stop_reason", "stop" or "length".

        Raises:
            RuntimeError: The episode has not begun, or is over.
            BaseException: What the environment raises; `Trajectory.from_exception` gives the steps
                before it.
        """
        async with self._calling:
            if self._env is None or self._recorder is None:
                msg = f"{self!r} has no episode that could go on"
                raise RuntimeError(msg)
            stop_reason = (extra or {}).get("stop_reason")
            sampled = SimpleNamespace(
                tokens=list(action), logprobs=None, stop_reason=stop_reason or "stop"
            )
            try:
                output = self._reader.read(cast("Any", sampled), self._prompt, None, {})
                return await self._go_on(self._env, self._recorder, output)
            except BaseException as error:
                await self._fail(error)
                raise

    async def close(self) -> None:
        """Close the environment, after any running call; closing twice does no harm.

        A call on a thread that goes on though it was cancelled is waited for as long as in a rollout.

        Raises:
            Exception: What the environment raises.
        """
        with anyio.CancelScope(shield=True):
            async with self._calling:
                await self._close()
        if isinstance(self._closed, AsyncFromSync):
            with anyio.move_on_after(Timeouts().close, shield=True):
                await self._closed.wait_abandoned()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._env or self._make_env!r})"

    async def _begin(self) -> tinker.ModelInput:
        made = self._make_env()
        with RefuseStrayCancellation(self):
            if is_awaitable(made):
                made = await made
            self._env = env = as_async(
                cast("AnyEnv[ObservationT, ActionT]", made), inline=self._inline
            )
            self._recorder = self._start(env)
            self._record = self._recorder.start()
            shown = await env.reset(seed=self._recorder.seed, options=self._options)
        return self._show(self._record(shown))

    async def _go_on(
        self,
        env: AsyncEnv[ObservationT, ActionT],
        recorder: Recorder[ObservationT, ActionT],
        output: PolicyOutput[ActionT],
    ) -> CookbookStep:
        metrics = {"malformed": float(output.info["termination"] == "malformed")}
        logs: dict[str, Any] = {}
        observation = None
        reward = 0.0
        try:
            action = self._record(output)
            with RefuseStrayCancellation(env):
                result = await env.step(action)
            observation = self._record(result)
        except EpisodeTruncated as reason:
            self._trajectory = recorder.truncate(reason)
            logs["truncated_by"] = str(reason)
        else:
            if recorder.ended:
                self._trajectory = recorder.trajectory()
            _, given, _, _, info = result
            reward = to_float(given, "reward")
            metrics |= read_metrics(info)
            logs |= {name: fact for name, fact in info.items() if isinstance(fact, str)}
        if self._trajectory is None:
            read = self._show(observation)
        else:
            read = load().ModelInput.empty()
            metrics["truncated"] = float(self._trajectory.truncated)
            try:
                await self._close()
            except Exception as error:  # of an episode that ended well, which is kept
                logs["close_error"] = repr(error)
        return CookbookStep(
            reward, self._trajectory is not None, read, self._prompts.stops, metrics, logs
        )

    def _show(self, observation: object) -> tinker.ModelInput:
        recorder = cast("Recorder[Any, Any]", self._recorder)
        self._prompt = self._prompts.read(observation, recorder.seed, recorder.num_steps)
        return self._prompt.to_model_input()

    async def _fail(self, error: BaseException) -> None:
        """Close the environment of an episode that failed, and let its record travel with the error."""
        if self._recorder is not None:
            self._recorder.leave(error)
        with noting(error, self._env):
            await self._close()

    async def _close(self) -> None:
        self._is_closed = True
        env, self._env = self._env, None
        if env is None:
            return
        self._closed = env
        if anyio.current_effective_deadline() > -math.inf:
            # In no scope of ours: what an environment opened in `reset`, it may end in `close`.
            await env.close()
            return
        with anyio.CancelScope(shield=True):
            await env.close()


def _refuse(_: object) -> NoReturn:
    raise AssertionError  # pragma: no cover - replaced when the episode begins
