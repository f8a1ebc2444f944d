"""Requests: what is asked of a server, for one observation or for several equal ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any


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
