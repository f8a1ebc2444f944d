"""Rows made from records: exact tokens, each sampled one trained once."""

from __future__ import annotations

import copy
import dataclasses
import math
import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.training.turns import Group, Turn, episode, group, groups, sampled
from rolloutlib import RolloutError, Trajectory
from rolloutlib.training import (
    RowBreak,
    TokenSequence,
    TokenSpan,
    assemble_rows,
    group_mean,
    verify_rows,
)

ROLLED = episode(sampled([1, 2], [3, 4]), sampled([1, 2, 3, 4, 5, 6], [7], version="v2"))


def test_steps_share_a_row_while_their_tokens_go_on() -> None:
    [row], report = assemble_rows(ROLLED)
    assert row.tokens.tolist() == [1, 2, 3, 4, 5, 6, 7]
    assert row.loss_mask.tolist() == [False, False, True, True, False, False, True]
    assert row.logprobs is not None
    assert row.logprobs.tolist() == [0, 0, -0.5, -0.625, 0, 0, -0.125]
    assert row.advantages is None
    assert row.spans == (
        TokenSpan(2, 4, None, 0, 0, None, "stop"),
        TokenSpan(6, 7, None, 0, 1, "v2", "stop"),
    )
    assert (len(row), row.num_trainable) == (7, 3)
    assert (report.num_rows, report.num_tokens, report.num_trainable) == (1, 7, 3)
    assert (report.num_episodes, report.num_trained_steps, report.breaks) == (1, 2, ())


def test_rows_are_compact_and_cannot_be_changed() -> None:
    [row], _ = assemble_rows(group(ROLLED), advantages=group_mean)
    arrays = (row.tokens, row.loss_mask, row.logprobs, row.advantages)
    assert [array is not None and array.dtype for array in arrays] == [
        np.int32,
        np.bool_,
        np.float32,
        np.float32,
    ]
    for array in arrays:
        assert array is not None
        assert not array.flags.writeable


def test_a_copy_of_a_row_cannot_be_changed_either() -> None:
    [row], _ = assemble_rows(group(ROLLED), advantages=group_mean)
    for again in (pickle.loads(pickle.dumps(row)), copy.deepcopy(row)):  # noqa: S301
        assert again == row
        for array in (again.tokens, again.loss_mask, again.logprobs, again.advantages):
            assert array is not None
            assert not array.flags.writeable


def test_ids_of_64_bits_and_of_32_share_a_row() -> None:
    [row], report = assemble_rows(episode(sampled([1], [2]), sampled([1, 2, 2**40], [3])))
    assert row.tokens.tolist() == [1, 2, 2**40, 3]
    assert not report.breaks


def test_versions_that_changed_within_a_turn_have_a_span_each() -> None:
    turns = episode(
        sampled([1], [2, 3, 4], version=[(6, 2), (7, 1)]), sampled([1, 2, 3, 4, 5], [8], version=7)
    )
    [row], report = assemble_rows(turns)
    assert [(span.start, span.stop, span.step, span.version) for span in row.spans] == [
        (1, 3, 0, 6),
        (3, 4, 0, 7),
        (5, 6, 1, 7),
    ]
    assert report.num_trained_steps == 2
    assert verify_rows([row], turns) == []


def test_where_tokens_drift_a_new_row_begins_and_nothing_is_patched() -> None:
    # "he" + "llo" decoded and encoded again is "hello": two tokens became one.
    turns = (sampled([1, 2], [10, 11, 5]), sampled([1, 2, 12, 5, 6], [7]))
    rows, report = assemble_rows(group(episode(*turns, member=3)))
    assert [row.tokens.tolist() for row in rows] == [[1, 2, 10, 11, 5], [1, 2, 12, 5, 6, 7]]
    assert [row.loss_mask.tolist() for row in rows] == [
        [False, False, True, True, True],
        [False] * 5 + [True],
    ]
    assert all(len(row.tokens) == len(row.loss_mask) for row in rows)
    assert report.breaks == (RowBreak("i", 3, 1, 2, (10, 11, 5), (12, 5, 6), 5),)
    assert report.extra_tokens == 5
    assert "item 'i', member 3, step 1" in str(report)
    assert "at 2: [10, 11, 5] became [12, 5, 6], 5 extra tokens" in str(report)


