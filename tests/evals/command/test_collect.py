"""`rolloutlib collect`: trajectories of what a user names."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from command_line import run, says
from rolloutlib.storage import read_groups
from scripted_server import ScriptedServer, respond


def collect(server: ScriptedServer, target: str, *more: object) -> Any:
    return run("collect", target, "-m", "m", "--base-url", server.url, *more)


def test_a_data_set_becomes_a_group_an_item(server: ScriptedServer) -> None:
    server.plays(says("It is 1, or 4."))
    ended = collect(server, "lab:dataset", "--num-rollouts", 3, "--limit", 4)
    assert ended.code == 0, ended.err
    assert "mean reward 0.5 over 12 episodes" in ended.out
    [path] = Path("runs").iterdir()
    assert path.name.startswith("dataset-trajectories-m-")
    groups = {group.item_id: group for group in read_groups(path)}
    assert set(groups) == {"sum-0", "sum-1", "sum-2", "sum-3"}
    assert groups["sum-3"].item == {"a": 3}
    assert groups["sum-3"].rewards == (1.0, 1.0, 1.0)
    assert groups["sum-0"].metadata == {"model": "m", "sampling": {}}


@pytest.mark.parametrize(
    ("target", "more", "prompt"),
    [
        ("lab:Hello", [], "Greet Ann."),
        ("lab:Hello", ["-a", "name=Bob"], "Greet Bob."),
        ("lab.py:Hello", [], "Greet Ann."),
        ("lab:make", ["-a", "size=1"], "What is 0 + 1?"),
        ("gsm8k", ["-a", "dataset=items.jsonl"], "What is 6 times 7?"),
        ("lab:Sum", ["--items", "numbers.jsonl"], "What is 8 + 1?"),
    ],
)
def test_environments_functions_benchmarks_and_items_are_played(
    server: ScriptedServer, folder: Path, target: str, more: list[str], prompt: str
) -> None:
    (folder / "items.jsonl").write_text('{"question": "What is 6 times 7?", "answer": "42"}')
    (folder / "numbers.jsonl").write_text('{"a": 8}\n')
    server.plays(says("Hello."))
    ended = collect(server, target, *more, "--json")
    assert ended.code == 0, ended.err
    assert (ended.json["requested"], ended.json["completed"], ended.json["failed"]) == (1, 1, 0)
    assert server.received[0].body["messages"][-1]["content"] == prompt


@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
def test_lines_of_items_end_at_line_ends_alone(
    server: ScriptedServer, folder: Path, mark: bytes
) -> None:
    names = ["Ann\u2028Lee", "Bob\x85", "Eve\u2029"]
    lines = "\r\n".join(json.dumps(name, ensure_ascii=False) for name in names)
    (folder / "names.jsonl").write_bytes(mark + lines.encode())
    server.plays(says("Hello."))
    ended = collect(server, "lab:Hello", "--items", "names.jsonl", "--log", "our groups.jsonl")
    assert ended.code == 0, ended.err
    assert {group.item for group in read_groups("our groups.jsonl")} == set(names)
    assert "rolloutlib show 'our groups.jsonl' --samples" in ended.err  # to be pasted


def test_the_same_command_plays_only_what_is_missing(server: ScriptedServer) -> None:
    server.plays(says("It is 1."))
    first = collect(server, "lab:dataset", "--num-rollouts", 2, "--json", "--log", "a.jsonl")
    lines = Path("a.jsonl").read_text(encoding="utf-8").splitlines(keepends=True)
    Path("a.jsonl").write_text("".join(lines[:5]), encoding="utf-8")
    before = len(server.received)
    again = collect(server, "lab:dataset", "--num-rollouts", 2, "--json", "--log", "a.jsonl")
    assert "which has 4 groups\n" in again.err
    assert len(server.received) == before + 4
    assert again.json == first.json


def test_items_of_models_are_kept_as_data_and_gone_on_with(
    server: ScriptedServer, folder: Path
) -> None:
    (folder / "items.jsonl").write_text('{"question": "What is 6 times 7?", "answer": "42"}')
    server.plays(says("The answer is 42."))
    for _ in range(2):
        ended = collect(server, "gsm8k", "-a", "dataset=items.jsonl", "--log", "a.jsonl", "--json")
        assert ended.json["mean_reward"] == 1.0
    [group] = read_groups("a.jsonl")
    assert group.item["question"] == "What is 6 times 7?"
    assert len(server.received) == 1


def test_token_ids_are_kept_where_they_are_asked_for(server: ScriptedServer) -> None:
    choice = {
        "index": 0,
        "message": {"role": "assistant", "content": "It is 1."},
        "finish_reason": "stop",
        "token_ids": [5, 6],
    }
    reply = {"id": "1", "model": "m", "choices": [choice], "prompt_token_ids": [1, 2, 3]}
    server.plays(respond(reply))
    ended = collect(server, "lab:Hello", "--tokens", "--json", "--log", "a.jsonl")
    assert ended.json["tokens"] == 2
    [group] = read_groups("a.jsonl")
    assert group.trajectories[0].steps[0].policy_tokens == [5, 6]


def test_failures_are_counted_and_all_of_them_end_with_1(server: ScriptedServer) -> None:
    no = respond({"error": {"message": "overloaded"}}, 500)
    server.plays(says("It is 1."), no)
    ended = collect(server, "lab:dataset", "-c", 1, "--max-retries", 0, "--json")
    assert (ended.code, ended.json["completed"], ended.json["failed"]) == (0, 1, 5)
    server.plays(no)
    ended = collect(server, "lab:dataset", "--max-retries", 0, "--json", "--log", "b.jsonl")
    assert (ended.code, ended.json["failed"]) == (1, 6)
    assert "all of 6 episodes failed" in ended.err
