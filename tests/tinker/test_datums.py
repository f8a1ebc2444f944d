"""Datums of Tinker from rows: what each loss is given, and nothing else."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, cast, get_args

import numpy as np
import pytest
import tinker

from rolloutlib import Score, Step, Trajectory, TrajectoryGroup
from rolloutlib.tinker import LossName, read_logprobs, to_datums
from rolloutlib.training import (
    InvalidRowsError,
    TokenSequence,
    assemble_rows,
    estimate_kl,
    group_mean,
)

LOSSES: tuple[LossName, ...] = get_args(LossName)
REINFORCED = [loss for loss in LOSSES if loss != "cross_entropy"]


def turn(prompt: list[int], tokens: list[int]) -> Step[str, str]:
    return Step(
        *("o", "a", 0.0, "o", False, False),
        policy_prompt_tokens=prompt,
        policy_tokens=tokens,
        policy_logprobs=[-token / 8 for token in tokens],
    )


TWO_TURNS = Trajectory("o", [turn([1, 2], [3, 4]), turn([1, 2, 3, 4, 5], [6])], terminated=True)
ONE_TURN = Trajectory("o", [turn([1, 2, 9], [3])], terminated=True)
GROUP: TrajectoryGroup[str, str, str] = TrajectoryGroup(
    "item", "item", [TWO_TURNS, ONE_TURN], [Score(1.0), Score(0.0)]
)
ROWS, _ = assemble_rows(GROUP, advantages=group_mean)
CONTEXT = [[math.nan, -0.25, -0.25, -0.25, -0.25, -0.25], [math.nan, -1.0, -2.0, -4.0]]


def numbers(datum: tinker.Datum) -> dict[str, list[Any]]:
    return {name: tensor.tolist() for name, tensor in datum.loss_fn_inputs.items()}


def test_all_but_the_last_token_predict_all_but_the_first() -> None:
    datum = to_datums(ROWS)[0]
    assert datum.model_input.to_ints() == [1, 2, 3, 4, 5]
    assert numbers(datum) == {
        "target_tokens": [2, 3, 4, 5, 6],
        "logprobs": [0, -0.375, -0.5, 0, -0.75],
        "advantages": [0, 0.5, 0.5, 0, 0.5],
    }


def test_cross_entropy_weighs_each_sampled_token_1() -> None:
    rows, _ = assemble_rows(GROUP, logprobs=False)
    datum = to_datums(rows, "cross_entropy")[0]
    assert datum.model_input.to_ints() == [1, 2, 3, 4, 5]
    assert numbers(datum) == {"target_tokens": [2, 3, 4, 5, 6], "weights": [0, 1, 1, 0, 1]}


def test_cross_entropy_weighs_by_the_advantages_if_there_are_any() -> None:
    rows, _ = assemble_rows(GROUP, advantages=lambda rewards: [float(r > 0.5) for r in rewards])
    assert [numbers(datum)["weights"] for datum in to_datums(rows, "cross_entropy")] == [
        [0, 1, 1, 0, 1],
        [0, 0, 0],
    ]


@pytest.mark.parametrize("loss", LOSSES)
def test_a_loss_is_given_what_it_reads_in_its_types_and_nothing_else(loss: LossName) -> None:
    names = ("weights",) if loss == "cross_entropy" else ("logprobs", "advantages")
    context = CONTEXT if loss == "dro" else None
    datums = to_datums(ROWS, loss, context_logprobs=context)
    for row, datum in zip(ROWS, datums, strict=True):
        inputs = datum.loss_fn_inputs
        assert set(inputs) == {"target_tokens", *names}
        assert inputs["target_tokens"].dtype == "int64"
        assert {inputs[name].dtype for name in names} == {"float32"}
        assert all(tensor.shape == [len(row) - 1] for tensor in inputs.values())
        assert datum.model_input.length == len(row) - 1


def test_dro_is_told_what_the_trainer_thinks_of_the_context() -> None:
    one, two = to_datums(ROWS, "dro", context_logprobs=CONTEXT)
    assert numbers(one)["logprobs"] == [-0.25, -0.375, -0.5, -0.25, -0.75]
    assert numbers(two)["logprobs"] == [-1, -2, -0.375]


@pytest.mark.parametrize(
    ("loss", "context", "message"),
    [
        ("dro", None, "dro penalises tokens that are not to be trained"),
        ("ppo", CONTEXT, "context_logprobs are for dro, ppo does not read them"),
        ("dro", CONTEXT[:1], "must be of the lengths of the 2 rows"),
        ("dro", [CONTEXT[0], CONTEXT[0]], "must be of the lengths of the 2 rows"),
        ("dro", [CONTEXT[0], [0, 0, math.nan, 0]], "of row 1 must be finite"),
        ("dro", [CONTEXT[0], [0, 0, -1e300, 0]], "of row 1 must be finite"),
    ],
)
def test_what_does_not_tell_of_the_context_is_refused(
    loss: LossName, context: list[list[float]] | None, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        to_datums(ROWS, loss, context_logprobs=context)


@pytest.mark.parametrize("values", [3.0, None, [[0.0]] * 4, [None] * 4, "text"])
def test_a_context_that_is_no_numbers_is_refused(values: Any) -> None:
    with pytest.raises(
        TypeError, match="context_logprobs of row 1 must be numbers in one dimension"
    ):
        to_datums(ROWS, "dro", context_logprobs=[CONTEXT[0], values])


def test_rows_may_come_from_a_generator() -> None:
    assert len(to_datums(row for row in ROWS)) == 2


def test_rows_without_advantage_stay_in_their_place() -> None:
    rows, _ = assemble_rows(GROUP, advantages=lambda rewards: [0.0] * len(rewards))
    assert [numbers(datum)["advantages"] for datum in to_datums(rows)] == [[0] * 5, [0] * 3]


def test_rows_may_be_of_a_users_own_making() -> None:
    row = TokenSequence(np.array([1, 2, 3]), np.array([False, False, True]))
    assert numbers(to_datums([row], "cross_entropy")[0])["weights"] == [0, 1]


def spoilt(**changes: Any) -> TokenSequence:
    return replace(ROWS[0], **changes)


@pytest.mark.parametrize("loss", REINFORCED)
@pytest.mark.parametrize(
    ("row", "message"),
    [
        (
            spoilt(logprobs=None),
            "row 1: it has no logprobs, which .* needs",
        ),
        (spoilt(advantages=None), "row 1: it has no advantages, which .* needs"),
        (spoilt(logprobs=np.full(6, np.nan)), "token 2: the log probability is not finite"),
        (spoilt(advantages=np.full(6, np.inf)), "token 0: the advantage is not finite"),
        (spoilt(advantages=np.ones(6)), "the advantage of an untrained token is not 0"),
        (spoilt(loss_mask=np.zeros(6, bool), spans=()), "row 1: no token is to be trained"),
        (spoilt(tokens=-ROWS[0].tokens), "row 1, token 0: the id -1 is negative"),
        (
            spoilt(tokens=ROWS[0].tokens.astype(np.int64) + 2**31 - 5),
            "token 4: the id 2147483648 is too large",
        ),
        (
            spoilt(tokens=ROWS[0].tokens.astype(np.uint64) + 2**63),
            "token 0: the id .* is too large",
        ),
    ],
)
def test_rows_that_do_not_fit_are_refused(row: TokenSequence, message: str, loss: LossName) -> None:
    with pytest.raises(InvalidRowsError, match=message):
        to_datums([ROWS[1], row], loss)


def test_a_token_that_nothing_predicts_cannot_be_trained() -> None:
    rows, _ = assemble_rows(Trajectory("o", [turn([], [3, 4])]), logprobs=False)
    with pytest.raises(InvalidRowsError, match="row 0, token 0: the first token is to be trained"):
        to_datums(rows, "cross_entropy")


def test_all_rows_that_are_too_long_are_told() -> None:
    assert to_datums(ROWS, max_tokens=6)
    with pytest.raises(
        InvalidRowsError, match="row 0: it has 6 tokens, more than max_tokens=3"
    ) as e:
        to_datums(ROWS, max_tokens=3)
    assert [problem.row for problem in e.value.problems] == [0, 1]


def test_what_is_no_row_or_no_loss_is_refused() -> None:
    with pytest.raises(ValueError, match="there are no rows to train on"):
        to_datums([])
    with pytest.raises(ValueError, match=r"loss_fn must be one of cross_entropy.*, got 'gspo'"):
        to_datums(ROWS, cast("Any", "gspo"))
    with pytest.raises(TypeError, match="row 0 must be a TokenSequence, got a Trajectory"):
        to_datums(cast("Any", [ONE_TURN]))
    with pytest.raises(TypeError, match=r"got a list: .* first of the two .* assemble_rows"):
        to_datums(cast("Any", assemble_rows(GROUP)))
    with pytest.raises(ValueError, match="max_tokens must be at least 1, got 0"):
        to_datums(ROWS, max_tokens=0)


def output(*arrays: list[float], name: str = "logprobs") -> tinker.ForwardBackwardOutput:
    return tinker.ForwardBackwardOutput(
        "ArrayRecord",
        [{name: tinker.TensorData(array, "float32", [len(array)])} for array in arrays],
    )


def test_what_the_trainer_computed_is_compared_with_what_the_sampler_said() -> None:
    trained = output([-9, -0.375, -0.5, -9, -0.75], [-9, -9, -0.5])
    estimate = estimate_kl(ROWS, read_logprobs(trained))
    assert estimate.num_tokens == 4
    assert estimate.max_difference == 0.125
    assert estimate.k1 == 0.125 / 4


def test_an_output_without_log_probabilities_is_refused() -> None:
    with pytest.raises(ValueError, match=r"row 0 has no logprobs, only \['loss'\]"):
        read_logprobs(output([1.0], name="loss"))
