"""Requests: what is asked of Tinker, for one observation or for several equal ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

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
