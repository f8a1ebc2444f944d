"""What a policy knows of its model, whatever weights it has."""

from __future__ import annotations

import threading
from typing import Any, Generic

from rolloutlib.rollouts import ActionT
from rolloutlib.tinker._options import PolicyOptions, check_options, read_stop
from rolloutlib.tinker._outputs import ActionKind, OutputReader
from rolloutlib.tinker._prompts import Prompt, Prompts
from rolloutlib.tinker._renderers import ChatTemplateRenderer, Renderer
from rolloutlib.tinker._tools import check_renderer, with_tools
from rolloutlib.tools import Tools, define_tools


class Model(Generic[ActionT]):
    """How a model is asked and understood; the conversations that it is in.

    Args:
        kind: Which actions it is to choose.
        tools: What it may call.
        renderer: One of the user's, or None for one over the tokenizer's chat template.
        options: Those of the policy.

    Attributes:
        prompts: Makes prompts of observations.
        reader: Makes actions of answers.
        place: Names the model, for messages.

    Raises:
        TypeError: Something is no tool, or no renderer, or an option has the wrong type.
        ValueError: An option is out of its range.
    """

    prompts: Prompts
    reader: OutputReader[ActionT]

    def __init__(
        self,
        kind: ActionKind,
        tools: Tools | None,
        renderer: Renderer | None,
        options: PolicyOptions,
    ) -> None:
        check_options(options)
        self.options = options
        self.place = "sampling"
        self._kind: ActionKind = kind
        self._tools = define_tools(tools)
        check_renderer(renderer)
        self._renderer = renderer if tools is None else with_tools(renderer, self._tools)
        self._loading = threading.Lock()

    @property
    def num_incomplete(self) -> int:
        """How many answers lacked log probabilities."""
        return self.reader.incomplete.count if hasattr(self, "reader") else 0

    def load(self, sampler: Any) -> None:
        """Load the tokenizer, unless that has been done.

        Args:
            sampler: A sampling client.

        Raises:
            ValueError: The tokenizer has a chat template in which no end of a turn is found.
        """
        with self._loading:
            if hasattr(self, "reader"):
                return
            tokenizer = getattr(self._renderer, "tokenizer", None) or sampler.get_tokenizer()
            renderer = self._renderer
            if renderer is None and getattr(tokenizer, "chat_template", None):
                tools = self._tools if self._kind == "message" else None
                renderer = ChatTemplateRenderer(tokenizer, tools=tools)
            name = getattr(tokenizer, "name_or_path", None)
            self.place = f"sampling from {name!r}" if name else "sampling"
            self.prompts = Prompts(renderer, tokenizer, self._tools, self.options)
            self.reader = OutputReader(renderer, tokenizer, self._kind, self.options, self.place)

    def params(self, prompt: Prompt) -> dict[str, Any]:
        """Return the sampling parameters for a prompt, but for the seed."""
        options = self.options
        max_tokens = int(options["max_tokens"])
        if (most := options.get("max_context")) is not None:
            max_tokens = min(max_tokens, int(most) - prompt.size)
        params: dict[str, Any] = {"max_tokens": max_tokens, "stop": self._stop()}
        for name, kind in (("temperature", float), ("top_k", int), ("top_p", float)):
            number = options.get(name)
            if number is not None:
                params[name] = kind(number)  # a scalar of NumPy, say
        return params

    def _stop(self) -> list[Any] | None:
        """Return what ends an answer: the SDK takes texts or ids, but not both."""
        texts, ids = read_stop(self.options)
        stops: list[Any] = list(dict.fromkeys([*self.prompts.stops, *texts, *ids]))
        if any(isinstance(stop, str) for stop in stops):
            return [
                stop if isinstance(stop, str) else self.prompts.decode([stop]) for stop in stops
            ]
        return stops or None
