"""The verifier: silent on rows that are right, and loud on each thing that can be wrong."""

from __future__ import annotations

import dataclasses
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from core.training.turns import Group, episode, group, groups, sampled
from rolloutlib.training import (
    InvalidRowsError,
    RowProblem,
    TokenSequence,
    TokenSpan,
    assemble_rows,
    check_rows,
    group_mean,
    verify_rows,
)

Rows = list[dict[str, Any]]

SOURCE = group(
    episode(sampled([1, 2], [3, 4]), sampled([1, 2, 3, 4, 5], [6])),
    episode(sampled([1, 2], [7]), sampled([1, 9], [8])),
    rewards=[1, 0],
)


def plain(one: Group, *, spans: bool = True) -> Rows:
    """The rows of a group as dictionaries, which can be spoiled."""
    rows, _ = assemble_rows(one, advantages=group_mean, missing="skip")
    return [
        {
            "tokens": row.tokens.copy(),
            "loss_mask": row.loss_mask.copy(),
            "logprobs": None if row.logprobs is None else row.logprobs.copy(),
            "advantages": None if row.advantages is None else row.advantages.copy(),
            **({"spans": list(row.spans)} if spans else {}),
        }
        for row in rows
    ]


def kinds(problems: list[RowProblem]) -> set[str]:
    return {problem.kind for problem in problems}


@given(groups(), st.booleans())
def test_right_rows_of_ours_and_of_others_have_no_problems(one: Group, spans: bool) -> None:
    rows, _ = assemble_rows(one, advantages=group_mean, missing="skip")
    assert verify_rows(rows, one) == []
    check_rows(rows, one)
    assert verify_rows(plain(one, spans=spans), one) == []
    assert verify_rows(plain(one, spans=spans)) == []


@given(groups(item_id="same"), groups(item_id="same"))
def test_two_groups_may_have_one_item(one: Group, other: Group) -> None:
    rows, _ = assemble_rows([one, other], missing="skip")
    assert verify_rows(rows, [one, other]) == []
    assert verify_rows(rows, [other, one]) == []


@given(groups(), st.data())
def test_padding_on_either_side_changes_nothing(one: Group, data: st.DataObject) -> None:
    rows = plain(one, spans=False)
    for row in rows:
        sides = data.draw(st.tuples(st.integers(0, 3), st.integers(0, 3)))
        row["attention_mask"] = np.pad(np.ones(len(row["tokens"]), int), sides).tolist()
        for name in ("tokens", "loss_mask", "logprobs", "advantages"):
            row[name] = np.pad(row[name], sides).tolist()
    assert verify_rows(rows, one) == []


def change_sampled_token(rows: Rows) -> None:
    rows[0]["tokens"][np.flatnonzero(rows[0]["loss_mask"])[-1]] += 1_000_000


def change_context(rows: Rows) -> None:
    rows[0]["tokens"][0] += 1_000_000


def make_negative(rows: Rows) -> None:
    rows[0]["tokens"][0] = -100


def train_context(rows: Rows) -> None:
    rows[0]["loss_mask"][0] = True


def forget_token(rows: Rows) -> None:
    rows[0]["loss_mask"][np.flatnonzero(rows[0]["loss_mask"])[0]] = False


def mask_everything(rows: Rows) -> None:
    rows[0]["loss_mask"][:] = False
    rows[0].pop("spans", None)


def double_mask(rows: Rows) -> None:
    rows[0]["loss_mask"] = rows[0]["loss_mask"] * 2


def lengthen_mask(rows: Rows) -> None:
    rows[0]["loss_mask"] = np.append(rows[0]["loss_mask"], False)


def shorten_logprobs(rows: Rows) -> None:
    rows[0]["logprobs"] = rows[0]["logprobs"][:-1]


def spoil_logprob(value: float) -> Callable[[Rows], None]:
    def spoil(rows: Rows) -> None:
        rows[0]["logprobs"] = rows[0]["logprobs"].astype(float)
        rows[0]["logprobs"][np.flatnonzero(rows[0]["loss_mask"])[-1]] = value

    return spoil


