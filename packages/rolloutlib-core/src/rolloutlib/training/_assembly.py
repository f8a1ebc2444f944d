"""From the records of episodes to rows for a trainer, with the sampler's own tokens."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Literal, cast, get_args

import numpy as np

from rolloutlib.rollouts import TrajectoryGroup
from rolloutlib.training._advantages import Estimator, Rewards, estimate
from rolloutlib.training._episodes import (
    Episode,
    Fate,
    SampledStep,
    Source,
    episodes_of,
    groups_of,
    rewards_of,
    sampled_steps,
)
from rolloutlib.training._reports import SHOWN, RowBreak, RowReport, describe
from rolloutlib.training._sequences import TokenSequence, TokenSpan


def assemble_rows(
    source: Source,
    *,
    advantages: Estimator | None = None,
    rewards: Rewards | None = None,
    logprobs: bool = True,
    missing: Literal["raise", "skip"] = "raise",
    aborted: bool = False,
    failed: bool = False,
) -> tuple[list[TokenSequence], RowReport]:
    """Make training rows of episodes, and report on them.

    The steps of an episode share a row while the tokens so far, prompts and actions, are what the
    next prompt begins with. Where they are not, a new row begins with that prompt: nothing is ever
    decoded, encoded or patched. Every sampled token is to be trained in exactly one row; what stands
    in a prompt never is. A step that is not trained adds nothing to a row itself; later prompts may
    hold its tokens as context. Without steps to train, an episode has no row.

    Args:
        source: A trajectory, a group, or groups, which are read once.
        advantages: Gives the advantages of a group's episodes, from their rewards: `group_mean`,
            `group_normalized`, `leave_one_out` or a function of yours. Each reaches every trainable
            token of all steps of its episode. By default rows have none. It is not called for a group
            without rewards.
        rewards: Gives the reward of an episode for that; by default the group's `rewards`, which
            `scores` holds, and for a failed episode or one without a group its own `score`. For the
            sum of the steps' rewards give `lambda trajectory: trajectory.total_reward`. An episode
            whose reward is None is left out and counted.
        logprobs: Whether the rows are to have log probabilities.
        missing: What to do with a step that lacks token data: raise, or leave it out and count it.
            Plain actions, of which no model told anything, are always left out and counted; but if
            no step has tokens at all, that too is missing data.
        aborted: Whether to train on turns that were broken off: those whose `policy_finish` is
            "aborted", "timeout" or "error".
        failed: Whether to train on the steps of episodes that failed, `RolloutError.trajectory`. They
            then belong to the group whose rewards are compared. Earlier attempts never do.

    Returns:
        The rows, in the order of groups, members and steps, and a report on all of them.

    Raises:
        TypeError: The source has something else in it, or a reward or an advantage is no number.
        ValueError: Token data is missing, a reward or an advantage is not finite or too large for a
            float32, or there is not one advantage an episode.
    """
    if missing not in ("raise", "skip"):
        msg = f"missing must be 'raise' or 'skip', got {missing!r}"
        raise ValueError(msg)
    if rewards is not None and advantages is None:
        msg = "rewards are for advantages, but none are asked for: give advantages= as well"
        raise ValueError(msg)
    for name, function in (("advantages", advantages), ("rewards", rewards)):
        if function is not None and not callable(cast("object", function)):
            msg = f"{name} must be a function, got {function!r}"
            raise TypeError(msg)
    rows: list[TokenSequence] = []
    breaks: list[RowBreak] = []
    counts: Counter[str] = Counter()
    for group in groups_of(source):
        episodes = episodes_of(group, failed=failed)
        values: list[float | None] = [None] * len(episodes)
        if advantages is not None:
            place = (
                f"item {group.item_id!r}" if isinstance(group, TrajectoryGroup) else "trajectory"
            )
            values = estimate(advantages, rewards_of(group, episodes, rewards), place)
        for episode, value in zip(episodes, values, strict=True):
            if advantages is not None and value is None:
                counts["num_unscored"] += 1
                continue
            steps: list[SampledStep] = []
            for step in sampled_steps(episode.trajectory, logprobs=logprobs, aborted=aborted):
                counts[f"num_{step.fate}_steps"] += 1
                if step.fate == "trained":
                    steps.append(step)
                elif step.fate == "missing" and missing == "raise":
                    raise _missing(episode, step)
            rows += _rows(episode, steps, value, logprobs, breaks)
        if isinstance(group, TrajectoryGroup):
            left_out = group.num_requested - len(episodes)
            counts["num_failed"] += left_out
            counts["num_episodes"] += left_out
        counts["num_episodes"] += len(episodes)
    plain = counts["num_plain_steps"]
    if (
        missing == "raise"
        and plain
        and plain == sum(counts[f"num_{fate}_steps"] for fate in get_args(Fate))
    ):
        msg = (
            f"none of {plain} steps has tokens: the policy must return them in a PolicyOutput, or "
            "give missing='skip' for no rows"
        )
        raise ValueError(msg)
    report = RowReport(
        breaks=tuple(breaks),
        num_rows=len(rows),
        num_tokens=sum(map(len, rows)),
        num_trainable=sum([row.num_trainable for row in rows]),
        **counts,
    )
    return rows, report


def _rows(
    episode: Episode,
    steps: list[SampledStep],
    advantage: float | None,
    logprobs: bool,
    breaks: list[RowBreak],
) -> Iterator[TokenSequence]:
    """Yield the rows of an episode's trained steps, and note where they break."""
    first = 0
    before = b""  # prefixes of bytes are found in a tenth of the time that those of arrays are
    for position, step in enumerate(steps):
        prompt = step.prompt.tobytes()
        if not prompt.startswith(before):
            breaks.append(_break(episode, steps[position - 1], step))
            yield _row(episode, steps[first:position], before, advantage, logprobs)
            first = position
        before = prompt + step.tokens.tobytes()
    if steps:
        yield _row(episode, steps[first:], before, advantage, logprobs)


