"""Episodes and rows as datasets: messages, prompts with completions, columns."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rolloutlib.rollouts import Step, Trajectory
from rolloutlib.training import TokenSequence, TokenSpan, to_columns, to_messages
from rolloutlib.training import to_prompt_completion as to_pairs

USER = {"role": "user", "content": "What is 2 + 2?"}
MORE = {"role": "user", "content": "And 3 + 3?"}
FOUR = {"role": "assistant", "content": "4"}
SIX = {"role": "assistant", "content": "6"}


def episode(*turns: tuple[Any, Any]) -> Trajectory[Any, Any]:
    steps = [Step(seen, done, 0.0, "unused", False, False) for seen, done in turns]
    return Trajectory(turns[0][0] if turns else "", steps, terminated=True)


WHOLE = episode(([USER], "4"), ([USER, FOUR, MORE], "6"))


@pytest.mark.parametrize(
    "trajectory",
    [
        WHOLE,
        episode((USER["content"], "4"), (MORE["content"], "6")),
        episode(([USER], FOUR), ([MORE], [SIX])),
        episode((USER, "4"), (MORE, "6")),
    ],
    ids=["whole conversation", "texts", "new messages", "one message"],
)
def test_an_episode_is_a_conversation_however_it_was_shown(trajectory: Any) -> None:
    assert to_messages([trajectory]) == [{"messages": [USER, FOUR, MORE, SIX]}]
    assert to_pairs([trajectory]) == [{"prompt": [USER], "completion": [FOUR, MORE, SIX]}]


def test_the_same_observation_twice_is_said_twice() -> None:
    trajectory = episode(("Go on.", "4"), ("Go on.", "6"))
    go_on = {"role": "user", "content": "Go on."}
    assert to_messages([trajectory]) == [{"messages": [go_on, FOUR, go_on, SIX]}]


def test_the_conversation_is_as_the_environment_shows_it() -> None:
    edited = {"role": "assistant", "content": "four"}
    trajectory = episode(([USER], "4"), ([USER, edited, MORE], "6"))
    assert to_messages([trajectory]) == [{"messages": [USER, edited, MORE, SIX]}]


@pytest.mark.parametrize("many", [False, True])
def test_tool_calls_have_the_form_of_chat_templates(many: bool) -> None:
    call = {"name": "add", "arguments": {"x": 2}, "id": "c1"}
    result = {"role": "tool", "content": "4", "tool_call_id": "c1"}
    trajectory = episode(([USER], [call] if many else call), (result, "4"))
    [example] = to_messages([trajectory])
    assert example["messages"] == [
        USER,
        {
            "role": "assistant",
            "content": "",
            "tool_calls": [
                {"id": "c1", "type": "function", "function": {"name": "add", "arguments": {"x": 2}}}
            ],
        },
        result,
        FOUR,
    ]
    assert call == {"name": "add", "arguments": {"x": 2}, "id": "c1"}


def test_arguments_that_are_no_json_are_exported_as_they_were_written() -> None:
    call = {"name": "add", "arguments": {}, "malformed": '{"x": '}
    [example] = to_messages([episode(([USER], call))])
    [exported] = example["messages"][-1]["tool_calls"]
    assert exported == {"type": "function", "function": {"name": "add", "arguments": '{"x": '}}


def test_a_single_step_of_text_may_be_a_pair_of_texts() -> None:
    assert to_pairs([episode(("2 + 2 =", " 4"))], conversational=False) == [
        {"prompt": "2 + 2 =", "completion": " 4"}
    ]


@pytest.mark.parametrize("trajectory", [WHOLE, episode(([USER], "4"))])
def test_conversations_are_no_pairs_of_texts(trajectory: Any) -> None:
    with pytest.raises(ValueError, match="trajectory 0 is no single step from text to text"):
        to_pairs([trajectory], conversational=False)


@pytest.mark.parametrize(
    ("trajectory", "error", "message"),
    [
        (episode(), ValueError, "trajectory 0 has no step"),
        (episode((3, "4")), TypeError, "trajectory 0, step 0: the observation is neither text"),
        (episode(("a", "4"), ("b", 5)), TypeError, "trajectory 0, step 1: the action is neither"),
        (episode((["a"], "4")), TypeError, "neither text nor messages: \\['a'\\]"),
    ],
)
def test_what_is_no_conversation_is_named(
    trajectory: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        to_messages([trajectory])


def row(member: int, length: int) -> TokenSequence:
    mask = np.arange(length) >= 2
    return TokenSequence(
        np.arange(100, 100 + length, dtype=np.int32),
        mask,
        np.where(mask, -0.25, 0).astype(np.float32),
        np.where(mask, 1, 0).astype(np.float32),
        (TokenSpan(2, length, "item", member, 0, 5, "stop"),),
    )


def test_columns_have_labels_only_for_what_was_sampled() -> None:
    columns = to_columns([row(0, 4), row(1, 3)])
    assert {len(column) for column in columns.values()} == {2}
    assert columns["labels"][0].tolist() == [-100, -100, 102, 103]
    assert columns["loss_mask"][1].tolist() == [0, 0, 1]
    assert columns["versions"] == [["5"], ["5"]]
    assert "logprobs" not in to_columns([TokenSequence([1], [True], spans=row(0, 3).spans)])  # pyright: ignore[reportArgumentType]


def test_columns_make_a_hugging_face_dataset_that_keeps_types_on_disk(tmp_path: Path) -> None:
    datasets = pytest.importorskip("datasets")
    made = [row(0, 4), row(1, 3)]
    datasets.Dataset.from_dict(to_columns(made)).to_parquet(tmp_path / "rows.parquet")
    read = datasets.Dataset.from_parquet(str(tmp_path / "rows.parquet"), cache_dir=str(tmp_path))
    assert read.features["input_ids"].feature.dtype == "int32"
    assert read.features["logprobs"].feature.dtype == "float32"
    for each, example in zip(made, read.with_format("numpy"), strict=True):
        assert example["input_ids"].tolist() == each.tokens.tolist()
        assert example["logprobs"].tolist() == each.logprobs.tolist()  # pyright: ignore[reportOptionalMemberAccess]
        assert sum(example["loss_mask"]) == each.num_trainable
        assert (example["item_id"], example["member"]) == ("item", each.spans[0].member)


def test_conversations_make_a_hugging_face_dataset() -> None:
    datasets = pytest.importorskip("datasets", minversion="4.7")
    calls = [
        {"name": "add", "arguments": {"x": 2}, "id": "c1"},
        {"name": "find", "arguments": {"x": "a", "where": ["b"]}},
    ]
    made = to_messages([WHOLE, *(episode(([USER], call)) for call in calls)])
    read = datasets.Dataset.from_list(made, on_mixed_types="use_json")
    assert list(read) == made
