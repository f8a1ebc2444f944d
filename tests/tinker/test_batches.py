"""Several samples of one prompt in one request, and several prompts at the same time."""

from __future__ import annotations

import threading
from typing import Any

import pytest
import tinker

from cookbook_renderers import Turns
from rolloutlib.envs import AsyncChatEnv, ChatEnv
from rolloutlib.rollouts import (
    AsyncBatchedPolicy,
    BatchedPolicy,
    PolicyOutput,
    arollout_group,
    collect,
    rollout_group,
)
from rolloutlib.tinker import AsyncTinkerPolicy, RequestRefusedError, TinkerPolicy
from tinker_stub import Reply, Sampled, TinkerStub, first


def sizes(stub: TinkerStub) -> list[int]:
    return [asked["num_samples"] for asked in stub.received]


def answered(*entries: PolicyOutput[Any] | Exception) -> list[PolicyOutput[Any]]:
    for entry in entries:
        if isinstance(entry, Exception):
            raise entry
    return [entry for entry in entries if not isinstance(entry, Exception)]


def test_equal_prompts_are_one_request(stub: TinkerStub, sampler: Any) -> None:
    stub.say([5, 1], [6, 1], [7, 1], [8, 1])
    policy = TinkerPolicy(sampler, max_tokens=10)
    outputs = answered(
        *policy.batch(["hello", "there", "hello", [3]], seeds=[1, 2, 3, 4], steps=[0] * 4)
    )
    assert sorted(sizes(stub)) == [1, 1, 2]
    assert {output.tokens for output in outputs} == {(5, 1), (6, 1), (7, 1), (8, 1)}
    assert outputs[0].info["seed"] == outputs[2].info["seed"]
    assert (outputs[0].info["sample"], outputs[2].info["sample"]) == (0, 1)
    assert outputs[0].info["num_samples"] == 2
    assert "usage" in outputs[0].info
    assert "usage" not in outputs[2].info
    assert outputs[0].info["usage"]["completion_tokens"] == 4
    assert "sample" not in outputs[1].info


@pytest.mark.parametrize("name", ["seeds", "steps"])
@pytest.mark.parametrize("numbers", [[], [1], [1, 2, 3]])
def test_as_many_seeds_and_steps_as_observations_are_wanted(
    stub: TinkerStub, sampler: Any, name: str, numbers: list[int]
) -> None:
    given: dict[str, Any] = {name: numbers}
    with pytest.raises(ValueError, match=rf"{name} must .* of 2 observations, got {len(numbers)}"):
        TinkerPolicy(sampler, max_tokens=10).batch(["hello", "there"], **given)
    assert not stub.received


def test_a_group_is_one_request_at_its_first_step(stub: TinkerStub, sampler: Any) -> None:
    policy = TinkerPolicy(sampler, max_tokens=10)
    group = rollout_group(
        1, lambda _: ChatEnv("hello"), BatchedPolicy(policy.batch), num_rollouts=5, seed=1
    )
    assert (group.num_completed, sizes(stub)) == (5, [5])
    assert len({trajectory.seed for trajectory in group.trajectories}) == 5


@pytest.mark.anyio
async def test_a_group_in_a_loop_is_one_request_too(stub: TinkerStub, sampler: Any) -> None:
    policy = AsyncTinkerPolicy(sampler, max_tokens=10, version=2)
    async with AsyncBatchedPolicy(policy.batch, max_size=5, max_wait=20) as batched:
        group = await arollout_group(
            1, lambda _: AsyncChatEnv("hello"), batched, num_rollouts=5, concurrency=5, seed=1
        )
    assert (group.num_completed, sizes(stub)) == (5, [5])
    assert {trajectory.steps[0].policy_version for trajectory in group.trajectories} == {2}


def test_groups_of_many_items_are_collected(stub: TinkerStub, sampler: Any) -> None:
    policy = TinkerPolicy(sampler, max_tokens=10, version=2)
    collected = collect(["hello", "there"], ChatEnv, policy, num_rollouts=3, seed=1)
    assert [group.num_completed for group in collected] == [3, 3]


