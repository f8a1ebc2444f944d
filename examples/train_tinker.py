"""Train a language model on Tinker until it can add: GRPO in one file.

    uv run examples/train_tinker.py --model Qwen/Qwen3-4B-Instruct-2507             # with TINKER_API_KEY
    uv run scripts/tinker_server.py run smollm2 -- python examples/train_tinker.py  # on this machine

Each step plays groups of episodes, compares the members of a group, takes one step of Adam on the tokens
that they sampled, and goes on with the new weights. Sums that are held out are answered before,
meanwhile and after. With `--turns 2` a wrong answer may be mended, for half of the reward.
"""

from __future__ import annotations

import argparse
import os
import re
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import tinker
from matplotlib.figure import Figure

from rolloutlib import Env, TrajectoryGroup, collect, spaces
from rolloutlib.evals.statistics import Estimate, compare, mean_score
from rolloutlib.storage import GroupWriter
from rolloutlib.tinker import TinkerPolicy, read_logprobs, to_datums
from rolloutlib.training import assemble_rows, estimate_kl, group_mean
from rolloutlib.types import Chat

Sum = tuple[int, int]


class SumEnv(Env[Chat, str]):
    """Asks for a sum; the last number of an answer counts, and nothing else."""

    observation_space = spaces.messages.chat(min_length=1)
    action_space = spaces.text.text()

    def __init__(self, item: Sum, turns: int) -> None:
        """Take the numbers, and how often the model may answer."""
        self.item, self.turns = item, turns

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Chat, dict[str, Any]]:
        """Ask."""
        super().reset(seed=seed)
        self.turn = 0
        question = "What is {} + {}? Answer with the number only.".format(*self.item)
        self.chat: Chat = [{"role": "user", "content": question}]
        return self.chat, {}

    def step(self, action: str) -> tuple[Chat, float, bool, bool, dict[str, Any]]:
        """Judge an answer: a right one is worth 1, at the second turn 1/2."""
        self.turn += 1
        right = re.findall(r"\d+", action)[-1:] == [str(sum(self.item))]
        over = right or self.turn >= self.turns
        self.chat = [*self.chat, {"role": "assistant", "content": action}]
        if not over:
            self.chat = [*self.chat, {"role": "user", "content": "Wrong. Try again."}]
        return self.chat, right / self.turn, over, False, {}


def split_sums(rng: np.random.Generator) -> tuple[list[Sum], list[Sum]]:
    """Return sums to train on, and some 40 that are held out; 3 + 4 and 4 + 3 are on the same side."""
    pairs = [sorted({(a, b), (b, a)}) for a in range(10) for b in range(a + 1)]
    rng.shuffle(pairs)
    train, held_out = pairs[22:], pairs[:22]
    return [each for pair in train for each in pair], [each for pair in held_out for each in pair]


def main() -> None:
    """Train."""
    parser = argparse.ArgumentParser(description="Train a model on sums by Tinker's API.")
    model = os.environ.get("TINKER_MODEL")
    parser.add_argument("--model", default=model, required=not model, help="what to train")
    parser.add_argument("--base-url", help="the server; by default TINKER_BASE_URL, or Tinker's")
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--groups", type=int, default=4, help="sums a step")
    parser.add_argument("--samples", type=int, default=8, help="episodes of each sum")
    parser.add_argument("--turns", type=int, default=1, help="answers an episode may have")
    parser.add_argument("--lr", type=float, default=8e-4, help="of Adam, falling to 0")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("runs/sums"), help="a new folder")
    args = parser.parse_args()
    if args.out.exists():
        parser.error(f"{args.out} is there already: name another folder with --out")
    train, held_out = split_sums(rng := np.random.default_rng(args.seed))
    service = tinker.ServiceClient(base_url=args.base_url)
    client = service.create_lora_training_client(args.model, rank=8, seed=args.seed).result()
    sampler = client.save_weights_and_get_sampling_client()
    policy = TinkerPolicy(sampler, max_tokens=10, temperature=1.0, version=0)

    def play(sums: list[Sum], samples: int, seed: int) -> list[TrajectoryGroup[Sum, Chat, str]]:
        make_env = partial(SumEnv, turns=args.turns)
        settings: dict[str, Any] = {"concurrency": len(sums) * samples, "order": "dataset"}
        return list(collect(sums, make_env, policy, num_rollouts=samples, seed=seed, **settings))

    def evaluate() -> Estimate:
        rewards = {group.item: group.rewards for group in play(held_out, 1, args.seed)}
        return mean_score(rewards, clusters={each: tuple(sorted(each)) for each in rewards})

    rewards: dict[int, float] = {}
    scores = {0: evaluate()}
    print(f"held out, before training: {scores[0]}")
    with GroupWriter(args.out / "groups.jsonl") as writer:
        for step in range(1, args.steps + 1):
            rng.shuffle(train)
            groups = play(train[: args.groups], args.samples, step)
            for group in groups:
                writer.append(group)
            rows, report = assemble_rows(groups, advantages=group_mean)
            passed = client.forward_backward(to_datums(rows), "importance_sampling")
            lr = args.lr * (1 - (step - 1) / args.steps)
            stepped = client.optim_step(tinker.AdamParams(learning_rate=lr))
            kl = estimate_kl(rows, read_logprobs(passed.result()))
            stepped.result()
            sampler = client.save_weights_and_get_sampling_client()
            policy = policy.with_sampler(sampler, version=step)
            rewards[step] = float(np.mean([reward for group in groups for reward in group.rewards]))
            print(
                f"step {step}: reward {rewards[step]:.3f}, learning rate {lr:.1e}, {report.num_rows} rows, "
                f"{len(report.breaks)} breaks, KL of sampler and trainer {kl.k3:.1e} nats a token"
            )
            if step % 2 == 0 or step == args.steps:
                scores[step] = evaluate()
                print(f"held out, after step {step}: {scores[step]}")
    print(compare(scores[0], scores[args.steps]))
    draw(scores, rewards, args.out / "curve.png")
    print(f"episodes in {args.out / 'groups.jsonl'}, the curve in {args.out / 'curve.png'}")


def draw(scores: dict[int, Estimate], rewards: dict[int, float], path: Path) -> None:
    """Draw the mean reward on sums that are held out, with intervals, and that in training."""
    bands = [score.interval() for score in scores.values()]
    means = [score.value for score in scores.values()]
    figure: Any = Figure(figsize=(6, 3.5), layout="constrained")
    axes = figure.subplots()
    axes.fill_between(list(scores), [b.low for b in bands], [b.high for b in bands], alpha=0.2)
    axes.plot(list(scores), means, "o-", label="held out, with its 95% interval")
    axes.plot(list(rewards), list(rewards.values()), "x--", color="gray", label="in training")
    axes.set(xlabel="steps", ylabel="mean reward", ylim=(0, 1.02), xticks=range(len(rewards) + 1))
    axes.legend(loc="lower right")
    figure.savefig(path, dpi=150)


if __name__ == "__main__":
    main()
