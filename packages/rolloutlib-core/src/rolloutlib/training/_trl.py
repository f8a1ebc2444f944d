"""Rows and episodes as TRL takes them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from rolloutlib.rollouts import Trajectory
from rolloutlib.training._conversations import conversations
from rolloutlib.training._exporting import check_rewards, continued, place_of, split_rows
from rolloutlib.training._reports import describe
from rolloutlib.training._sequences import TokenSequence


def to_trl_rollouts(
    rows: Sequence[TokenSequence], *, rewards: Iterable[float] | None = None
) -> dict[str, list[Any]]:
    """Return rows as a `rollout_func` of TRL's `GRPOTrainer` returns them.

    TRL reads one row a prompt, in the order of the prompts that it gave, each as often as it was
    given. `env_mask` is 1 for what was sampled and 0 for what the environment said; TRL multiplies it
    into the loss. Other fields go to the reward functions by keyword: `rewards`, of which such a
    function can be `lambda rewards, **_: rewards`.

    Source: TRL, `docs/source/openenv.md` at commit 8e29b82c, "Rollout Function Signature", and
    `GRPOTrainer` of TRL 1.2 to 1.16, which takes `env_mask` from the result.

    Args:
        rows: One for each episode, in the order of the prompts.
        rewards: One a row; see `row_rewards`.

    Returns:
        Lists of one entry a row: `prompt_ids`, `completion_ids`, `logprobs` (0 where `env_mask` is;
        None in place of the list if the rows have none), `env_mask` and, if given, `rewards`.

    Raises:
        TypeError: A row is none, or a reward is no number.
        ValueError: An episode has several rows, which TRL cannot take; a row has nothing to train;
            or rewards are not one a row.
    """
    split = split_rows(rows)
    for number, goes_on in enumerate(continued(rows)):
        if goes_on:
            place = describe(*place_of(rows[number], number))
            msg = (
                f"{place} has several rows, {number} and {number + 1}, but TRL takes one a prompt: "
                "keep its prompts from breaking (see the report), or choose one row"
            )
            raise ValueError(msg)
    columns: dict[str, Any] = {
        "prompt_ids": [row.prompt.tolist() for row in split],
        "completion_ids": [row.response.tolist() for row in split],
        "logprobs": None,
        "env_mask": [row.mask.astype(int).tolist() for row in split],
    }
    logprobs = [row.logprobs.tolist() for row in split if row.logprobs is not None]
    if logprobs:
        columns["logprobs"] = logprobs
    if rewards is not None:
        columns["rewards"] = check_rewards(rewards, rows)
    return columns


def to_prompt_completion(
    trajectories: Iterable[Trajectory[Any, Any]], *, conversational: bool = True
) -> list[dict[str, Any]]:
    """Return episodes as the rows of a prompt-completion dataset.

    TRL's `SFTTrainer` trains on all of a completion. For episodes of several steps it needs
    `assistant_only_loss=True`, or it learns the words of the environment. Tool calls, see
    `to_messages`.

    Source: TRL, `docs/source/dataset_formats.md` at commit 0087e4f5, "Prompt-completion", and TRL
    1.16.

    Args:
        trajectories: Episodes of text or chat, of at least one step.
        conversational: Whether prompt and completion are lists of messages, the completion with all
            after the first observation; else they are the two texts of an episode of one step.

    Returns:
        Dictionaries of `prompt` and `completion`.

    Raises:
        TypeError: An observation or an action is neither text nor messages.
        ValueError: An episode has no step; or, for texts, has several, or messages.
    """
    examples: list[dict[str, Any]] = []
    for number, trajectory, messages, first in conversations(trajectories):
        if conversational:
            examples.append({"prompt": messages[:first], "completion": messages[first:]})
            continue
        step = trajectory.steps[0]
        texts = {"prompt": step.observation, "completion": step.action}
        if len(trajectory.steps) != 1 or not all(isinstance(text, str) for text in texts.values()):
            msg = f"trajectory {number} is no single step from text to text: export conversations"
            raise ValueError(msg)
        examples.append(texts)
    return examples