def _break(episode: Episode, last: SampledStep, step: SampledStep) -> RowBreak:
    before = np.concatenate((last.prompt, last.tokens))
    shared = min(len(before), len(step.prompt))
    differ = before[:shared] != step.prompt[:shared]
    position = int(differ.argmax()) if differ.any() else shared
    return RowBreak(
        episode.item_id,
        episode.member,
        step.number,
        position,
        tuple(before[position : position + SHOWN].tolist()),
        tuple(step.prompt[position : position + SHOWN].tolist()),
        shared,
    )


def _row(
    episode: Episode,
    steps: list[SampledStep],
    content: bytes,
    advantage: float | None,
    logprobs: bool,
) -> TokenSequence:
    """Make a row of steps whose prompts each begin with all that was before."""
    item_id, member, _ = episode
    tokens = np.frombuffer(content, steps[0].tokens.dtype)
    mask = np.zeros(len(tokens), np.bool_)
    numbers = np.zeros(len(tokens), np.float32) if logprobs else None
    weights = None if advantage is None else np.zeros(len(tokens), np.float32)
    spans: list[TokenSpan] = []
    for step in steps:
        start = len(step.prompt)
        stop = start + len(step.tokens)
        mask[start:stop] = True
        if numbers is not None:
            numbers[start:stop] = step.logprobs
        if weights is not None:
            weights[start:stop] = advantage
        for version, count in step.runs():
            place = (item_id, member, step.number)
            spans.append(TokenSpan(start, start + count, *place, version, step.stop_reason))
            start += count
    for array in (mask, numbers, weights):
        if array is not None:
            array.flags.writeable = False  # so that the row need not copy it
    return TokenSequence(tokens, mask, numbers, weights, tuple(spans))


def _missing(episode: Episode, step: SampledStep) -> ValueError:
    remedy = " (logprobs=False makes rows without)" if step.lacks == "logprobs" else ""
    return ValueError(
        f"{describe(episode.item_id, episode.member, step.number)} has no {step.lacks}: the policy must "
        f"return them in its PolicyOutput{remedy}; missing='skip' leaves such steps out"
    )
