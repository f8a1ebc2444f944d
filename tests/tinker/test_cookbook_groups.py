"""Environments of ours as tinker-cookbook plays them."""

from __future__ import annotations

import math
import pickle
import threading
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any

import anyio
import anyio.lowlevel
import anyio.to_thread
import numpy as np
import pytest
import tinker

import cookbook
from rolloutlib import (
    AsyncEnv,
    Env,
    PolicyOutput,
    Score,
    Trajectory,
    TrajectoryGroup,
    arollout_group,
)
from rolloutlib.datasets import RLDataset
from rolloutlib.envs import AsyncChatEnv
from rolloutlib.rollouts import EpisodeTruncated, derive_seed
from rolloutlib.tinker import (
    ChatTemplateRenderer,
    CookbookDataset,
    CookbookEnv,
    CookbookGroupBuilder,
)

pytestmark = pytest.mark.anyio

PlayGroup = Callable[[Any, Sequence[cookbook.Completer]], Awaitable[cookbook.Group]]
versions = pytest.mark.parametrize("play_group", [cookbook.play_group_first, cookbook.play_group])
kinds = pytest.mark.parametrize("adapt", ["sync", "async"])


class Riddle(Env[list[dict[str, str]], str]):
    """Two turns; a reward of 1/4 for each right one, but a score of its own at the end."""

    def __init__(self, item: dict[str, Any]) -> None:
        self.item = item
        self.log: list[str] = []
        self.num_closed = 0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        super().reset(seed=seed)
        self.log.append(f"{seed} {options}")
        self.chat = [{"role": "user", "content": self.item["question"]}]
        return self.chat, {}

    def step(self, action: str) -> Any:
        self.log.append(action)
        self.item["seen"] = True  # which no other member may see
        right = action == self.item["answer"]
        done = len(self.chat) > 2
        self.chat += [
            {"role": "assistant", "content": action},
            {"role": "user", "content": "right" if right else "wrong"},
        ]
        info: dict[str, Any] = {"length": len(action), "remark": "so", "parts": [1]}
        info |= {"numpy": np.float32(0.5), "flag": np.True_}  # numbers too
        info |= {"endless": math.inf, "huge": 10**400}  # with no mean
        if done:
            info |= Score(float(right), {"form": 0.5}).as_info()
        return self.chat, right / 4, done, False, info

    def close(self) -> None:
        self.num_closed += 1


class AsyncRiddle(AsyncEnv[list[dict[str, str]], str]):
    def __init__(self, item: dict[str, Any]) -> None:
        self.riddle = Riddle(item)

    async def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        return self.riddle.reset(seed=seed, options=options)

    async def step(self, action: str) -> Any:
        return self.riddle.step(action)

    async def close(self) -> None:
        self.riddle.close()


ITEM = {"question": "say hello", "answer": "hello"}


class Maker:
    """Makes environments, and knows them."""

    def __init__(self, kind: Callable[[Any], Any], adapt: str = "sync") -> None:
        self.kind = kind
        self.adapt = adapt
        self.made: list[Riddle] = []

    def __call__(self, item: Any) -> Any:
        if self.adapt == "sync":
            self.made.append(self.kind(item))
            return self.made[-1]
        return self.amake(item)

    async def amake(self, item: Any) -> Any:
        env = AsyncRiddle(item)
        env.riddle = self.kind(item)
        self.made.append(env.riddle)
        return env


class Talker:
    """A model that answers by a script, as a completer of the cookbook's."""

    def __init__(self, tokenizer: Any, *answers: str) -> None:
        self.tokens = [tokenizer.encode(answer) for answer in answers]
        self.prompts: list[list[int]] = []
        self.stops: list[Any] = []

    async def __call__(self, prompt: tinker.ModelInput, stop: Any) -> cookbook.Sampled:
        await anyio.lowlevel.checkpoint()
        tokens = self.tokens[len(self.prompts)]
        self.prompts.append(prompt.to_ints())
        self.stops.append(stop)
        return cookbook.Sampled(tokens, [-1.0] * len(tokens))


@pytest.fixture
def renderer(tokenizer: Any) -> ChatTemplateRenderer:
    return ChatTemplateRenderer(tokenizer)


def talkers(tokenizer: Any) -> list[Talker]:
    return [
        Talker(tokenizer, "hello<|im_end|>", "hello<|im_end|>"),
        Talker(tokenizer, "hello<|im_end|>", "no<|endoftext|>"),
    ]


