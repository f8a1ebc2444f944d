"""Requests: what is asked of a server, for one observation or for several equal ones."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from rolloutlib.openai._options import PolicyOptions
from rolloutlib.rollouts import derive_seed


@dataclass(frozen=True, slots=True)
class Request:
    """One request, for samples of one prompt.

    Attributes:
        prompt: The fields of the body that hold the prompt.
        seeds: The seed that each sample would have alone; the request has the first.
        positions: Which observation of a batch each sample is for.
    """

    prompt: dict[str, Any]
    seeds: Sequence[int | None]
    positions: Sequence[int] = (0,)

    def fields(self) -> dict[str, Any]:
        """Return the fields of the body that tell this request from others."""
        fields = dict(self.prompt)
        if self.seeds[0] is not None:
            fields["seed"] = self.seeds[0]
        if len(self.positions) > 1:
            fields["n"] = len(self.positions)
        return fields

    def after(self, count: int) -> Request | None:
        """Return the request for what is left after so many samples, None if nothing is."""
        if count >= len(self.positions):
            return None
        return Request(self.prompt, self.seeds[count:], self.positions[count:])


def request_seed(options: PolicyOptions, seed: int | None, step: int | None) -> int | None:
    """Return the seed of a request, of 31 bits: llama.cpp takes no more than 32.

    Args:
        options: Those of the policy.
        seed: The episode's.
        step: The number of the episode's step.
    """
    own = options.get("seed")
    if not options.get("send_seed", True) or (own is None and seed is None):
        return None
    return derive_seed(own or 0, *(part for part in (seed, step) if part is not None))


def join_equal(
    prompts: Sequence[dict[str, Any] | None], seeds: Sequence[int | None], max_samples: int | None
) -> list[Request]:
    """Return requests for all prompts, with those that are equal together.

    Args:
        prompts: The prompts of a batch; for None, nothing is asked.
        seeds: The seed that each would have alone.
        max_samples: The most samples of a request.
    """
    equal: dict[str, tuple[dict[str, Any], list[int]]] = {}
    for position, prompt in enumerate(prompts):
        if prompt is not None:
            equal.setdefault(json.dumps(prompt, sort_keys=True), (prompt, []))[1].append(position)
    size = max_samples or max(len(prompts), 1)
    requests: list[Request] = []
    for prompt, positions in equal.values():
        for start in range(0, len(positions), size):
            some = positions[start : start + size]
            requests.append(Request(prompt, [seeds[position] for position in some], some))
    return requests
