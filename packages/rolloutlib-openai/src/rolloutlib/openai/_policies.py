"""What policies of both endpoints have in common: sending requests, alone and in batches."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from types import TracebackType
from typing import Generic, NoReturn, Self
from weakref import finalize

import anyio
import openai

from rolloutlib._calls import task_group
from rolloutlib.openai._clients import AsyncClients, Clients, check_key
from rolloutlib.openai._endpoints import Endpoint
from rolloutlib.openai._errors import RequestRefusedError
from rolloutlib.openai._exchanges import Exchange
from rolloutlib.openai._http import httpx
from rolloutlib.openai._options import PolicyOptions
from rolloutlib.openai._requests import Request
from rolloutlib.openai._tries import Tries
from rolloutlib.rollouts import ActionT, ObservationT, PolicyOutput


class _AnyPolicy(Generic[ActionT]):
    def __init__(
        self,
        endpoint: Endpoint[ActionT],
        options: PolicyOptions,
        client: openai.OpenAI | openai.AsyncOpenAI,
    ) -> None:
        check_key(client.api_key)
        self._model = endpoint.model
        self._exchange = Exchange(endpoint, options, client)

    @property
    def model(self) -> str:
        """The name of the model."""
        return self._model

    @property
    def num_incomplete(self) -> int:
        """How many answers lacked token ids or log probabilities that were asked for."""
        return self._exchange.reader.incomplete.count

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._model!r}, base_url={self._exchange.url!r})"

    def __reduce__(self) -> NoReturn:
        msg = (
            f"{self!r} can be neither pickled nor copied, since it has connections and a key: "
            "make it in the process that uses it"
        )
        raise TypeError(msg)


class ServerPolicy(_AnyPolicy[ActionT], Generic[ObservationT, ActionT]):
    """A synchronous policy over an endpoint; threads may share it."""

    def __init__(
        self, endpoint: Endpoint[ActionT], options: PolicyOptions, client: openai.OpenAI | None
    ) -> None:
        self._clients = Clients(options, client)
        super().__init__(endpoint, options, self._clients.template)
        self._finalizer = finalize(self, self._clients.close)

    def __call__(
        self, observation: ObservationT, /, *, seed: int | None = None, step: int | None = None
    ) -> PolicyOutput[ActionT]:
        """Ask the server for an action.

        Args:
            observation: The prompt.
            seed: The episode's seed, from which that of the request is derived.
            step: The number of the episode's step.

        Raises:
            ModelServerError: The server gave no action; the kind of error tells whether it may pass.
            EpisodeTruncated: The prompt does not fit the model's context.
            TypeError: The observation is no prompt.
            ValueError: It is wrong in its parts.
        """
        output = self._ask(self._exchange.request(observation, seed, step))[0]
        if isinstance(output, Exception):
            raise output
        return output

    def batch(
        self,
        observations: Sequence[ObservationT],
        /,
        *,
        seeds: Sequence[int | None] | None = None,
        steps: Sequence[int | None] | None = None,
    ) -> list[PolicyOutput[ActionT] | Exception]:
        """Ask for an action for each observation, at the same time; for `BatchedPolicy`.

        Observations that are equal, as at the first step of a group, become one request for several
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
        entries, requests = self._exchange.requests(observations, seeds, steps)

        left_off = threading.Event()

        def answer(first: Request) -> None:
            request: Request | None = first
            # A server may give fewer samples than it was asked for.
            while request is not None and not left_off.is_set():
                try:
                    outputs = self._ask(request)
                except Exception as error:
                    outputs = [error] * len(request.positions)
                for position, output in zip(request.positions, outputs, strict=False):
                    entries[position] = output
                request = request.after(len(outputs))

        if len(requests) == 1:
            answer(requests[0])
            return entries
        # Daemons: Ctrl-C ends the wait for them, and then the process may end.
        threads = [
            threading.Thread(target=answer, args=(request,), daemon=True) for request in requests
        ]
        try:
            for thread in threads:
                thread.start()
            # By naps: Ctrl-C does not wake a wait on Windows, nor one that it comes just before.
            for thread in threads:
                while thread.is_alive():
                    thread.join(_NAP)
        finally:
            left_off.set()
        return entries

    def close(self) -> None:
        """Close the connections, unless the client is the user's; the policy is done with then."""
        self._finalizer()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def _ask(self, request: Request) -> list[PolicyOutput[ActionT] | Exception]:
        exchange = self._exchange
        body, tries = exchange.body(request), Tries(self._clients.template.max_retries)
        while (reply := exchange.read(self._post(exchange.path, body, tries), tries)) is None:
            time.sleep(tries.pause)
        prompt_tokens: Sequence[int] | None = None
        text = exchange.to_tokenize(request, reply)
        if text is not None:
            try:
                tokenized = self._post(exchange.tokenize_url, text, tries)
            except RequestRefusedError:  # the server is hidden, but for its endpoints
                pass
            else:
                prompt_tokens = exchange.read_tokens(tokenized, reply)
        return exchange.outputs(request, reply, prompt_tokens)

    def _post(self, path: str, body: dict[str, object], tries: Tries) -> httpx.Response:
        try:
            return self._clients.get().post(
                path, cast_to=httpx.Response, body=body, options=tries.options
            )
        except openai.APIError as error:
            failure = self._exchange.failure(error)
        raise failure


