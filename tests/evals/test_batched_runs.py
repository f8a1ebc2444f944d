"""Runs whose policy chooses for many episodes at once."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import anyio
import pytest

from evals.sums import add, sums, timeless
from rolloutlib import PolicyOutput
from rolloutlib.evals import arun_benchmark, read_log, run_benchmark
from rolloutlib.rollouts import BatchedPolicy, Timeouts

pytestmark = pytest.mark.anyio


class Batch:
    """A batch function that notes how much it is asked at once."""

    def __init__(self) -> None:
        self.sizes: list[int] = []

    def __call__(
        self, questions: list[str], /, *, seeds: Sequence[int] = ()
    ) -> list[PolicyOutput[str]]:
        self.sizes.append(len(questions))
        return [add(question, seed=seed) for question, seed in zip(questions, seeds, strict=True)]


WAYS: list[dict[str, Any]] = [
    {"concurrency": 6},
    {"concurrency": 6, "timeouts": Timeouts(policy=600)},
]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("most", [None, 4])
async def test_a_batched_policy_is_asked_for_the_samples_that_are_open_at_once(
    most: int | None, way: dict[str, Any]
) -> None:
    batch = Batch()
    policy = BatchedPolicy(batch, max_size=most)
    arguments: dict[str, Any] = {"policy": policy, "epochs": 20, **way}
    expected = timeless(run_benchmark(sums(), policy=add, epochs=20))
    found = [run_benchmark(sums(), **arguments)]
    found.append(await arun_benchmark(sums(), **arguments))
    found.append(await arun_benchmark(sums(), inline=True, **arguments))
    arguments["concurrency"] = anyio.CapacityLimiter(3)
    found.append(await arun_benchmark(sums(), **arguments))
    assert [timeless(result) for result in found] == [expected] * 4
    assert sum(batch.sizes) == 4 * 120
    assert 1 < max(batch.sizes) <= (most or 6)


async def test_a_batch_without_concurrency_is_one() -> None:
    batch = Batch()
    run_benchmark(sums(), policy=BatchedPolicy(batch))
    await arun_benchmark(sums(), policy=BatchedPolicy(batch), concurrency=1)
    assert batch.sizes == [1] * 12


def test_what_a_batch_function_raises_fails_its_samples() -> None:
    def batch(questions: list[str]) -> list[str]:
        raise ConnectionError

    result = run_benchmark(sums(), policy=BatchedPolicy(batch), concurrency=3)
    assert result.num_errors == 6


def test_the_log_names_the_batch_function(tmp_path: Path) -> None:
    run_benchmark(sums(), policy=BatchedPolicy(Batch()), log=tmp_path / "log.jsonl")
    assert read_log(tmp_path / "log.jsonl").header["model"] == "Batch"
