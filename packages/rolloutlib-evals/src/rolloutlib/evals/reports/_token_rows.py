"""The tokens of an episode as rows, of which the page shows each token."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from rolloutlib.rollouts import Step, Trajectory
from rolloutlib.training import TokenSequence, assemble_rows

__all__ = ["token_rows"]


def token_rows(trajectory: Trajectory[Any, Any]) -> list[dict[str, Any]]:
    """Return the tokens as rows for training, in which the mask tells the sampled ones."""
    told = [step.policy_logprobs is not None for step in trajectory.steps if step.policy_tokens]
    rows, report = assemble_rows(
        trajectory, logprobs=bool(told) and all(told), missing="skip", aborted=True
    )
    if report.num_missing_steps:  # there is more to show than can be trained on
        return [row for index, step in enumerate(trajectory.steps) if (row := _alone(index, step))]
    return [_row(row) for row in rows]


def _alone(index: int, step: Step[Any, Any]) -> dict[str, Any] | None:
    """Return what is known of the tokens of one step; an id that is not is None."""
    logprobs, prompt = step.policy_logprobs, step.policy_prompt_tokens or ()
    tokens = step.policy_tokens
    if tokens is None and logprobs is None:
        return None
    sampled = [None] * len(logprobs or ()) if tokens is None else list(tokens)
    span = [len(prompt), len(prompt) + len(sampled)]
    form = {"tokens": [*prompt, *sampled], "sampled": [span], "steps": [[*span, index]]}
    return form if logprobs is None else {**form, "logprobs": _finite(logprobs)}


def _row(row: TokenSequence) -> dict[str, Any]:
    edges = [0, *(np.flatnonzero(np.diff(row.loss_mask)) + 1).tolist(), len(row)]
    form: dict[str, Any] = {
        "tokens": row.tokens.tolist(),
        "sampled": [[start, stop] for start, stop in pairwise(edges) if row.loss_mask[start]],
        "steps": [[span.start, span.stop, span.step] for span in row.spans],
    }
    if row.logprobs is not None:
        form["logprobs"] = _finite(row.logprobs[row.loss_mask].tolist())
    return form


def _finite(logprobs: Sequence[float]) -> list[float | None]:
    return [round(each, 4) if math.isfinite(each) else None for each in logprobs]
