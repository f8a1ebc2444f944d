"""A blocking environment in asynchronous rollouts: each instance gets a thread of its own.

    uv run examples/sync_env_async_rollouts.py

`as_async` runs every call of one environment on one worker thread, so that a database handle or a
browser that belongs to its thread works, and the event loop stays free meanwhile.
"""

from __future__ import annotations

import threading
import time
from typing import Any

import anyio

from rolloutlib import AsyncEnv, Env, as_async, spaces
from rolloutlib.rollouts import arollout_group

NUM_ROLLOUTS = 8
NUM_STEPS = 5
SECONDS = 0.05
LOCK = threading.Lock()


class SlowEnv(Env[str, str]):
    """Blocks its thread in every step, as a browser, a compiler or a simulator would."""

    observation_space = spaces.text.text()
    action_space = spaces.text.text()

    meeting = threading.Barrier(NUM_ROLLOUTS)
    num_open = 0

    def __init__(self, item: str) -> None:
        """Count the instance as open."""
        self.item = item
        self.threads: set[int] = set()
        with LOCK:
            SlowEnv.num_open += 1

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[str, dict[str, Any]]:
        """Begin with nothing built."""
        super().reset(seed=seed)
        self.threads.add(threading.get_ident())
        self.built = 0
        return "ready", {}

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """Wait until all the environments are in a step, block for a while, then answer."""
        self.threads.add(threading.get_ident())
        self.meeting.wait(timeout=30)  # with fewer threads than environments, this would fail
        time.sleep(SECONDS)
        self.built += 1
        done = self.built == NUM_STEPS
        return f"{action}: done", float(done), done, False, {"threads": len(self.threads)}

    def close(self) -> None:
        """Count the instance as closed."""
        with LOCK:
            SlowEnv.num_open -= 1


def make_env(item: str) -> AsyncEnv[str, str]:
    """Open a blocking environment for use in a coroutine."""
    return as_async(SlowEnv(item))


async def main() -> None:
    """Roll out a group at once and show that its environments overlapped."""
    start = time.perf_counter()
    group = await arollout_group(
        "target",
        make_env,
        lambda observation: "build",
        num_rollouts=NUM_ROLLOUTS,
        concurrency=NUM_ROLLOUTS,
    )
    elapsed = time.perf_counter() - start

    blocked = NUM_ROLLOUTS * NUM_STEPS * SECONDS
    threads = max(run.steps[-1].info["threads"] for run in group.trajectories)
    print(f"{len(group.trajectories)} episodes, rewards {list(group.rewards)}")
    print(f"blocked for {blocked:.1f} s in all, done in {elapsed:.1f} s")
    print(f"environments that met in every step: {SlowEnv.meeting.parties}")
    print(f"threads that called any one environment: {threads}")
    print(f"environments left open: {SlowEnv.num_open}")


if __name__ == "__main__":
    anyio.run(main)
