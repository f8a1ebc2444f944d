"""Sampling from and training on a real server, whose model is a Qwen3 of random weights."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tinker

from local_server import installed_server
from rolloutlib import Env, TrajectoryGroup, collect, spaces
from rolloutlib.rollouts import BatchedPolicy
from rolloutlib.storage import read_groups
from rolloutlib.tinker import LossName, TinkerPolicy, read_logprobs, to_datums
from rolloutlib.training import TokenSequence, assemble_rows, estimate_kl
from rolloutlib.types import Chat
from tinker_server import KEY, Server, serve

ROOT = Path(__file__).parents[2]
MAX_TOKENS = 8

pytestmark = pytest.mark.slow


class Talk(Env[Chat, str]):
    """A conversation of some turns, in which all answers are as good."""

    observation_space = spaces.messages.chat(min_length=1)
    action_space = spaces.text.text()

    def __init__(self, turns: int) -> None:
        self.turns = turns

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Chat, dict[str, Any]]:
        super().reset(seed=seed)
        self.chat: Chat = [{"role": "user", "content": "What is 1 + 2?"}]
        return self.chat, {}

    def step(self, action: str) -> tuple[Chat, float, bool, bool, dict[str, Any]]:
        again: Chat = [
            {"role": "assistant", "content": action},
            {"role": "user", "content": "And?"},
        ]
        self.chat = [*self.chat, *again]
        return self.chat, 0.0, len(self.chat) > 2 * self.turns, False, {}


@dataclass
class Trainer:
    """What a training loop holds: the weights, and a policy that samples from them."""

    client: tinker.TrainingClient
    policy: TinkerPolicy[str]

    def play(self, turns: int, *, num_rollouts: int = 8) -> list[TrajectoryGroup[int, Chat, str]]:
        batched = BatchedPolicy[Chat, str](self.policy.batch)
        return list(collect([turns], Talk, batched, num_rollouts=num_rollouts, seed=0))

    def logprobs(self, rows: Sequence[TokenSequence]) -> list[np.ndarray]:
        """What the weights make of rows; nothing is learned from them."""
        passed = self.client.forward(to_datums(rows, "cross_entropy"), "cross_entropy")
        return read_logprobs(passed.result(timeout=300))

    def learn(self, rows: Sequence[TokenSequence], loss: LossName, *, lr: float) -> None:
        passed = self.client.forward_backward(to_datums(rows, loss), loss)
        stepped = self.client.optim_step(tinker.AdamParams(learning_rate=lr))
        passed.result(timeout=300)
        stepped.result(timeout=300)

    def take_new_weights(self) -> None:
        self.policy = self.policy.with_sampler(
            self.client.save_weights_and_get_sampling_client(), version="new"
        )


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Generator[Server]:
    log = tmp_path_factory.mktemp("server") / "server.log"
    with installed_server() as setup, serve(setup, "tiny", log=log) as running:
        yield running


@pytest.fixture(scope="module")
def service(server: Server) -> tinker.ServiceClient:
    return tinker.ServiceClient(base_url=server.url, api_key=KEY)


@pytest.fixture
def trainer(server: Server, service: tinker.ServiceClient) -> Trainer:
    """A fresh adapter of the model, and a policy over it."""
    client = service.create_lora_training_client(str(server.model), rank=8, seed=0)
    trained = client.result(timeout=300)
    sampler = trained.save_weights_and_get_sampling_client()
    return Trainer(trained, TinkerPolicy(sampler, max_tokens=MAX_TOKENS, version="old"))


@pytest.mark.parametrize("turns", [1, 3])
def test_the_trainer_gives_sampled_tokens_the_logprobs_they_were_sampled_with(
    trainer: Trainer, turns: int
) -> None:
    groups = trainer.play(turns)
    rows, report = assemble_rows(groups)
    assert (report.num_rows, report.num_trained_steps, report.breaks) == (8, 8 * turns, ())
    assert all(row.num_trainable > MAX_TOKENS * (turns - 1) for row in rows)
    assert estimate_kl(rows, trainer.logprobs(rows)).max_difference < 1e-5


def test_the_policy_tells_all_that_was_sampled(trainer: Trainer) -> None:
    [group] = trainer.play(1)
    tokenizer: Any = trainer.client.get_tokenizer()
    for trajectory in group.trajectories:
        [step] = trajectory.steps
        tokens = list(step.policy_tokens or ())
        assert list(step.policy_prompt_tokens or ()) == tokenizer.apply_chat_template(
            step.observation, add_generation_prompt=True, return_dict=False
        )
        stopped = tokens[-1] == tokenizer.eos_token_id
        assert step.action == tokenizer.decode(tokens[:-1] if stopped else tokens)
        assert step.policy_stop_reason == ("stop" if stopped else "length")
        assert step.policy_version == "old"
    assert len(set(group.trajectories[0].actions + group.trajectories[1].actions)) == 2


def test_rewarded_tokens_become_likelier_and_punished_ones_less_likely(trainer: Trainer) -> None:
    signs = np.array([1.0, -1.0] * 4)
    rows, _ = assemble_rows(trainer.play(1), advantages=lambda _: signs)
    before = [np.asarray(row.logprobs)[row.loss_mask].sum() for row in rows]
    for _ in range(5):
        trainer.learn(rows, "importance_sampling", lr=5e-3)
    now = trainer.logprobs(rows)
    after = [values[row.loss_mask].sum() for row, values in zip(rows, now, strict=True)]
    changes = np.subtract(after, before)
    assert changes[signs > 0].sum() > 1
    assert changes[signs < 0].sum() < -1
    assert estimate_kl(rows, now).max_difference > 0.01

    trainer.take_new_weights()
    groups = trainer.play(1)
    assert {step.policy_version for run in groups[0].trajectories for step in run.steps} == {"new"}
    fresh, _ = assemble_rows(groups)
    assert estimate_kl(fresh, trainer.logprobs(fresh)).max_difference < 1e-5


def test_cross_entropy_falls(trainer: Trainer) -> None:
    rows, _ = assemble_rows(trainer.play(1), logprobs=False)

    def cross_entropy() -> float:
        values = trainer.logprobs(rows)
        found = [each[row.loss_mask] for row, each in zip(rows, values, strict=True)]
        return -float(np.concatenate(found).mean())

    before = cross_entropy()
    for _ in range(3):
        trainer.learn(rows, "cross_entropy", lr=5e-3)
    assert cross_entropy() < before - 0.1


def test_the_example_trains(server: Server, tmp_path: Path) -> None:
    out = tmp_path / "run"
    sizes = "--steps 2 --groups 2 --samples 4 --turns 2"
    result = subprocess.run(
        [sys.executable, ROOT / "examples/train_tinker.py", *sizes.split(), "--out", out],
        capture_output=True,
        check=False,
        encoding="utf-8",
        env={**os.environ, **server.variables},
        timeout=300,
    )
    assert result.returncode == 0, result.stderr
    assert len(re.findall("^step [12]: reward", result.stdout, re.MULTILINE)) == 2
    assert len(re.findall("^held out, ", result.stdout, re.MULTILINE)) == 2
    assert "difference of mean" in result.stdout
    groups = list(read_groups(out / "groups.jsonl"))
    assert [len(group.trajectories) for group in groups] == [4] * 4
    assert (out / "curve.png").read_bytes().startswith(b"\x89PNG")
