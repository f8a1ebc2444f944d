"""Prompts of several turns that begin with the exact tokens of the turns before."""

from __future__ import annotations

import random
from typing import Any

import anyio
import gymnasium as gym
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chat_templates import (
    CHATML,
    DATED,
    DEFAULT_SYSTEM,
    DROPS_THINKING,
    LLAMA,
    OPENS_THINKING,
    STRIPS,
    WRITES_THINKING,
    chat_tokenizer,
    decode,
    encode,
    renderer,
)
from rolloutlib.rollouts import PolicyOutput, arollout_group, rollout
from rolloutlib.training import (
    Chats,
    ChatTokenizer,
    ChatTokens,
    RewriteCause,
    assemble_rows,
    find_rewrites,
)

Messages = list[dict[str, Any]]

ASK: Messages = [{"role": "user", "content": "What is 2 + 2?"}]
MORE: Messages = [{"role": "user", "content": "And 3 + 3?"}]
END = encode("<|im_end|>")
PLAIN = {"chatml": CHATML, "default system": DEFAULT_SYSTEM, "llama": LLAMA}


def said(content: str | None, **fields: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": content, **fields}


def end_of(template: str) -> str:
    return "<|eot_id|>" if template == LLAMA else "<|im_end|>"


def second_prompt(
    tokenizer: ChatTokenizer, reply: list[int], content: str | None, new: Messages = MORE
) -> tuple[ChatTokens, list[int], list[int]]:
    """Play a turn; return the chat, the tokens so far, and the second prompt."""
    chat = ChatTokens(tokenizer)
    first = chat.prompt(ASK)
    chat.add(reply)
    return chat, first + reply, chat.prompt([*ASK, said(content), *new])


# Templates that leave earlier turns alone


@pytest.mark.parametrize("template", PLAIN.values(), ids=PLAIN)
def test_a_prompt_is_the_tokens_so_far_and_the_new_messages(template: str) -> None:
    end = end_of(template)
    chat, before, prompt = second_prompt(
        chat_tokenizer(template, end_of_turn=end), encode(f"It is 4.{end}"), "It is 4."
    )
    assert prompt[: len(before)] == before
    whole = renderer(template)([*ASK, said("It is 4."), *MORE], add_generation_prompt=True)
    assert decode(prompt) == whole
    assert chat.rewrites == ()


def test_what_was_sampled_stays_though_encoding_its_text_gives_other_ids() -> None:
    sampled = encode("he") + encode("llo")
    assert sampled != encode("hello")
    chat, before, prompt = second_prompt(chat_tokenizer(), sampled + END, "hello")
    assert prompt[: len(before)] == before
    assert prompt != encode(decode(prompt))
    assert chat.rewrites == ()


@pytest.mark.parametrize("template", PLAIN.values(), ids=PLAIN)
@given(data=st.data())
@settings(max_examples=25)
def test_every_prompt_of_any_conversation_begins_with_all_tokens_before(
    template: str, data: st.DataObject
) -> None:
    end = end_of(template)
    tokenizer = chat_tokenizer(template, end_of_turn=end)
    text = st.text(st.characters(codec="utf-8", exclude_characters="<|>"), max_size=8)
    chat, messages = ChatTokens(tokenizer), [{"role": "user", "content": data.draw(text)}]
    before: list[int] = []
    for _ in range(3):
        prompt = chat.prompt(messages)
        assert prompt[: len(before)] == before
        content = data.draw(text)
        # Character by character, so that the ids are not those of the text.
        sampled = [token for letter in content for token in encode(letter)]
        if data.draw(st.booleans()):
            sampled += encode(end)
        chat.add(sampled)
        before = prompt + sampled
        messages += [said(content), {"role": "user", "content": data.draw(text)}]
    assert decode(chat.prompt(messages)) == renderer(template)(messages, add_generation_prompt=True)
    assert chat.rewrites == ()


def test_only_the_new_part_is_encoded() -> None:
    texts: list[str] = []

    def recording(text: str) -> list[int]:
        texts.append(text)
        return encode(text)

    tokenizer = ChatTokenizer(renderer(CHATML), recording, decode, end_of_turn="<|im_end|>")
    second_prompt(tokenizer, encode("4") + END, "4")
    assert texts[-1] == (
        "<|im_end|>\n<|im_start|>user\nAnd 3 + 3?<|im_end|>\n<|im_start|>assistant\n"
    )


def test_a_turn_that_was_cut_off_is_closed_in_the_next_prompt() -> None:
    _, before, prompt = second_prompt(chat_tokenizer(), encode("It is"), "It is")
    assert prompt[: len(before) + 1] == before + END
    assert decode(prompt).count("<|im_end|>") == 3


def test_a_turn_may_be_cut_off_within_a_character() -> None:
    sampled = encode("4 \N{EURO SIGN}")[:-1]
    chat, before, prompt = second_prompt(chat_tokenizer(), sampled, decode(sampled))
    assert "\N{REPLACEMENT CHARACTER}" in decode(sampled)
    assert prompt[: len(before) + 1] == before + END
    assert chat.rewrites == ()


def test_an_empty_turn_is_a_turn() -> None:
    chat, before, prompt = second_prompt(chat_tokenizer(), [], "")
    assert prompt[: len(before) + 1] == before + END
    assert chat.rewrites == ()


@pytest.mark.parametrize("end", [[], END], ids=["cut off", "ended"])
def test_a_turn_may_spell_the_end_of_a_turn_in_other_tokens(end: list[int]) -> None:
    spelled = [token for letter in "a<|im_end|>b" for token in encode(letter)]
    chat, before, prompt = second_prompt(chat_tokenizer(), spelled + end, "a<|im_end|>b")
    assert prompt[: len(before)] == before
    assert decode(prompt).endswith(
        "a<|im_end|>b<|im_end|>\n<|im_start|>user\nAnd 3 + 3?<|im_end|>\n<|im_start|>assistant\n"
    )
    assert chat.rewrites == ()


@pytest.mark.parametrize(
    ("sampled", "rewrites"),
    [("4", []), ("4 \n", [("whitespace", True)])],
    ids=["as is", "stripped"],
)
def test_what_a_template_writes_of_the_last_turn_alone_does_not_matter(
    sampled: str, rewrites: list[tuple[str, bool]]
) -> None:
    chat, before, prompt = second_prompt(
        chat_tokenizer(WRITES_THINKING), encode(sampled) + END, sampled.strip()
    )
    assert prompt[: len(before)] == before
    assert [(each.cause, each.kept) for each in chat.rewrites] == rewrites


def test_the_newline_after_the_end_of_a_turn_is_part_of_the_prompt() -> None:
    _, before, prompt = second_prompt(chat_tokenizer(), encode("4") + END, "4")
    assert decode(prompt[len(before) :]).startswith("\n<|im_start|>user")


def test_tools_and_their_results_extend_a_turn_that_called_them() -> None:
    tokenizer = chat_tokenizer(tools=[{"name": "add"}])
    call = {"name": "add", "arguments": {"x": 1, "y": 2}}
    sampled = encode('\n<tool_call>\n{"name":"add","arguments":{"x":1,"y":2}}\n</tool_call>') + END
    chat = ChatTokens(tokenizer)
    before = chat.prompt(ASK) + sampled
    assert decode(before).startswith("<|im_start|>system\nTools: ")
    chat.add(sampled)
    result = {"role": "tool", "content": "3"}
    prompt = chat.prompt([*ASK, said("", tool_calls=[call]), result])
    assert prompt[: len(before)] == before
    assert decode(prompt).endswith("<|im_start|>tool\n3<|im_end|>\n<|im_start|>assistant\n")
    # The template writes the call with spaces, which the model did not: whitespace, overruled.
    assert [(each.cause, each.kept) for each in chat.rewrites] == [("whitespace", True)]


def test_no_content_beside_tool_calls_is_the_same_as_empty_content() -> None:
    call = {"name": "add", "arguments": {"x": 1}}
    chat = ChatTokens(chat_tokenizer())
    chat.prompt(ASK)
    sampled = encode('\n<tool_call>\n{"name": "add", "arguments": {"x": 1}}\n</tool_call>') + END
    chat.add(sampled)
    result = {"role": "tool", "content": "3"}
    messages = [*ASK, said(None, tool_calls=[call]), result]
    before = chat.prompt(messages) + encode("3") + END
    assert "None" not in decode(before)
    chat.add(encode("3") + END)
    messages = [*ASK, said("", tool_calls=[call]), result, said("3"), *MORE]
    assert chat.prompt(messages)[: len(before)] == before
    assert chat.rewrites == ()


def test_the_same_messages_have_the_same_prompt_until_something_is_added() -> None:
    chat = ChatTokens(chat_tokenizer())
    assert chat.prompt(ASK) == chat.prompt(ASK)
    assert chat.rewrites == ()


def test_a_prompt_may_be_changed_by_its_receiver() -> None:
    chat = ChatTokens(chat_tokenizer())
    first = chat.prompt(ASK)
    kept = list(first)
    first.clear()
    chat.add(encode("4") + END)
    assert chat.prompt([*ASK, said("4"), *MORE])[: len(kept)] == kept


# Templates and environments that rewrite earlier turns


def test_thinking_that_a_template_drops_is_a_rewrite_with_its_place() -> None:
    content = "<think>\nlet me\n</think>\n\n4"
    chat, _, prompt = second_prompt(chat_tokenizer(DROPS_THINKING), encode(content) + END, content)
    whole = renderer(DROPS_THINKING)([*ASK, said(content), *MORE], add_generation_prompt=True)
    assert prompt == encode(whole)
    rewrite = chat.last_rewrite
    assert rewrite is not None
    assert (rewrite.turn, rewrite.cause, rewrite.kept) == (1, "thinking", False)
    assert rewrite.expected.startswith("<think>\nlet me")
    assert rewrite.found == "4"
    assert whole[rewrite.position :].startswith(rewrite.found)
    assert "thinking was dropped at character" in str(rewrite)


def test_thinking_that_is_dropped_is_told_though_a_new_message_speaks_of_it() -> None:
    drops = DROPS_THINKING.replace("loop.index0 < ns.last", "loop.index0 < ns.last - 1")
    chat = ChatTokens(chat_tokenizer(drops))
    messages: Messages = [*ASK, said("<think>\nlet me\n</think>\n\n4"), *MORE]
    chat.prompt(messages)
    chat.add(encode("6") + END)
    why: Messages = [{"role": "user", "content": "Why is there no </think> in it?"}]
    chat.prompt([*messages, said("6"), *why])
    assert [each.cause for each in chat.rewrites] == ["thinking"]


def test_thinking_is_kept_while_tools_are_called_under_the_same_template() -> None:
    content = "<think>\nlet me\n</think>\n\n4"
    result: Messages = [{"role": "tool", "content": "4"}]
    chat, before, prompt = second_prompt(
        chat_tokenizer(DROPS_THINKING), encode(content) + END, content, result
    )
    assert prompt[: len(before)] == before
    assert chat.rewrites == ()


def test_after_a_rewrite_turns_extend_the_new_prompt() -> None:
    content = "<think>\nlet me\n</think>\n\n4"
    chat, _, prompt = second_prompt(chat_tokenizer(DROPS_THINKING), encode(content) + END, content)
    chat.add(encode("6") + END)
    longer = chat.prompt([*ASK, said(content), *MORE, said("6"), *MORE])
    before = prompt + encode("6") + END
    assert longer[: len(before)] == before
    assert (chat.last_rewrite, len(chat.rewrites)) == (None, 1)


def test_whitespace_that_a_template_strips_is_kept_as_sampled_and_reported() -> None:
    chat, before, prompt = second_prompt(chat_tokenizer(STRIPS), encode(" 4 \n") + END, " 4 \n")
    assert prompt[: len(before)] == before
    assert decode(prompt).endswith("And 3 + 3?<|im_end|>\n<|im_start|>assistant\n")
    assert [(each.cause, each.kept) for each in chat.rewrites] == [("whitespace", True)]


def test_whitespace_that_the_environment_strips_is_kept_as_sampled_too() -> None:
    chat, before, prompt = second_prompt(chat_tokenizer(), encode("4 \n") + END, "4")
    assert prompt[: len(before)] == before
    assert [(each.cause, each.kept) for each in chat.rewrites] == [("whitespace", True)]


def test_whitespace_that_was_kept_stays_in_all_later_prompts() -> None:
    chat, messages = ChatTokens(chat_tokenizer(STRIPS)), list(ASK)
    before: list[int] = []
    for turn in range(4):
        prompt = chat.prompt(messages)
        assert prompt[: len(before)] == before
        chat.add(encode(f" {turn} \n") + END)
        before = prompt + encode(f" {turn} \n") + END
        messages += [said(f" {turn} \n"), *MORE]
    assert [(each.turn, each.cause) for each in chat.rewrites] == [
        (turn, "whitespace") for turn in (1, 2, 3)
    ]


def test_whitespace_is_not_overruled_if_nothing_is() -> None:
    tokenizer = chat_tokenizer(STRIPS, overrule="nothing")
    chat, before, prompt = second_prompt(tokenizer, encode("4 \n") + END, "4 \n")
    assert prompt[: len(before)] != before
    assert [(each.cause, each.kept) for each in chat.rewrites] == [("whitespace", False)]


def test_a_date_that_changes_between_two_turns_is_a_rewrite() -> None:
    days = iter(["26 Jul 2026", "27 Jul 2026", "27 Jul 2026"])
    chat, _, prompt = second_prompt(
        chat_tokenizer(DATED, today=lambda: next(days)), encode("4") + END, "4"
    )
    assert "Today is 27 Jul" in decode(prompt)
    rewrite = chat.last_rewrite
    assert rewrite is not None
    assert (rewrite.cause, rewrite.kept) == ("date", False)
    assert (rewrite.expected[:5], rewrite.found[:5]) == ("6 Jul", "7 Jul")


def test_thinking_that_opens_in_the_prompt_but_in_no_turn_is_a_rewrite() -> None:
    chat, _, _ = second_prompt(chat_tokenizer(OPENS_THINKING), encode("so\n</think>4") + END, "4")
    assert [each.kept for each in chat.rewrites] == [False]


def test_a_reply_that_the_conversation_shows_otherwise_is_a_rewrite() -> None:
    chat, before, prompt = second_prompt(chat_tokenizer(), encode("It is 5.") + END, "It is 4.")
    assert prompt[: len(before)] != before
    assert [(each.cause, each.kept) for each in chat.rewrites] == [("text", False)]
    assert chat.rewrites[0].expected == "5."


def test_another_end_of_a_turn_than_the_template_has_is_a_rewrite() -> None:
    tokenizer = chat_tokenizer(LLAMA, end_of_turn=["<|eot_id|>", "<|eom_id|>"])
    chat, before, prompt = second_prompt(tokenizer, encode("4<|eom_id|>"), "4")
    assert prompt[: len(before)] != before
    assert [each.cause for each in chat.rewrites] == ["end_of_turn"]
    assert "'<|eom_id|>' sampled" in str(chat.rewrites[0])


@pytest.mark.parametrize(
    ("messages", "detail"),
    [
        ([{"role": "user", "content": "What is 9?"}, said("4"), *MORE], "message 0 is not what"),
        ([*ASK, *MORE], "message 1 is no reply"),
        (ASK, "message 1 is no reply"),
        ([], "message 0 is not what"),
    ],
)
def test_a_conversation_that_does_not_go_on_is_rendered_anew(
    messages: Messages, detail: str
) -> None:
    for overrule in ("nothing", "everything"):
        chat = ChatTokens(chat_tokenizer(overrule=overrule))
        chat.prompt(ASK)
        chat.add(encode("4") + END)
        prompt = chat.prompt(messages)
        assert decode(prompt) == renderer(CHATML)(messages, add_generation_prompt=True)
        assert [each.cause for each in chat.rewrites] == ["conversation"]
        assert detail in str(chat.rewrites[0])


# Overruling the template


@pytest.mark.parametrize(
    ("template", "content", "cause"),
    [
        (DROPS_THINKING, "<think>\nlet me\n</think>\n\n4", "thinking"),
        (OPENS_THINKING, "<think>\nso\n</think>4", "thinking"),
        (WRITES_THINKING, "<think>\nlet me\n</think>\n\n4", "thinking"),
        (STRIPS, "4 \n", "whitespace"),
    ],
)
def test_a_template_whose_new_messages_stand_alone_can_be_overruled(
    template: str, content: str, cause: RewriteCause
) -> None:
    tokenizer = chat_tokenizer(template, overrule="everything")
    sampled = content.removeprefix("<think>\n") if template == OPENS_THINKING else content
    shown = "4" if template in (OPENS_THINKING, WRITES_THINKING) else content
    chat, before, prompt = second_prompt(tokenizer, encode(sampled) + END, shown)
    assert prompt[: len(before)] == before
    assert decode(prompt[len(before) :]).startswith("\n<|im_start|>user\nAnd 3 + 3?<|im_end|>\n")
    assert [each.kept for each in chat.rewrites] == [True]
    assert chat.rewrites[0].cause in (cause, "text")
    chat.add(encode("6") + END)
    longer = chat.prompt([*ASK, said(shown), *MORE, said("6"), *MORE])
    assert longer[: len(prompt)] == prompt


def test_a_date_that_is_another_at_each_rendering_can_be_overruled() -> None:
    days = (f"{number} Jul 2026" for number in range(1, 9))
    tokenizer = chat_tokenizer(DATED, today=lambda: next(days), overrule="everything")
    chat, before, prompt = second_prompt(tokenizer, encode("4") + END, "4")
    assert prompt[: len(before)] == before
    assert [(each.cause, each.kept) for each in chat.rewrites] == [("date", True)]


@pytest.mark.parametrize(
    ("shown", "kept"), [("4", True), (" 4\n", True), ("four", False), ("The sum is 4", False)]
)
def test_what_the_environment_makes_of_a_reply_is_never_overruled_if_it_is_known_what_was_said(
    shown: str, kept: bool
) -> None:
    chat = ChatTokens(chat_tokenizer(overrule="everything"))
    reply = encode("The sum is 4.") + END
    before = chat.prompt(ASK) + reply
    chat.add(reply, said="4")
    assert chat.reply == "4"
    prompt = chat.prompt([*ASK, said(shown), *MORE])
    assert (prompt[: len(before)] == before) is kept
    assert ("The sum is 4." in decode(prompt)) is kept
    assert [each.kept for each in chat.rewrites] == [kept]
    assert (chat.rewrites[0].cause == "conversation") is not kept


def test_an_end_that_a_changed_reply_no_longer_spells_does_not_cut_new_messages() -> None:
    tokenizer = chat_tokenizer(overrule="everything")
    spelled = [token for letter in "4<|im_end|>" for token in encode(letter)]
    chat, before, prompt = second_prompt(tokenizer, spelled + END, "4")
    assert prompt[: len(before)] == before
    assert decode(prompt[len(before) :]).startswith("\n<|im_start|>user\nAnd 3 + 3?<|im_end|>\n")
    assert [each.kept for each in chat.rewrites] == [True]


def test_a_template_that_refuses_a_short_conversation_is_not_overruled() -> None:
    needs_system = "{%- if messages[0].role != 'system' %}{{- fail() }}{%- endif %}"
    chat = ChatTokens(chat_tokenizer(needs_system + DROPS_THINKING, overrule="everything"))
    messages: Messages = [{"role": "system", "content": "Add."}, *ASK]
    chat.prompt(messages)
    content = "<think>\nlet me\n</think>\n\n4"
    chat.add(encode(content) + END)
    chat.prompt([*messages, said(content), *MORE])
    assert [(each.cause, each.kept) for each in chat.rewrites] == [("thinking", False)]


# A look at a template before a run


def test_a_conversation_shows_what_a_template_would_rewrite() -> None:
    call = {"name": "add", "arguments": {"x": 1}}
    talk: Messages = [
        *ASK,
        said("<think>\nso\n</think>\n\n", tool_calls=[call]),
        {"role": "tool", "content": "4"},
        said("4"),
        *MORE,
    ]
    assert find_rewrites(chat_tokenizer(CHATML), talk) == ()
    [rewrite] = find_rewrites(chat_tokenizer(DROPS_THINKING), talk)
    assert (rewrite.turn, rewrite.cause) == (2, "thinking")


def test_thinking_beside_the_content_is_taken_as_the_template_writes_it() -> None:
    talk: Messages = [*ASK, said("4", reasoning_content="let me"), *MORE]
    [rewrite] = find_rewrites(chat_tokenizer(WRITES_THINKING), talk)
    assert (rewrite.turn, rewrite.cause) == (1, "thinking")


# Bad input


def test_images_are_refused_by_name() -> None:
    parts = [{"type": "text", "text": "See."}, {"type": "image", "url": "file:a.png"}]
    chat = ChatTokens(chat_tokenizer())
    with pytest.raises(ValueError, match="message 1 has a part of type 'image'"):
        chat.prompt([*ASK, {"role": "user", "content": parts}])
    assert chat.prompt(ASK)


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"encode": lambda text: [0, *encode(text)]}, ValueError, "add_special_tokens=False"),
        ({"decode": "".format}, ValueError, "'<|im_end|>' comes back as ''"),
        ({"end_of_turn": "the end"}, ValueError, "must be the text of one token"),
        ({"end_of_turn": []}, ValueError, "must name a token"),
        ({"overrule": "all"}, ValueError, "got 'all'"),
        ({"render": None}, TypeError, "render must be a function, got None"),
    ],
)
def test_a_tokenizer_that_cannot_work_is_refused_when_it_is_made(
    changes: dict[str, Any], error: type[Exception], message: str
) -> None:
    arguments: dict[str, Any] = {
        "render": renderer(CHATML),
        "encode": encode,
        "decode": decode,
        "end_of_turn": "<|im_end|>",
    }
    with pytest.raises(error, match=message):
        ChatTokenizer(**(arguments | changes))


