"""Evaluate a policy on a benchmark of your own, through the environment that trains on it.

    uv run examples/own_benchmark.py

A benchmark is a name, items and an environment factory. The runner opens a fresh environment for
each sample, and keeps one record of each, also where the policy raised.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from rolloutlib import Score, SingleTurnEnv, spaces
from rolloutlib.evals import Benchmark, run_benchmark
from rolloutlib.types import Chat


@dataclass(frozen=True)
class Capital:
    """One item: a country and the name of its capital."""

    country: str
    capital: str


class CapitalEnv(SingleTurnEnv[Chat, str]):
    """Asks for a capital."""

    observation_space = spaces.messages.chat(min_length=1)
    action_space = spaces.text.text()

    def __init__(self, item: Capital) -> None:
        """Ask about this item."""
        super().__init__()
        self.item = item

    def initial_observation(
        self, *, options: dict[str, Any] | None = None
    ) -> tuple[Chat, dict[str, Any]]:
        """Ask."""
        return [{"role": "user", "content": f"What is the capital of {self.item.country}?"}], {}

    def evaluate(self, action: str) -> Score:
        """Look for the name in the answer, and prefer a short one."""
        right = self.item.capital.lower() in action.lower()
        return Score(float(right), {"right": float(right), "brief": float(len(action) < 40)})

    def terminal_observation(self, action: str) -> Chat:
        """Show the answer that ended the episode."""
        return [{"role": "assistant", "content": action}]


def policy(observation: Chat) -> str:
    """Stand in for a model: knows three capitals, and breaks down over Chad."""
    question = str(observation[-1]["content"])
    if "Chad" in question:
        msg = "the model server is gone"
        raise ConnectionError(msg)
    for country, capital in {"France": "Paris", "Peru": "Lima", "Kenya": "Nairobi"}.items():
        if country in question:
            return f"The capital of {country} is {capital}."
    return "I do not know."


def main() -> None:
    """Ask for four capitals, and print the totals and the records."""
    benchmark = Benchmark(
        "capitals",
        [
            Capital("France", "Paris"),
            Capital("Peru", "Lima"),
            Capital("Chad", "N'Djamena"),
            Capital("Nauru", "Yaren"),
        ],
        CapitalEnv,
        item_id=lambda item: item.country,
    )
    result = run_benchmark(benchmark, policy=policy)
    low, high = result.score_bounds
    print(f"{result.name}: score {result.score:.3f} over {result.num_examples} items")
    print(f"  {result.num_completed} completed, {result.num_errors} failed")
    print(f"  from {low:.3f} if those that failed score 0 to {high:.3f} if they score 1")
    for part, mean in result.components.items():
        print(f"  mean of {part}: {mean:.3f} over {result.component_counts[part]} items")
    for record in result.records:
        if record.score is None or record.trajectory is None:
            print(f"  {record.item_id}: failed, {record.metadata['error_type']}: {record.error}")
        else:
            answer = record.trajectory.actions[-1]
            print(f"  {record.item_id}: {record.outcome}, {record.score.value}, {answer!r}")


if __name__ == "__main__":
    main()
