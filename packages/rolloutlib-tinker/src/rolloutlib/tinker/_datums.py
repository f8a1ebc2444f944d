"""Rows as Tinker trains on them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast, get_args

import numpy as np
from numpy.typing import NDArray

from rolloutlib._calls import check_count
from rolloutlib.rollouts._array_reading import Numbers, read_array, to_float32
from rolloutlib.tinker._sdk import load
from rolloutlib.training import InvalidRowsError, RowProblem, TokenSequence, verify_rows

if TYPE_CHECKING:
    from tinker import Datum, ForwardBackwardOutput, TensorData

LossName: TypeAlias = Literal["cross_entropy", "importance_sampling", "ppo", "cispo", "dro"]
"""The losses of Tinker that a row has the numbers for."""


def to_datums(
    rows: Iterable[TokenSequence],
    loss_fn: LossName = "importance_sampling",
    *,
    max_tokens: int | None = None,
    context_logprobs: Iterable[Numbers[float]] | None = None,
) -> list[Datum]:
    """Return rows as the data of Tinker's `forward_backward`, one `Datum` a row, in their order.

    The model reads all tokens of a row but the last, and is to predict all but the first: position i
    of every input of the loss is about token i + 1 of the row. Where that token is not to be trained,
    its weight is 0, or its advantage and log probability are, so that it adds nothing to the loss. The
    losses are sums over tokens, not means.

    The penalty of "dro" alone counts tokens without advantage too, and would train the prompts. It is
    0 if those have the log probability that the trainer itself gives them, which a pass beforehand
    tells:

        passed = client.forward(to_datums(rows, "cross_entropy"), "cross_entropy").result()
        datums = to_datums(rows, "dro", context_logprobs=read_logprobs(passed))

    A datum holds what its loss reads and nothing else, for the server refuses what it does not know:
    `target_tokens` (int64) and, for "cross_entropy", `weights`; for the others `logprobs`, of the
    sampler, and `advantages` (all float32). Rows whose advantages are 0 everywhere are kept: they add
    nothing (but the penalty of "dro"), but without them a batch has another shape, for which a server
    may have to compile anew.

    Source: Tinker's documentation of losses (tinker-docs.thinkingmachines.ai/tinker/losses), and
    `tinker.types.Datum` of versions 0.24 to 0.38.

    Args:
        rows: Rows as `assemble_rows` makes them: with log probabilities, and with advantages, except
            for "cross_entropy". There an advantage, if the row has any, is the weight of its token;
            else each sampled token weighs 1.
        loss_fn: The loss that the datums are for, as `forward_backward` is told it too.
        max_tokens: How many tokens a row may have; by default any number.
        context_logprobs: For "dro", the trainer's log probability of each token of each row; what they
            say of tokens that are to be trained, or of the first, is not read.

    Raises:
        ImportError: The SDK is not installed, or too old.
        TypeError: A row is none, or `context_logprobs` are no numbers.
        ValueError: There are no rows, the loss is none of these, or `context_logprobs` are missing,
            do not fit or are not what the loss reads.
        InvalidRowsError: Rows do not fit: one has nothing to train, numbers that are not finite, or
            none where the loss needs them; one is too long, or has an id that no int32 holds; or its
            first token is to be trained, for which the model has nothing to read. Of all rows, before
            anything is made of them.
    """
    rows = list(rows)
    if loss_fn not in get_args(LossName):
        msg = f"loss_fn must be one of {', '.join(get_args(LossName))}, got {loss_fn!r}"
        raise ValueError(msg)
    if not rows:
        msg = "there are no rows to train on"
        raise ValueError(msg)
    for number, row in enumerate(rows):
        if not isinstance(cast("object", row), TokenSequence):
            msg = (
                f"row {number} must be a TokenSequence, got a {type(row).__name__}: rows are the "
                "first of the two things that assemble_rows returns"
            )
            raise TypeError(msg)
    if problems := _problems(rows, loss_fn, max_tokens):
        raise InvalidRowsError(problems)
    context = _context(rows, loss_fn, context_logprobs)
    return [_datum(row, loss_fn, values) for row, values in zip(rows, context, strict=True)]


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
    if max_tokens is not None:
        check_count("max_tokens", max_tokens)
    needed = () if loss_fn == "cross_entropy" else ("logprobs", "advantages")
    problems = verify_rows(rows, logprobs=False)
    for number, row in enumerate(rows):
        if row.loss_mask[:1].any():
            message = (
                "the first token is to be trained, but the model has none to read before it: let "
                "prompts begin with a token, such as the tokenizer's for the beginning of a text"
            )
            problems.append(RowProblem("context", message, number, 0))
        too_large = row.tokens > _LARGEST_ID
        if too_large.any():
            position = int(too_large.argmax())
            message = f"the id {row.tokens[position]} is too large: Tinker sends ids as int32"
            problems.append(RowProblem("tokens", message, number, position))
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


def _context(
    rows: Sequence[TokenSequence],
    loss_fn: LossName,
    logprobs: Iterable[Numbers[float]] | None,
) -> list[NDArray[Any]]:
    """Return what stands in place of the log probabilities of tokens that are not to be trained."""
    if (loss_fn == "dro") != (logprobs is not None):
        msg = (
            "dro penalises tokens that are not to be trained, unless it is told what the trainer "
            "thinks of them: pass context_logprobs=, see to_datums"
            if logprobs is None
            else f"context_logprobs are for dro, {loss_fn} does not read them"
        )
        raise ValueError(msg)
    if logprobs is None:
        return [np.zeros(len(row)) for row in rows]
    context = [
        to_float32(read_array(values, f"context_logprobs of row {number}", "numbers", kinds="fiu"))
        for number, values in enumerate(logprobs)
    ]
    if list(map(len, context)) != list(map(len, rows)):
        msg = f"context_logprobs must be of the lengths of the {len(rows)} rows, one each"
        raise ValueError(msg)
    for number, (row, values) in enumerate(zip(rows, context, strict=True)):
        if not np.isfinite(values[1:][~row.loss_mask[1:]]).all():
            msg = f"context_logprobs of row {number} must be finite"
            raise ValueError(msg)
    return context


def _datum(row: TokenSequence, loss_fn: LossName, context: NDArray[Any]) -> Datum:
    tinker = load()

    def tensor(values: NDArray[Any], dtype: Literal["int64", "float32"]) -> TensorData:
        array = values[1:].astype(dtype)  # a copy, which nobody else writes to
        return tinker.TensorData(data=array, dtype=dtype, shape=[len(array)])

    inputs = {"target_tokens": tensor(row.tokens, "int64")}
    if loss_fn == "cross_entropy":
        weights = row.loss_mask if row.advantages is None else row.advantages
        inputs["weights"] = tensor(weights, "float32")
    else:
        logprobs = np.where(row.loss_mask, cast("NDArray[Any]", row.logprobs), context)
        inputs["logprobs"] = tensor(logprobs, "float32")
        inputs["advantages"] = tensor(cast("NDArray[Any]", row.advantages), "float32")
    read = tinker.ModelInput.from_ints(row.tokens[:-1].tolist())
    return tinker.Datum(model_input=read, loss_fn_inputs=inputs)


_LARGEST_ID = 2**31 - 1
