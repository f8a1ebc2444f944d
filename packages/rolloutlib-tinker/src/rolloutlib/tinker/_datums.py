"""Rows as Tinker trains on them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast, get_args

import numpy as np
from numpy.typing import NDArray

from rolloutlib.training import InvalidRowsError, RowProblem, TokenSequence, verify_rows

if TYPE_CHECKING:
    from tinker import Datum, ForwardBackwardOutput

LossName: TypeAlias = Literal["cross_entropy", "importance_sampling", "ppo", "cispo", "dro"]
"""The losses of Tinker that a row has the numbers for."""


def to_datums(
    rows: Sequence[TokenSequence],
    loss_fn: LossName = "importance_sampling",
    *,
    max_tokens: int | None = None,
) -> list[Datum]:
    """Return rows as the data of Tinker's `forward_backward`, one `Datum` a row, in their order.

    The model reads all tokens of a row but the last, and is to predict all but the first: position i
    of every input of the loss is about token i + 1 of the row. Where that token is not to be trained,
    its weight or its advantage and log probability are 0, so that it adds nothing to any of these
    losses. They are sums over tokens, not means.

    A datum holds what its loss reads and nothing else, for the server refuses what it does not know:
    `target_tokens` (int64) and, for "cross_entropy", `weights`; for the others `logprobs`, of the
    sampler, and `advantages` (all float32). Rows whose advantages are 0 everywhere are kept: they add
    nothing, but without them a batch has another shape, for which a server may have to compile anew.

    Source: Tinker's documentation of losses (tinker-docs.thinkingmachines.ai/tinker/losses), and
    `tinker.types.Datum` of versions 0.24 to 0.38.

    Args:
        rows: Rows as `assemble_rows` makes them: with log probabilities, and with advantages, except
            for "cross_entropy". There an advantage, if the row has any, is the weight of its token;
            else each sampled token weighs 1.
        loss_fn: The loss that the datums are for, as `forward_backward` is told it too.
        max_tokens: How many tokens a row may have; by default any number.

    Raises:
        TypeError: A row is none.
        ValueError: There are no rows, or the loss is none of these.
        InvalidRowsError: Rows do not fit: one has nothing to train, numbers that are not finite, or
            none where the loss needs them; one is too long; or its first token is to be trained, for
            which the model has nothing to read. Of all rows, before anything is made of them.
    """
    if loss_fn not in get_args(LossName):
        msg = f"loss_fn must be one of {', '.join(get_args(LossName))}, got {loss_fn!r}"
        raise ValueError(msg)
    if not rows:
        msg = "there are no rows to train on"
        raise ValueError(msg)
    for number, row in enumerate(rows):
        if not isinstance(cast("object", row), TokenSequence):
            msg = f"row {number} must be a TokenSequence, got {row!r}"
            raise TypeError(msg)
    if problems := _problems(rows, loss_fn, max_tokens):
        raise InvalidRowsError(problems)
    return [_datum(row, loss_fn) for row in rows]


def read_logprobs(output: ForwardBackwardOutput) -> list[NDArray[np.float32]]:
    """Return the log probabilities that `forward` or `forward_backward` computed, row by row.

    They are those of the weights before the step, and fit the rows that the datums came from, so that
    `estimate_kl(rows, read_logprobs(output))` compares them with those of the sampler.

    Args:
        output: What the future of either returned.

    Returns:
        For each row, in order, the natural log probability of each of its tokens, of the shape of the
        row; NaN for the first token, which nothing predicts.

    Raises:
        ValueError: The output has no log probabilities, as with a loss that returns none.
    """
    found: list[NDArray[np.float32]] = []
    for number, each in enumerate(output.loss_fn_outputs):
        if "logprobs" not in each:
            msg = f"the output of row {number} has no logprobs, only {sorted(each)}"
            raise ValueError(msg)
        predicted = each["logprobs"].to_numpy().astype(np.float32)
        found.append(np.concatenate((np.full(1, np.nan, np.float32), predicted)))
    return found


def _problems(
    rows: Sequence[TokenSequence], loss_fn: LossName, max_tokens: int | None
) -> list[RowProblem]:
    needed = () if loss_fn == "cross_entropy" else ("logprobs", "advantages")
    problems = verify_rows(rows, logprobs=False)
    for number, row in enumerate(rows):
        if row.loss_mask[:1].any():
            message = (
                "the first token is to be trained, but the model has none to read before it: let "
                "prompts begin with a token, such as the tokenizer's for the beginning of a text"
            )
            problems.append(RowProblem("context", message, number, 0))
        if max_tokens is not None and len(row) > max_tokens:
            message = (
                f"it has {len(row)} tokens, more than max_tokens={max_tokens}: leave such rows out"
            )
            problems.append(RowProblem("length", message, number))
        for name in needed:
            if getattr(row, name) is None:
                message = f"it has no {name}, which {loss_fn} needs: ask assemble_rows for them"
                problems.append(RowProblem(name, message, number))
    return problems


def _datum(row: TokenSequence, loss_fn: LossName) -> Datum:
    from tinker import (  # noqa: PLC0415 - slow to import
        Datum,
        EncodedTextChunk,
        ModelInput,
        TensorData,
    )

    def tensor(values: NDArray[Any], dtype: Literal["int64", "float32"]) -> TensorData:
        array = values[1:].astype(dtype)  # a copy, which nobody else writes to
        return TensorData(data=array, dtype=dtype, shape=[len(array)])

    inputs = {"target_tokens": tensor(row.tokens, "int64")}
    if loss_fn == "cross_entropy":
        weights = row.loss_mask if row.advantages is None else row.advantages
        inputs["weights"] = tensor(weights, "float32")
    else:
        for name in ("logprobs", "advantages"):
            values = np.where(row.loss_mask, getattr(row, name), 0)
            inputs[name] = tensor(values, "float32")
    chunk = EncodedTextChunk(tokens=row.tokens[:-1].tolist())
    return Datum(model_input=ModelInput(chunks=[chunk]), loss_fn_inputs=inputs)
