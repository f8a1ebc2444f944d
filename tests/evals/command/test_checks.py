"""`rolloutlib check`: environments, policies and graders."""

from __future__ import annotations

from pathlib import Path

import pytest

from command_line import run


@pytest.mark.parametrize("target", ["lab:dataset", "lab:Hello", "lab:Tooled"])
def test_environments_are_checked_one_by_one(target: str) -> None:
    ended = run("check", target, "--no-faults", "--json")
    assert ended.code == 0, ended.out
    assert (ended.json["kind"], ended.json["is_passed"]) == ("environment", True)
    assert len(ended.json["passed"]) == (3 if target == "lab:dataset" else 1)


def test_a_benchmark_of_a_distribution_is_checked_by_its_full_name(folder: Path) -> None:
    (folder / "items.jsonl").write_text('{"question": "2 + 2?", "answer": "4"}', encoding="utf-8")
    more = ("-a", "dataset=items.jsonl", "--no-faults")
    assert run("check", "rolloutlib-evals:gsm8k", *more).code == 0


def test_an_environment_that_breaks_its_contract_ends_with_1() -> None:
    ended = run("check", "lab:Odd")
    assert ended.code == 1
    assert "problem" in ended.out
    assert "reward of step() 0 must be a real number, got 'much'" in ended.out
    found = run("check", "lab:Odd", "--json").json
    assert not found["is_passed"]
    assert found["passed"] == []


def test_an_environment_that_only_warns_is_a_problem_too(folder: Path) -> None:
    text = (folder / "lab.py").read_text(encoding="utf-8")
    text += """
import random


class Loose(Hello):
    def reset(self, *, seed=None, options=None):
        chat, info = super().reset(seed=seed, options=options)
        return chat, {"luck": random.random()}
"""
    (folder / "loose.py").write_text(text, encoding="utf-8")
    ended = run("check", "loose:Loose", "--no-faults")
    assert ended.code == 1
    assert "two episodes from seed 0 differ" in ended.out


FLAWED = """
from lab import *


class Reset(Hello):
    def reset(self, *, seed=None, options=None):
        raise RuntimeError("no reset")


class Leave(Hello):
    def grade(self, chat):
        raise SystemExit(0)


class Close(Hello):
    def close(self):
        raise RuntimeError("no close")


dataset = RLDataset([1], make_env=lambda item: item["name"])


def number(observation):
    return 42


def stranger(observation):
    return {"role": "assistant", "content": "", "tool_calls": [{"name": "no", "arguments": {}}]}


def raising(observation):
    raise LookupError("no answer")
"""


@pytest.mark.parametrize(
    ("target", "words"),
    [
        ("flawed:Reset", "environment of item 0: RuntimeError: no reset"),
        ("flawed:Close", "close() of the environment of item 0: RuntimeError: no close"),
        ("flawed:Leave", "environment of item 0: SystemExit: 0"),
        ("flawed:dataset", "environment of item 0: TypeError: 'int' object"),
        ("flawed:raising", "policy: LookupError: no answer"),
        ("flawed:number", "policy: action 0 is not in ReplySpace(Toolset([])), got 42"),
        ("flawed:stranger", "policy: action 0 is not in ReplySpace(Toolset([]))"),
    ],
)
def test_what_raises_or_does_what_it_must_not_is_a_problem(
    folder: Path, target: str, words: str
) -> None:
    (folder / "flawed.py").write_text(FLAWED, encoding="utf-8")
    ended = run("check", target, "--no-faults", "--json")
    assert ended.code == 1
    assert ended.json["problems"][0].startswith(words)
    assert "Traceback" in run("check", "flawed:Reset", "--debug").err


@pytest.mark.slow
def test_faults_are_part_of_the_check() -> None:
    found = run("check", "lab:Hello", "--json").json
    assert found["passed"][-1].startswith("faults: ")


def test_an_asynchronous_environment_is_checked_too(folder: Path) -> None:
    text = (folder / "lab.py").read_text(encoding="utf-8")
    text = text.replace("ChatEnv", "AsyncChatEnv")
    (folder / "asynchronous.py").write_text(text, encoding="utf-8")
    assert run("check", "asynchronous:Hello", "--no-faults").code == 0


@pytest.mark.parametrize(
    ("more", "num_passed"),
    [
        pytest.param([], 2, marks=pytest.mark.slow),
        (["--as", "policy", "--env", "lab:Hello", "--no-faults"], 1),
    ],
)
def test_a_function_of_an_observation_is_a_policy(more: list[str], num_passed: int) -> None:
    found = run("check", "lab:policy", *more, "--json").json
    assert (found["kind"], found["is_passed"]) == ("policy", True)
    assert len(found["passed"]) == num_passed


@pytest.mark.parametrize(("target", "code"), [("lab:grader", 0), ("lab:lenient", 1)])
def test_a_function_of_text_and_reference_is_a_grader(folder: Path, target: str, code: int) -> None:
    case = '{"prompt": "What is 6 * 7?", "reference": "42", "answer": "42"}\n'
    (folder / "cases.jsonl").write_text(case, encoding="utf-8")
    ended = run("check", target, "--cases", "cases.jsonl", "--json")
    assert ended.code == code
    assert ended.json["kind"] == "grader"
    if code:
        assert "hostile" in ended.json["problems"][0]


def test_cases_that_lack_something_are_refused(folder: Path) -> None:
    (folder / "cases.jsonl").write_text('{"prompt": "What is 6 * 7?"}\n', encoding="utf-8")
    ended = run("check", "lab:grader", "--cases", "cases.jsonl")
    assert ended.code == 2
    assert "case 1 of 'cases.jsonl' must be an object of answer, prompt, reference" in ended.err
