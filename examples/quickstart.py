"""Collect and grade groups of rollouts of a real language model, then evaluate the same policy.

    uv run examples/quickstart.py
    uv run examples/quickstart.py --seed 7 --gsm8k path/to/gsm8k_test.jsonl

The model is SmolLM2-135M-Instruct on one thread. It gets small sums right some of the time, which
is what a trainer needs: within a group, some answers earn more than others.
"""

from __future__ import annotations

import argparse
import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from local_model import LocalModel, LocalPolicy
from rich import box
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from rolloutlib import Env, GradingWrapper, Score, SingleTurnEnv, spaces
from rolloutlib.evals import run_benchmark
from rolloutlib.evals.benchmarks import gsm8k
from rolloutlib.graders import CompositeGrader, Criterion, Rubric
from rolloutlib.rollouts import RolloutEvent, TrajectoryGroup, rollout_group
from rolloutlib.types import Chat

NUM_SUMS = 6
NUM_ROLLOUTS = 8
COLUMNS = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())

# 1. The task: an environment of one turn, whose observation is a chat and whose action is text.


@dataclass(frozen=True)
class Sum:
    """One item of the task."""

    a: int
    b: int

    def __str__(self) -> str:
        return f"{self.a} + {self.b}"


class SumEnv(SingleTurnEnv[Chat, str]):
    """Asks for a sum, after one worked example."""

    observation_space = spaces.messages.chat(min_length=1)
    action_space = spaces.text.text()

    def __init__(self, item: Sum) -> None:
        super().__init__()
        self.item = item
        self.chat: Chat = [
            {"role": "user", "content": "What is 1 + 1?"},
            {"role": "assistant", "content": "1 + 1 = 2"},
            {"role": "user", "content": f"What is {item}?"},
        ]

    def initial_observation(
        self, *, options: dict[str, Any] | None = None
    ) -> tuple[Chat, dict[str, Any]]:
        """Ask."""
        return self.chat, {}

    def evaluate(self, action: str) -> float:
        """Leave the grading to the wrapper below."""
        return 0.0

    def terminal_observation(self, action: str) -> Chat:
        """Add the answer to the chat."""
        return [*self.chat, {"role": "assistant", "content": action}]


# 2. The reward: a rubric of two criteria, each with a grader of its own.


def grade_correctness(answer: tuple[Sum, str], criterion: Criterion) -> Score:
    """Compare the last number of the answer with the sum."""
    item, text = answer
    last = (re.findall(r"\d+", text) or ["nothing"])[-1]
    right = last == str(item.a + item.b)
    return Score(right, feedback=None if right else f"{item} is not {last}")


def grade_format(answer: tuple[Sum, str], criterion: Criterion) -> float:
    """Look for the sum at the beginning of the answer."""
    item, text = answer
    return float(text.startswith(f"{item} = "))


RUBRIC = Rubric(
    criteria=(
        Criterion(id="correctness", description="The last number is the sum.", weight=1.0),
        Criterion(id="format", description="The answer begins by repeating the sum.", weight=0.25),
    )
)
GRADER = CompositeGrader({"correctness": grade_correctness, "format": grade_format})


def make_env(item: Sum) -> Env[Chat, str]:
    """Open a graded environment for one rollout."""
    return GradingWrapper(
        SumEnv(item),
        rubric=RUBRIC,
        grader=GRADER,
        make_input=lambda env, action: (item, action),
    )


def main() -> None:
    """Run steps 3 to 5."""
    parser = argparse.ArgumentParser(description="Grade rollouts of a small language model.")
    # Most seeds solve none or one of the problems; the default is a kinder one.
    parser.add_argument("--seed", type=int, default=4, help="fixes the sums and the sampling")
    parser.add_argument(
        "--gsm8k",
        metavar="PATH",
        default=Path(__file__).with_name("problems.jsonl"),
        help="file or dataset name of GSM8K problems; by default a few that are easier",
    )
    parser.add_argument("--limit", type=int, default=5, help="how many of them to answer")
    args = parser.parse_args()
    benchmark = gsm8k(dataset=str(args.gsm8k))  # first, since the path may be wrong

    console = Console()
    numbers = np.random.default_rng(args.seed).choice(range(2, 14), (NUM_SUMS, 2), replace=False)
    items = [Sum(int(a), int(b)) for a, b in numbers]
    model = LocalModel()
    policy = LocalPolicy(model, temperature=0.8, max_tokens=96)

    # 3. Groups of rollouts: several answers to each item, so that they can be compared.
    with Progress(*COLUMNS, console=console) as progress:
        groups = [
            rollout_group(item, make_env, policy, num_rollouts=NUM_ROLLOUTS, seed=args.seed)
            for item in progress.track(items, description=f"{NUM_ROLLOUTS} rollouts of each sum")
        ]
    console.print(table_of(groups))

    # 4. What a trainer takes: the very tokens that were read and written, with their logprobs.
    steps = [step for group in groups for run in group.trajectories for step in run.steps]
    exact = sum(model.agrees_with(step) for step in steps)
    num_tokens = sum(len(step.policy_tokens or ()) for step in steps)
    console.print(f"tokens exact in {exact} of {len(steps)} steps ({num_tokens} tokens sampled)\n")

    # 5. The same policy on the benchmark, whose environments do the grading.
    with Progress(*COLUMNS, console=console) as progress:
        task = progress.add_task("GSM8K problems", total=min(args.limit, len(benchmark.items)))

        def advance(event: RolloutEvent) -> None:
            if event.kind in ("finished", "failed"):
                progress.advance(task)

        result = run_benchmark(
            benchmark, policy=policy, limit=args.limit, seed=args.seed, on_event=advance
        )
    for problem, record in zip(benchmark.items, result.records, strict=False):
        facts = record.score.metadata if record.score else {"extracted": record.error}
        got = facts["extracted"] or facts["status"]
        console.print(f"  {problem.question[:46]}…  {facts.get('expected')} wanted, got {got}")
    console.print(
        f"GSM8K {result.score:.3f} over {result.num_examples} problems: "
        f"{result.num_completed} completed, {result.num_truncated} cut off, "
        f"{result.num_errors} failed"
    )


def table_of(groups: list[TrajectoryGroup[Sum, Chat, str]]) -> Table:
    """Lay out each group: its prompt, its different answers, their rewards and the mean."""
    parts = " and ".join(f"{part.id} (weight {part.weight})" for part in RUBRIC.criteria)
    table = Table(expand=True, box=box.SIMPLE_HEAD, caption_justify="left")
    table.caption = f"Reward: mean of {parts}."
    table.add_column("prompt", no_wrap=True)
    table.add_column("answer", no_wrap=True, ratio=1)
    for column in ("times", "reward", "group mean"):
        table.add_column(column, no_wrap=True, justify="right")
    for group in groups:
        answers = Counter(
            (run.total_reward, " ".join(run.actions[0].split())) for run in group.trajectories
        )
        prompt, mean = f"What is {group.item}?", f"{np.mean(group.rewards):.3f}"
        for (reward, answer), times in sorted(answers.items(), reverse=True):
            table.add_row(prompt, escape(answer), str(times), f"{reward:.2f}", mean)
            prompt = mean = ""
        table.add_section()
    return table


if __name__ == "__main__":
    main()
