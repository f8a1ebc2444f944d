"""From answers of servers to what policies return."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Generic

from rolloutlib.openai._errors import MissingTokensError
from rolloutlib.openai._options import PolicyOptions
from rolloutlib.openai._replies import Choice, Reply
from rolloutlib.rollouts import ActionT, PolicyOutput
from rolloutlib.rollouts._requests import IncompleteAnswers


class OutputReader(Generic[ActionT]):
    """Makes policy outputs of the choices of an answer, and minds their tokens.

    Args:
        act: Returns the action of a choice.
        options: Those of the policy.
        place: Which model of which server is asked, for messages.
    """

    def __init__(
        self, act: Callable[[Choice], ActionT], options: PolicyOptions, place: str
    ) -> None:
        self._act = act
        self._tokens = options.get("tokens", False)
        self._logprobs = options.get("logprobs", False)
        self.incomplete = IncompleteAnswers(
            options.get("max_incomplete", 0), place, MissingTokensError
        )

    def read(
        self,
        reply: Reply,
        index: int,
        prompt_tokens: Sequence[int] | None,
        facts: Mapping[str, Any],
    ) -> PolicyOutput[ActionT]:
        """Return the output for one choice of an answer.

        Args:
            reply: The answer.
            index: Which of its choices.
            prompt_tokens: The ids of the prompt, if they are known.
            facts: What there is to tell of the request; None is left out.

        Raises:
            MissingTokensError: Too many answers lack tokens that were asked for.
        """
        choice = reply.choices[index]
        tokens = reply.tokens(index) if self._tokens else None
        logprobs, problem = read_logprobs(reply, index, tokens) if self._logprobs else (None, None)
        if self._tokens and tokens is None:
            problem = "no ids of its tokens"
            if index and reply.llama is not None:
                problem += (
                    ": llama.cpp tells those of the first sample alone, so pass max_samples=1"
                )
        elif self._tokens and prompt_tokens is None:
            problem = problem or "no ids of the prompt's tokens"
        if problem is not None:
            self.incomplete.add(problem)
        info = {
            "model": reply.model,
            "response_id": reply.id,
            # Once a request, so that sums over samples are right.
            "usage": reply.usage.to_dict() if reply.usage is not None and index == 0 else None,
            "reasoning": choice.message.thoughts or None,
            "refusal": choice.message.refusal,
            "incomplete": problem,
            **facts,
        }
        return PolicyOutput(
            self._act(choice),
            {name: fact for name, fact in info.items() if fact is not None},
            tokens=tokens,
            logprobs=logprobs,
            stop_reason=choice.finish_reason,
            prompt_tokens=prompt_tokens if self._tokens else None,
        )


def read_logprobs(
    reply: Reply, index: int, tokens: Sequence[int] | None
) -> tuple[Sequence[float] | None, str | None]:
    """Return the log probabilities of a choice, or None and what is wrong with them.

    Args:
        reply: The answer.
        index: Which of its choices.
        tokens: The ids of its tokens, if they are known.
    """
    told = reply.choices[index].logprobs
    entries = (told.content if told is not None else None) or []
    values = [entry.logprob for entry in entries] if told is not None else None
    if told is not None and told.content is None:
        values = told.token_logprobs
    size = None if tokens is None else len(tokens)
    ids = [entry.id for entry in entries]
    is_llama = bool(ids) and None not in ids
    if size is None and is_llama and index == 0 and reply.usage is not None:
        size = reply.usage.completion_tokens
    if values is None:
        return ([], None) if size == 0 else (None, "no log probabilities")
    whole = [value for value in values if value is not None and math.isfinite(value)]
    if len(whole) != len(values):
        return None, f"{len(values) - len(whole)} of {len(values)} log probabilities missing"
    if size is not None and size != len(whole):
        problem = f"{len(whole)} log probabilities for {size} tokens"
        if is_llama:
            # It drops the entry of each token after which the text ends within a UTF-8 character,
            # all but the last token of an emoji, and those of a stop sequence.
            problem += ": llama.cpp leaves out those of parts of characters, as emoji have"
        return None, problem
    if tokens is not None and is_llama and ids != list(tokens):
        return None, "log probabilities of other tokens than the ids"
    return whole, None