def lose_logprobs(rows: Rows) -> None:
    rows[0]["logprobs"] = None


def make_logprobs_none(rows: Rows) -> None:
    rows[0]["logprobs"] = [None] * len(rows[0]["tokens"])


def spread_advantages(rows: Rows) -> None:
    rows[0]["advantages"][:] = 0.5


def spoil_advantage(value: float) -> Callable[[Rows], None]:
    def spoil(rows: Rows) -> None:
        rows[0]["advantages"] = rows[0]["advantages"].astype(float)
        rows[0]["advantages"][-1] = value

    return spoil


def lose_row(rows: Rows) -> None:
    del rows[-1]


def repeat_row(rows: Rows) -> None:
    rows.append(rows[0])


def add_synthetic_row(rows: Rows) -> None:
    row: dict[str, Any] = {
        "tokens": [0],
        "loss_mask": [1],
        "logprobs": [0.0],
        "advantages": [0.5],
    }
    if "spans" in rows[0]:
        row["spans"] = [TokenSpan(0, 1, "i", 9, 0)]
    rows.append(row)


def cut_off_context(rows: Rows) -> None:
    for name in ("tokens", "loss_mask", "logprobs", "advantages"):
        rows[0][name] = rows[0][name][1:]
    if "spans" in rows[0]:
        rows[0]["spans"] = [
            dataclasses.replace(span, start=span.start - 1, stop=span.stop - 1)
            for span in rows[0]["spans"]
        ]


def train_padding(rows: Rows) -> None:
    rows[0]["attention_mask"] = np.ones(len(rows[0]["tokens"]), int)
    rows[0]["attention_mask"][-1] = 0


def use_floats(rows: Rows) -> None:
    rows[0]["tokens"] = rows[0]["tokens"].astype(float)


def nest(rows: Rows) -> None:
    rows[0]["tokens"] = rows[0]["tokens"][None]


def rag(rows: Rows) -> None:
    rows[0]["tokens"] = [[1], [2, 3]]


def lose_mask(rows: Rows) -> None:
    del rows[0]["loss_mask"]


SPOILED: list[tuple[Callable[[Rows], None], str]] = [
    (change_sampled_token, "coverage"),
    (change_context, "context"),
    (make_negative, "tokens"),
    (forget_token, "coverage"),
    (mask_everything, "mask"),
    (double_mask, "mask"),
    (lengthen_mask, "length"),
    (shorten_logprobs, "length"),
    (spoil_logprob(np.nan), "logprobs"),
    (spoil_logprob(-np.inf), "logprobs"),
    (spoil_logprob(-0.7), "logprobs"),
    (spoil_logprob(-1e300), "logprobs"),
    (lose_logprobs, "logprobs"),
    (make_logprobs_none, "type"),
    (spread_advantages, "advantages"),
    (spoil_advantage(np.nan), "advantages"),
    (spoil_advantage(1e300), "advantages"),
    (lose_row, "coverage"),
    (repeat_row, "coverage"),
    (add_synthetic_row, "coverage"),
    (cut_off_context, "context"),
    (train_padding, "padding"),
    (use_floats, "type"),
    (nest, "type"),
    (rag, "type"),
    (lose_mask, "type"),
]


@pytest.mark.parametrize("spans", [True, False])
@pytest.mark.parametrize(("spoil", "kind"), SPOILED)
@settings(max_examples=8)  # of each of many faults
@given(one=groups(min_size=1))
def test_each_fault_is_found(
    one: Group, spans: bool, spoil: Callable[[Rows], None], kind: str
) -> None:
    rows = plain(one, spans=spans)
    assume(rows)
    assume(not rows[0]["loss_mask"][0])
    spoil(rows)
    if spoil is forget_token and spans:
        kind = "mask"
    found = verify_rows(rows, one)
    assert kind in kinds(found)
    with pytest.raises(InvalidRowsError) as caught:
        check_rows(rows, one)
    assert caught.value.problems == found