@versions
@kinds
async def test_a_group_is_played_as_by_a_rollout_of_ours(
    play_group: PlayGroup, adapt: str, tokenizer: Any, renderer: Any
) -> None:
    maker, policies = Maker(Riddle, adapt), talkers(tokenizer)
    builder = CookbookGroupBuilder(
        ITEM, maker, renderer, num_rollouts=2, item_id="i", seed=7, options={"level": 1}
    )
    played = await play_group(builder, policies)

    ours = Maker(Riddle)
    answers = iter(["hello", "hello", "hello", "no"])
    group = await arollout_group(
        ITEM,
        ours,
        lambda _: next(answers),
        num_rollouts=2,
        item_id="i",
        seed=7,
        options={"level": 1},
        concurrency=1,
    )
    assert played.total_rewards == list(group.rewards) == [1, 0]
    assert sorted(env.log for env in maker.made) == sorted(env.log for env in ours.made)
    assert [env.num_closed for env in maker.made] == [1, 1]
    assert "seen" not in ITEM
    for episode, trajectory in zip(played.transitions, group.trajectories, strict=True):
        assert [each.reward for each in episode] == list(trajectory.rewards)
        assert [each.episode_done for each in episode] == [False, True]


@versions
async def test_prompts_go_on_from_the_very_tokens(
    play_group: PlayGroup, tokenizer: Any, renderer: Any
) -> None:
    # Other tokens than the tokenizer's own for this text.
    spelled = [token for letter in "hello" for token in tokenizer.encode(letter)]
    policy = Talker(tokenizer, "", "hello<|im_end|>")
    policy.tokens[0] = [*spelled, *tokenizer.encode("<|im_end|>")]
    assert spelled != tokenizer.encode("hello")
    builder = CookbookGroupBuilder(ITEM, Maker(Riddle), renderer, num_rollouts=1)
    await play_group(builder, [policy])
    first, second = policy.prompts
    assert second[: len(first) + len(policy.tokens[0])] == [*first, *policy.tokens[0]]
    assert policy.stops == [renderer.get_stop_sequences()] * 2


async def test_what_a_step_tells_is_logged(tokenizer: Any, renderer: Any) -> None:
    builder = CookbookGroupBuilder(ITEM, Maker(Riddle), renderer, num_rollouts=2, tags=["riddle"])
    played = await cookbook.play_group(builder, talkers(tokenizer))
    first, last = played.transitions[0]
    numbers = {"length": 5, "numpy": 0.5, "flag": 1}
    assert first.metrics == {"malformed": 0, **numbers}
    assert last.metrics == {
        "malformed": 0,
        **numbers,
        "score": 1,
        "score/form": 0.5,
        "truncated": 0,
    }
    assert first.logs == {"remark": "so"}
    assert builder.logging_tags() == ["riddle"]


async def test_malformed_answers_are_played_and_counted(tokenizer: Any, renderer: Any) -> None:
    maker = Maker(Riddle)
    builder = CookbookGroupBuilder(ITEM, maker, renderer, num_rollouts=1)
    policy = Talker(tokenizer, "hello", "hello<|im_end|>")
    [[first, second]] = (await cookbook.play_group(builder, [policy])).transitions
    assert [first.metrics["malformed"], second.metrics["malformed"]] == [1, 0]
    assert maker.made[0].log[1:] == ["hello", "hello"]


async def test_an_answer_that_was_cut_off_is_not_malformed(tokenizer: Any, renderer: Any) -> None:
    env = CookbookEnv(partial(Riddle, dict(ITEM)), renderer)
    await env.initial_observation()
    step = await env.step(tokenizer.encode("hello"), extra={"stop_reason": "length"})
    assert step.metrics["malformed"] == 0
    record = env.trajectory
    assert record is not None
    assert record.steps[0].policy_finish == "length"
    await env.close()


@versions
async def test_a_group_grader_gives_the_rewards(
    play_group: PlayGroup, tokenizer: Any, renderer: Any
) -> None:
    async def grade(group: TrajectoryGroup[Any, Any, Any]) -> list[Score]:
        assert group.item == ITEM
        assert group.item_id == "i"
        lengths = [sum(map(len, each.actions)) for each in group.trajectories]
        return [Score(float(length == max(lengths)), {"length": length}) for length in lengths]

    builder = CookbookGroupBuilder(
        ITEM, Maker(Riddle), renderer, num_rollouts=2, item_id="i", grade_group=grade
    )
    played = await play_group(builder, talkers(tokenizer))
    assert played.total_rewards == [1, 0]
    assert played.metrics == [
        {"score": 1, "score/length": 10},
        {"score": 0, "score/length": 7},
    ]


