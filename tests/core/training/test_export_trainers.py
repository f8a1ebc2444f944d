"""Rows in the forms of TRL, verl and SkyRL."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rolloutlib.rollouts import RolloutError, Step, Trajectory, TrajectoryGroup
from rolloutlib.scores import Score
from rolloutlib.training import (
    TokenSequence,
    TokenSpan,
    assemble_rows,
    group_mean,
    row_rewards,
    to_skyrl,
    to_trl_rollouts,
    to_verl,
    verify_rows,
)

PAD = 7777


def turn(prompt: Sequence[int], tokens: Sequence[int], stop: str = "eos") -> Step[str, str]:
    return Step(
        *("o", "a", 0.0, "o", False, False),
        policy_prompt_tokens=prompt,
        policy_tokens=tokens,
        policy_logprobs=[-0.5] * len(tokens),
        policy_stop_reason=stop,
        policy_version=3,
    )


def episode(*steps: Step[str, str], member: int | None = None) -> Trajectory[str, str]:
    return Trajectory("o", steps, terminated=True, member=member)


def group(*episodes: Trajectory[str, str], item_id: str = "item") -> TrajectoryGroup[Any, str, str]:
    scores = [Score(float(number)) for number in range(len(episodes))]
    return TrajectoryGroup("item", item_id, episodes, scores)


TWO_TURNS = episode(turn([1, 2], [3, 4]), turn([1, 2, 3, 4, 5], [6], "length"), member=0)
ONE_TURN = episode(turn([1, 2, 9], [3]), member=1)
BROKEN = episode(turn([1, 2], [3]), turn([1, 8, 8], [4]), member=0)
GROUP = group(TWO_TURNS, ONE_TURN)
ROWS, _ = assemble_rows(GROUP, advantages=group_mean)


@st.composite
def rows(draw: st.DrawFn) -> list[TokenSequence]:
    """Rows of several turns, with and without log probabilities and advantages."""
    has_logprobs, has_advantages = draw(st.booleans()), draw(st.booleans())
    made: list[TokenSequence] = []
    for member in range(draw(st.integers(1, 4))):
        mask: list[bool] = [False] * draw(st.integers(0, 3))
        spans: list[TokenSpan] = []
        for step in range(draw(st.integers(1, 3))):
            start = len(mask)
            mask += [True] * draw(st.integers(1, 4))
            spans.append(TokenSpan(start, len(mask), "item", member, step, 1, "stop"))
            mask += [False] * draw(st.integers(0, 3))
        numbers = np.where(mask, draw(st.floats(-3, -1, width=32)), 0)
        made.append(
            TokenSequence(
                np.array(
                    draw(st.lists(st.integers(0, 999), min_size=len(mask), max_size=len(mask)))
                ),
                np.array(mask),
                numbers.astype(np.float32) if has_logprobs else None,
                -numbers.astype(np.float32) if has_advantages else None,
                tuple(spans),
            )
        )
    return made


# Rewards


def test_each_row_has_the_reward_of_its_episode() -> None:
    broken = group(BROKEN, ONE_TURN)
    made, _ = assemble_rows([broken, group(ONE_TURN, item_id="other")])
    sources = [broken, group(ONE_TURN, item_id="other")]
    assert row_rewards(made, sources) == [0.0, 0.0, 1.0, 0.0]
    assert row_rewards(made, sources, rewards=lambda each: len(each.steps)) == [2.0, 2.0, 1.0, 1.0]


def test_a_row_of_a_failed_episode_has_its_reward_too() -> None:
    failed = TrajectoryGroup(
        "item", "item", [TWO_TURNS], errors=[RolloutError("E", "", index=1, trajectory=ONE_TURN)]
    )
    made, _ = assemble_rows(failed, failed=True)
    assert row_rewards(made, failed, rewards=lambda each: len(each.steps)) == [2.0, 1.0]


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ([GROUP, GROUP], "row 0 is of item 'item', member 0, which is 2 times in the source"),
        ([], "which is 0 times in the source"),
    ],
)
def test_a_reward_that_cannot_be_told_is_an_error(source: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        row_rewards(ROWS, source)


def test_an_unscored_episode_has_no_reward() -> None:
    with pytest.raises(ValueError, match="member 0, which has no reward"):
        row_rewards(ROWS, GROUP, rewards=lambda _: None)


# TRL


def test_trl_takes_prompts_completions_and_a_mask_of_what_was_sampled() -> None:
    assert to_trl_rollouts(ROWS, rewards=row_rewards(ROWS, GROUP)) == {
        "prompt_ids": [[1, 2], [1, 2, 9]],
        "completion_ids": [[3, 4, 5, 6], [3]],
        "logprobs": [[-0.5, -0.5, 0.0, -0.5], [-0.5]],
        "env_mask": [[1, 1, 0, 1], [1]],
        "rewards": [0.0, 1.0],
    }


@given(rows())
def test_trl_has_each_token_once_and_each_sampled_one_under_the_mask(
    made: list[TokenSequence],
) -> None:
    data = to_trl_rollouts(made)
    for number, row in enumerate(made):
        prompt, completion = data["prompt_ids"][number], data["completion_ids"][number]
        assert prompt + completion == row.tokens.tolist()
        assert sum(data["env_mask"][number]) == row.num_trainable
        assert len(data["env_mask"][number]) == len(completion)
        if row.logprobs is not None:
            assert len(data["logprobs"][number]) == len(completion)
    assert (data["logprobs"] is None) == (made[0].logprobs is None)
    json.dumps(data)


def test_trl_takes_no_episode_of_several_rows() -> None:
    made, _ = assemble_rows(group(ONE_TURN, BROKEN))
    with pytest.raises(ValueError, match="item 'item', member 0 has several rows, 1 and 2"):
        to_trl_rollouts(made)


def test_trajectories_without_a_group_are_episodes_of_their_own() -> None:
    made, _ = assemble_rows([ONE_TURN, ONE_TURN])
    assert len(to_trl_rollouts(made)["prompt_ids"]) == 2


@pytest.mark.parametrize(
    "export", [lambda made: to_verl(made, pad_token_id=0), lambda made: to_skyrl(made, [0] * 2)]
)
def test_trajectories_without_a_group_are_not_compared_as_one_item(export: Any) -> None:
    made, _ = assemble_rows([ONE_TURN, ONE_TURN])
    with pytest.raises(ValueError, match="several trajectories without a group"):
        export(made)
    alone, _ = assemble_rows(BROKEN)
    assert len(alone) == 2
    export(alone)


# verl


def test_verl_pads_prompts_on_the_left_and_responses_on_the_right() -> None:
    data = to_verl(ROWS, pad_token_id=PAD, rewards=row_rewards(ROWS, GROUP))
    batch = {name: array.tolist() for name, array in data["batch"].items()}
    assert batch == {
        "prompts": [[PAD, 1, 2], [1, 2, 9]],
        "responses": [[3, 4, 5, 6], [3, PAD, PAD, PAD]],
        "response_mask": [[1, 1, 0, 1], [1, 0, 0, 0]],
        "input_ids": [[PAD, 1, 2, 3, 4, 5, 6], [1, 2, 9, 3, PAD, PAD, PAD]],
        "attention_mask": [[0, 1, 1, 1, 1, 1, 1], [1, 1, 1, 1, 0, 0, 0]],
        "position_ids": [[0, 0, 1, 2, 3, 4, 5], [0, 1, 2, 3, 3, 3, 3]],
        "rollout_log_probs": [[-0.5, -0.5, 0, -0.5], [-0.5, 0, 0, 0]],
        "advantages": [[-0.5, -0.5, 0, -0.5], [0.5, 0, 0, 0]],
        "rm_scores": [[0, 0, 0, 0], [1, 0, 0, 0]],
    }
    assert data["non_tensor_batch"]["uid"].tolist() == ["item", "item"]
    assert data["non_tensor_batch"]["member"].tolist() == [0, 1]
    assert data["meta_info"] == {}


@given(rows(), st.none() | st.integers(25, 30))
def test_verl_never_trains_padding_and_loses_no_token(
    made: list[TokenSequence], length: int | None
) -> None:
    data = to_verl(made, pad_token_id=PAD, prompt_length=length, response_length=length)
    batch = data["batch"]
    width = batch["prompts"].shape[1]
    present = batch["attention_mask"].astype(bool)
    trained = batch["response_mask"].astype(bool)
    assert width == (length or max(int(row.loss_mask.argmax()) for row in made))
    assert batch["input_ids"].shape == present.shape == batch["position_ids"].shape
    assert not (trained & ~present[:, width:]).any()
    assert trained.sum() == sum(row.num_trainable for row in made)
    for row, ids, mask, positions in zip(
        made, batch["input_ids"], present, batch["position_ids"], strict=True
    ):
        assert ids[mask].tolist() == row.tokens.tolist()
        assert set(ids[~mask]) <= {PAD}
        assert positions[mask].tolist() == list(range(len(row)))
    for name in ("rollout_log_probs", "advantages"):
        if name in batch:
            assert batch[name].dtype == np.float32
            assert not batch[name][~trained].any()


def test_verl_rows_are_proved_by_the_records_they_came_from() -> None:
    batch = to_verl(ROWS, pad_token_id=PAD)["batch"]
    unpadded = np.zeros_like(batch["prompts"])
    theirs = [
        {
            "tokens": batch["input_ids"][number],
            "loss_mask": np.concatenate((unpadded[number], batch["response_mask"][number])),
            "logprobs": np.concatenate((unpadded[number], batch["rollout_log_probs"][number])),
            "attention_mask": batch["attention_mask"][number],
        }
        for number in range(len(ROWS))
    ]
    assert verify_rows(theirs, GROUP) == []


@pytest.mark.parametrize(
    ("lengths", "message"),
    [
        ({"prompt_length": 2}, "row 1 has a prompt of 3 tokens, more than 2"),
        ({"response_length": 3}, "row 0 has a response of 4 tokens, more than 3"),
    ],
)
def test_verl_rows_that_do_not_fit_are_refused_not_cut(
    lengths: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        to_verl(ROWS, pad_token_id=PAD, **lengths)


# SkyRL


def test_skyrl_takes_the_output_of_a_generator() -> None:
    data = to_skyrl(ROWS, row_rewards(ROWS, GROUP))
    metrics = data.pop("rollout_metrics")
    assert data == {
        "prompt_token_ids": [[1, 2], [1, 2, 9]],
        "response_ids": [[3, 4, 5, 6], [3]],
        "rewards": [0.0, 1.0],
        "loss_masks": [[1, 1, 0, 1], [1]],
        "stop_reasons": ["length", "stop"],
        "rollout_logprobs": [[-0.5, -0.5, 0.0, -0.5], [-0.5]],
        "trajectory_ids": [
            {"instance_id": "item", "repetition_id": 0},
            {"instance_id": "item", "repetition_id": 1},
        ],
        "is_last_step": [True, True],
    }
    assert metrics == {
        "generate/min_num_tokens": 1.0,
        "generate/max_num_tokens": 4.0,
        "generate/avg_num_tokens": 2.5,
        "generate/std_num_tokens": 1.5,
        "generate/avg_tokens_non_zero_rewards": 1.0,
        "generate/avg_tokens_zero_rewards": 4.0,
    }


def test_skyrl_takes_several_rows_of_an_episode_for_its_steps() -> None:
    source = group(BROKEN, ONE_TURN)
    made, _ = assemble_rows(source)
    data = to_skyrl(made, row_rewards(made, source))
    assert data["is_last_step"] == [False, True, True]
    assert [each["repetition_id"] for each in data["trajectory_ids"]] == [0, 0, 1]


def test_skyrl_output_has_one_form_whether_episodes_break_or_not() -> None:
    # SkyRL's step-wise training is chosen before the run, and puts the outputs of batches together.
    source = group(BROKEN, ONE_TURN)
    broken, _ = assemble_rows(source)
    one, two = to_skyrl(ROWS, [0.0] * 2), to_skyrl(broken, [0.0] * 3)
    assert {name: type(one[name]) for name in one} == {name: type(two[name]) for name in two}


@given(rows())
def test_skyrl_rows_are_as_long_as_their_masks(made: list[TokenSequence]) -> None:
    data = to_skyrl(made, [1.0] * len(made))
    for number, row in enumerate(made):
        response = data["response_ids"][number]
        assert data["prompt_token_ids"][number] + response == row.tokens.tolist()
        assert len(data["loss_masks"][number]) == len(response) > 0
        assert sum(data["loss_masks"][number]) == row.num_trainable
        if data["rollout_logprobs"] is not None:
            assert len(data["rollout_logprobs"][number]) == len(response)
    assert data["is_last_step"] == [True] * len(made)
    json.dumps(data)


def test_skyrl_has_no_stop_reasons_if_one_is_unknown() -> None:
    row = TokenSequence(np.array([1]), np.array([True]), spans=(TokenSpan(0, 1, None, 0, 0),))
    data = to_skyrl([TokenSequence(**_fields(ROWS[0])), row], [0.0, 0.0])
    assert data["stop_reasons"] is None


def _fields(row: TokenSequence) -> dict[str, Any]:
    return {"tokens": row.tokens, "loss_mask": row.loss_mask, "spans": row.spans}


# Bad input


@pytest.mark.parametrize("export", [to_trl_rollouts, lambda made: to_verl(made, pad_token_id=0)])
@pytest.mark.parametrize(
    ("made", "error", "message"),
    [
        ([], ValueError, "no rows"),
        ([{}], TypeError, "row 0 must be a TokenSequence"),
        (
            [TokenSequence(np.array([1]), np.array([False]))],
            ValueError,
            "row 0 has no token to train",
        ),
        (
            [ROWS[0], TokenSequence(**_fields(ROWS[1]))],
            ValueError,
            "logprobs must be given for all rows or for none: rows 0 and 1 differ",
        ),
        ([TokenSequence(np.array([1]), np.array([True]))], ValueError, "row 0 has no span"),
    ],
)
def test_rows_that_cannot_be_exported_are_named(
    export: Any, made: list[Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        export(made)


@pytest.mark.parametrize(
    ("rewards", "error", "message"),
    [
        ([1.0], ValueError, "rewards must be one a row: got 1 for 2 rows"),
        ([1.0, float("nan")], ValueError, "reward 1 must be finite"),
        ([1.0, "good"], TypeError, "reward 1 must be a real number"),
    ],
)
def test_rewards_that_are_wrong_are_named(
    rewards: list[Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        to_verl(ROWS, pad_token_id=PAD, rewards=rewards)
    with pytest.raises(error, match=message):
        to_skyrl(ROWS, rewards)