@pytest.mark.parametrize("spans", [True, False])
def test_a_trained_token_of_the_context_is_found(spans: bool) -> None:
    rows = plain(SOURCE, spans=spans)
    train_context(rows)
    [problem] = verify_rows(rows, SOURCE)
    assert problem.kind == ("mask" if spans else "coverage")
    assert (problem.row, problem.position) == (0, 0)


def shift(row: dict[str, Any]) -> None:
    row["spans"][0] = dataclasses.replace(row["spans"][0], start=1)


def swap(row: dict[str, Any]) -> None:
    row["spans"].reverse()


def relabel(row: dict[str, Any]) -> None:
    row["spans"][0] = dataclasses.replace(row["spans"][0], step=1)


def overflow(row: dict[str, Any]) -> None:
    row["spans"][-1] = dataclasses.replace(row["spans"][-1], stop=99)


def forget(row: dict[str, Any]) -> None:
    del row["spans"][0]


def forget_all(row: dict[str, Any]) -> None:
    row["spans"] = []


def misname(row: dict[str, Any]) -> None:
    row["spans"][0] = dataclasses.replace(row["spans"][0], item_id="other")


def misdate(row: dict[str, Any]) -> None:
    row["spans"][0] = dataclasses.replace(row["spans"][0], version=7)


def misread(row: dict[str, Any]) -> None:
    row["spans"][0] = {"from": 2}


@pytest.mark.parametrize(
    ("spoil", "kind"),
    [
        (shift, "mask"),
        (swap, "spans"),
        (relabel, "spans"),
        (overflow, "spans"),
        (forget, "mask"),
        (forget_all, "mask"),
        (misname, "coverage"),
        (misdate, "spans"),
        (misread, "spans"),
    ],
)
def test_spans_that_do_not_fit_are_found(spoil: Callable[[Any], None], kind: str) -> None:
    rows = plain(SOURCE)
    spoil(rows[0])
    assert kind in kinds(verify_rows(rows, SOURCE))


def test_spans_may_be_mappings() -> None:
    rows = plain(SOURCE)
    for row in rows:
        row["spans"] = [dataclasses.asdict(span) for span in row["spans"]]
    assert verify_rows(rows, SOURCE) == []


def test_actions_that_touch_are_told_apart_by_their_tokens() -> None:
    source = group(episode(sampled([1], [2]), sampled([1, 2], [2, 3]), sampled([1, 2, 2, 3], [4])))
    rows = plain(source, spans=False)
    assert len(rows) == 1
    assert verify_rows(rows, source) == []
    assert kinds(verify_rows(rows * 2, source)) == {"coverage"}


def test_a_problem_says_where_it_is() -> None:
    rows = plain(SOURCE)
    rows[0]["tokens"][5] = 77
    del rows[2]
    wrong, missing = verify_rows(rows, SOURCE)
    assert (wrong.kind, wrong.row, wrong.position) == ("coverage", 0, 5)
    assert (wrong.item_id, wrong.member, wrong.step) == ("i", 0, 1)
    assert str(wrong) == (
        "row 0, token 5, item 'i', member 0, step 1: [77] stand where [6] were sampled"
    )
    assert str(missing) == "item 'i', member 1, step 1: no row trains its 1 tokens"
    with pytest.raises(InvalidRowsError, match="rows have 2 problems\n  row 0, token 5") as caught:
        check_rows(rows, SOURCE)
    again = pickle.loads(pickle.dumps(caught.value))  # noqa: S301
    assert again.problems == [wrong, missing]


def test_many_problems_are_all_kept_and_some_are_printed() -> None:
    error = InvalidRowsError(verify_rows([{}] * 12))
    assert len(error.problems) == 12
    assert "and 2 more" in str(error)


@pytest.mark.parametrize(
    "row", [None, 5, "row", {}, {"tokens": [1]}, {"tokens": 5, "loss_mask": 5}]
)
def test_what_is_no_row_is_a_problem_and_no_crash(row: Any) -> None:
    assert kinds(verify_rows([row])) == {"type"}


