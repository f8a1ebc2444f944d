"""Rows as verl takes them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any

import numpy as np

from rolloutlib.training._exporting import check_rewards, pad, places_of, split_rows
from rolloutlib.training._sequences import TokenSequence


def to_verl(
    rows: Sequence[TokenSequence],
    *,
    pad_token_id: int,
    prompt_length: int | None = None,
    response_length: int | None = None,
    rewards: Iterable[float] | None = None,
) -> dict[str, dict[str, Any]]:
    """Return rows as the parts of a `DataProto` of verl, in NumPy arrays.

    Prompts are padded on the left, responses on the right. What the environment said between two
    turns is part of the response, with 0 in `response_mask`. For verl itself:

        DataProto.from_dict(
            tensors={name: torch.from_numpy(array) for name, array in data["batch"].items()},
            non_tensors=data["non_tensor_batch"],
        )

    Source: verl, `verl/experimental/agent_loop/agent_loop.py` at commit 0003ed89,
    `AgentLoopWorkerBase.generate_sequences` and `_postprocess`, as in verl 0.9.

    Args:
        rows: Rows as `assemble_rows` makes them.
        pad_token_id: The id that fills the rest.
        prompt_length: The length of all prompts; by default that of the longest.
        response_length: The length of all responses; by default that of the longest.
        rewards: One a row; see `row_rewards`. An episode of several rows has its reward in each, and
            counts as often where verl compares a group; the advantages of the rows count it once.

    Returns:
        `batch`: `prompts`, `responses`, `response_mask`, `input_ids`, `attention_mask` and
        `position_ids`, all int64; `rollout_log_probs` and `advantages`, float32, if the rows have
        them; and `rm_scores`, float32, with the reward on the last token of a response, if there are
        rewards. Their shapes are (rows, prompt length), (rows, response length) or both lengths
        together. `non_tensor_batch`: `uid`, the item id, by which verl groups; and `member`.
        `meta_info`: empty.

    Raises:
        TypeError: A row is none, or a reward is no number.
        ValueError: A row does not fit into the lengths, has nothing to train or no span, rewards are
            not one a row, or rows are of several trajectories without a group.
    """
    split = split_rows(rows)
    prompts = [row.prompt for row in split]
    responses = [row.response for row in split]
    left = partial(pad, length=prompt_length, left=True)
    right = partial(pad, length=response_length, left=False)
    batch = {
        "prompts": left(prompts, value=pad_token_id),
        "responses": right(responses, value=pad_token_id),
        "response_mask": right([row.mask for row in split], value=0),
    }
    batch["input_ids"] = np.concatenate((batch["prompts"], batch["responses"]), axis=1)
    present = [
        left([np.ones(len(array)) for array in prompts], value=0),
        right([np.ones(len(array)) for array in responses], value=0),
    ]
    batch["attention_mask"] = np.concatenate(present, axis=1)
    batch["position_ids"] = np.maximum(batch["attention_mask"].cumsum(axis=1) - 1, 0)
    logprobs = [row.logprobs for row in split if row.logprobs is not None]
    if logprobs:
        batch["rollout_log_probs"] = right(logprobs, value=0, dtype=np.float32)
    advantages = [row.advantages for row in split if row.advantages is not None]
    if advantages:
        batch["advantages"] = right(advantages, value=0, dtype=np.float32)
    if rewards is not None:
        scores = np.zeros(batch["responses"].shape, np.float32)
        last = [len(response) - 1 for response in responses]
        scores[np.arange(len(rows)), last] = check_rewards(rewards, rows)
        batch["rm_scores"] = scores
    places = places_of(rows)
    uids = np.empty(len(rows), dtype=object)
    uids[:] = [item_id for item_id, _ in places]
    members = np.array([member for _, member in places], dtype=np.int64)
    return {
        "batch": batch,
        "non_tensor_batch": {"uid": uids, "member": members},
        "meta_info": {},
    }