class AsyncServerPolicy(_AnyPolicy[ActionT], Generic[ObservationT, ActionT]):
    """An asynchronous policy over an endpoint, under asyncio and trio, in any number of loops."""

    def __init__(
        self, endpoint: Endpoint[ActionT], options: PolicyOptions, client: openai.AsyncOpenAI | None
    ) -> None:
        self._clients = AsyncClients(options, client)
        super().__init__(endpoint, options, self._clients.template)

    async def __call__(
        self, observation: ObservationT, /, *, seed: int | None = None, step: int | None = None
    ) -> PolicyOutput[ActionT]:
        """Ask the server for an action.

        Args:
            observation: The prompt.
            seed: The episode's seed, from which that of the request is derived.
            step: The number of the episode's step.

        Raises:
            ModelServerError: The server gave no action; the kind of error tells whether it may pass.
            EpisodeTruncated: The prompt does not fit the model's context.
            TypeError: The observation is no prompt.
            ValueError: It is wrong in its parts.
        """
        output = (await self._ask(self._exchange.request(observation, seed, step)))[0]
        if isinstance(output, Exception):
            raise output
        return output

    async def batch(
        self,
        observations: Sequence[ObservationT],
        /,
        *,
        seeds: Sequence[int | None] | None = None,
        steps: Sequence[int | None] | None = None,
    ) -> list[PolicyOutput[ActionT] | Exception]:
        """Ask for an action for each observation, at the same time; for `AsyncBatchedPolicy`.

        Observations that are equal, as at the first step of a group, become one request for several
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
        entries, requests = self._exchange.requests(observations, seeds, steps)

        async def answer(first: Request) -> None:
            request: Request | None = first
            while request is not None:  # a server may give fewer samples than it was asked for
                try:
                    outputs = await self._ask(request)
                except Exception as error:
                    outputs = [error] * len(request.positions)
                for position, output in zip(request.positions, outputs, strict=False):
                    entries[position] = output
                request = request.after(len(outputs))

        async with task_group() as tasks:
            for request in requests:
                tasks.start_soon(answer, request)
        return entries

    async def aclose(self) -> None:
        """Close the connections of this event loop, unless the client is the user's."""
        await self._clients.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.aclose()

    async def _ask(self, request: Request) -> list[PolicyOutput[ActionT] | Exception]:
        exchange = self._exchange
        body, tries = exchange.body(request), Tries(self._clients.template.max_retries)
        while (  # noqa: ASYNC110 - it does not wait for a change, but before a further try
            reply := exchange.read(await self._post(exchange.path, body, tries), tries)
        ) is None:
            await anyio.sleep(tries.pause)
        prompt_tokens: Sequence[int] | None = None
        text = exchange.to_tokenize(request, reply)
        if text is not None:
            try:
                tokenized = await self._post(exchange.tokenize_url, text, tries)
            except RequestRefusedError:  # the server is hidden, but for its endpoints
                pass
            else:
                prompt_tokens = exchange.read_tokens(tokenized, reply)
        return exchange.outputs(request, reply, prompt_tokens)

    async def _post(self, path: str, body: dict[str, object], tries: Tries) -> httpx.Response:
        client = await self._clients.get()
        try:
            return await client.post(path, cast_to=httpx.Response, body=body, options=tries.options)
        except openai.APIError as error:
            failure = self._exchange.failure(error)
        raise failure


_NAP = 1.0  # seconds
