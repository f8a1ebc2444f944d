"""Collect rollouts of a dataset from a model server that is slow, hangs, and is gone at times.

    uv run examples/collect.py groups.jsonl

The file gets each group as soon as it is finished, standard error the progress. After Ctrl-C, or worse,
the same command goes on where it was.
"""

from __future__ import annotations

import sys
from typing import Any

import anyio
import numpy as np

from rolloutlib import AsyncEnv, PolicyOutput, acollect, spaces
from rolloutlib.evals import ProgressDisplay
from rolloutlib.rollouts import Retry, Timeouts, summarize
from rolloutlib.storage import GroupStore, read_groups


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


async def main(path: str) -> None:
    """Play all episodes, or those that are not in the file yet, and tell what is in it then."""
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
            store=GroupStore(path),
        )
        async with run as groups:
            async for group in groups:
                failures = [error.error_message for error in group.errors]
                print(f"{group.item}: {sum(group.rewards):.0f} of 8 found it", *failures)
    print(summarize(read_groups(path)))


if __name__ == "__main__":
    anyio.run(main, sys.argv[1])
