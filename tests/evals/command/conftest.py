"""The command as its users run it: in a folder of their own, with a server on loopback."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from scripted_server import ScriptedServer

LAB = '''
from rolloutlib import ChatEnv, GradingWrapper, RLDataset, Score, SingleTurnEnv, spaces


class Sum(SingleTurnEnv[str, str]):
    observation_space = spaces.text.text(min_length=1)
    action_space = spaces.text.text()

    def __init__(self, item):
        super().__init__()
        self.item = item

    def initial_observation(self, *, options=None):
        return f"What is {self.item['a']} + 1?", {}

    def evaluate(self, action):
        return Score(float(str(self.item["a"] + 1) in action))

    def terminal_observation(self, action):
        return action


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


class Hello(ChatEnv):
    def __init__(self, name: str = "Ann"):
        super().__init__(f"Greet {name}.", grade=lambda chat: float(name in chat[-1]["content"]), max_turns=1)


class Tooled(ChatEnv):
    def __init__(self):
        super().__init__("What is 2 + 3?", tools=[add], grade=lambda chat: float("5" in chat[-1]["content"]))


def wrapped():
    return GradingWrapper(Tooled(), rubric=None, grader=lambda *_: 1.0, make_input=lambda *_: None)


class Odd(Hello):
    def step(self, action):
        chat, reward, *rest = super().step(action)
        return chat, "much", *rest


dataset = RLDataset([{"a": a} for a in range(6)], make_env=Sum, get_item_id=lambda item: f"sum-{item['a']}")


def make(size: int):
    return dataset.take(size)


def policy(observation):
    return "It is 4."


def grader(text, reference):
    return float(text.strip() == reference)


def lenient(text, reference):
    return float(reference in text)


def brief(record):
    return float(len(record.trajectory.actions[-1]) < 10)
'''


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty folder but for `lab.py`, without keys and servers in the environment."""
    (tmp_path / "lab.py").write_text(LAB, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setenv("COLUMNS", "200")
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    yield tmp_path
    sys.modules.pop("lab", None)


@pytest.fixture
def server() -> Iterator[ScriptedServer]:
    """A model server that answers as a test tells it."""
    with ScriptedServer() as running:
        yield running
