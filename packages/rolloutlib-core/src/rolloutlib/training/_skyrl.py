"""Rows as SkyRL takes them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from rolloutlib.rollouts._stop_reasons import read_stop_reason
from rolloutlib.training._exporting import check_rewards, continued, places_of, split_rows
from rolloutlib.training._sequences import TokenSequence


def to_skyrl(rows: Sequence[TokenSequence], rewards: Iterable[float]) -> dict[str, Any]:
    """Return rows as the `GeneratorOutput` of a generator of SkyRL.

    Where episodes have several rows, SkyRL takes them in its step-wise training, each row in place of
    a step. There it reads the attributes of trajectory ids:

        output = to_skyrl(rows, rewards)
        output["trajectory_ids"] = [TrajectoryID(**each) for each in output["trajectory_ids"]]

    Source: SkyRL, `skyrl/train/generators/base.py` at commit 12f1ad39, and `validate_generator_output`
    in `skyrl/train/utils/trainer_utils.py` at commit bc2dea26, as in SkyRL 0.4; the metrics are those
    of `get_rollout_metrics`, which SkyRL's own generator reports.

    Args:
        rows: Rows as `assemble_rows` makes them, in the order of the prompts.
        rewards: One a row; see `row_rewards`.

    Returns:
        Lists of one entry a row: `prompt_token_ids`, `response_ids`, `rewards`, `loss_masks`;
        `stop_reasons` ("stop", "length" and others, as of `StopReason`), `rollout_logprobs`, each
        None if they are not known of all rows; `trajectory_ids`, dictionaries of the fields of
        SkyRL's `TrajectoryID`; `is_last_step`, whether a row is the last of its episode. And
        `rollout_metrics`, from these rows.

    Raises:
        TypeError: A row is none, or a reward is no number.
        ValueError: A row has nothing to train or no span, rewards are not one a row, or rows are of
            several trajectories without a group.
    """
    split = split_rows(rows)
    values = check_rewards(rewards, rows)
    places = places_of(rows)
    verbatim = [row.spans[-1].stop_reason for row in rows]
    logprobs = [row.logprobs.tolist() for row in split if row.logprobs is not None]
    return {
        "prompt_token_ids": [row.prompt.tolist() for row in split],
        "response_ids": [row.response.tolist() for row in split],
        "rewards": values,
        "loss_masks": [row.mask.astype(int).tolist() for row in split],
        "stop_reasons": (
            None if None in verbatim else [read_stop_reason(text) or text for text in verbatim]
        ),
        "rollout_metrics": _metrics([len(row.response) for row in split], values),
        "rollout_logprobs": logprobs or None,
        "trajectory_ids": [
            {"instance_id": item_id or "", "repetition_id": member} for item_id, member in places
        ],
        "is_last_step": [not goes_on for goes_on in continued(rows)],
    }


def _metrics(lengths: list[int], rewards: list[float]) -> dict[str, float]:
    num_tokens, paid = np.array(lengths), np.array(rewards)
    rewarded, unrewarded = num_tokens[paid > 0], num_tokens[paid == 0]
    return {
        "generate/min_num_tokens": float(num_tokens.min()),
        "generate/max_num_tokens": float(num_tokens.max()),
        "generate/avg_num_tokens": float(num_tokens.mean()),
        "generate/std_num_tokens": float(num_tokens.std()),
        "generate/avg_tokens_non_zero_rewards": float(rewarded.mean()) if rewarded.size else 0.0,
        "generate/avg_tokens_zero_rewards": float(unrewarded.mean()) if unrewarded.size else 0.0,
    }
