"""Policies over a sampling client of Tinker."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, Generic, Literal, NoReturn, Self, TypeAlias, overload

from typing_extensions import Unpack

from rolloutlib._calls import call, task_group
from rolloutlib.rollouts import ActionT, PolicyOutput
from rolloutlib.tinker._exchanges import Exchange, Outcome, Tools
from rolloutlib.tinker._options import PolicyOptions
from rolloutlib.tinker._outputs import ActionKind
from rolloutlib.tinker._prompts import TinkerPrompt
from rolloutlib.tinker._renderers import Renderer
from rolloutlib.tinker._requests import Request
from rolloutlib.tinker._waiting import await_, wait
from rolloutlib.types import Message

if TYPE_CHECKING:
    import tinker
    from tinker import APIFuture

Sampler: TypeAlias = (
    "tinker.SamplingClient | APIFuture[tinker.SamplingClient] | Future[tinker.SamplingClient]"
)


class _AnyPolicy(Generic[ActionT]):
    _exchange: Exchange[ActionT]

    @property
    def version(self) -> int | str | None:
        """The version of the weights, as it was given."""
        return self._exchange.version

    @property
    def num_incomplete(self) -> int:
        """How many answers lacked log probabilities."""
        return self._exchange.num_incomplete

    def with_sampler(self, sampler: Sampler, *, version: int | str | None = None) -> Self:
        """Return a policy like this one over other weights; conversations go on in it.

        Args:
            sampler: A sampling client with the weights, or the future of one.
            version: What to record as their version.

        Raises:
            TypeError: It is no sampling client.
        """
        other = object.__new__(type(self))
        other._exchange = self._exchange.with_sampler(sampler, version)
        return other

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._exchange.place}, version={self.version!r})"

    def __reduce__(self) -> NoReturn:
        msg = (
            f"{self!r} can be neither pickled nor copied, since it has conversations and a client: "
            "make it in the process that uses it"
        )
        raise TypeError(msg)


class TinkerPolicy(_AnyPolicy[ActionT]):
    """A policy that samples from Tinker; threads may share it.

    Its actions are the model's texts; with `tools`, messages that may call them; with
    `actions="tokens"`, the ids that were sampled. The `PolicyOutput` has the tokens, log probabilities,
    stop reason and version, and in its info "termination", "usage", "seed" and, where there is any,
    "reasoning" and "rewrite".

    Args:
        sampler: A sampling client, or the future of one, which is waited for.
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
        ValueError: An option is out of its range, or no end of a turn is found in the chat template.
        ModelServerError: The future of a client failed.
    """

    @overload
    def __init__(
        self: TinkerPolicy[str],
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
        self: TinkerPolicy[Message],
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
        self: TinkerPolicy[list[int]],
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
        kind = _read_kind(tools, actions)
        self._exchange = Exchange[Any](sampler, kind, tools, renderer, version, options)
        self._exchange.prepare()

    def __call__(
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
            ValueError: It is wrong in its parts.
        """
        self._exchange.prepare()
        [outputs] = self._ask([self._exchange.request(observation, seed, step)])
        return _first(outputs)

    def batch(
        self,
        observations: Sequence[TinkerPrompt],
        /,
        *,
        seeds: Sequence[int | None] | None = None,
        steps: Sequence[int | None] | None = None,
    ) -> list[PolicyOutput[ActionT] | Exception]:
        """Sample an action for each observation, at the same time; for `BatchedPolicy`.

        Prompts that are equal, as at the first step of a group, become one request for several
        samples, with the seed that the first would have alone.

        Args:
            observations: The prompts.
            seeds: The episodes' seeds.
            steps: The numbers of the episodes' steps.

        Returns:
            An action, or the error in its place, for each observation.
        """
        self._exchange.prepare()
        entries, requests = self._exchange.requests(observations, seeds, steps)
        while requests:  # a server may give fewer samples than it was asked for
            left: list[Request] = []
            for request, outputs in zip(requests, self._ask(requests), strict=True):
                _fill(entries, request, outputs)
                if (rest := request.after(len(outputs))) is not None:
                    left.append(rest)
            requests = left
        return entries

    def _ask(self, requests: Sequence[Request]) -> list[list[Outcome[ActionT]]]:
        exchange = self._exchange
        answers = [exchange.submit(request) for request in requests]
        wait(answers, exchange.timeout)
        return [
            exchange.outputs(request, answer)
            for request, answer in zip(requests, answers, strict=True)
        ]


class AsyncTinkerPolicy(_AnyPolicy[ActionT]):
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
        kind = _read_kind(tools, actions)
        self._exchange = Exchange[Any](sampler, kind, tools, renderer, version, options)

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
        return _first(await self._ask(self._exchange.request(observation, seed, step)))

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
        """
        await self._prepare()
        entries, requests = self._exchange.requests(observations, seeds, steps)

        async def answer(first: Request) -> None:
            request: Request | None = first
            while request is not None:  # a server may give fewer samples than it was asked for
                outputs = await self._ask(request)
                _fill(entries, request, outputs)
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
        await await_(pending, exchange.timeout)
        return exchange.outputs(request, pending)


def _read_kind(tools: Tools | None, actions: str | None) -> ActionKind:
    if actions not in (None, "tokens"):
        msg = f"actions must be 'tokens' or None, got {actions!r}"
        raise ValueError(msg)
    if actions is None:
        return "text" if tools is None else "message"
    if tools is not None:
        msg = "actions that are token ids call no tools: pass tools= to the renderer"
        raise ValueError(msg)
    return "tokens"


def _first(outputs: list[Outcome[ActionT]]) -> PolicyOutput[ActionT]:
    output = outputs[0]
    if isinstance(output, Exception):
        raise output
    return output


def _fill(
    entries: list[Outcome[ActionT]], request: Request, outputs: list[Outcome[ActionT]]
) -> None:
    for position, output in zip(request.positions, outputs, strict=False):
        entries[position] = output
