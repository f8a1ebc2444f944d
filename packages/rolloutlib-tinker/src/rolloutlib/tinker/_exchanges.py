"""All about requests and their answers that does not wait."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, cast

from rolloutlib.rollouts import ActionT, PolicyOutput
from rolloutlib.rollouts._requests import join_equal, pair_up, request_seed
from rolloutlib.tinker._errors import (
    ModelServerError,
    ServerTimeoutError,
    ServerUnavailableError,
    read_error,
)
from rolloutlib.tinker._models import Model
from rolloutlib.tinker._prompts import Prompt
from rolloutlib.tinker._requests import Request
from rolloutlib.tinker._sdk import is_future, is_sampler, load, submit, to_future
from rolloutlib.tinker._waiting import wait

if TYPE_CHECKING:
    import tinker

Outcome: TypeAlias = PolicyOutput[ActionT] | Exception


class Exchange(Generic[ActionT]):
    """Makes the requests of a policy, and reads their answers.

    Args:
        sampler: A sampling client, or the future of one.
        model: What is known of the model.
        version: That of the client's weights.

    Raises:
        TypeError: The sampler is none.
    """

    def __init__(self, sampler: object, model: Model[ActionT], version: int | str | None) -> None:
        if not (is_sampler(sampler) or is_future(sampler)):
            msg = f"sampler must be a tinker.SamplingClient or the future of one, got {sampler!r}"
            raise TypeError(msg)
        self.model = model
        self.version = version
        self.timeout = float(model.options.get("timeout") or _TIMEOUT)
        self._sampler = sampler
        self._client: tinker.SamplingClient | None = None

    @property
    def is_prepared(self) -> bool:
        """Whether there is a client, and the model is known."""
        return self._client is not None

    def prepare(self) -> None:
        """Wait for the client, and learn of the model, unless that has been done.

        Raises:
            ModelServerError: There is no client.
            ValueError: The tokenizer has a chat template in which no end of a turn is found.
        """
        if self._client is None:
            client: Any = self._sampler
            if is_future(client):
                client = self._wait_for(to_future(client))
            self.model.load(client)
            self._client = client

    def request(self, observation: object, seed: int | None, step: int | None) -> Request:
        """Return the request for one observation of an episode.

        Raises:
            TypeError: The observation is no prompt.
            ValueError: It is wrong in its parts.
            EpisodeTruncated: It does not fit the model's context.
        """
        prompt = self.model.prompts.read(observation, seed, step)
        return Request([prompt], [request_seed(self.model.options, seed, step)])

    def requests(
        self,
        observations: Sequence[object],
        seeds: Sequence[int | None] | None,
        steps: Sequence[int | None] | None,
    ) -> tuple[list[Outcome[ActionT]], list[Request]]:
        """Return the requests for a batch, and a list for its entries, with an error in each.

        Raises:
            ValueError: There are more or fewer seeds or steps than observations.
        """
        pairs = pair_up(len(observations), seeds, steps)
        entries: list[Outcome[ActionT]] = []
        prompts: list[Prompt | None] = []
        drawn: list[int | None] = []
        options = self.model.options
        for observation, (seed, step) in zip(observations, pairs, strict=True):
            drawn.append(request_seed(options, seed, step))
            try:
                prompts.append(self.model.prompts.read(observation, seed, step))
                entries.append(RuntimeError("the request was not sent"))
            except Exception as error:  # renderers raise what they like for what they cannot render
                prompts.append(None)
                entries.append(error)
        keys = [None if prompt is None else tuple(prompt.ids) for prompt in prompts]
        requests: list[Request] = []
        for positions in join_equal(keys, options.get("max_samples")):
            equal = [prompt for place in positions if (prompt := prompts[place]) is not None]
            requests.append(Request(equal, [drawn[place] for place in positions], positions))
        return entries, requests

    def submit(self, request: Request) -> Future[tinker.SampleResponse]:
        """Begin to sample."""
        client = cast("tinker.SamplingClient", self._client)
        prompt = request.prompts[0]
        try:
            params = load().SamplingParams(**self.model.params(prompt), seed=request.seeds[0])
            return submit(client, prompt.to_model_input(), len(request.positions), params)
        except Exception as error:
            failed: Future[tinker.SampleResponse] = Future()
            failed.set_exception(error)
            return failed

    def outputs(
        self, request: Request, answer: Future[tinker.SampleResponse]
    ) -> list[Outcome[ActionT]]:
        """Return the actions in an answer, or errors in their places, of at least one.

        Args:
            request: What was asked.
            answer: Done, or given up.
        """
        size = len(request.positions)
        place = self.model.place
        if answer.cancelled():
            msg = f"{place} gave no answer in {self.timeout:g} seconds (timeout)"
            return [ServerTimeoutError(msg)] * size
        error = answer.exception()
        if error is not None:
            return [read_error(error, place)] * size
        response = answer.result()
        if not response.sequences:
            return [ServerUnavailableError(f"{place} gave an answer without a sequence")] * size
        outputs: list[Outcome[ActionT]] = []
        for index, (sequence, prompt) in enumerate(
            zip(response.sequences, request.prompts, strict=False)
        ):
            sample = {"sample": index, "num_samples": size} if size > 1 else {}
            facts = {"seed": request.seeds[0], "usage": _usage(response, prompt, index), **sample}
            try:
                outputs.append(self.model.reader.read(sequence, prompt, self.version, facts))
            except ModelServerError as failure:
                outputs.append(failure)
        return outputs

    def _wait_for(self, client: Future[Any]) -> Any:
        wait([client], self.timeout)
        if not client.done():
            msg = f"there was no sampling client in {self.timeout:g} seconds (timeout)"
            raise ServerTimeoutError(msg)
        try:
            return client.result()
        except Exception as error:
            failure = read_error(error, "making a sampling client")
        raise failure  # not from the error, which has the key


def _usage(response: Any, prompt: Prompt, index: int) -> dict[str, int] | None:
    """Return how many tokens a request took; once a request, so that sums over samples are right."""
    if index:
        return None
    return {
        "prompt_tokens": prompt.size,
        "completion_tokens": sum(len(sequence.tokens) for sequence in response.sequences),
        "cached_tokens": getattr(response, "prompt_cache_hit_tokens", 0),
    }


_TIMEOUT = 600.0
