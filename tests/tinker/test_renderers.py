"""Renderers of ours and of others: prompts, images, and how answers are read."""

from __future__ import annotations

import base64
from typing import Any

import pytest

import chat_templates
from cookbook_renderers import RoleColon, Turns
from rolloutlib import rollout
from rolloutlib.envs import ChatEnv
from rolloutlib.rollouts import EpisodeTruncated
from rolloutlib.tinker import ChatTemplateRenderer, Renderer, TinkerPolicy
from rolloutlib.training import assemble_rows
from rolloutlib.types import Chat, Message
from tinker_stub import Sampled, TinkerStub

PNG = base64.b64encode(b"\x89PNG one").decode()
JPEG = base64.b64encode(b"\xff\xd8 two").decode()
IMAGES: Message = {
    "role": "user",
    "content": [
        {"type": "text", "text": "Look: "},
        {"type": "image", "url": f"data:image/png;base64,{PNG}"},
        {"type": "image", "url": f"data:image/jpg;base64,{JPEG}"},
        {"type": "text", "text": " Well?"},
    ],
}

ENDLESS = '{"a": ' + "[" * 9999
DEEP = '{"a": ' + "[" * 100 + "]" * 100 + "}"

# In the manner of gpt-oss: a turn has parts, and after the last stands what ends no other.
PARTS = (
    "{% for m in messages %}<|im_start|>{{ m.role }}: {{ m.content }}"
    "{{ '<|eot_id|>' if loop.last and not add_generation_prompt else '<|im_end|>' }}{% endfor %}"
)

SEES = """\
{%- for message in messages %}{{- '<|im_start|>' + message.role + '\\n' }}
{%- if message.content is string %}{{- message.content }}{%- else %}
{%- for part in message.content %}
{%- if part.type == 'image' %}{{- '<img>' }}{%- else %}{{- part.text }}{%- endif %}
{%- endfor %}{%- endif %}{{- '<|im_end|>\\n' }}{%- endfor %}
{%- if add_generation_prompt %}{{- '<|im_start|>assistant\\n' }}{%- endif %}"""


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def again(chat: Chat) -> str | None:
    return None if len(chat) > 4 else "again"


def said(stub: TinkerStub, tokenizer: Any, *texts: str) -> None:
    stub.say(*[tokenizer.encode(text) for text in texts])


def chunks_of(stub: TinkerStub, tokenizer: Any, index: int = -1) -> list[Any]:
    """The prompt that was asked: texts, and images as they were sent."""
    return [
        tokenizer.decode(chunk["tokens"]) if chunk["type"] == "encoded_text" else chunk
        for chunk in stub.received[index]["prompt"]["chunks"]
    ]


def image(data: str, kind: str, tokens: int | None) -> dict[str, Any]:
    chunk = {"data": data, "format": kind, "type": "image"}
    return chunk if tokens is None else {**chunk, "expected_tokens": tokens}


@pytest.mark.parametrize("sees", [False, True])
def test_images_are_sent_where_the_template_or_the_message_has_them(
    stub: TinkerStub, sampler: Any, tokenizer: Any, sees: bool
) -> None:
    settings: dict[str, Any] = (
        {"chat_template": SEES, "image_token": "<img>", "count_image_tokens": len} if sees else {}
    )
    renderer = ChatTemplateRenderer(tokenizer, **settings)
    said(stub, tokenizer, "hello<|im_end|>", "there<|im_end|>", "well<|im_end|>")
    policy = TinkerPolicy(sampler, max_tokens=10, renderer=renderer)
    trajectory = rollout(ChatEnv([IMAGES], respond=again), policy, seed=1)
    parts = [
        "<|im_start|>user\nLook: ",
        image(PNG, "png", 8 if sees else None),
        image(JPEG, "jpeg", 6 if sees else None),
        " Well?<|im_end|>\n<|im_start|>assistant\n",
    ]
    assert chunks_of(stub, tokenizer, 0) == parts
    first, second = (stub.received[index]["prompt"]["chunks"] for index in (0, 1))
    assert second[:3] == first[:3]
    assert second[3]["tokens"][: len(first[3]["tokens"])] == first[3]["tokens"]
    assert [step.policy_prompt_tokens for step in trajectory.steps] == [None] * 3
    assert all("rewrite" not in step.policy_info for step in trajectory.steps)


