"""Rows by columns, for tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from rolloutlib.training._exporting import place_of, split_rows
from rolloutlib.training._sequences import TokenSequence

IGNORED_LABEL = -100
"""The label that the losses of PyTorch and transformers pass over."""


def to_columns(rows: Sequence[TokenSequence]) -> dict[str, list[Any]]:
    """Return rows by columns, for a Hugging Face `Dataset`, a data frame or a table.

    For instance `datasets.Dataset.from_dict(to_columns(rows))`. `input_ids`, `attention_mask` and
    `labels` are what the models of transformers take: its `Trainer` trains on them with a
    `DataCollatorForSeq2Seq`, which pads labels too, and TRL's `SFTTrainer` as they are.

    Args:
        rows: Rows as `assemble_rows` makes them.

    Returns:
        Lists of one entry a row: `input_ids`, int32 or int64; `attention_mask`, int8, all 1; `labels`,
        int64, -100 where a token is not to be trained; `loss_mask`, int8; `logprobs` and
        `advantages`, float32, if the rows have them; `item_id`; `member`; and of each span in the
        row, in lists, `steps`, `starts`, `stops`, `versions` (as text) and `stop_reasons`.

    Raises:
        TypeError: A row is none.
        ValueError: There are no rows, a row has nothing to train or no span, or some rows have log
            probabilities or advantages and others have none.
    """
    split_rows(rows)
    places = [place_of(row, number) for number, row in enumerate(rows)]
    columns: dict[str, list[Any]] = {
        "input_ids": [row.tokens for row in rows],
        "attention_mask": [np.ones(len(row), np.int8) for row in rows],
        "labels": [
            np.where(row.loss_mask, row.tokens, IGNORED_LABEL).astype(np.int64) for row in rows
        ],
        "loss_mask": [row.loss_mask.astype(np.int8) for row in rows],
    }
    for name in ("logprobs", "advantages"):
        if getattr(rows[0], name) is not None:
            columns[name] = [getattr(row, name) for row in rows]
    columns["item_id"] = [item_id for item_id, _ in places]
    columns["member"] = [member for _, member in places]
    columns["steps"] = [[span.step for span in row.spans] for row in rows]
    columns["starts"] = [[span.start for span in row.spans] for row in rows]
    columns["stops"] = [[span.stop for span in row.spans] for row in rows]
    columns["versions"] = [
        [None if span.version is None else str(span.version) for span in row.spans] for row in rows
    ]
    columns["stop_reasons"] = [[span.stop_reason for span in row.spans] for row in rows]
    return columns
