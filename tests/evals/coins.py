"""A benchmark whose items score what the policy says, and a policy for it."""

from __future__ import annotations

from typing import Any

from rolloutlib import Score, SingleTurnEnv, spaces
from rolloutlib.evals import Benchmark, StopWhen

RULE = StopWhen(width=0.3)
ARGUMENTS: dict[str, Any] = {"shuffle": True, "stop_when": RULE, "model": "m"}


class CoinEnv(SingleTurnEnv[str, str]):
    """Scores what the policy says."""

    observation_space = spaces.text.text(min_length=1)
    action_space = spaces.text.text()

    def __init__(self, item: int) -> None:
        super().__init__()
        self.item = item

    def initial_observation(self, *, options: Any = None) -> tuple[str, dict[str, Any]]:
        return str(self.item), {}

    def evaluate(self, action: str) -> Score:
        return Score(float(action))

    def terminal_observation(self, action: str) -> str:
        return action


def coins(count: int = 400, make_env: Any = CoinEnv) -> Benchmark[int]:
    return Benchmark("coins", list(range(count)), make_env, item_id=str)


def toss(observation: str, *, seed: int = 0) -> str:
    """Heads for seven of ten items, the first ones of the benchmark."""
    return "1" if int(observation) < 280 else "0"