def test_a_renderer_of_ids_is_refused() -> None:
    def render(messages: Messages, *, add_generation_prompt: bool) -> list[int]:
        return encode(renderer(CHATML)(messages, add_generation_prompt=add_generation_prompt))

    chat = ChatTokens(ChatTokenizer(render, encode, decode, end_of_turn="<|im_end|>"))
    with pytest.raises(TypeError, match="pass tokenize=False"):
        chat.prompt(ASK)


def test_only_a_prompt_can_be_answered_and_once() -> None:
    chat = ChatTokens(chat_tokenizer())
    with pytest.raises(ValueError, match="call prompt"):
        chat.add(END)
    chat.prompt(ASK)
    with pytest.raises(TypeError, match="sampled must be integers"):
        chat.add([0.5])  # pyright: ignore[reportArgumentType]
    chat.add(END)
    with pytest.raises(ValueError, match="then add"):
        chat.add(END)


# A policy of many episodes


class Talk(gym.Env[Messages, str]):
    """A conversation of three questions, shown whole at each step."""

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Messages, dict[str, Any]]:
        super().reset(seed=seed)
        self.messages: Messages = list(ASK)
        return self.messages, {}

    def step(self, action: str) -> tuple[Messages, float, bool, bool, dict[str, Any]]:
        self.messages += [said(action), *MORE]
        return self.messages, 1.0, len(self.messages) >= 7, False, {}


