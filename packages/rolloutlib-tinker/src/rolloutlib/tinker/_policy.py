"""A policy over a sampling client of Tinker."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, overload

from typing_extensions import Unpack

from rolloutlib.rollouts import ActionT, PolicyOutput
from rolloutlib.tinker._any_policy import AnyPolicy, Sampler, fill, first, read_kind
from rolloutlib.tinker._exchanges import Exchange, Outcome
from rolloutlib.tinker._models import Model
from rolloutlib.tinker._options import PolicyOptions
from rolloutlib.tinker._prompts import TinkerPrompt
from rolloutlib.tinker._renderers import Renderer
from rolloutlib.tinker._requests import Request
from rolloutlib.tinker._waiting import wait_all
from rolloutlib.tools import Tools
from rolloutlib.types import Message


class TinkerPolicy(AnyPolicy[ActionT]):
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
        model = Model[Any](read_kind(tools, actions), tools, renderer, options)
        self._exchange = Exchange[Any](sampler, model, version)
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
        return first(outputs)

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

        Raises:
            ValueError: There are more or fewer seeds or steps than observations.
        """
        self._exchange.prepare()
        entries, requests = self._exchange.requests(observations, seeds, steps)
        while requests:  # a server may give fewer samples than it was asked for
            left: list[Request] = []
            for request, outputs in zip(requests, self._ask(requests), strict=True):
                fill(entries, request, outputs)
                if (rest := request.after(len(outputs))) is not None:
                    left.append(rest)
            requests = left
        return entries

    def _ask(self, requests: Sequence[Request]) -> list[list[Outcome[ActionT]]]:
        exchange = self._exchange
        answers = wait_all(map(exchange.submit, requests), exchange.timeout)
        return [
            exchange.outputs(request, answer)
            for request, answer in zip(requests, answers, strict=True)
        ]