def test_images_count_for_the_context(stub: TinkerStub, sampler: Any, tokenizer: Any) -> None:
    renderer = ChatTemplateRenderer(tokenizer, count_image_tokens=lambda _: 1000)
    policy = TinkerPolicy(sampler, max_tokens=10, renderer=renderer, max_context=1500)
    with pytest.raises(EpisodeTruncated, match="context_overflow"):
        policy([IMAGES])
    assert stub.received == []


def test_equal_images_are_one_request(stub: TinkerStub, sampler: Any, tokenizer: Any) -> None:
    url = f"data:image/jpeg;base64,{JPEG}"
    other: Message = {"role": "user", "content": [{"type": "image", "url": url}]}
    policy = TinkerPolicy(sampler, max_tokens=10)
    policy.batch([[IMAGES], [other], [IMAGES]])
    assert sorted(asked["num_samples"] for asked in stub.received) == [1, 2]


@pytest.mark.parametrize(
    "url", ["https://there.org/one.png", "data:image/gif;base64,AA==", "data:image/png;base64,%"]
)
def test_what_is_no_image_is_told(sampler: Any, url: str) -> None:
    wrong: Message = {"role": "user", "content": [{"type": "image", "url": url}]}
    with pytest.raises(ValueError, match="an image must be a data: URL of a PNG or JPEG"):
        TinkerPolicy(sampler, max_tokens=10)([wrong])


def test_a_template_takes_arguments(stub: TinkerStub, sampler: Any, tokenizer: Any) -> None:
    template = "{{- 'quick ' if not enable_thinking else 'slow ' }}" + chat_templates.CHATML
    for enabled in (True, False):
        renderer = ChatTemplateRenderer(tokenizer, chat_template=template, enable_thinking=enabled)
        TinkerPolicy(sampler, max_tokens=10, renderer=renderer)("hello")
    starts = [chunks_of(stub, tokenizer, index)[0].split()[0] for index in (0, 1)]
    assert starts == ["slow", "quick"]


@pytest.mark.parametrize(
    ("template", "end"),
    [
        (chat_templates.CHATML, "<|im_end|>"),
        (chat_templates.LLAMA, "<|eot_id|>"),
        (
            "{% for m in messages %}{{ m.role }}: {{ m.content }}<|endoftext|>{% endfor %}",
            "<|endoftext|>",
        ),
        (PARTS, "<|eot_id|>"),
        (
            "{% for m in messages %}<|im_start|>{{ m.role }} {{ m.content }}{% endfor %}",
            "<|im_start|>",
        ),
    ],
)
def test_the_end_of_a_turn_is_found_in_the_template(
    tokenizer: Any, template: str, end: str
) -> None:
    renderer = ChatTemplateRenderer(tokenizer, chat_template=template)
    assert renderer.end_of_turn == end
    ends = [*tokenizer.encode(end), tokenizer.eos_token_id]
    assert renderer.get_stop_sequences() == list(dict.fromkeys(ends))


def test_a_template_in_which_no_turn_ends_is_told(tokenizer: Any) -> None:
    endless = "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}"
    with pytest.raises(ValueError, match="pass end_of_turn="):
        ChatTemplateRenderer(tokenizer, chat_template=endless)
    with pytest.raises(ValueError, match="the text of one token"):
        ChatTemplateRenderer(tokenizer, chat_template=endless, end_of_turn="\n\n and so on")
    given = ChatTemplateRenderer(tokenizer, chat_template=endless, end_of_turn="<|eot_id|>")
    assert given.get_stop_sequences()[0] == tokenizer.convert_tokens_to_ids("<|eot_id|>")


def test_a_conversation_that_the_template_refuses_is_told(sampler: Any, tokenizer: Any) -> None:
    template = (
        "{% if messages[0].role == 'tool' %}{{ raise_exception('tools may not begin') }}{% endif %}"
        + chat_templates.CHATML
    )
    renderer = ChatTemplateRenderer(tokenizer, chat_template=template)
    policy = TinkerPolicy(sampler, max_tokens=10, renderer=renderer)
    with pytest.raises(ValueError, match="refuses the conversation: tools may not begin"):
        policy([{"role": "tool", "content": "3"}])


