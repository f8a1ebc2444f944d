"""A policy over a sampling client of Tinker, for asyncio and trio."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, overload

from typing_extensions import Unpack

from rolloutlib._calls import call, task_group
from rolloutlib.rollouts import ActionT, PolicyOutput
from rolloutlib.tinker._any_policy import AnyPolicy, Sampler, fill, first, read_kind
from rolloutlib.tinker._exchanges import Exchange, Outcome
from rolloutlib.tinker._models import Model
from rolloutlib.tinker._options import PolicyOptions
from rolloutlib.tinker._prompts import TinkerPrompt
from rolloutlib.tinker._renderers import Renderer
from rolloutlib.tinker._requests import Request
from rolloutlib.tinker._waiting import await_one
from rolloutlib.tools import Tools
from rolloutlib.types import Message


class AsyncTinkerPolicy(AnyPolicy[ActionT]):
    """The asynchronous twin of `TinkerPolicy`, under asyncio and trio, in any number of loops.

    The future of a client is waited for, and the tokenizer loaded, when an action is first asked for.

    Args:
        sampler: A sampling client, or the future of one.
        tools: What the model may call: the tools of an environment, or a list of functions, tools or
            definitions. Without any, "tools=[]", actions are messages all the same.
        actions: "tokens" for actions that are token ids.
        renderer: One of tinker-cookbook's, or a `ChatTemplateRenderer`; by default one of the latter,
            over the tokenizer that the client loads.
        version: What to record as the version of the weights.
        options: See `PolicyOptions`.

    Raises:
        TypeError: `sampler` is none, an option is unknown or has the wrong type, or something is no
            tool.
        ValueError: An option is out of its range.
    """

    @overload
    def __init__(
        self: AsyncTinkerPolicy[str],
        sampler: Sampler,
        *,
        tools: None = None,
        actions: None = None,
        renderer: Renderer | None = None,
        version: int | str | None = None,
        **options: Unpack[PolicyOptions],
    ) -> None: ...
    @overload
    def __init__(
        self: AsyncTinkerPolicy[Message],
        sampler: Sampler,
        *,
        tools: Tools,
        actions: None = None,
        renderer: Renderer | None = None,
        version: int | str | None = None,
        **options: Unpack[PolicyOptions],
    ) -> None: ...
    @overload
    def __init__(
        self: AsyncTinkerPolicy[list[int]],
        sampler: Sampler,
        *,
        tools: None = None,
        actions: Literal["tokens"],
        renderer: Renderer | None = None,
        version: int | str | None = None,
        **options: Unpack[PolicyOptions],
    ) -> None: ...
    def __init__(
        self,
        sampler: Sampler,
        *,
        tools: Tools | None = None,
        actions: Literal["tokens"] | None = None,
        renderer: Renderer | None = None,
        version: int | str | None = None,
        **options: Unpack[PolicyOptions],
    ) -> None:
        model = Model[Any](read_kind(tools, actions), tools, renderer, options)
        self._exchange = Exchange[Any](sampler, model, version)

    async def __call__(
        self, observation: TinkerPrompt, /, *, seed: int | None = None, step: int | None = None
    ) -> PolicyOutput[ActionT]:
        """Sample an action.

        Args:
            observation: The prompt.
            seed: The episode's seed, from which that of the request is derived.
            step: The number of the episode's step.

        Raises:
            ModelServerError: There is no action; the kind of error tells whether it may pass.
            EpisodeTruncated: The prompt does not fit the model's context.
            TypeError: The observation is no prompt.
            ValueError: It is wrong in its parts, or no end of a turn is found in the chat template.
        """
        await self._prepare()
        return first(await self._ask(self._exchange.request(observation, seed, step)))

    async def batch(
        self,
        observations: Sequence[TinkerPrompt],
        /,
        *,
        seeds: Sequence[int | None] | None = None,
        steps: Sequence[int | None] | None = None,
    ) -> list[PolicyOutput[ActionT] | Exception]:
        """Sample an action for each observation, at the same time; for `AsyncBatchedPolicy`.

        Prompts that are equal, as at the first step of a group, become one request for several
        samples, with the seed that the first would have alone.

        Args:
            observations: The prompts.
            seeds: The episodes' seeds.
            steps: The numbers of the episodes' steps.

        Returns:
            An action, or the error in its place, for each observation.

        Raises:
            ValueError: There are more or fewer seeds or steps than observations.
        """
        await self._prepare()
        entries, requests = self._exchange.requests(observations, seeds, steps)

        async def answer(first: Request) -> None:
            request: Request | None = first
            while request is not None:  # a server may give fewer samples than it was asked for
                outputs = await self._ask(request)
                fill(entries, request, outputs)
                request = request.after(len(outputs))

        async with task_group() as tasks:
            for request in requests:
                tasks.start_soon(answer, request)
        return entries

    async def _prepare(self) -> None:
        if not self._exchange.is_prepared:
            await call(self._exchange.prepare)

    async def _ask(self, request: Request) -> list[Outcome[ActionT]]:
        exchange = self._exchange
        pending = exchange.submit(request)
        await await_one(pending, exchange.timeout)
        return exchange.outputs(request, pending)
