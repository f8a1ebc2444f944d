"""A server that samples what a test tells it, and a tokenizer of transformers made for it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import transformers

import chat_templates
from tinker_stub import TinkerStub, sampler_of

# In the manner of Qwen: tool calls in the form of OpenAI, with arguments as a dictionary or a text.
TEMPLATE = """\
{%- if tools %}{{- '<|im_start|>system\\nTools: ' + tools | tojson + '<|im_end|>\\n' }}{%- endif %}
{%- for message in messages %}
{{- '<|im_start|>' + message.role + '\\n' + message.content }}
{%- for call in message.tool_calls or [] %}
{{- '\\n<tool_call>\\n{"name": "' + call.function.name + '", "arguments": ' }}
{{- call.function.arguments if call.function.arguments is string else call.function.arguments | tojson }}
{{- '}\\n</tool_call>' }}
{%- endfor %}
{{- '<|im_end|>\\n' }}
{%- endfor %}
{%- if add_generation_prompt %}{{- '<|im_start|>assistant\\n' }}{%- endif %}"""


@pytest.fixture(autouse=True)
def no_telemetry(monkeypatch: pytest.MonkeyPatch) -> None:
    """The SDK's own reports would be waited for after each error."""
    monkeypatch.setenv("TINKER_TELEMETRY", "0")


@pytest.fixture(scope="session")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A folder with a tokenizer."""
    folder = tmp_path_factory.mktemp("model")
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_object=chat_templates.tokenizer())
    tokenizer.eos_token = "<|endoftext|>"  # noqa: S105 - a token, and no password
    tokenizer.chat_template = TEMPLATE
    tokenizer.save_pretrained(str(folder))
    (folder / "config.json").write_text('{"model_type": "qwen2"}')
    return folder.as_posix()


@pytest.fixture(scope="session")
def tokenizer(model: str) -> Any:
    """That tokenizer."""
    return transformers.AutoTokenizer.from_pretrained(model)


@pytest.fixture
def stub(model: str) -> Iterator[TinkerStub]:
    """A server that samples as a test tells it."""
    with TinkerStub(model) as running:
        yield running


@pytest.fixture
def sampler(stub: TinkerStub) -> Any:
    """A sampling client of the SDK, of that server."""
    return sampler_of(stub)
