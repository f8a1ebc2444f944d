"""All about requests and their answers that neither sends nor waits."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any, Generic

import openai
import pydantic

from rolloutlib.openai._endpoints import Endpoint, Prompt
from rolloutlib.openai._errors import (
    ModelServerError,
    Redaction,
    ServerUnavailableError,
    hint_at_address,
    read_error,
    read_refusal,
    sent_for,
)
from rolloutlib.openai._http import httpx
from rolloutlib.openai._options import PolicyOptions
from rolloutlib.openai._outputs import OutputReader
from rolloutlib.openai._replies import Reply, Tokenized
from rolloutlib.openai._requests import Request
from rolloutlib.openai._tries import Tries
from rolloutlib.rollouts import ActionT, PolicyOutput
from rolloutlib.rollouts._requests import join_equal, pair_up, request_seed


class Exchange(Generic[ActionT]):
    """Writes the requests of a policy, and reads their answers.

    Args:
        endpoint: What is asked.
        options: Those of the policy.
        client: Of the SDK; it knows where the server is.
    """

    def __init__(
        self,
        endpoint: Endpoint[ActionT],
        options: PolicyOptions,
        client: openai.OpenAI | openai.AsyncOpenAI,
    ) -> None:
        self._endpoint = endpoint
        self._options = options
        base_url = client.base_url.copy_with(userinfo=b"", query=None, fragment=None)
        self.url = str(base_url)
        self._is_openai = base_url.host.endswith("openai.com")
        self.place = f"model {endpoint.model!r} at {self.url}"
        self.reader = OutputReader(endpoint.act, options, self.place)
        # Of llama.cpp, beside its "/v1/".
        self.tokenize_url = str(base_url.join("../tokenize"))

    def request(self, observation: object, seed: int | None, step: int | None) -> Request:
        """Return the request for one observation of an episode.

        Raises:
            TypeError: The observation is no prompt.
            ValueError: It is wrong in its parts.
        """
        return Request(
            self._endpoint.prompt(observation), [request_seed(self._options, seed, step)]
        )

    def requests(
        self,
        observations: Sequence[object],
        seeds: Sequence[int | None] | None,
        steps: Sequence[int | None] | None,
    ) -> tuple[list[PolicyOutput[ActionT] | Exception], list[Request]]:
        """Return the requests for a batch, and a list for its entries, with an error in each.

        Raises:
            ValueError: There are more or fewer seeds or steps than observations.
        """
        pairs = pair_up(len(observations), seeds, steps)
        drawn = [request_seed(self._options, seed, step) for seed, step in pairs]
        entries: list[PolicyOutput[ActionT] | Exception] = []
        prompts: list[Prompt | None] = []
        for observation in observations:
            try:
                prompts.append(self._endpoint.prompt(observation))
                entries.append(RuntimeError("the request was not sent"))
            except (TypeError, ValueError) as error:
                prompts.append(None)
                entries.append(error)
        keys = [None if one is None else json.dumps(one, sort_keys=True) for one in prompts]
        requests = [
            Request(prompt, [drawn[place] for place in positions], positions)
            for positions in join_equal(keys, self._options.get("max_samples"))
            if (prompt := prompts[positions[0]]) is not None
        ]
        return entries, requests

    def body(self, request: Request) -> dict[str, object]:
        """Return the body of a request."""
        body = self._endpoint.body(request.fields())
        if self._is_openai and self.path == "/chat/completions" and "max_tokens" in body:
            # OpenAI's reasoning models refuse the name that all other servers know.
            body["max_completion_tokens"] = body.pop("max_tokens")
        return body

    @property
    def path(self) -> str:
        """The endpoint's path."""
        return self._endpoint.path

    def failure(self, error: openai.APIError) -> Exception:
        """Return what is raised for an error of the SDK."""
        return read_error(error, self.place)

    def read(self, response: httpx.Response, tries: Tries) -> Reply | None:
        """Read an answer; None stands for one that may pass, for which there is another try.

        Raises:
            ServerUnavailableError: It is no answer to the request.
            ModelServerError: It tells of an error.
            EpisodeTruncated: It says that the prompt does not fit.
        """
        try:
            reply = self._read(response)
        except ServerUnavailableError:
            if tries.again(response):
                return None
            raise
        reply.retries = tries.count(response)
        return reply

    def _read(self, response: httpx.Response) -> Reply:
        redact = Redaction(*sent_for(response))
        try:
            reply = Reply.model_validate_json(response.content)
        except pydantic.ValidationError as error:
            [first, *_] = error.errors(include_input=False, include_url=False)
            place = ".".join(map(str, first["loc"]))
            problem = f"{first['msg']} at {place}" if place else first["msg"]
        else:
            if failure := reply.failure:
                code = str(failure.get("code") if isinstance(failure, dict) else None)
                status = response.status_code if reply.error else _BAD_GATEWAY
                status = int(code) if _STATUS.fullmatch(code) else status
                raise read_refusal(status, failure, redact, self.place)
            if reply.choices:
                reply.choices = reply.whole  # what is missing is asked for again
                return reply
            problem = "it has no choices"
        start = redact(response.text, limit=200)
        msg = (
            f"{self.place} gave an answer that cannot be read: {problem}, in {start!r}"
            f"{hint_at_address(self.place)}"
        )
        raise ServerUnavailableError(msg)

    def to_tokenize(self, request: Request, reply: Reply) -> dict[str, object] | None:
        """Return what llama.cpp must be asked for the ids of a prompt, None if nothing."""
        is_needed = self._options.get("tokens") and isinstance(
            request.prompt.get("prompt", ""), str
        )
        if not is_needed or reply.prompt_tokens() is not None or reply.llama is None:
            return None
        return {"content": reply.llama.prompt, "add_special": True, "parse_special": True}

    def read_tokens(self, response: httpx.Response, reply: Reply) -> Sequence[int] | None:
        """Return the ids of a prompt, None if they are not those that the model was given."""
        try:
            ids = Tokenized.model_validate_json(response.content).tokens
        except pydantic.ValidationError:  # of a proxy, which has other pages than llama.cpp
            return None
        usage = reply.usage
        return ids if usage is not None and usage.prompt_tokens == len(ids) else None

    def outputs(
        self, request: Request, reply: Reply, prompt_tokens: Sequence[int] | None
    ) -> list[PolicyOutput[ActionT] | Exception]:
        """Return the actions in an answer, or errors in their places."""
        given = request.prompt.get("prompt")  # in Completions, ids or a text
        if given is not None and not isinstance(given, str):
            prompt_tokens = given
        elif prompt_tokens is None:
            prompt_tokens = reply.prompt_tokens()
        size = len(request.positions)
        facts: dict[str, Any] = {"seed": request.seeds[0], "retries": reply.retries or None}
        outputs: list[PolicyOutput[ActionT] | Exception] = []
        for index in range(min(size, len(reply.choices))):
            sample = {"sample": index, "num_samples": size} if size > 1 else {}
            try:
                output = self.reader.read(reply, index, prompt_tokens, {**facts, **sample})
            except ModelServerError as error:
                outputs.append(error)
            else:
                outputs.append(output)
        return outputs


_STATUS = re.compile("[1-5][0-9]{2}")
_BAD_GATEWAY = 502
