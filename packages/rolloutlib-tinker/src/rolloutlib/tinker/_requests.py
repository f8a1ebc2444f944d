"""Requests: what is asked of Tinker, for one observation or for several equal ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rolloutlib.rollouts import derive_seed
from rolloutlib.tinker._options import PolicyOptions
from rolloutlib.tinker._prompts import Prompt


@dataclass(frozen=True, slots=True)
class Request:
    """One request, for samples of one prompt.

    Attributes:
        prompts: The prompt of each sample: the same tokens, of several conversations.
        seeds: The seed that each sample would have alone; the request has the first.
        positions: Which observation of a batch each sample is for.
    """

    prompts: Sequence[Prompt]
    seeds: Sequence[int | None]
    positions: Sequence[int] = (0,)

    def after(self, count: int) -> Request | None:
        """Return the request for what is left after so many samples, None if nothing is."""
        if count >= len(self.positions):
            return None
        return Request(self.prompts[count:], self.seeds[count:], self.positions[count:])


def request_seed(options: PolicyOptions, seed: int | None, step: int | None) -> int | None:
    """Return the seed of a request, of 31 bits.

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
    prompts: Sequence[Prompt | None], seeds: Sequence[int | None], max_samples: int | None
) -> list[Request]:
    """Return requests for all prompts, with those that are equal together.

    Args:
        prompts: The prompts of a batch; for None, nothing is asked.
        seeds: The seed that each would have alone.
        max_samples: The most samples of a request.
    """
    equal: dict[tuple[int, ...], list[int]] = {}
    for position, prompt in enumerate(prompts):
        if prompt is not None:
            equal.setdefault(tuple(prompt.ids), []).append(position)
    size = max_samples or max(len(prompts), 1)
    requests: list[Request] = []
    for positions in equal.values():
        for start in range(0, len(positions), size):
            some = positions[start : start + size]
            of_some = [prompt for place in some if (prompt := prompts[place]) is not None]
            requests.append(Request(of_some, [seeds[place] for place in some], some))
    return requests