def test_a_prompt_that_ends_within_the_row_breaks_it_too() -> None:
    rows, report = assemble_rows(episode(sampled([1, 2], [3, 4]), sampled([1, 2, 3], [5])))
    assert len(rows) == 2
    assert report.breaks == (RowBreak(None, 0, 1, 3, (4,), (), 3),)


def test_a_break_shows_only_the_first_tokens_and_the_text_only_some_breaks() -> None:
    turns = [sampled([step] * 50, [step] * 50) for step in range(20)]
    _, report = assemble_rows(episode(*turns))
    assert report.breaks[0].expected == (0,) * 8
    assert report.breaks[0].found == (1,) * 8
    assert report.breaks[0].extra_tokens == 50
    assert len(report.breaks) == 19
    assert "and 9 more" in str(report)


@given(st.lists(groups(), max_size=3), st.booleans())
def test_every_sampled_token_is_trained_in_exactly_one_row(
    several: list[Group], aborted: bool
) -> None:
    rows, report = assemble_rows(several, missing="skip", aborted=aborted)
    trained: list[tuple[int, ...]] = []
    steps = 0
    for each in several:
        for trajectory in each.trajectories:
            for step in trajectory.steps:
                steps += 1
                if step.policy_tokens and (aborted or step.policy_finish != "aborted"):
                    trained.append(tuple(step.policy_tokens))
    found = [tuple(row.tokens[s.start : s.stop].tolist()) for row in rows for s in row.spans]
    assert found == trained  # in order, too
    assert sum(row.num_trainable for row in rows) == sum(map(len, trained))
    assert report.num_trained_steps == len(trained)
    assert steps == (
        report.num_trained_steps
        + report.num_plain_steps
        + report.num_empty_steps
        + report.num_aborted_steps
        + report.num_missing_steps
    )
    assert verify_rows(rows, several, aborted=aborted) == []


@given(groups())
def test_each_row_ends_with_what_the_sampler_read_and_wrote(one: Group) -> None:
    rows, report = assemble_rows(one, missing="skip")
    members = {each.member: each for each in one.trajectories}
    for row in rows:
        for span in row.spans:
            step = members[span.member].steps[span.step]
            assert row.tokens[: span.start].tolist() == list(step.policy_prompt_tokens or ())
            assert row.tokens[span.start : span.stop].tolist() == list(step.policy_tokens or ())
        assert len(row.tokens) == row.spans[-1].stop
    with_rows = {span.member for row in rows for span in row.spans}
    assert len(rows) == len(with_rows) + len(report.breaks)  # no break without need


@given(groups())
def test_the_report_locates_the_first_difference(one: Group) -> None:
    rows, report = assemble_rows(one, missing="skip")
    starts = {(row.spans[0].member, row.spans[0].step): row for row in rows}
    ends = {(row.spans[-1].member, row.spans[-1].step): row for row in rows}
    for each in report.breaks:
        after = starts[each.member, each.step]
        step = max(key for key in ends if key < (each.member, each.step))
        before, prompt = ends[step].tokens.tolist(), after.tokens[: after.spans[0].start].tolist()
        assert before[: each.position] == prompt[: each.position]
        assert list(each.expected) == before[each.position :][:8]
        assert list(each.found) == prompt[each.position :][:8]
        assert each.expected[:1] != each.found[:1]
        assert each.extra_tokens == min(len(before), len(prompt))


@given(st.lists(groups(), max_size=3))
def test_the_numbers_of_the_report_are_those_of_the_rows(several: list[Group]) -> None:
    rows, report = assemble_rows(several, missing="skip")
    assert report.num_rows == len(rows)
    assert report.num_tokens == sum(len(row.tokens) for row in rows)
    assert report.num_trainable == sum(int(row.loss_mask.sum()) for row in rows)
    assert report.num_episodes == sum(each.num_requested for each in several)


