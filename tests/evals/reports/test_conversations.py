"""Episodes as conversations, as a terminal shows them."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
from rich.console import Console

from evals.reports.episodes import with_reasoning
from rolloutlib import Score, Step, Trajectory
from rolloutlib.evals import BenchmarkResult, EvaluationRecord
from rolloutlib.evals.reports import Report, print_sample


def shown(trajectory: Trajectory[Any, Any]) -> list[str]:
    """What is printed of an episode, without the ornaments of rules."""
    record = EvaluationRecord(0, "one", trajectory.score, trajectory=trajectory)
    console = Console(file=io.StringIO(), width=100)
    print_sample(Report(BenchmarkResult.from_records("one", [record])), "one", console)
    assert isinstance(console.file, io.StringIO)
    lines = [line.replace("─", "").strip() for line in console.file.getvalue().splitlines()]
    return lines[2 : lines.index("score")]


def episode(*turns: Any) -> Trajectory[Any, Any]:
    """An episode of an observation, an action, an observation and so on."""
    steps: list[Step[Any, Any]] = [
        Step(turns[i], turns[i + 1], 0.0, turns[i + 2], i + 3 == len(turns), False, {})
        for i in range(0, len(turns) - 2, 2)
    ]
    return Trajectory(turns[0], steps, terminated=True)


def test_texts_are_what_user_and_assistant_say() -> None:
    assert shown(episode("2 + 2?", "4", "2 + 2?", "5", "the end")) == [
        *("user", "2 + 2?", "assistant, step 0, reward 0", "4"),
        *("user", "2 + 2?", "assistant, step 1, reward 0", "5", "user", "the end"),
    ]


def test_an_observation_that_is_no_message_is_shown_each_time() -> None:
    assert shown(episode([0, 1], 1, [0, 1], 0, None)) == [
        *("observation", "[0, 1]", "action, step 0, reward 0", "1"),
        *("observation", "[0, 1]", "action, step 1, reward 0", "0"),
    ]


def test_arrays_are_lists_whose_numbers_stand_side_by_side() -> None:
    ids = list(range(100, 115))
    assert shown(episode(np.array([0.5, 1.0]), np.int64(1), None)) == [
        *("observation", "[0.5, 1.0]", "action, reward 0", "1")
    ]
    assert shown(episode({"prompt": ids, "places": np.eye(5)}, 0, None))[1:9] == [
        "{",
        f'"prompt": {ids},',
        '"places": [',
        *[f"{row}," for row in np.eye(5).tolist()[:4]],
        "[0.0, 0.0, 0.0, 0.0, 1.0]",
    ]


def test_an_empty_list_is_shown_as_well() -> None:
    assert shown(episode([], [], [])) == [
        *("observation", "[]", "action, reward 0", "[]", "observation", "[]")
    ]


def test_thinking_is_told_apart_unless_an_answer_was_read_in_it() -> None:
    reply = "<think>\U0001f600 2?</think>\n\nIt is 4."
    for place, lines in {
        reply.index("4"): ["\U0001f600 2?</think>", "It is 4 [found]."],
        reply.index("2"): ["\U0001f600 2 [found]?</think>", "", "It is 4."],
    }.items():
        score = Score(1.0, None, {"span": [place, place + 1], "status": "found"})
        step: Step[Any, Any] = Step("2 + 2?", reply, 1.0, None, True, False, score.as_info())
        found = shown(Trajectory("2 + 2?", [step], terminated=True))
        assert found[3:] == [f"<think>{lines[0]}", *lines[1:]]


def test_a_growing_chat_is_shown_once() -> None:
    asked = [{"role": "user", "content": "Guess."}]
    replied = [*asked, {"role": "assistant", "content": "3"}]
    again = [*replied, {"role": "user", "content": "Higher."}]
    assert shown(
        episode(asked, "3", again, "4", [*again, {"role": "assistant", "content": "4"}])
    ) == [
        *("user", "Guess.", "assistant, step 0, reward 0", "3"),
        *("user", "Higher.", "assistant, step 1, reward 0", "4"),
    ]


def test_a_reply_that_the_environment_changed_is_shown_as_well() -> None:
    asked = [{"role": "user", "content": "Guess."}]
    after = [*asked, {"role": "assistant", "content": "three"}]
    assert shown(episode(asked, "  3  ", after)) == [
        *("user", "Guess.", "assistant, reward 0", "3", "assistant", "three")
    ]


def test_a_chat_that_was_rewritten_is_shown_whole() -> None:
    asked = [{"role": "user", "content": "A long story."}]
    shorter = [{"role": "user", "content": "A summary."}]
    assert shown(episode(asked, "Yes?", shorter, "No.", None)) == [
        *("user", "A long story.", "assistant, step 0, reward 0", "Yes?"),
        *("user", "A summary.", "assistant, step 1, reward 0", "No."),
    ]


def test_calls_are_shown_in_either_form_even_malformed_ones() -> None:
    ours = {"name": "add", "arguments": {}, "malformed": '{"a": 1', "id": "1"}
    theirs = {"id": "2", "type": "function", "function": {"name": "add", "arguments": "{}"}}
    chat = {"role": "assistant", "content": None, "tool_calls": [ours, theirs, "odd"]}
    assert shown(episode("?", chat, None))[3:] == ['-> add({"a": 1)', "-> add({})", "-> ?(odd)"]
    assert shown(episode("?", [ours], None))[3:] == ['-> add({"a": 1)']
    odd = {"role": "assistant", "content": "Done.", "tool_calls": 5}
    assert shown(episode("?", odd, None))[3:] == ["Done.", "-> ?(5)"]


def test_reasoning_and_images_are_told() -> None:
    assert shown(with_reasoning()) == [
        *("user", "What is this?"),
        "[image] data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAA…",
        "[image] https://example.org/tracker.png",
        *("assistant, reward 1, stop: stop", "[reasoning] It is very small.", "A dot."),
    ]
