"""All about requests and their answers that does not wait."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypeVar, cast

from rolloutlib.rollouts import ActionT, EpisodeTruncated, PolicyOutput
from rolloutlib.tinker._errors import (
    ModelServerError,
    ServerTimeoutError,
    ServerUnavailableError,
    read_error,
)
from rolloutlib.tinker._options import PolicyOptions, check_options, read_stop
from rolloutlib.tinker._outputs import ActionKind, OutputReader
from rolloutlib.tinker._prompts import Prompt, Prompts
from rolloutlib.tinker._renderers import ChatTemplateRenderer, Renderer
from rolloutlib.tinker._requests import Request, join_equal, request_seed
from rolloutlib.tinker._sdk import is_future, is_sampler, load, submit, to_future
from rolloutlib.tools import Tool, Toolset
from rolloutlib.types import ToolDefinition

if TYPE_CHECKING:
    import tinker

Tools: TypeAlias = Toolset | Iterable[ToolDefinition | Tool[..., Any] | Callable[..., Any]]
Outcome: TypeAlias = PolicyOutput[ActionT] | Exception

RendererT = TypeVar("RendererT", bound=Renderer | None)


class Exchange(Generic[ActionT]):
    """Makes the requests of a policy, and reads their answers.

    Args:
        sampler: A sampling client, or the future of one.
        kind: Which actions the policy has.
        tools: What the model may call.
        renderer: One of the user's, or None for one over the tokenizer's chat template.
        version: That of the policy's weights.
        options: Those of the policy.

    Raises:
        TypeError: The sampler is none, something is no tool, or an option has the wrong type.
        ValueError: An option is out of its range.
    """

    def __init__(
        self,
        sampler: object,
        kind: ActionKind,
        tools: Tools | None,
        renderer: Renderer | None,
        version: int | str | None,
        options: PolicyOptions,
    ) -> None:
        check_options(options)
        if not (is_sampler(sampler) or is_future(sampler)):
            msg = f"sampler must be a tinker.SamplingClient or the future of one, got {sampler!r}"
            raise TypeError(msg)
        self.version = version
        self.timeout = float(options.get("timeout") or _TIMEOUT)
        self._sampler = sampler
        self._kind: ActionKind = kind
        self._tools = define_tools(tools)
        self._renderer = renderer if tools is None else with_tools(renderer, self._tools)
        self._options = options
        self._preparing = threading.Lock()
        self._prompts: Prompts | None = None
        self._reader: OutputReader[ActionT] | None = None
        self._client: tinker.SamplingClient | None = None
        self.place = "sampling"

    @property
    def is_prepared(self) -> bool:
        """Whether there is a client, and a renderer."""
        return self._client is not None

    @property
    def num_incomplete(self) -> int:
        """How many answers lacked log probabilities."""
        return 0 if self._reader is None else self._reader.num_incomplete

    def prepare(self) -> None:
        """Wait for the client, and load the tokenizer, unless that has been done.

        Raises:
            ModelServerError: There is no client.
            ValueError: The tokenizer has a chat template in which no end of a turn is found.
        """
        with self._preparing:
            if self._client is None:
                client = self._sampler
                if is_future(client):
                    client = self._wait_for(to_future(client))
                if self._prompts is None:
                    self._load(client)
                self._client = cast("tinker.SamplingClient", client)

    def with_sampler(self, sampler: object, version: int | str | None) -> Exchange[ActionT]:
        """Return an exchange with another client, for the same conversations."""
        other = Exchange[ActionT](sampler, self._kind, None, self._renderer, version, self._options)
        other._tools = self._tools
        with self._preparing:
            other._prompts, other._reader, other.place = self._prompts, self._reader, self.place
        return other

    def request(self, observation: object, seed: int | None, step: int | None) -> Request:
        """Return the request for one observation of an episode.

        Raises:
            TypeError: The observation is no prompt.
            ValueError: It is wrong in its parts.
            EpisodeTruncated: It does not fit the model's context.
        """
        prompts = cast("Prompts", self._prompts)
        prompt = prompts.read(observation, seed, step)
        return Request([prompt], [request_seed(self._options, seed, step)])

    def requests(
        self,
        observations: Sequence[object],
        seeds: Sequence[int | None] | None,
        steps: Sequence[int | None] | None,
    ) -> tuple[list[Outcome[ActionT]], list[Request]]:
        """Return the requests for a batch, and a list for its entries, with an error in each."""
        entries: list[Outcome[ActionT]] = []
        prompts: list[Prompt | None] = []
        drawn: list[int | None] = []
        none = [None] * len(observations)
        for observation, seed, step in zip(observations, seeds or none, steps or none, strict=True):
            drawn.append(request_seed(self._options, seed, step))
            try:
                prompts.append(cast("Prompts", self._prompts).read(observation, seed, step))
                entries.append(RuntimeError("the request was not sent"))
            except (TypeError, ValueError, EpisodeTruncated) as error:
                prompts.append(None)
                entries.append(error)
        return entries, join_equal(prompts, drawn, self._options.get("max_samples"))

    def submit(self, request: Request) -> Future[tinker.SampleResponse]:
        """Begin to sample."""
        client = cast("tinker.SamplingClient", self._client)
        prompt = request.prompts[0]
        try:
            params = load().SamplingParams(**self._params(prompt), seed=request.seeds[0])
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
        if answer.cancelled():
            msg = f"{self.place} gave no answer in {self.timeout:g} seconds (timeout)"
            return [ServerTimeoutError(msg)] * size
        error = answer.exception()
        if error is not None:
            return [read_error(error, self.place)] * size
        response = answer.result()
        if not response.sequences:
            msg = f"{self.place} gave an answer without a sequence"
            return [ServerUnavailableError(msg)] * size
        outputs: list[Outcome[ActionT]] = []
        for index, (sequence, prompt) in enumerate(
            zip(response.sequences, request.prompts, strict=False)
        ):
            sample = {"sample": index, "num_samples": size} if size > 1 else {}
            facts = {"seed": request.seeds[0], "usage": _usage(response, prompt, index), **sample}
            reader = cast("OutputReader[ActionT]", self._reader)
            try:
                outputs.append(reader.read(sequence, prompt, self.version, facts))
            except ModelServerError as failure:
                outputs.append(failure)
        return outputs

    def _params(self, prompt: Prompt) -> dict[str, Any]:
        options = self._options
        max_tokens = int(options["max_tokens"])
        if (most := options.get("max_context")) is not None:
            max_tokens = min(max_tokens, int(most) - prompt.size)
        params: dict[str, Any] = {"max_tokens": max_tokens, "stop": self._stop()}
        for name, kind in (("temperature", float), ("top_k", int), ("top_p", float)):
            number = options.get(name)
            if number is not None:
                params[name] = kind(number)  # a scalar of NumPy, say
        return params

    def _stop(self) -> list[Any] | None:
        """Return what ends an answer: the SDK takes texts or ids, but not both."""
        prompts = cast("Prompts", self._prompts)
        texts, ids = read_stop(self._options)
        stops: list[Any] = [*prompts.stops, *texts, *ids]
        if any(isinstance(stop, str) for stop in stops):
            stops = [stop if isinstance(stop, str) else prompts.decode([stop]) for stop in stops]
        return stops or None

    def _load(self, client: Any) -> None:
        tokenizer = getattr(self._renderer, "tokenizer", None) or client.get_tokenizer()
        renderer = self._renderer
        if renderer is None and getattr(tokenizer, "chat_template", None):
            renderer = ChatTemplateRenderer(
                tokenizer, tools=self._tools if self._kind == "message" else None
            )
        is_ours = isinstance(renderer, ChatTemplateRenderer)
        self._prompts = Prompts(renderer, tokenizer, [] if is_ours else self._tools, self._options)
        self.place = f"sampling from {getattr(tokenizer, 'name_or_path', None) or 'Tinker'!r}"
        self._reader = OutputReader(renderer, tokenizer, self._kind, self._options, self.place)

    def _wait_for(self, client: Future[Any]) -> Any:
        try:
            return client.result(self.timeout)
        except Exception as error:
            failure: Exception = read_error(error, "making a sampling client")
            if isinstance(error, TimeoutError) and not client.done():
                msg = f"there was no sampling client in {self.timeout:g} seconds (timeout)"
                failure = ServerTimeoutError(msg)
        raise failure


def define_tools(tools: Tools | None) -> list[ToolDefinition]:
    """Return the definitions of tools.

    Raises:
        TypeError: Something is no tool.
    """
    if isinstance(tools, Toolset):
        return tools.definitions
    given: Any = () if tools is None else tools
    if isinstance(given, Mapping | str) or not isinstance(given, Iterable):
        msg = f"tools must be a Toolset or a list of functions, tools or definitions, got {given!r}"
        raise TypeError(msg)
    return [
        cast("ToolDefinition", one) if isinstance(one, Mapping) else Toolset([one]).definitions[0]
        for one in cast("Iterable[Any]", given)
    ]


def with_tools(renderer: RendererT, tools: list[ToolDefinition]) -> RendererT:
    """Return a renderer that shows the model tools.

    Raises:
        TypeError: It cannot.
    """
    if isinstance(renderer, ChatTemplateRenderer):
        return renderer.with_tools(tools)
    if (
        renderer is not None
        and tools
        and not hasattr(renderer, "create_conversation_prefix_with_tools")
    ):
        msg = f"{renderer!r} cannot tell a model of tools: it lacks create_conversation_prefix_with_tools"
        raise TypeError(msg)
    return renderer


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
