"""Parquet files of groups, against pyarrow that is handed finished arrays."""

from __future__ import annotations

import importlib
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from measuring import Effort, Row, Sides, timed
from rolloutlib import Step, Trajectory, TrajectoryGroup
from rolloutlib.storage import read_parquet, write_parquet

pa: Any = importlib.import_module("pyarrow")
pq: Any = importlib.import_module("pyarrow.parquet")

STEPS = 4
MEMBERS = 8

Numbers = NDArray[Any]
Group = TrajectoryGroup[int, str, str]


def sample(groups: int, tokens: int) -> tuple[Numbers, Numbers]:
    """Make token ids and log probabilities by group, member and step; none repeats another."""
    generator = np.random.default_rng(0)
    shape = (groups, MEMBERS, STEPS, tokens)
    return (
        generator.integers(0, 128_000, shape, dtype=np.int32),
        -generator.random(shape, dtype=np.float32),
    )


def make_groups(tokens: Numbers, logprobs: Numbers) -> list[Group]:
    """Make the groups that have these numbers."""

    def make_step(place: tuple[int, int, int]) -> Step[str, str]:
        numbers: dict[str, Any] = {
            "policy_tokens": tokens[place],
            "policy_logprobs": logprobs[place],
        }
        over = place[-1] == STEPS - 1
        return Step("o", "a", 0.5, "o", over, False, policy_stop_reason="stop", **numbers)

    return [
        TrajectoryGroup(
            group,
            str(group),
            [
                Trajectory(
                    "o",
                    [make_step((group, member, step)) for step in range(STEPS)],
                    terminated=True,
                    seed=member,
                    member=member,
                )
                for member in range(MEMBERS)
            ],
        )
        for group in range(len(tokens))
    ]


def make_columns(tokens: Numbers, logprobs: Numbers) -> dict[str, Any]:
    """Make what one would hand to pyarrow: arrays, and lists of what are no arrays."""
    size = len(tokens) * MEMBERS
    inner = np.arange(0, tokens.size + 1, tokens.shape[-1], dtype=np.int32)
    outer = np.arange(0, size * STEPS + 1, STEPS, dtype=np.int32)

    def nested(numbers: Numbers) -> Any:
        steps = pa.ListArray.from_arrays(inner, pa.array(numbers.reshape(-1)))
        return pa.ListArray.from_arrays(outer, steps)

    return {
        "item_id": pa.array(np.repeat(np.arange(len(tokens)), MEMBERS).astype(str)),
        "member": np.tile(np.arange(MEMBERS), len(tokens)),
        "seed": np.tile(np.arange(MEMBERS), len(tokens)),
        "reward": np.full(size, 0.5 * STEPS),
        "terminated": np.ones(size, np.bool_),
        "observations": pa.array([["o"] * (STEPS + 1)] * size),
        "actions": pa.array([["a"] * STEPS] * size),
        "rewards": pa.array([[0.5] * STEPS] * size),
        "stop_reasons": pa.array([["stop"] * STEPS] * size),
        "tokens": nested(tokens),
        "logprobs": nested(logprobs),
    }


def writing(episodes: int, tokens: int, **options: Any) -> Callable[[Effort], Sides]:
    """Write groups; by hand, prepared columns with these options."""

    def prepare(effort: Effort) -> Sides:
        count = max(1, effort.count(episodes) // MEMBERS)
        numbers = sample(count, tokens)
        groups, columns = make_groups(*numbers), make_columns(*numbers)
        folder = tempfile.TemporaryDirectory()
        path = Path(folder.name)  # which is there as long as `folder` is

        def ours(folder: Any = folder) -> None:
            write_parquet(groups, path / "ours.parquet")

        def hand() -> None:
            pq.write_table(pa.table(columns), path / "hand.parquet", **options)

        per = count * MEMBERS
        return Sides(timed(ours, effort, per=per), timed(hand, effort, per=per))

    return prepare


def reading(episodes: int, tokens: int) -> Callable[[Effort], Sides]:
    """Read groups as records; by hand, columns as Python's objects, but tokens as arrays."""

    def prepare(effort: Effort) -> Sides:
        count = max(1, effort.count(episodes) // MEMBERS)
        folder = tempfile.TemporaryDirectory()
        path = Path(folder.name) / "groups.parquet"
        write_parquet(make_groups(*sample(count, tokens)), path)
        names = list(make_columns(*sample(1, tokens)))

        def ours(folder: Any = folder) -> None:
            for _ in read_parquet(path):
                pass

        def hand() -> None:
            table = pq.read_table(path, columns=names)
            for name in names[:-2]:
                table[name].to_pylist()
            for name in names[-2:]:
                table[name].to_numpy()

        per = count * MEMBERS
        return Sides(timed(ours, effort, per=per), timed(hand, effort, per=per))

    return prepare


LEAN = {
    "compression": "zstd",
    "use_dictionary": ["item_id", "stop_reasons.list.element"],
    "write_statistics": False,
}
"""The options for numbers that hardly repeat: quicker than the defaults, like those of the library."""

ROWS = [
    Row(
        "parquet-write",
        f"10,000 trajectories of {STEPS} steps x 512 tokens and logprobs into a file",
        "us/episode",
        writing(10_000, 512, **LEAN),
        1.5,
        in_old=False,
    ),
    Row(
        "parquet-write-defaults",
        "the same; by hand with the default options of pyarrow",
        "us/episode",
        writing(10_000, 512),
        in_old=False,
    ),
    Row(
        "parquet-write-short",
        "the first row with 16 tokens a step",
        "us/episode",
        writing(10_000, 16, **LEAN),
        in_old=False,
    ),
    Row(
        "parquet-read",
        "1,000 trajectories of the first row read as records",
        "us/episode",
        reading(1_000, 512),
        in_old=False,
    ),
]
