"""Datums of random episodes against what was recorded of them: tokens, losses, and the wire."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, get_args

import numpy as np
import pytest
import tinker
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from tinker.proto.request_conv import forward_backward_request_to_proto

from core.training.turns import Group, groups
from rolloutlib.tinker import LossName, to_datums
from rolloutlib.training import TokenSequence, assemble_rows, check_rows, group_mean

Floats = NDArray[np.float64]

REINFORCED: list[LossName] = [loss for loss in get_args(LossName) if loss != "cross_entropy"]
LOSSES: list[LossName] = [*get_args(LossName)]


def rows_of(one: Group) -> list[TokenSequence]:
    """The rows of a group that Tinker can train: with a token before the first sampled one."""
    rows, _ = assemble_rows(one, advantages=group_mean, missing="skip")
    return [row for row in rows if not row.loss_mask[0]]


def datums_of(
    rows: list[TokenSequence], loss: LossName = "importance_sampling"
) -> list[tinker.Datum]:
    """The datums of rows, of which there may be none; the trainer is sure of all context."""
    context = [np.zeros(len(row)) for row in rows] if loss == "dro" else None
    return to_datums(rows, loss, context_logprobs=context) if rows else []


def unshift(datum: tinker.Datum) -> dict[str, Any]:
    """The row that a datum came from, as the mapping of a trainer's own, and nothing but the datum."""
    inputs = {name: tensor.to_numpy() for name, tensor in datum.loss_fn_inputs.items()}
    first = datum.model_input.to_ints()[:1]
    row: dict[str, Any] = {"tokens": [*first, *inputs.pop("target_tokens").tolist()]}
    assert row["tokens"][:-1] == datum.model_input.to_ints()
    return row | {name: np.concatenate(([0], values)) for name, values in inputs.items()}


@given(groups())
def test_datums_give_back_exactly_the_rows(one: Group) -> None:
    rows = rows_of(one)
    for row, datum in zip(rows, datums_of(rows), strict=True):
        back = unshift(datum)
        assert back["tokens"] == row.tokens.tolist()
        assert back["logprobs"].tolist() == np.asarray(row.logprobs).tolist()
        assert back["advantages"].tolist() == np.asarray(row.advantages).tolist()


def ones(rewards: Sequence[float]) -> list[float]:
    return [1.0] * len(rewards)


@given(groups())
def test_each_sampled_token_is_trained_once_in_its_context_and_no_other(one: Group) -> None:
    rows, _ = assemble_rows(one, missing="skip")
    if not rows or any(row.loss_mask[0] for row in rows):
        return
    # Weights of cross-entropy are 1 where a token is trained, so they are the mask; log probabilities
    # of the tests' episodes are never 0, so the other losses have it too.
    supervised = [unshift(datum) for datum in to_datums(rows, "cross_entropy")]
    weighed = assemble_rows(one, advantages=ones, missing="skip")[0]
    reinforced = [unshift(datum) for datum in to_datums(weighed)]
    for row, other in zip(supervised, reinforced, strict=True):
        row["loss_mask"] = row.pop("weights")
        row["logprobs"] = other["logprobs"]
        assert (other["logprobs"] != 0).tolist() == (row["loss_mask"] == 1).tolist()
        assert other["advantages"].tolist() == row["loss_mask"].tolist()
    check_rows(supervised, one)  # against the record itself


@given(groups(min_size=1))
def test_an_advantage_reaches_all_tokens_of_its_episode_and_of_no_other(one: Group) -> None:
    rows = rows_of(one)
    expected: Counter[float] = Counter()
    for row in rows:
        value = float(np.float32(group_mean(one.rewards)[row.spans[0].member]))
        expected[value] += row.num_trainable
    found: Counter[float] = Counter()
    for datum in datums_of(rows):
        inputs = {name: tensor.to_numpy() for name, tensor in datum.loss_fn_inputs.items()}
        found.update(inputs["advantages"][inputs["logprobs"] != 0].tolist())
    assert found == expected