@pytest.mark.parametrize(
    ("text", "content", "calls"),
    [
        ("3", "3", None),
        (
            'I add.\n<tool_call>\n{"name": "add", "arguments": {"a": 1}}\n</tool_call>',
            "I add.",
            [{"name": "add", "arguments": {"a": 1}}],
        ),
        (
            '<tool_call>{"name": "a", "parameters": {}}</tool_call><tool_call>{"name": "b"}</tool_call>',
            "",
            [{"name": "a", "arguments": {}}, {"name": "b", "arguments": {}}],
        ),
        (
            '<tool_call>{"name": "add", "arguments": "{\\"a\\": 1}"}</tool_call>',
            "",
            [{"name": "add", "arguments": {"a": 1}}],
        ),
        (
            '<tool_call>{"name": "add", "arguments": {"a": </tool_call>',
            "",
            [{"name": "add", "arguments": {}, "malformed": '{"a":'}],
        ),
        ("<tool_call>[1]", "", [{"name": "", "arguments": {}, "malformed": "[1]"}]),
        (
            f'<tool_call>{{"name": "add", "arguments": {ENDLESS}</tool_call>',
            "",
            [{"name": "add", "arguments": {}, "malformed": ENDLESS}],
        ),
        (
            f'<tool_call>{{"name": "add", "arguments": {DEEP}}}</tool_call>',
            "",
            [{"name": "add", "arguments": {}, "malformed": DEEP}],
        ),
        (
            '<think>a <tool_call>{"name": "no"}</tool_call></think><tool_call>{"name": "b"}',
            '<think>a <tool_call>{"name": "no"}</tool_call></think>',
            [{"name": "b", "arguments": {}}],
        ),
        (
            '<tool_call>{"name": "<think>"}</tool_call><think>a <tool_call>{"name": "no"}</tool_call>',
            '<think>a <tool_call>{"name": "no"}</tool_call>',
            [{"name": "<think>", "arguments": {}}],
        ),
    ],
)
def test_calls_are_read_in_the_text(tokenizer: Any, text: str, content: str, calls: Any) -> None:
    renderer = ChatTemplateRenderer(tokenizer, tools=[])
    message, termination = renderer.parse_response(tokenizer.encode(text + "<|im_end|>"))
    assert (message["content"], message.get("tool_calls")) == (content, calls)
    assert termination == "stop_sequence"
    plain, _ = ChatTemplateRenderer(tokenizer).parse_response(tokenizer.encode(text))
    assert plain == {"role": "assistant", "content": text}


def test_other_forms_of_calls_are_read_by_the_user_s_own_function(
    stub: TinkerStub, sampler: Any, tokenizer: Any
) -> None:
    def read(text: str) -> Any:
        name, _, number = text.partition(" ")
        return "", [{"name": name, "arguments": {"a": int(number), "b": 0}}]

    said(stub, tokenizer, "add 3<|im_end|>")
    renderer = ChatTemplateRenderer(tokenizer, read_calls=read)
    policy = TinkerPolicy(sampler, max_tokens=10, tools=[add], renderer=renderer)
    assert policy("hello").action.get("tool_calls") == [
        {"name": "add", "arguments": {"a": 3, "b": 0}}
    ]
    assert "add" in chunks_of(stub, tokenizer)[0]


@pytest.mark.parametrize("is_newer", [False, True])
def test_renderers_of_others_extend_exact_tokens(
    stub: TinkerStub, sampler: Any, tokenizer: Any, is_newer: bool
) -> None:
    renderer: Renderer = Turns(tokenizer, is_newer=is_newer)
    he, llo = tokenizer.encode("he"), tokenizer.encode("llo")
    stub.sample = lambda _: [Sampled([*he, *llo, *tokenizer.encode("<|im_end|>")])]
    policy = TinkerPolicy(sampler, max_tokens=10, renderer=renderer)
    trajectory = rollout(ChatEnv("hello", respond=again), policy, seed=1)
    _, report = assemble_rows(trajectory)
    assert (report.num_rows, report.breaks) == (1, ())
    assert trajectory.actions == ("hello",) * 3
    assert [step.policy_info["termination"] for step in trajectory.steps] == ["stop_sequence"] * 3
    prompt = renderer.build_generation_prompt([{"role": "user", "content": "hello"}])
    assert trajectory.steps[0].policy_prompt_tokens == prompt.to_ints()