def test_plain_and_empty_actions_are_counted_and_trained_nowhere() -> None:
    turns = (sampled([1], [2]), Turn(), sampled([1, 2, 3], []), sampled([1, 2, 3, 4], [5]))
    [row], report = assemble_rows(episode(*turns))
    assert row.tokens.tolist() == [1, 2, 3, 4, 5]
    assert [span.step for span in row.spans] == [0, 3]
    assert (report.num_plain_steps, report.num_empty_steps) == (1, 1)


def test_an_empty_prompt_is_known_and_none_is_not() -> None:
    [row], _ = assemble_rows(episode(sampled([], [1, 2])))
    assert row.loss_mask.tolist() == [True, True]
    with pytest.raises(ValueError, match="member 0, step 0 has no prompt_tokens"):
        assemble_rows(episode(Turn(None, [1, 2], [-1, -1])))


@pytest.mark.parametrize(
    ("turn", "lacks"),
    [
        (Turn(None, [1], [-1.0]), "prompt_tokens"),
        (Turn([1], [2], None), "logprobs"),
        (Turn([1], None, [-1.0]), "tokens"),
        (Turn([1]), "tokens"),
        (Turn(stop="stop"), "tokens"),
        (Turn(stop="length"), "tokens"),
    ],
)
def test_missing_token_data_is_an_error_or_counted(turn: Turn, lacks: str) -> None:
    source = group(episode(sampled([1], [2])), episode(sampled([1], [2]), turn))
    with pytest.raises(ValueError, match=f"item 'i', member 1, step 1 has no {lacks}: the policy"):
        assemble_rows(source)
    rows, report = assemble_rows(source, missing="skip")
    assert len(rows) == 2
    assert report.num_missing_steps == 1
    assert verify_rows(rows, source) == []


def test_rows_without_log_probabilities_need_none() -> None:
    source = episode(Turn([1], [2]), sampled([1, 2], [3]))
    [row], _ = assemble_rows(source, logprobs=False)
    assert row.logprobs is None
    assert row.num_trainable == 2
    assert verify_rows([row], source, logprobs=False) == []


def test_records_without_any_tokens_are_missing_data_too() -> None:
    source = group(episode(Turn(), Turn()), episode(Turn()))
    with pytest.raises(ValueError, match="none of 3 steps has tokens"):
        assemble_rows(source)
    rows, report = assemble_rows(source, missing="skip")
    assert rows == []
    assert report.num_plain_steps == 3


def test_an_episode_without_tokens_among_others_has_no_row() -> None:
    rows, report = assemble_rows(group(episode(Turn()), episode(sampled([1], [2])), episode()))
    assert [row.spans[0].member for row in rows] == [1]
    assert report.num_episodes == 3


@pytest.mark.parametrize("stop", ["abort", "aborted", "timeout", "error"])
def test_turns_that_were_broken_off_are_trained_only_if_asked(stop: str) -> None:
    turns = (sampled([1], [2]), sampled([1, 2, 3], [4], stop=stop), sampled([1, 2, 3, 4, 5], [6]))
    [row], report = assemble_rows(episode(*turns))
    assert row.tokens.tolist() == [1, 2, 3, 4, 5, 6]
    assert row.loss_mask.tolist() == [False, True, False, False, False, True]
    assert report.num_aborted_steps == 1
    [row], report = assemble_rows(episode(*turns), aborted=True)
    assert row.loss_mask.tolist() == [False, True, False, True, False, True]
    assert report.num_aborted_steps == 0


@pytest.mark.parametrize("aborted", [True, False])
def test_a_turn_broken_off_before_its_first_token_lacks_nothing(aborted: bool) -> None:
    _, report = assemble_rows(
        episode(sampled([1], [2]), Turn([1, 2], stop="abort")), aborted=aborted
    )
    assert report.num_aborted_steps == 1


def test_a_turn_that_filled_the_context_is_trained_and_one_without_room_is_empty() -> None:
    turns = (sampled([1], [2], stop="context_overflow"), Turn([1, 2], stop="context_overflow"))
    [row], report = assemble_rows(episode(*turns))
    assert row.num_trainable == 1
    assert report.num_empty_steps == 1


