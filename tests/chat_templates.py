"""A real tokenizer, trained here in a moment, and chat templates in the manner of well-known ones."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable
from typing import Any

import jinja2.sandbox
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

from rolloutlib.training import ChatTokenizer

SPECIAL = [
    *("<|im_start|>", "<|im_end|>", "<|start_header_id|>", "<|end_header_id|>"),
    *("<|eot_id|>", "<|eom_id|>", "<|begin_of_text|>", "<|endoftext|>"),
]

_TEXT = [
    "hello hello hello there, hello world. he said llo; the llama and the hero.",
    "<think>\nlet me think about it\n</think>\n\nThe answer is 42, and no other.",
    '<tool_call>\n{"name": "add", "arguments": {"x": 1, "y": 2}}\n</tool_call>',
    "system user assistant tool\n\n What is 2 + 2? It is 4 today, 26 Jul 2026.",
]


@functools.cache
def tokenizer() -> Tokenizer:
    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=420,
        special_tokens=SPECIAL,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    made.train_from_iterator(_TEXT * 3, trainer)
    return made


def encode(text: str) -> list[int]:
    return tokenizer().encode(text, add_special_tokens=False).ids


def decode(ids: list[int]) -> str:
    return tokenizer().decode(ids, skip_special_tokens=False)


_TURNS = """
{%- for message in messages %}
    {{- '<|im_start|>' + message.role + '\n' + message.content }}
    {%- for call in message.tool_calls or [] %}
        {{- '\n<tool_call>\n{"name": "' + call.name + '", "arguments": ' + call.arguments | tojson + '}\n</tool_call>' }}
    {%- endfor %}
    {{- '<|im_end|>\n' }}
{%- endfor %}
{%- if add_generation_prompt %}{{- '<|im_start|>assistant\n' }}{%- endif %}
"""

CHATML = (
    """
{%- if tools %}{{- '<|im_start|>system\nTools: ' + tools | tojson + '<|im_end|>\n' }}{%- endif %}
"""
    + _TURNS
)

DEFAULT_SYSTEM = (
    """
{%- if messages[0].role != 'system' %}
    {{- '<|im_start|>system\nYou are a helpful assistant.<|im_end|>\n' }}
{%- endif %}
"""
    + _TURNS
)

STRIPS = _TURNS.replace("message.content", "message.content | trim")

DATED = (
    """
{{- '<|im_start|>system\nToday is ' + today() + '.<|im_end|>\n' }}
"""
    + _TURNS
)

LLAMA = """
{{- '<|begin_of_text|>' }}
{%- for message in messages %}
    {{- '<|start_header_id|>' + message.role + '<|end_header_id|>\n\n' + message.content + '<|eot_id|>' }}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|start_header_id|>assistant<|end_header_id|>\n\n' }}
{%- endif %}
"""

# Thinking is shown for what comes after the last message of the user, in the manner of Qwen3.
DROPS_THINKING = """
{%- set ns = namespace(last=-1) %}
{%- for message in messages %}{%- if message.role == 'user' %}{%- set ns.last = loop.index0 %}{%- endif %}{%- endfor %}
{%- for message in messages %}
    {{- '<|im_start|>' + message.role + '\n' }}
    {%- if message.role == 'assistant' and '</think>' in message.content and loop.index0 < ns.last %}
        {{- message.content.split('</think>')[-1].lstrip('\n') }}
    {%- else %}
        {{- message.content }}
    {%- endif %}
    {{- '<|im_end|>\n' }}
{%- endfor %}
{%- if add_generation_prompt %}{{- '<|im_start|>assistant\n' }}{%- endif %}
"""

# Thinking is beside the content, and written after the last message of the user; the last turn has
# some though it be empty. In the manner of Qwen3 too.
WRITES_THINKING = """
{%- set ns = namespace(last=-1) %}
{%- for message in messages %}{%- if message.role == 'user' %}{%- set ns.last = loop.index0 %}{%- endif %}{%- endfor %}
{%- for message in messages %}
    {{- '<|im_start|>' + message.role + '\n' }}
    {%- set thinking = message.reasoning_content or '' %}
    {%- if message.role == 'assistant' and loop.index0 > ns.last and (loop.last or thinking) %}
        {{- '<think>\n' + thinking + '\n</think>\n\n' }}
    {%- endif %}
    {{- message.content + '<|im_end|>\n' }}
{%- endfor %}
{%- if add_generation_prompt %}{{- '<|im_start|>assistant\n' }}{%- endif %}
"""

# The beginning of thinking belongs to the prompt, and to no turn that is over.
OPENS_THINKING = _TURNS.replace("assistant\n'", "assistant\n<think>\n'")


def renderer(
    template: str, *, tools: Any = None, today: Callable[[], str] | None = None
) -> Callable[..., str]:
    """Return what `apply_chat_template(..., tokenize=False)` is for a tokenizer of transformers."""
    environment = jinja2.sandbox.ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True)
    environment.filters["tojson"] = json.dumps
    compiled = environment.from_string(template)

    def render(messages: list[dict[str, Any]], *, add_generation_prompt: bool) -> str:
        return compiled.render(
            messages=messages, add_generation_prompt=add_generation_prompt, tools=tools, today=today
        )

    return render


def chat_tokenizer(
    template: str = CHATML,
    *,
    end_of_turn: str | list[str] = "<|im_end|>",
    today: Callable[[], str] | None = None,
    tools: Any = None,
    **settings: Any,
) -> ChatTokenizer:
    return ChatTokenizer(
        renderer(template, tools=tools, today=today),
        encode,
        decode,
        end_of_turn=end_of_turn,
        **settings,
    )