@pytest.mark.parametrize(
    "spoiled",
    [
        {"start": 2.0},
        {"stop": "4"},
        {"member": None},
        {"step": None},
        {"item_id": ["i"]},
        {"version": np.arange(2)},
        {"stop_reason": []},
    ],
)
def test_a_span_of_other_values_is_a_problem_and_no_crash(spoiled: dict[str, Any]) -> None:
    rows = plain(SOURCE)
    rows[0]["spans"] = [{**dataclasses.asdict(span), **spoiled} for span in rows[0]["spans"]]
    assert "spans" in kinds(verify_rows(rows, SOURCE))


def test_log_probabilities_may_be_integers_as_in_a_policy_output() -> None:
    source = group(episode(sampled([1], [2], logprobs=[-1])))
    row = {"tokens": [1, 2], "loss_mask": [0, 1], "logprobs": [0, -1]}
    assert verify_rows([row], source) == []


def move_version(spans: list[TokenSpan]) -> None:
    spans[0] = dataclasses.replace(spans[0], stop=2)
    spans[1] = dataclasses.replace(spans[1], start=2)


def swap_versions(spans: list[TokenSpan]) -> None:
    spans[:] = [
        dataclasses.replace(span, version=version)
        for span, version in zip(spans, (7, 6), strict=True)
    ]


def join_versions(spans: list[TokenSpan]) -> None:
    spans[:] = [dataclasses.replace(spans[0], stop=4)]


def repeat_version(spans: list[TokenSpan]) -> None:
    spans[1] = dataclasses.replace(spans[1], version=6)


def lose_version(spans: list[TokenSpan]) -> None:
    del spans[1]


@pytest.mark.parametrize(
    "spoil", [move_version, swap_versions, join_versions, repeat_version, lose_version]
)
def test_versions_of_other_tokens_than_recorded_are_found(
    spoil: Callable[[list[TokenSpan]], None],
) -> None:
    source = group(episode(sampled([1], [2, 3, 4], version=[(6, 2), (7, 1)])))
    [row] = plain(source)
    assert verify_rows([row], source) == []
    spoil(row["spans"])
    assert kinds(verify_rows([row], source)) & {"spans", "mask"}


def test_probabilities_in_place_of_their_logarithms_are_found() -> None:
    rows = [{"tokens": [1, 2, 3], "loss_mask": [0, 1, 1], "logprobs": [0.0, 0.05, 0.9]}]
    assert [str(each) for each in verify_rows(rows)] == [
        "row 0, token 2: the log probability is positive"
    ]


def test_tensors_that_numpy_cannot_read_are_rows_too() -> None:
    class Bfloat16(list[float]):
        def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
            msg = "Got unsupported ScalarType BFloat16"
            raise TypeError(msg)

        def tolist(self) -> list[float]:
            return list(self)

    row: dict[str, Any] = {
        "tokens": [1, 2],
        "loss_mask": Bfloat16([0, 1]),
        "logprobs": Bfloat16([0, -0.5]),
    }
    assert verify_rows([row], group(episode(sampled([1], [2], logprobs=[-0.5])))) == []
    made: Any = TokenSequence(**row)
    assert made.num_trainable == 1


@pytest.mark.parametrize("spans", [True, False])
def test_episodes_that_say_the_same_are_told_apart_by_their_log_probabilities(spans: bool) -> None:
    sources = [group(episode(sampled([1], [2], logprobs=[value]))) for value in (-0.5, -0.25)]
    rows = [row for source in sources for row in plain(source, spans=spans)]
    assert verify_rows(rows, sources) == verify_rows(rows[::-1], sources) == []
    rows[0]["logprobs"] = rows[1]["logprobs"]
    assert kinds(verify_rows(rows, sources)) == {"logprobs"}


def test_actions_that_touch_are_told_apart_by_their_contexts() -> None:
    one_turn = episode(sampled([1], [2, 3]))
    two_turns = episode(sampled([1], [2]), sampled([1, 2], [3]))
    for source in (group(one_turn, two_turns), group(two_turns, one_turn)):
        rows = plain(source, spans=False)
        assert [row["tokens"].tolist() for row in rows] == [[1, 2, 3], [1, 2, 3]]
        assert verify_rows(rows, source) == verify_rows(rows[::-1], source) == []
        assert kinds(verify_rows(rows[:1], source)) == {"coverage"}