def importance_sampling(p: Floats, q: Floats, advantages: Floats) -> Floats:
    return -np.exp(p - q) * advantages


def ppo(p: Floats, q: Floats, advantages: Floats) -> Floats:
    ratio = np.exp(p - q)
    return -np.minimum(ratio * advantages, np.clip(ratio, 0.8, 1.2) * advantages)


def cispo(p: Floats, q: Floats, advantages: Floats) -> Floats:
    return -np.clip(np.exp(p - q), 0.8, 1.2) * p * advantages


def dro(p: Floats, q: Floats, advantages: Floats) -> Floats:
    return -(p * advantages - 0.5 * 0.05 * (p - q) ** 2)


# As documented at tinker-docs.thinkingmachines.ai/tinker/losses; the thresholds may be others.
FORMULAS: dict[str, Callable[[Floats, Floats, Floats], Floats]] = {
    "importance_sampling": importance_sampling,
    "ppo": ppo,
    "cispo": cispo,
    "dro": dro,
}


@given(st.data())
@pytest.mark.parametrize("loss", REINFORCED)
def test_losses_over_all_of_a_datum_are_those_over_the_sampled_tokens_of_a_row(
    loss: LossName, data: st.DataObject
) -> None:
    rows = rows_of(data.draw(groups(min_size=1)))
    random = np.random.default_rng(data.draw(st.integers(0, 99)))
    trained = [-random.exponential(size=len(row)) for row in rows]  # by the policy that is trained
    context = trained if loss == "dro" else None
    datums = to_datums(rows, loss, context_logprobs=context) if rows else []
    for row, datum, now in zip(rows, datums, trained, strict=True):
        inputs = {name: tensor.to_numpy() for name, tensor in datum.loss_fn_inputs.items()}
        sampled = np.asarray(row.logprobs), np.asarray(row.advantages)
        of_row = FORMULAS[loss](*(each[row.loss_mask] for each in (now, *sampled)))
        of_datum = FORMULAS[loss](now[1:], inputs["logprobs"], inputs["advantages"])
        assert of_datum.sum() == pytest.approx(of_row.sum(), abs=1e-5)


@given(groups(min_size=1))
def test_cross_entropy_over_a_datum_is_that_over_the_sampled_tokens(one: Group) -> None:
    rows, _ = assemble_rows(one, missing="skip")
    rows = [row for row in rows if not row.loss_mask[0]]
    for row, datum in zip(rows, datums_of(rows, "cross_entropy"), strict=True):
        trained = -np.arange(1, len(row) + 1) / 8
        weights = datum.loss_fn_inputs["weights"].to_numpy()
        assert -(weights * trained[1:]).sum() == -trained[row.loss_mask].sum()


@given(groups(min_size=1), st.sampled_from(LOSSES))
def test_datums_reach_the_wire_unchanged(one: Group, loss: LossName) -> None:
    rows = rows_of(one)
    datums = datums_of(rows, loss)
    request = tinker.types.ForwardBackwardRequest(
        tinker.types.ForwardBackwardInput(data=datums, loss_fn=loss), "model", 1
    )
    sent = forward_backward_request_to_proto(request)
    received = type(sent).FromString(sent.SerializeToString())
    for datum, message in zip(datums, received.data, strict=True):
        [chunk] = message.model_input
        tokens = np.frombuffer(chunk.encoded_text.tokens, np.int32)
        assert tokens.tolist() == datum.model_input.to_ints()
        assert set(message.loss_fn_inputs) == set(datum.loss_fn_inputs)
        for name, tensor in datum.loss_fn_inputs.items():
            kind = np.int64 if name == "target_tokens" else np.float32
            values = np.frombuffer(message.loss_fn_inputs[name].dense, kind)
            assert values.tolist() == tensor.tolist()
            assert list(message.loss_fn_inputs[name].shape) == [len(tokens)]