async def test_a_group_grader_that_miscounts_is_refused(tokenizer: Any, renderer: Any) -> None:
    def grade(group: TrajectoryGroup[Any, Any, Any]) -> list[float]:
        return [1.0]

    builder = CookbookGroupBuilder(ITEM, Maker(Riddle), renderer, num_rollouts=2, grade_group=grade)
    with pytest.raises(ValueError, match="one score an episode: got 1 for 2"):
        await cookbook.play_group(builder, talkers(tokenizer))


async def test_what_the_cookbook_gave_up_is_graded_as_far_as_it_came(
    tokenizer: Any, renderer: Any
) -> None:
    def grade(group: TrajectoryGroup[Any, Any, Any]) -> list[float]:
        return [float(len(each.steps)) for each in group.trajectories]

    builder = CookbookGroupBuilder(ITEM, Maker(Riddle), renderer, num_rollouts=2, grade_group=grade)
    unbegun, begun = await builder.make_envs()
    await begun.initial_observation()
    await begun.step(tokenizer.encode("hello<|im_end|>"))
    await builder.cleanup()
    rewards = await builder.compute_group_rewards([None, None], [unbegun, begun])
    assert rewards == [(0, {}), (1 - 0.25, {"score": 1})]


@versions
async def test_an_episode_may_be_cut_short(
    play_group: PlayGroup, tokenizer: Any, renderer: Any
) -> None:
    maker = Maker(Riddle)
    builder = CookbookGroupBuilder(ITEM, maker, renderer, num_rollouts=2, max_steps=1)
    played = await play_group(builder, talkers(tokenizer))
    assert [episode[0].metrics["truncated"] for episode in played.transitions] == [1, 1]
    assert played.total_rewards == [0.25, 0.25]
    assert [env.num_closed for env in maker.made] == [1, 1]


class Outgrown(Riddle):
    def step(self, action: str) -> Any:
        if len(self.log) == 2:
            raise EpisodeTruncated("the chat is too long")
        return super().step(action)


async def test_an_environment_may_end_its_episode_as_truncated(
    tokenizer: Any, renderer: Any
) -> None:
    maker = Maker(Outgrown)
    builder = CookbookGroupBuilder(ITEM, maker, renderer, num_rollouts=2)
    played = await cookbook.play_group(builder, talkers(tokenizer))
    last = played.transitions[0][-1]
    assert (last.episode_done, last.reward, last.metrics["truncated"]) == (True, 0, 1)
    assert last.logs == {"truncated_by": "the chat is too long"}
    assert played.total_rewards == [0.25, 0.25]
    assert [env.num_closed for env in maker.made] == [1, 1]


class Breaking(Riddle):
    """Fails in its second step, and again when it is closed."""

    def step(self, action: str) -> Any:
        if len(self.log) == 2:
            raise LookupError("no second turn")
        return super().step(action)

    def close(self) -> None:
        super().close()
        raise OSError("cannot close")


@kinds
async def test_errors_come_out_as_they_are_and_close_once(
    adapt: str, tokenizer: Any, renderer: Any
) -> None:
    maker = Maker(Breaking, adapt)
    builder = CookbookGroupBuilder(ITEM, maker, renderer, num_rollouts=2)
    with pytest.raises(LookupError, match="no second turn") as raised:
        await cookbook.play_group(builder, talkers(tokenizer))
    assert "closing" in raised.value.__notes__[0]
    assert "cannot close" in raised.value.__notes__[0]
    record = Trajectory.from_exception(raised.value)
    assert record is not None
    assert len(record.steps) == 1
    output = PolicyOutput.from_exception(raised.value)
    assert output is not None
    assert output.tokens
    assert [env.num_closed for env in maker.made] == [1, 1]


class Unclosable(Riddle):
    def close(self) -> None:
        super().close()
        raise OSError("cannot close")


async def test_an_episode_that_ended_well_is_kept_if_closing_fails(
    tokenizer: Any, renderer: Any
) -> None:
    builder = CookbookGroupBuilder(ITEM, Maker(Unclosable), renderer, num_rollouts=2)
    played = await cookbook.play_group(builder, talkers(tokenizer))
    assert played.total_rewards == [1, 0]
    assert played.transitions[0][-1].logs["close_error"] == "OSError('cannot close')"


