"""Training rows: records of many episodes, against concatenating prepared arrays by hand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from measuring import Effort, Row, Sides, timed
from rolloutlib import Step, Trajectory, TrajectoryGroup
from rolloutlib.training import assemble_rows, group_mean

STEPS = 4
MEMBERS = 8

Arrays: TypeAlias = tuple[NDArray[Any], NDArray[Any], NDArray[Any]]
"""A prompt, the tokens sampled after it, and their log probabilities."""

HandRow: TypeAlias = tuple[NDArray[Any], NDArray[Any], NDArray[Any], NDArray[Any]]
"""Tokens, mask, log probabilities and advantages."""


def conversation(generator: np.random.Generator, tokens: int) -> list[Arrays]:
    """Make the arrays of an episode whose prompts each go on from the turn before."""
    steps: list[Arrays] = []
    prompt = generator.integers(0, 128_000, 128, dtype=np.int32)
    for _ in range(STEPS):
        sampled = generator.integers(0, 128_000, tokens, dtype=np.int32)
        steps.append((prompt, sampled, -generator.random(tokens, dtype=np.float32)))
        new = generator.integers(0, 128_000, 32, dtype=np.int32)
        prompt = np.concatenate((prompt, sampled, new))
    return steps


def record(member: int, steps: list[Arrays]) -> Trajectory[str, str]:
    """Keep the arrays of an episode as the policy would have told of them."""
    fields: list[dict[str, Any]] = [
        {"policy_prompt_tokens": prompt, "policy_tokens": tokens, "policy_logprobs": logprobs}
        for prompt, tokens, logprobs in steps
    ]
    return Trajectory(
        "o",
        [Step("o", "a", member / 8, "o", False, False, **each) for each in fields],
        terminated=True,
        member=member,
    )


def concatenate(steps: list[Arrays], advantage: float, *, checked: bool) -> list[HandRow]:
    """Make rows of an episode by hand; a prompt that does not go on begins another, if checked."""
    rows: list[HandRow] = []
    tokens: list[NDArray[Any]] = []
    masks: list[NDArray[Any]] = []
    logprobs: list[NDArray[Any]] = []
    length = 0

    def finish() -> None:
        mask = np.concatenate(masks)
        advantages = np.where(mask, np.float32(advantage), np.float32(0))
        rows.append((np.concatenate(tokens), mask, np.concatenate(logprobs), advantages))

    for prompt, sampled, numbers in steps:
        if checked and tokens and not np.array_equal(prompt[:length], np.concatenate(tokens)):
            finish()
            tokens, masks, logprobs, length = [], [], [], 0
        new = prompt[length:]
        tokens += (new, sampled)
        masks += (np.zeros(len(new), np.bool_), np.ones(len(sampled), np.bool_))
        logprobs += (np.zeros(len(new), np.float32), numbers)
        length = len(prompt) + len(sampled)
    finish()
    return rows


def rows(episodes: int, tokens: int, *, checked: bool) -> Callable[[Effort], Sides]:
    """Make rows with group advantages; by hand without spans, a report, or checks of the data."""

    def prepare(effort: Effort) -> Sides:
        generator = np.random.default_rng(0)
        count = max(1, effort.count(episodes) // MEMBERS)
        arrays = [[conversation(generator, tokens) for _ in range(MEMBERS)] for _ in range(count)]
        groups = [
            TrajectoryGroup(index, str(index), [record(*each) for each in enumerate(members)])
            for index, members in enumerate(arrays)
        ]
        rewards = [group.rewards for group in groups]

        def by_hand() -> list[HandRow]:
            found: list[HandRow] = []
            for members, values in zip(arrays, rewards, strict=True):
                mean = sum(values) / len(values)
                for steps, value in zip(members, values, strict=True):
                    found += concatenate(steps, value - mean, checked=checked)
            return found

        per = count * MEMBERS
        return Sides(
            timed(lambda: assemble_rows(groups, advantages=group_mean), effort, per=per),
            timed(by_hand, effort, per=per),
        )

    return prepare


ROWS = [
    Row(
        "rows",
        "training rows of 10,000 trajectories, 4 steps of 512 tokens",
        "us/trajectory",
        rows(10_000, 512, checked=True),
        2,
        in_old=False,
    ),
    Row(
        "rows-unchecked",
        "the same; by hand, without asking whether a prompt goes on from the tokens before",
        "us/trajectory",
        rows(10_000, 512, checked=False),
        2,
        in_old=False,
    ),
    Row(
        "rows-short",
        "training rows of 10,000 trajectories, 4 steps of 64 tokens",
        "us/trajectory",
        rows(10_000, 64, checked=True),
        in_old=False,
    ),
]
