"""Evaluate a policy: a benchmark of your own, and GSM8K, through the environments of training.

    uv run examples/evaluation.py

A benchmark is a name, items and an environment factory. The runner opens a fresh environment for
each item, and keeps one record for each, also where the evaluation raised.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from rolloutlib import Env, Score, SingleTurnEnv, rollout, spaces
from rolloutlib.evals import Benchmark, BenchmarkResult, Evaluation, run_benchmark
from rolloutlib.evals.benchmarks import gsm8k
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
    """Stand in for a model: knows three capitals, multiplies, and breaks down over Chad."""
    question = str(observation[-1]["content"])
    if "Chad" in question:
        msg = "the model server is gone"
        raise ConnectionError(msg)
    for country, capital in {"France": "Paris", "Peru": "Lima", "Kenya": "Nairobi"}.items():
        if country in question:
            return f"The capital of {country} is {capital}."
    numbers = [int(number) for number in re.findall(r"\d+", question)]
    if len(numbers) == 2:
        return f"{numbers[0]} times {numbers[1]} is {numbers[0] * numbers[1]}.\n#### {numbers[0] * numbers[1]}"
    return "I do not know."


def evaluate(env: Env[Chat, str]) -> Evaluation:
    """Run one episode and hand over the score that the environment gave."""
    trajectory = rollout(env, policy)
    return Evaluation(
        score=trajectory.score,
        metadata={"answer": trajectory.actions[-1]},
    )


def show(result: BenchmarkResult) -> None:
    """Print the totals and the records."""
    print(f"{result.name}: score {result.score:.3f} over {result.num_examples} items")
    print(f"  {result.num_completed} completed, {result.num_errors} failed")
    print(f"  mean of those completed: {result.score_completed:.3f}")
    for part, mean in result.components.items():
        print(f"  mean of {part}: {mean:.3f} over {result.component_counts[part]} items")
    for record in result.records:
        if record.score is None:
            print(f"  {record.item_id}: failed, {record.metadata['error_type']}: {record.error}")
        else:
            print(f"  {record.item_id}: {record.score.value}, {record.metadata['answer']!r}")
    print()


def main() -> None:
    """Run both benchmarks with one policy."""
    capitals = Benchmark(
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
    show(run_benchmark(capitals, evaluate))

    problems = [
        {"question": "What is 6 times 7?", "answer": "#### 42"},
        {"question": "A shelf holds 12 books. How many do 5 shelves hold?", "answer": "#### 60"},
        {"question": "Half of 90 is what?", "answer": "#### 45"},
    ]
    show(run_benchmark(gsm8k(problems), evaluate))


if __name__ == "__main__":
    main()