class Model:
    """Says words at random, in the tokens of their letters, as a sampler might."""

    def __init__(self, chats: Chats) -> None:
        self.chats = chats

    def __call__(
        self, messages: Messages, *, seed: int | None = None, step: int = 0
    ) -> PolicyOutput[str]:
        chat = self.chats.find(messages, seed=seed, step=step)
        prompt = chat.prompt(messages)
        content = random.Random(f"{seed}.{step}").choice(["hello", "the", "hero"])  # noqa: S311
        tokens = [token for letter in content for token in encode(letter)] + END
        chat.add(tokens)
        info = {} if chat.last_rewrite is None else {"rewrite": str(chat.last_rewrite)}
        return PolicyOutput(
            content, info, tokens=tokens, logprobs=[-1.0] * len(tokens), prompt_tokens=prompt
        )


@pytest.mark.anyio
async def test_concurrent_episodes_each_have_a_row_of_their_own() -> None:
    model = Model(Chats(chat_tokenizer()))

    async def policy(
        messages: Messages, *, seed: int | None = None, step: int = 0
    ) -> PolicyOutput[str]:
        await anyio.lowlevel.checkpoint()
        return model(messages, seed=seed, step=step)

    group = await arollout_group(
        "talk", lambda _: Talk(), policy, num_rollouts=16, concurrency=16, seed=1, inline=True
    )
    rows, report = assemble_rows(group)
    assert (report.num_rows, report.breaks) == (16, ())
    assert [len(row.spans) for row in rows] == [3] * 16
    for row, trajectory in zip(rows, group.trajectories, strict=True):
        sampled = [token for step in trajectory.steps for token in step.policy_tokens or ()]
        assert row.tokens[row.loss_mask].tolist() == sampled


