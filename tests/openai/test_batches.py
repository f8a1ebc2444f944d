"""Batches: equal prompts in one request, the others beside each other."""

from __future__ import annotations

import threading
from typing import Any

import anyio
import pytest

from rolloutlib import acollect
from rolloutlib.envs import AsyncChatEnv, ChatEnv
from rolloutlib.openai import AsyncChatPolicy, ChatPolicy, RequestRefusedError
from rolloutlib.rollouts import (
    AsyncBatchedPolicy,
    BatchedPolicy,
    EpisodeTruncated,
    PolicyOutput,
    derive_seed,
    rollout_group,
)
from scripted_server import Behaviour, ScriptedServer, respond


def choices(*texts: str) -> Behaviour:
    return respond(
        {
            "choices": [{"message": {"content": text}} for text in texts],
            "usage": {"completion_tokens": 10 * len(texts)},
        }
    )


def read(entry: PolicyOutput[Any] | Exception) -> Any:
    return entry if isinstance(entry, Exception) else entry.action


def test_a_group_is_one_request_at_its_first_step(server: ScriptedServer) -> None:
    server.plays(choices("a", "b", "c"))
    with ChatPolicy("m", base_url=server.url) as policy:
        group = rollout_group("Hi", ChatEnv, BatchedPolicy(policy.batch), num_rollouts=3, seed=7)
    assert [trajectory.actions for trajectory in group.trajectories] == [("a",), ("b",), ("c",)]
    [request] = server.received
    assert request.body["n"] == 3
    steps = [trajectory.steps[0] for trajectory in group.trajectories]
    first = group.trajectories[0].seed
    assert first is not None
    assert {step.policy_info["seed"] for step in steps} == {derive_seed(0, first, 0)}
    assert request.body["seed"] == derive_seed(0, first, 0)
    assert [step.policy_info["sample"] for step in steps] == [0, 1, 2]
    # A sum over the steps counts each token once.
    told = [step.policy_info.get("usage") for step in steps]
    assert told == [{"completion_tokens": 30}, None, None]


@pytest.mark.parametrize("name", ["seeds", "steps"])
@pytest.mark.parametrize("numbers", [[], [1], [1, 2, 3]])
def test_as_many_seeds_and_steps_as_observations_are_wanted(
    server: ScriptedServer, name: str, numbers: list[int]
) -> None:
    given: dict[str, Any] = {name: numbers}
    with (
        ChatPolicy("m", base_url=server.url) as policy,
        pytest.raises(ValueError, match=rf"{name} must .* of 2 observations, got {len(numbers)}"),
    ):
        policy.batch(["Hi", "Ho"], **given)
    assert not server.received


def test_a_server_that_gives_one_sample_is_asked_again(server: ScriptedServer) -> None:
    server.plays(choices("a"), choices("b", "c"))
    with ChatPolicy("m", base_url=server.url) as policy:
        entries = policy.batch(["Hi"] * 3, seeds=[1, 2, 3], steps=[0, 0, 0])
    assert [read(entry) for entry in entries] == ["a", "b", "c"]
    seeds = [(one.body["seed"], one.body["n"]) for one in server.received]
    assert seeds == [(derive_seed(0, 1, 0), 3), (derive_seed(0, 2, 0), 2)]


def test_a_sample_that_broke_off_is_asked_for_again_alone(server: ScriptedServer) -> None:
    broken = {"message": {"content": "b"}, "finish_reason": "error"}
    whole = [{"message": {"content": text}, "finish_reason": "stop"} for text in "ac"]
    reply = {"choices": [whole[0], broken, whole[1]]}
    server.plays(respond(reply), choices("d"))
    with ChatPolicy("m", base_url=server.url) as policy:
        entries = policy.batch(["Hi"] * 3)
    assert [read(entry) for entry in entries] == ["a", "c", "d"]
    assert [one.body.get("n") for one in server.received] == [3, None]