def test_a_server_that_gives_fewer_samples_is_asked_again(stub: TinkerStub, sampler: Any) -> None:
    stub.sample = lambda body: [Sampled([len(stub.received), 1])] * min(2, body["num_samples"])
    policy = TinkerPolicy(sampler, max_tokens=10)
    outputs = answered(*policy.batch(["hello"] * 5))
    assert sizes(stub) == [5, 3, 1]
    assert [output.tokens for output in outputs] == [(1, 1), (1, 1), (2, 1), (2, 1), (3, 1)]


@pytest.mark.anyio
async def test_the_asynchronous_policy_asks_again_too(stub: TinkerStub, sampler: Any) -> None:
    stub.sample = lambda body: [Sampled([len(stub.received), 1])] * min(2, body["num_samples"])
    policy = AsyncTinkerPolicy(sampler, max_tokens=10)
    outputs = answered(*await policy.batch(["hello"] * 5))
    assert sizes(stub) == [5, 3, 1]
    assert [output.tokens for output in outputs] == [(1, 1), (1, 1), (2, 1), (2, 1), (3, 1)]


def test_a_request_is_for_no_more_than_max_samples(stub: TinkerStub, sampler: Any) -> None:
    policy = TinkerPolicy(sampler, max_tokens=10, max_samples=2)
    assert len(answered(*policy.batch(["hello"] * 5))) == 5
    assert sorted(sizes(stub)) == [1, 2, 2]


def test_different_prompts_are_asked_at_the_same_time(stub: TinkerStub, sampler: Any) -> None:
    stub.meet(3)
    policy = TinkerPolicy(sampler, max_tokens=10)
    assert len(answered(*policy.batch([[5], [6], [7]]))) == 3


@pytest.mark.anyio
async def test_different_prompts_are_asked_at_the_same_time_in_a_loop(
    stub: TinkerStub, sampler: Any
) -> None:
    stub.meet(3)
    policy = AsyncTinkerPolicy(sampler, max_tokens=10)
    assert len(answered(*await policy.batch([[5], [6], [7]]))) == 3


def test_an_error_is_for_its_own_prompt_alone(stub: TinkerStub, sampler: Any) -> None:
    stub.asample = first(Reply(422, {"detail": "no"}))
    policy = TinkerPolicy(sampler, max_tokens=10)
    wrong: Any = 5
    refused = policy.batch([[5]])
    entries = policy.batch([[5], wrong, [6]])
    assert [type(entry) for entry in refused] == [RequestRefusedError]
    assert [type(entry) for entry in entries] == [PolicyOutput, TypeError, PolicyOutput]


def test_what_a_renderer_refuses_is_for_its_own_prompt_alone(sampler: Any, tokenizer: Any) -> None:
    class Choosy(Turns):
        def build_generation_prompt(
            self, messages: list[Any], role: str = "assistant", prefill: str | None = None
        ) -> tinker.ModelInput:
            assert messages[0]["content"] != "wrong"
            return super().build_generation_prompt(messages, role, prefill)

    policy = TinkerPolicy(sampler, max_tokens=10, renderer=Choosy(tokenizer))
    entries = policy.batch(["hello", "wrong", "hello"])
    assert [type(entry) for entry in entries] == [PolicyOutput, AssertionError, PolicyOutput]


def test_an_empty_batch_asks_nothing(stub: TinkerStub, sampler: Any) -> None:
    assert TinkerPolicy(sampler, max_tokens=10).batch([]) == []
    assert stub.received == []


def test_threads_share_a_policy(stub: TinkerStub, sampler: Any) -> None:
    policy = TinkerPolicy(sampler, max_tokens=10)
    outputs: list[PolicyOutput[str]] = []
    threads = [threading.Thread(target=lambda: outputs.append(policy("hello"))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(outputs) == 8