class Keeping(AsyncRiddle):
    """Keeps a task group open from `reset` to `close`, as the client of a server does."""

    async def reset(self, **others: Any) -> Any:
        self.tasks = anyio.create_task_group()
        await self.tasks.__aenter__()
        self.tasks.start_soon(anyio.sleep_forever)
        return await super().reset(**others)

    async def close(self) -> None:
        self.tasks.cancel_scope.cancel()
        await self.tasks.__aexit__(None, None, None)
        await super().close()


@pytest.mark.parametrize("kind", [Riddle, Breaking])
async def test_an_environment_may_keep_a_task_group_open(
    kind: type[Riddle], tokenizer: Any, renderer: Any
) -> None:
    keeping = Keeping(ITEM)
    keeping.riddle = kind(dict(ITEM))
    env = CookbookEnv[Any, Any](lambda: keeping, renderer)
    policy = talkers(tokenizer)[0]
    if kind is Riddle:
        transitions = await cookbook.play(env, policy)
        assert "close_error" not in transitions[-1].logs
    else:
        with pytest.raises(LookupError, match="no second turn") as raised:
            await cookbook.play(env, policy)
        assert "cannot close" in raised.value.__notes__[0]  # its own, and no other
    assert keeping.riddle.num_closed == 1


class Unnumbered(Riddle):
    def step(self, action: str) -> Any:
        chat, _, *others = super().step(action)
        return chat, math.nan, *others


async def test_a_reward_that_is_none_is_refused(tokenizer: Any, renderer: Any) -> None:
    builder = CookbookGroupBuilder(ITEM, Maker(Unnumbered), renderer, num_rollouts=1)
    with pytest.raises(ValueError, match=r"Unnumbered.*, step 0: reward"):
        await cookbook.play_group(builder, talkers(tokenizer)[:1])


async def test_environments_are_made_when_their_episodes_begin(
    tokenizer: Any, renderer: Any
) -> None:
    maker = Maker(Riddle)
    builder = CookbookGroupBuilder(ITEM, maker, renderer, num_rollouts=2, item_id="i", seed=3)
    await builder.make_envs()
    spare, *_ = await builder.make_envs()  # as the cookbook makes a group to have one of it
    assert maker.made == []
    await cookbook.play(spare, talkers(tokenizer)[0])
    assert [env.log[0] for env in maker.made] == [f"{derive_seed(3, 'i', 0, 1)} None"]
    await builder.cleanup()
    assert [env.num_closed for env in maker.made] == [1]


async def test_a_builder_that_is_played_again_has_the_same_seeds(
    tokenizer: Any, renderer: Any
) -> None:
    maker = Maker(Riddle)
    builder = CookbookGroupBuilder(ITEM, maker, renderer, num_rollouts=2)
    for _ in range(2):  # as the cookbook's evaluations do
        await cookbook.play_group(builder, talkers(tokenizer))
    seeds = [env.log[0] for env in maker.made]
    assert sorted(seeds[:2]) == sorted(seeds[2:])


async def test_no_member_sees_what_another_does_to_the_options(
    tokenizer: Any, renderer: Any
) -> None:
    class Writing(Riddle):
        def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
            assert options is not None
            assert options == {"words": []}
            options["words"].append(seed)
            return super().reset(seed=seed)

    options: dict[str, Any] = {"words": []}
    builder = CookbookGroupBuilder(ITEM, Maker(Writing), renderer, num_rollouts=2, options=options)
    await cookbook.play_group(builder, talkers(tokenizer))
    assert options == {"words": []}


async def test_cleaning_up_closes_what_was_broken_off(
    renderer: Any, caplog: pytest.LogCaptureFixture
) -> None:
    maker = Maker(Unclosable)
    builder = CookbookGroupBuilder(ITEM, maker, renderer, num_rollouts=2)
    one, two = await builder.make_envs()
    await one.initial_observation()
    await two.initial_observation()
    await builder.cleanup()
    await builder.cleanup()
    assert [env.num_closed for env in maker.made] == [1, 1]
    assert "cannot close" in caplog.text
    for use in (one.initial_observation, partial(one.step, [1])):
        with pytest.raises(RuntimeError, match="episode"):
            await use()


class Slow(AsyncRiddle):
    def __init__(self, item: dict[str, Any], begun: anyio.Event) -> None:
        super().__init__(item)
        self.begun = begun

    async def step(self, action: str) -> Any:
        self.begun.set()
        await anyio.sleep_forever()