def test_a_request_is_for_no_more_than_max_samples(server: ScriptedServer) -> None:
    server.plays(choices("a", "b"))
    with ChatPolicy("m", base_url=server.url, max_samples=2) as policy:
        policy.batch(["Hi"] * 5)
    assert sorted(one.body.get("n", 1) for one in server.received) == [1, 2, 2]


@pytest.fixture
def meeting(server: ScriptedServer) -> ScriptedServer:
    """Answers three requests once all of them are there, each with what it was asked."""
    there = threading.Barrier(3, timeout=20)

    def behave(connection: Any) -> bool:
        mine = server.received[
            -1
        ]  # only to have an answer; checked by the entries' order elsewhere
        there.wait()
        return choices(mine.path)(connection)

    server.plays(behave)
    return server


def test_different_prompts_are_asked_at_the_same_time(meeting: ScriptedServer) -> None:
    with ChatPolicy("m", base_url=meeting.url, max_retries=0) as policy:
        entries = policy.batch(["a", "b", "c"])
    assert [read(entry) for entry in entries] == ["/v1/chat/completions"] * 3


@pytest.mark.anyio
async def test_different_prompts_are_asked_at_the_same_time_in_a_loop(
    meeting: ScriptedServer,
) -> None:
    policy = AsyncChatPolicy("m", base_url=meeting.url, max_retries=0)
    entries = await policy.batch(["a", "b", "c"])
    assert [read(entry) for entry in entries] == ["/v1/chat/completions"] * 3


def test_an_error_is_for_its_own_prompt_alone(server: ScriptedServer) -> None:
    def behave(connection: Any) -> bool:
        [message] = server.received[-1].body["messages"]
        if message["content"] == "long":
            return respond({"error": {"message": "maximum context length"}}, 400)(connection)
        if message["content"] == "wrong":
            return respond({"error": {"message": "no"}}, 400)(connection)
        return choices("fine")(connection)

    server.plays(behave)
    wrong: Any = 5
    with ChatPolicy("m", base_url=server.url) as policy:
        found = [policy.batch([shown])[0] for shown in ("long", "wrong", wrong, "good")]
        assert policy.batch([]) == []
    assert [type(read(one)) for one in found] == [
        EpisodeTruncated,
        RequestRefusedError,
        TypeError,
        str,
    ]


@pytest.mark.anyio
async def test_concurrent_episodes_of_an_item_share_requests(server: ScriptedServer) -> None:
    server.plays(choices("a", "b", "c", "d"))
    policy = AsyncChatPolicy("m", base_url=server.url)
    async with (
        AsyncBatchedPolicy(policy.batch, max_size=4, max_wait=20) as batched,
        acollect(["Hi"], AsyncChatEnv, batched, num_rollouts=4, concurrency=4) as groups,
    ):
        [group] = [group async for group in groups]
    assert [one.body["n"] for one in server.received] == [4]
    assert {str(t.actions[0]) for t in group.trajectories} == {"a", "b", "c", "d"}


@pytest.mark.anyio
async def test_as_many_connections_are_open_as_calls_are_made(server: ScriptedServer) -> None:
    size = 120  # more than the HTTP library opens by default
    there = threading.Barrier(size, timeout=20)

    def behave(connection: Any) -> bool:
        there.wait()
        return choices("a")(connection)

    server.plays(behave)
    policy = AsyncChatPolicy("m", base_url=server.url, max_retries=0)
    async with anyio.create_task_group() as tasks:
        for _ in range(size):
            tasks.start_soon(policy, "Hi")
    assert {one.connection for one in server.received} == set(range(1, size + 1))


@pytest.mark.anyio
async def test_max_connections_bounds_how_many_are_open(server: ScriptedServer) -> None:
    server.plays(choices("a"))
    policy = AsyncChatPolicy("m", base_url=server.url, max_connections=3)
    async with policy, anyio.create_task_group() as tasks:
        for _ in range(30):
            tasks.start_soon(policy, "Hi")
    assert len(server.received) == 30
    assert len({one.connection for one in server.received}) <= 3
