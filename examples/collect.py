"""Collect rollouts of a dataset from a model server that is slow, hangs, and is gone at times.

    uv run examples/collect.py > groups.jsonl

Standard output gets a line of JSON for each group, standard error the progress.
"""

from __future__ import annotations

import json
from typing import Any

import anyio
import numpy as np

from rolloutlib import AsyncEnv, PolicyOutput, acollect, spaces
from rolloutlib.evals import ProgressDisplay
from rolloutlib.rollouts import Retry, Timeouts


class GuessEnv(AsyncEnv[str, str]):
    """Holds a number from 1 to 100, and shows the range that the guesses leave."""

    observation_space = spaces.text.text(min_length=1)
    action_space = spaces.text.text()

    def __init__(self, number: int) -> None:
        self.number = number

    async def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[str, dict[str, Any]]:
        """Begin with the whole range."""
        self.low, self.high = 1, 100
        return f"{self.low} {self.high}", {}

    async def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """Narrow the range."""
        guess, number = int(action), self.number
        self.low, self.high = (guess + 1, self.high) if guess < number else (self.low, guess - 1)
        return f"{self.low} {self.high}", float(guess == number), guess == number, False, {}


async def policy(observation: str, *, seed: int = 0, step: int = 0) -> PolicyOutput[str]:
    """Stand in for a model server; the seed decides what it does."""
    chance = np.random.default_rng((seed, step))
    luck = chance.random()
    if luck < 0.02:
        msg = "the model server is gone"
        raise ConnectionError(msg)
    await anyio.sleep(3600 if luck < 0.03 else luck / 50)
    low, high = map(int, observation.split())
    guess = int(chance.integers(low, high, endpoint=True))
    return PolicyOutput(str(guess), tokens=[guess])


async def main() -> None:
    """Play all episodes, and write each group as soon as it is finished."""
    numbers = range(1, 100, 5)
    with ProgressDisplay(total=len(numbers) * 8) as display:
        run = acollect(
            numbers,
            GuessEnv,
            policy,
            num_rollouts=8,
            max_steps=6,
            seed=0,
            retry=Retry(attempts=3, initial_delay=0.1),
            timeouts=Timeouts(policy=0.5, episode=60),
            on_event=display,
        )
        async with run as groups:
            async for group in groups:
                errors = [error.to_dict() for error in group.errors]
                print(json.dumps({"item": group.item, "rewards": group.rewards, "errors": errors}))


if __name__ == "__main__":
    anyio.run(main)