async def test_a_step_that_is_cancelled_closes_its_environment(
    tokenizer: Any, renderer: Any
) -> None:
    slow = Slow(dict(ITEM), anyio.Event())
    env = CookbookEnv[Any, Any](lambda: slow, renderer)
    await env.initial_observation()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(env.step, tokenizer.encode("hello<|im_end|>"))
        await slow.begun.wait()
        tasks.cancel_scope.cancel()
    assert slow.riddle.num_closed == 1
    assert env.trajectory is not None
    assert not env.trajectory.complete
    await env.close()
    assert slow.riddle.num_closed == 1


async def test_cleaning_up_waits_for_a_step(tokenizer: Any, renderer: Any) -> None:
    class Waiting(AsyncRiddle):
        async def step(self, action: str) -> Any:
            begun.set()
            await goes_on.wait()
            assert self.riddle.num_closed == 0
            return await super().step(action)

    begun, goes_on = anyio.Event(), anyio.Event()
    waiting = Waiting(dict(ITEM))
    env = CookbookEnv[Any, Any](lambda: waiting, renderer)
    await env.initial_observation()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(env.step, tokenizer.encode("hello<|im_end|>"))
        await begun.wait()
        tasks.start_soon(env.close)
        await anyio.wait_all_tasks_blocked()
        goes_on.set()
    assert waiting.riddle.num_closed == 1
    assert waiting.riddle.log[1:] == ["hello"]


@pytest.mark.parametrize("stuck", ["step", "close"])
async def test_cleaning_up_waits_for_a_call_that_was_cancelled_on_its_thread(
    stuck: str, tokenizer: Any, renderer: Any
) -> None:
    class Stuck(Riddle):
        def step(self, action: str) -> Any:
            if stuck == "step":
                self.wait()
            raise LookupError("no turn")

        def close(self) -> None:
            if stuck == "close":
                self.wait()
            super().close()

        def wait(self) -> None:
            begun.set()
            assert goes_on.wait(20)

    async def clean_up() -> None:
        await builder.cleanup()
        assert goes_on.is_set()

    begun, goes_on = threading.Event(), threading.Event()
    maker = Maker(Stuck)
    builder = CookbookGroupBuilder(ITEM, maker, renderer, num_rollouts=1)
    [env] = await builder.make_envs()
    await env.initial_observation()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(env.step, tokenizer.encode("hello<|im_end|>"))
        await anyio.to_thread.run_sync(begun.wait)
        tasks.cancel_scope.cancel()
    assert maker.made[0].num_closed == 0
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(clean_up)
        await anyio.wait_all_tasks_blocked()
        goes_on.set()
    assert maker.made[0].num_closed == 1


class Renderer:
    """A renderer of the cookbook's by its methods alone, with texts that end a turn."""

    def __init__(self, tokenizer: Any) -> None:
        self.tokenizer = tokenizer

    def build_generation_prompt(self, messages: list[Any]) -> tinker.ModelInput:
        text = "".join(f"{each['role']}: {each['content']}\n" for each in messages)
        return tinker.ModelInput.from_ints(self.tokenizer.encode(text + "assistant:"))

    def get_stop_sequences(self) -> list[str]:
        return ["\n"]

    def parse_response(self, response: list[int]) -> tuple[dict[str, Any], bool]:
        text = self.tokenizer.decode(response)
        return {"role": "assistant", "content": text.strip()}, text.endswith("\n")


async def test_any_renderer_of_the_cookbooks_will_do(tokenizer: Any) -> None:
    builder = CookbookGroupBuilder(ITEM, Maker(Riddle), Renderer(tokenizer), num_rollouts=1)
    policy = Talker(tokenizer, " hello\n", " hello")
    played = await cookbook.play_group(builder, [policy])
    assert played.total_rewards == [1]
    assert policy.stops == [["\n"], ["\n"]]
    assert tokenizer.decode(policy.prompts[1]) == (
        "user: say hello\nassistant: hello\nuser: right\nassistant:"
    )
    assert [each.metrics["malformed"] for each in played.transitions[0]] == [0, 1]


def add(x: int, y: int) -> int:
    """Add two numbers."""
    return x + y


