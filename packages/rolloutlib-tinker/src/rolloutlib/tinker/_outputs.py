"""From sampled sequences to what policies return."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeAlias, cast

from rolloutlib.rollouts import ActionT, PolicyOutput
from rolloutlib.rollouts._requests import IncompleteAnswers
from rolloutlib.tinker._cookbook_messages import read_message
from rolloutlib.tinker._errors import MissingTokensError
from rolloutlib.tinker._options import PolicyOptions, read_stop
from rolloutlib.tinker._prompts import Prompt
from rolloutlib.tinker._renderers import Renderer, Termination, decode, eos_ids
from rolloutlib.types import Message

if TYPE_CHECKING:
    import tinker

ActionKind: TypeAlias = Literal["text", "message", "tokens"]


class OutputReader(Generic[ActionT]):
    """Makes policy outputs of sampled sequences, and minds their log probabilities.

    Args:
        renderer: Reads messages; None for a model that has no chat template.
        tokenizer: Of the model.
        kind: Which actions the policy has.
        options: Those of the policy.
        place: What is asked of which model, for messages.
    """

    def __init__(
        self,
        renderer: Renderer | None,
        tokenizer: Any,
        kind: ActionKind,
        options: PolicyOptions,
        place: str,
    ) -> None:
        self._renderer = renderer
        self._tokenizer = tokenizer
        self._kind = kind
        self._stop_texts, self._stop_ids = read_stop(options)
        self.incomplete = IncompleteAnswers(
            options.get("max_incomplete", 0), place, MissingTokensError
        )

    def read(
        self,
        sequence: tinker.types.SampledSequence,
        prompt: Prompt,
        version: int | str | None,
        facts: Mapping[str, Any],
    ) -> PolicyOutput[ActionT]:
        """Return the output for one sequence.

        Args:
            sequence: What was sampled.
            prompt: What it was sampled for.
            version: That of the policy's weights.
            facts: What there is to tell of the request; None is left out.

        Raises:
            MissingTokensError: Too many sequences lack log probabilities.
        """
        tokens = list(sequence.tokens)
        logprobs, problem = _read_logprobs(sequence.logprobs, len(tokens))
        if problem is not None:
            self.incomplete.add(problem)
        message, reasoning, termination = self._parse(tokens, sequence.stop_reason)
        if prompt.chat is not None:
            # Of ids an environment makes what it likes.
            said = None if self._kind == "tokens" else cast("str", message["content"])
            prompt.chat.add(tokens, said=said)
        info = {
            "termination": termination,
            "reasoning": reasoning or None,
            "rewrite": prompt.rewrite,
            "incomplete": problem,
            **facts,
        }
        actions: dict[str, Any] = {"text": message["content"], "message": message, "tokens": tokens}
        return PolicyOutput(
            cast("ActionT", actions[self._kind]),
            {name: fact for name, fact in info.items() if fact is not None},
            tokens=tokens,
            logprobs=logprobs,
            stop_reason=sequence.stop_reason,
            prompt_tokens=prompt.token_ids,
            version=version,
        )

    def _parse(self, tokens: list[int], stop_reason: str) -> tuple[Message, str, Termination]:
        message, reasoning, termination = self._render_back(tokens)
        if stop_reason == "length":
            return message, reasoning, "length"
        if termination != "malformed":
            return message, reasoning, termination
        if tokens and tokens[-1] in self._stop_ids:
            return *self._end_turn(tokens[:-1]), "stop_sequence"
        text = decode(self._tokenizer, tokens)
        found = [text.find(stop) for stop in self._stop_texts if stop in text]
        if found:
            before = self._tokenizer.encode(text[: min(found)], add_special_tokens=False)
            return *self._end_turn(before), "stop_sequence"
        if tokens and tokens[-1] in eos_ids(self._tokenizer):
            # Renderers may know no other end than that of a turn.
            return *self._end_turn(tokens[:-1]), "eos"
        return message, reasoning, "malformed"

    def _end_turn(self, tokens: list[int]) -> tuple[Message, str]:
        """Return the message as if its turn had been ended after these tokens."""
        stops = [] if self._renderer is None else self._renderer.get_stop_sequences()
        if stops and isinstance(stops[0], int):
            message, reasoning, _ = self._render_back([*tokens, stops[0]])
            return message, reasoning
        return _said(decode(self._tokenizer, tokens)), ""

    def _render_back(self, tokens: list[int]) -> tuple[Message, str, Termination]:
        if self._renderer is None:
            return _said(decode(self._tokenizer, tokens)), "", "malformed"
        try:
            said, how = self._renderer.parse_response(tokens)
        except Exception:  # renderers raise what they like for what they cannot read
            return _said(decode(self._tokenizer, tokens)), "", "malformed"
        return *read_message(said), _read_termination(how)


def _said(text: str) -> Message:
    return {"role": "assistant", "content": text}


def _read_termination(how: Any) -> Termination:
    """Return how an answer ended, as renderers tell: by a bool in older versions, or an enumeration."""
    if isinstance(how, bool):
        return "stop_sequence" if how else "malformed"
    name = str(getattr(how, "value", how)).lower()
    if name in ("stop_sequence", "eos"):
        return cast("Termination", name)
    return "malformed"


def _read_logprobs(
    values: Sequence[float] | None, size: int
) -> tuple[Sequence[float] | None, str | None]:
    """Return log probabilities, or None and what is wrong with them."""
    if values is None:
        return ([], None) if size == 0 else (None, "no log probabilities")
    missing = sum(not math.isfinite(value) for value in values)
    if missing:
        return None, f"{missing} of {len(values)} log probabilities missing"
    if len(values) != size:
        return None, f"{len(values)} log probabilities for {size} tokens"
    return values, None
