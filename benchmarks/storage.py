"""Files of groups, against a fast library for JSON that is handed finished dictionaries."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import orjson

from measuring import Effort, Measure, Row, Sides, timed
from rolloutlib import Step, Trajectory, TrajectoryGroup
from rolloutlib.storage import GroupWriter, read_groups

STEPS = 4
MEMBERS = 8

AnyGroup = TrajectoryGroup[Any, Any, Any]


def make_group(tokens: int) -> AnyGroup:
    """Make a group of episodes with tokens and log probabilities."""
    generator = np.random.default_rng(0)

    def make_step(index: int) -> Step[str, str]:
        arrays: dict[str, Any] = {
            "policy_tokens": generator.integers(0, 128_000, tokens, dtype=np.int32),
            "policy_logprobs": -generator.random(tokens, dtype=np.float32),
        }
        over = index == STEPS - 1
        return Step(f"o{index}", "a", 0.5, f"o{index + 1}", over, False, {"turn": index}, **arrays)

    episodes = [
        Trajectory("o0", [make_step(i) for i in range(STEPS)], terminated=True, seed=1, member=m)
        for m in range(MEMBERS)
    ]
    return TrajectoryGroup("item", "id", episodes, seed=1)


def make_dictionary(group: AnyGroup) -> dict[str, Any]:
    """Make what one would write of a group by hand, with lists of numbers."""
    return {
        "item": group.item,
        "item_id": group.item_id,
        "seed": group.seed,
        "scores": list(group.rewards),
        "trajectories": [
            {
                "initial_observation": trajectory.initial_observation,
                "terminated": trajectory.terminated,
                "truncated": trajectory.truncated,
                "seed": trajectory.seed,
                "member": trajectory.member,
                "steps": [
                    {
                        "action": step.action,
                        "reward": step.reward,
                        "next_observation": step.next_observation,
                        "terminated": step.terminated,
                        "truncated": step.truncated,
                        "info": step.info,
                        "tokens": list(step.policy_tokens or ()),
                        "logprobs": list(step.policy_logprobs or ()),
                    }
                    for step in trajectory.steps
                ],
            }
            for trajectory in group.trajectories
        ],
    }


def into_file(write: Callable[[Path], None], effort: Effort, *, per: int) -> Measure:
    """Measure the writing of a file, which is thrown away."""

    def work() -> None:
        with tempfile.TemporaryDirectory() as folder:
            write(Path(folder) / "run.jsonl")

    return timed(work, effort, per=per)


def writing(episodes: int, tokens: int) -> Callable[[Effort], Sides]:
    """Write groups, each flushed; by hand, without making the dictionaries."""

    def prepare(effort: Effort) -> Sides:
        count = max(1, effort.count(episodes) // MEMBERS)
        group = make_group(tokens)
        dictionary = make_dictionary(group)

        def ours(path: Path) -> None:
            with GroupWriter(path) as writer:
                for _ in range(count):
                    writer.append(group)

        def hand(path: Path) -> None:
            with path.open("wb") as file:
                for _ in range(count):
                    file.write(orjson.dumps(dictionary))
                    file.write(b"\n")
                    file.flush()

        per = count * MEMBERS
        return Sides(into_file(ours, effort, per=per), into_file(hand, effort, per=per))

    return prepare


def reading(episodes: int, tokens: int) -> Callable[[Effort], Sides]:
    """Read groups as records; by hand, as dictionaries with lists of numbers."""

    def prepare(effort: Effort) -> Sides:
        count = max(1, effort.count(episodes) // MEMBERS)
        folder = tempfile.TemporaryDirectory()
        hand_path = Path(folder.name) / "hand.jsonl"
        group = make_group(tokens)
        with GroupWriter(Path(folder.name) / "run.jsonl") as writer:
            for _ in range(count):
                writer.append(group)
        hand_path.write_bytes((orjson.dumps(make_dictionary(group)) + b"\n") * count)

        def ours() -> None:
            for _ in read_groups(Path(folder.name) / "run.jsonl"):
                pass

        def hand() -> None:
            with hand_path.open("rb") as file:
                for line in file:
                    orjson.loads(line)

        per = count * MEMBERS
        return Sides(timed(ours, effort, per=per), timed(hand, effort, per=per))

    return prepare


ROWS = [
    Row(
        "jsonl-write",
        f"10,000 trajectories of {STEPS} steps x 512 tokens and logprobs into a file, flushed by group",
        "us/episode",
        writing(10_000, 512),
        1.5,
        in_old=False,
    ),
    Row(
        "jsonl-write-short",
        "the same with 16 tokens a step",
        "us/episode",
        writing(10_000, 16),
        in_old=False,
    ),
    Row(
        "jsonl-read",
        "1,000 trajectories of the first row read as records",
        "us/episode",
        reading(1_000, 512),
        in_old=False,
    ),
]
