"""How often a request is sent."""

from __future__ import annotations

import openai

from rolloutlib.openai._http import httpx


class Tries:
    """How often a request is sent again: by the SDK, or since its answer cannot be read.

    Args:
        most: How often it may be, in all.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._made = 0

    @property
    def options(self) -> openai.RequestOptions:
        """What the SDK has to know of it."""
        return {"max_retries": self._most - self._made}

    @property
    def pause(self) -> float:
        """How many seconds to wait before the next try: as many as the SDK does."""
        return min(0.25 * 2**self._made, 8.0)

    def count(self, response: httpx.Response) -> int:
        """Return how often the request was sent again until this answer came."""
        return self._made + int(response.request.headers.get("x-stainless-retry-count", 0))

    def again(self, response: httpx.Response) -> bool:
        """Tell whether there is another try after this answer, and count it."""
        self._made = self.count(response) + 1
        return self._made <= self._most