def test_episodes_without_seeds_are_told_apart_by_what_was_said() -> None:
    chats = Chats(chat_tokenizer())
    for content in ("the", "hero"):
        chat = chats.find(ASK, seed=None, step=0)
        chat.prompt(ASK)
        chat.add(encode(content) + END)
    messages = [*ASK, said("hero"), *MORE]
    chat = chats.find(messages, seed=None, step=1)
    chat.prompt(messages)
    assert chat.rewrites == ()
    assert len(chats) == 2


def test_what_an_episode_that_is_over_has_left_is_not_taken_for_a_later_one() -> None:
    chats = Chats(chat_tokenizer())
    for tokens in (encode("5"), encode("he") + encode("llo ")):
        chat = chats.find(ASK, seed=1, step=0)
        before = chat.prompt(ASK) + tokens
        chat.add(tokens)
    messages = [*ASK, said("hello"), *MORE]
    chat = chats.find(messages, seed=1, step=1)
    assert chat.prompt(messages)[: len(before)] == before


def test_a_step_that_is_sampled_again_has_the_same_prompt_again() -> None:
    chats = Chats(chat_tokenizer())
    for tokens in (encode("the"), encode("he") + encode("llo")):
        chat = chats.find(ASK, seed=1, step=0)
        chat.prompt(ASK)
        chat.add(tokens + END)
    messages = [*ASK, said("hello"), *MORE]
    prompts: list[list[int]] = []
    for reply in (None, "the", "hero"):
        chat = chats.find(messages, seed=1, step=1)
        prompts.append(chat.prompt(messages))
        assert chat.rewrites == ()
        if reply is not None:  # else the sampler failed
            chat.add(encode(reply) + END)
    assert prompts[0] == prompts[1] == prompts[2]
    longer = [*messages, said("the"), *MORE]
    before = prompts[0] + encode("the") + END
    assert chats.find(longer, seed=1, step=2).prompt(longer)[: len(before)] == before


