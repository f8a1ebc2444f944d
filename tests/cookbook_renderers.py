"""Renderers in the manner of tinker-cookbook, which cannot be installed beside the rest.

Written after `tinker_cookbook/renderers/base.py`, `qwen3.py` and `role_colon.py` at commits 00c85894
(termination as a bool) and 0106c4de (as an enumeration).
"""

from __future__ import annotations

import json
from enum import StrEnum
from typing import Any

import pydantic
import tinker


class ParseTermination(StrEnum):
    STOP_SEQUENCE = "stop_sequence"
    EOS = "eos"
    MALFORMED = "malformed"


class Function(pydantic.BaseModel):
    name: str
    arguments: str


class ToolCall(pydantic.BaseModel):
    function: Function
    type: str = "function"
    id: str | None = None


class UnparsedToolCall(pydantic.BaseModel):
    raw_text: str
    error: str


class Turns:
    """Turns between special tokens, encoded one by one, with thinking apart from the text."""

    def __init__(self, tokenizer: Any, *, strips: bool = False, is_newer: bool = True) -> None:
        self.tokenizer = tokenizer
        self.strips = strips
        self.is_newer = is_newer

    def build_generation_prompt(
        self, messages: list[Any], role: str = "assistant", prefill: str | None = None
    ) -> tinker.ModelInput:
        chunks: list[Any] = []
        for index, message in enumerate(messages):
            start = "\n" if index else ""
            chunks.append(self._text(f"{start}<|im_start|>{message['role']}\n"))
            chunks += self._content(message, is_last=index == len(messages) - 1)
            chunks.append(self._text("<|im_end|>"))
        chunks.append(self._text(f"\n<|im_start|>{role}\n"))
        return tinker.ModelInput(chunks=chunks)

    def get_stop_sequences(self) -> list[int]:
        return self.tokenizer.encode("<|im_end|>")

    def parse_response(self, response: list[int]) -> tuple[Any, Any]:
        [end] = self.get_stop_sequences()
        text = self.tokenizer.decode(response)
        if response.count(end) > 1:
            raise ValueError(text)
        if end not in response:
            malformed = ParseTermination.MALFORMED if self.is_newer else False
            return {"role": "assistant", "content": text}, malformed
        message: dict[str, Any] = {"role": "assistant"}
        text = text.removesuffix("<|im_end|>")
        thinking, mark, answer = text.rpartition("</think>")
        answer, mark_of_call, call = answer.partition("<tool_call>")
        message["content"] = answer
        if mark:
            message["content"] = [
                {"type": "thinking", "thinking": thinking.removeprefix("<think>")},
                {"type": "text", "text": answer},
            ]
        if mark_of_call:
            self._read_call(call.removesuffix("</tool_call>"), message)
        return message, ParseTermination.STOP_SEQUENCE if self.is_newer else True

    def create_conversation_prefix_with_tools(
        self, tools: list[Any], system_prompt: str = ""
    ) -> list[Any]:
        told = f"{system_prompt}Tools: {json.dumps([tool['name'] for tool in tools])}"
        return [{"role": "system", "content": told}]

    def _read_call(self, body: str, message: dict[str, Any]) -> None:
        try:
            call = json.loads(body)
        except ValueError as error:
            raw = f"<tool_call>{body}</tool_call>"
            message["unparsed_tool_calls"] = [UnparsedToolCall(raw_text=raw, error=str(error))]
        else:
            function = Function(name=call["name"], arguments=json.dumps(call["arguments"]))
            message["tool_calls"] = [ToolCall(function=function)]

    def _content(self, message: Any, *, is_last: bool) -> list[Any]:
        content = message["content"]
        parts = [{"type": "text", "text": content}] if isinstance(content, str) else content
        chunks: list[Any] = []
        for part in parts:
            if part["type"] == "image":
                chunks += [
                    self._text("<|vision_start|>"),
                    tinker.types.ImageChunk(data=b"?", format="jpeg", expected_tokens=7),
                    self._text("<|vision_end|>"),
                ]
            elif part["type"] == "text":
                chunks.append(self._text(part["text"]))
            elif is_last or not self.strips:
                chunks.append(self._text(f"<think>{part['thinking']}</think>"))
        for call in message.get("tool_calls", []):
            body = {"name": call.function.name, "arguments": json.loads(call.function.arguments)}
            chunks.append(self._text(f"\n<tool_call>{json.dumps(body)}</tool_call>"))
        return [chunk for chunk in chunks if getattr(chunk, "tokens", True)]

    def _text(self, text: str) -> tinker.EncodedTextChunk:
        return tinker.EncodedTextChunk(tokens=self.tokenizer.encode(text, add_special_tokens=False))


class RoleColon:
    """Turns of plain text, for base models; what ends them is a text, too."""

    def __init__(self, tokenizer: Any) -> None:
        self.tokenizer = tokenizer

    def build_generation_prompt(self, messages: list[Any]) -> tinker.ModelInput:
        turns = [f"{message['role'].capitalize()}: {message['content']}" for message in messages]
        return tinker.ModelInput.from_ints(
            self.tokenizer.encode("\n\n".join([*turns, "Assistant:"]))
        )

    def get_stop_sequences(self) -> list[str]:
        return ["\n\nUser:"]

    def parse_response(self, response: list[int]) -> tuple[Any, ParseTermination]:
        text = self.tokenizer.decode(response)
        said, stop, _ = text.partition("\n\nUser:")
        message = {"role": "assistant", "content": said.strip()}
        return message, ParseTermination.STOP_SEQUENCE if stop else ParseTermination.MALFORMED