def test_failed_episodes_are_trained_only_if_asked() -> None:
    error = RolloutError("E", "m", index=1, trajectory=episode(sampled([5], [6], reward=1.0)))
    source = group(episode(sampled([1], [2]), member=0), errors=[error, RolloutError("E", "m")])
    rows, report = assemble_rows(source, advantages=group_mean)
    assert [row.spans[0].member for row in rows] == [0]
    assert (report.num_episodes, report.num_failed) == (3, 2)
    rows, report = assemble_rows(source, advantages=group_mean, failed=True)
    assert [row.spans[0].member for row in rows] == [0, 1]
    assert (report.num_episodes, report.num_failed) == (3, 1)
    assert [row.advantages is not None and row.advantages[-1] for row in rows] == [-0.5, 0.5]
    assert verify_rows(rows, source, failed=True) == []


def test_earlier_attempts_are_never_trained() -> None:
    failure = RolloutError("E", "m", index=0, trajectory=episode(sampled([5], [6])))
    source = dataclasses.replace(group(episode(sampled([1], [2]))), retried=[failure])
    rows, _ = assemble_rows(source, failed=True)
    assert [row.tokens.tolist() for row in rows] == [[1, 2]]


def test_a_failure_before_any_token_makes_no_row() -> None:
    errors = [
        RolloutError("E", "m", index=0),
        RolloutError("E", "m", index=1, trajectory=episode()),
    ]
    rows, report = assemble_rows(group(errors=errors), advantages=group_mean, failed=True)
    assert rows == []
    assert (report.num_episodes, report.num_tokens) == (2, 0)


def test_groups_are_read_once_and_lazily() -> None:
    rows, report = assemble_rows(group(ROLLED, item_id=name) for name in "ab")
    assert [row.spans[0].item_id for row in rows] == ["a", "b"]
    assert report.num_episodes == 2
    assert assemble_rows([])[0] == []


@pytest.mark.parametrize("source", [5, None, [5], "ab", [group(ROLLED), None]])
def test_other_sources_are_refused(source: Any) -> None:
    with pytest.raises(TypeError, match="rows are made from"):
        assemble_rows(source)


def test_arguments_that_make_no_sense_are_refused() -> None:
    with pytest.raises(ValueError, match="'raise' or 'skip', got 'ignore'"):
        assemble_rows(ROLLED, missing="ignore")  # pyright: ignore[reportArgumentType]
    with pytest.raises(ValueError, match="give advantages= as well"):
        assemble_rows(ROLLED, rewards=lambda trajectory: trajectory.total_reward)


def test_a_row_whose_arrays_differ_in_length_cannot_be_made() -> None:
    row = TokenSequence(np.array([1, 2]), np.array([False, True]))
    assert row == TokenSequence(np.array([1, 2]), np.array([False, True]))
    assert row != TokenSequence(np.array([1, 3]), np.array([False, True]))
    with pytest.raises(ValueError, match=r"loss_mask must have the shape \(2,\)"):
        TokenSequence(np.array([1, 2]), np.array([True]))


@pytest.mark.parametrize("odd", [2, 0.5, math.nan, "1", None])
def test_a_mask_of_something_else_than_flags_is_refused(odd: Any) -> None:
    mask: Any = [0, odd]
    with pytest.raises(ValueError, match="loss_mask must be 0 or 1, but entry "):
        TokenSequence(np.array([1, 2]), mask)


def test_a_row_is_not_changed_by_the_arrays_it_was_made_of() -> None:
    tokens, mask = np.array([1, 2]), np.array([False, True])
    row = TokenSequence(tokens, mask)
    tokens[:], mask[:] = 0, False
    assert (row.tokens.tolist(), row.loss_mask.tolist()) == ([1, 2], [False, True])


def test_an_episode_of_a_hand_made_group_is_known_by_its_position() -> None:
    rows, _ = assemble_rows(group(Trajectory("o"), ROLLED))
    assert rows[0].spans[0].member == 1