async def test_tools_are_called(tokenizer: Any, renderer: Any) -> None:
    chat = AsyncChatEnv("What is 2 + 2?", tools=[add])
    env = CookbookEnv[Any, Any](lambda: chat, renderer, tools=chat.tools)
    call = '<tool_call>\n{"name": "add", "arguments": {"x": 2, "y": 2}}\n</tool_call><|im_end|>'
    policy = Talker(tokenizer, call, "It is 4<|im_end|>")
    await cookbook.play(env, policy)
    assert "Tools:" in tokenizer.decode(policy.prompts[0])
    assert "<|im_start|>tool\n4<|im_end|>" in tokenizer.decode(policy.prompts[1])


async def test_a_builder_goes_to_another_process(tokenizer: Any) -> None:
    builder = CookbookGroupBuilder(ITEM, Riddle, Renderer(tokenizer), num_rollouts=2, seed=5)
    copy = pickle.loads(pickle.dumps(builder))  # noqa: S301 - what was just written
    played = await cookbook.play_group(copy, talkers(tokenizer))
    assert copy.item_id == builder.item_id
    assert copy.seed == 5
    assert len(played.transitions) == 2


class Builder(CookbookGroupBuilder[Any, Any, Any], cookbook.EnvGroupBuilder):
    """For what checks types."""


async def test_a_builder_may_be_the_cookbooks_too(tokenizer: Any, renderer: Any) -> None:
    builder = Builder(ITEM, Maker(Riddle), renderer, num_rollouts=2)
    assert (await cookbook.play_group(builder, talkers(tokenizer))).total_rewards == [1, 0]
    assert builder.added_later() == "a default of the cookbook's own"


async def test_a_dataset_gives_batches_of_all_its_items(tokenizer: Any, renderer: Any) -> None:
    items = [{"question": str(number), "answer": "hello"} for number in range(5)]
    dataset = RLDataset(items, make_env=Riddle, get_item_id=lambda item: f"q{item['question']}")
    given = CookbookDataset(
        dataset, renderer, batch_size=2, num_rollouts=3, seed=1, max_steps=1, tags=["t"]
    )
    batches = [given.get_batch(index) for index in range(len(given))]
    builders = [builder for batch in batches for builder in batch]
    assert [len(batch) for batch in batches] == [2, 2, 1]
    assert [builder.item for builder in builders] == items
    assert [builder.item_id for builder in builders] == ["q0", "q1", "q2", "q3", "q4"]
    assert [builder.seed for builder in builders] == [derive_seed(1, n) for n in range(5)]
    assert builders[0].logging_tags() == ["t"]
    assert len(await builders[0].make_envs()) == 3
    with pytest.raises(IndexError, match="batch 3 is out of range for 3 batches"):
        given.get_batch(3)


def test_what_cannot_be_played_is_refused(renderer: Any) -> None:
    builder: Any = partial(CookbookGroupBuilder, ITEM, Riddle)
    dataset: Any = partial(CookbookDataset, renderer=renderer, num_rollouts=1)
    env: Any = CookbookEnv
    with pytest.raises(TypeError, match="make_env must be a function"):
        env(Riddle(ITEM), renderer)
    with pytest.raises(TypeError, match="has no attribute tokenizer: pass tokenizer="):
        env(Riddle, Renderer(None))
    with pytest.raises(ValueError, match="max_steps must be at least 1, got 0"):
        env(Riddle, renderer, max_steps=0)
    with pytest.raises(TypeError, match="cannot tell a model of tools"):
        env(Riddle, Renderer("a tokenizer"), tools=[add])
    with pytest.raises(ValueError, match="num_rollouts must be at least 1, got 0"):
        builder(renderer, num_rollouts=0)
    with pytest.raises(ValueError, match="max_steps must be at least 1, got 0"):
        builder(renderer, num_rollouts=1, max_steps=0)
    with pytest.raises(TypeError, match="cannot tell a model of tools"):
        builder(Renderer("a tokenizer"), num_rollouts=1, tools=[add])
    with pytest.raises(TypeError, match="has no attribute tokenizer"):
        CookbookDataset(
            RLDataset([ITEM], make_env=Riddle), Renderer(None), batch_size=1, num_rollouts=1
        )
    with pytest.raises(TypeError, match="maxsteps"):
        dataset(RLDataset([ITEM], make_env=Riddle), batch_size=1, maxsteps=3)
    with pytest.raises(TypeError, match="dataset must be an RLDataset"):
        dataset([ITEM], batch_size=1)
    with pytest.raises(ValueError, match="batch_size must be at least 1"):
        dataset(RLDataset([ITEM], make_env=Riddle), batch_size=0)