@pytest.mark.parametrize("is_newer", [False, True])
@pytest.mark.parametrize(
    ("text", "reason", "action", "termination"),
    [
        ("hello<|endoftext|>", "stop", "hello", "eos"),
        ("<think>so</think>hello<|endoftext|>", "stop", "hello", "eos"),
        ("hello", "length", "hello", "length"),
        ("hello", "stop", "hello", "malformed"),
        ("a<|im_end|>b<|im_end|>", "stop", "a<|im_end|>b<|im_end|>", "malformed"),
    ],
)
def test_the_end_of_all_text_is_no_failure_of_parsing(
    stub: TinkerStub,
    sampler: Any,
    tokenizer: Any,
    is_newer: bool,
    text: str,
    reason: str,
    action: str,
    termination: str,
) -> None:
    stub.sample = lambda _: [Sampled(tokenizer.encode(text), stop_reason=reason)]
    renderer = Turns(tokenizer, is_newer=is_newer)
    output = TinkerPolicy(sampler, max_tokens=10, renderer=renderer)("hello")
    assert (output.action, output.info["termination"]) == (action, termination)


def test_renderers_of_others_tell_of_tools_and_read_calls_and_thinking(
    stub: TinkerStub, sampler: Any, tokenizer: Any
) -> None:
    said(
        stub,
        tokenizer,
        '<think>so</think>I add.<tool_call>{"name": "add", "arguments": {"a": 1, "b": 2}}</tool_call><|im_end|>',
        '<tool_call>{"name": "add", "arguments": {"a"</tool_call><|im_end|>',
        "3<|im_end|>",
    )
    renderer = Turns(tokenizer)
    policy = TinkerPolicy(sampler, max_tokens=10, tools=[add], renderer=renderer)
    chat: Chat = [
        {"role": "system", "content": "Be brief. "},
        {"role": "user", "content": "1 + 2?"},
    ]
    trajectory = rollout(ChatEnv(chat, tools=[add]), policy, seed=1)
    assert chunks_of(stub, tokenizer, 0)[0].startswith(
        '<|im_start|>system\nBe brief. Tools: ["add"]<|im_end|>'
    )
    first, second, third = trajectory.actions
    assert first == {
        "role": "assistant",
        "content": "I add.",
        "tool_calls": [{"name": "add", "arguments": {"a": 1, "b": 2}}],
    }
    assert trajectory.steps[0].policy_info["reasoning"] == "so"
    assert isinstance(second, dict)
    [call] = second.get("tool_calls", [])
    assert (call["name"], call["arguments"]) == ("add", {})
    assert "malformed" in call
    assert third == {"role": "assistant", "content": "3"}
    _, report = assemble_rows(trajectory)
    assert (report.num_rows, report.breaks) == (1, ())


def test_renderers_of_others_place_images(stub: TinkerStub, sampler: Any, tokenizer: Any) -> None:
    said(stub, tokenizer, "hello<|im_end|>", "there<|im_end|>", "well<|im_end|>")
    policy = TinkerPolicy(sampler, max_tokens=10, renderer=Turns(tokenizer))
    rollout(ChatEnv([IMAGES], respond=again), policy, seed=1)
    chunks = chunks_of(stub, tokenizer, 0)
    assert [chunk["expected_tokens"] for chunk in chunks if isinstance(chunk, dict)] == [7, 7]
    later = stub.received[1]["prompt"]["chunks"]
    assert [chunk["type"] for chunk in later].count("image") == 2


def test_a_turn_that_ends_with_a_text_is_rendered_anew(
    stub: TinkerStub, sampler: Any, tokenizer: Any
) -> None:
    stub.sample = lambda _: [Sampled(tokenizer.encode(" hello\n\nUser:"))]
    policy = TinkerPolicy(sampler, max_tokens=10, renderer=RoleColon(tokenizer))
    trajectory = rollout(ChatEnv("hello", respond=again), policy, seed=1)
    assert trajectory.actions == ("hello",) * 3
    assert stub.received[0]["sampling_params"]["stop"] == ["\n\nUser:"]
    assert chunks_of(stub, tokenizer, 1) == [
        "User: hello\n\nAssistant: hello\n\nUser: again\n\nAssistant:"
    ]