def test_a_conversation_that_was_forgotten_is_rendered_anew_and_reported() -> None:
    model = Model(Chats(chat_tokenizer(), max_chats=1))
    first = model(ASK, seed=1, step=0)
    model(ASK, seed=2, step=0)
    output = model([*ASK, said(first.action), *MORE], seed=1, step=1)
    assert output.info == {
        "rewrite": "prompt 0: the tokens of earlier turns are not known; rendered anew"
    }


def test_an_example_with_replies_in_its_first_messages_begins_a_conversation() -> None:
    model = Model(Chats(chat_tokenizer()))
    examples: Messages = [*ASK, said("4"), *MORE]
    output = model(examples, seed=1, step=0)
    assert output.info == {}
    longer = [*examples, said(output.action), *MORE]
    prompt = model(longer, seed=1, step=1).prompt_tokens
    before = list(output.prompt_tokens or ()) + list(output.tokens or ())
    assert list(prompt or ())[: len(before)] == before


def test_a_template_that_rewrites_turns_costs_rows_and_the_steps_tell_why() -> None:
    class Thinker(Model):
        def __call__(
            self, messages: Messages, *, seed: int | None = None, step: int = 0
        ) -> PolicyOutput[str]:
            chat = self.chats.find(messages, seed=seed, step=step)
            prompt = chat.prompt(messages)
            content = f"<think>\n{step}\n</think>\n\nhello"
            chat.add(tokens := encode(content) + END)
            info = {} if chat.last_rewrite is None else {"rewrite": chat.last_rewrite.cause}
            return PolicyOutput(content, info, tokens=tokens, prompt_tokens=prompt)

    trajectory = rollout(Talk(), Thinker(Chats(chat_tokenizer(DROPS_THINKING))), seed=1)
    assert [dict(step.policy_info) for step in trajectory.steps] == [
        {},
        {"rewrite": "thinking"},
        {"rewrite": "thinking"},
    ]
    rows, report = assemble_rows(trajectory, logprobs=False)
    assert (len(rows), len(report.breaks)) == (3, 2)
