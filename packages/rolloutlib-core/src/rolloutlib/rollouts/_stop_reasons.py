"""Why sampling ended: the words of samplers and servers, in one closed set."""

from __future__ import annotations

from typing import Literal, TypeAlias

StopReason: TypeAlias = Literal[
    "stop", "length", "tool_calls", "aborted", "timeout", "error", "context_overflow"
]
"""Why a turn ended.

- "stop": the model ended it, by its stop token or by a stop sequence.
- "length": it reached the most tokens that it may have.
- "tool_calls": the model asks for tools.
- "aborted": the sampler was told to leave off.
- "timeout": it took too long.
- "error": the sampler failed.
- "context_overflow": it filled the model's context.
"""


def read_stop_reason(text: str | None) -> StopReason | None:
    """Return the reason that a sampler's own word stands for, or None if it is unknown."""
    if not isinstance(text, str):  # nothing, or an object of the sampler's own
        return None
    return _KNOWN.get(text) or _KNOWN.get(text.strip().lower().replace("-", "_"))


_SPELLINGS: dict[StopReason, str] = {
    # OpenAI, vLLM, SGLang, Tinker; llama.cpp; Anthropic; Text Generation Inference; Cohere
    "stop": "stop eos word end_turn stop_sequence eos_token complete",
    # OpenAI; llama.cpp; Anthropic, Gemini
    "length": "length limit max_tokens",
    # OpenAI, now and before; Anthropic, Bedrock
    "tool_calls": "tool_calls function_call tool_use",
    "aborted": "aborted abort cancelled canceled",
    "timeout": "timeout time_limit",
    "error": "error",
    # Anthropic, Bedrock; Inspect
    "context_overflow": "context_overflow model_context_window_exceeded model_length",
}
_KNOWN: dict[str, StopReason] = {
    word: reason for reason, words in _SPELLINGS.items() for word in words.split()
}
