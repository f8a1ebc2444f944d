"""An environment of several turns in which the policy calls tools.

    uv run examples/tool_calls.py

The policies are scripted: a model of 135 million parameters does not call tools reliably, and here
the environment is the lesson. A mistake of the policy, be it a tool that is not there or arguments
that do not fit, comes back as an observation; it never ends the program.
"""

from __future__ import annotations

import json
import re
from typing import Any

import gymnasium as gym

from rolloutlib import Env, rollout, spaces
from rolloutlib.rollouts import Trajectory
from rolloutlib.types import Chat, ToolCall

PRICES = {"apple": 30, "pear": 45, "plum": 20}
TASK = "What do 3 apple and 2 pear cost together, in cents?"
TOOLS: dict[str, gym.Space[Any]] = {
    "price": gym.spaces.Dict({"item": spaces.text.text(min_length=1)}),
    "submit": gym.spaces.Dict({"total": gym.spaces.Discrete(10_000)}),
}
ANSWER = 3 * PRICES["apple"] + 2 * PRICES["pear"]


class ShopEnv(Env[Chat, ToolCall]):
    """Asks for a total; `price` looks up one item, `submit` ends the episode."""

    observation_space = spaces.messages.chat(min_length=1)
    action_space = spaces.tools.call(TOOLS)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Chat, dict[str, Any]]:
        """State the task."""
        super().reset(seed=seed)
        self.chat: Chat = [{"role": "user", "content": TASK}]
        return self.chat, {"tools": sorted(TOOLS)}

    def step(self, action: ToolCall) -> tuple[Chat, float, bool, bool, dict[str, Any]]:
        """Run the call and add both to the chat, which grows; records keep what it was."""
        self.chat.append({"role": "assistant", "content": "", "tool_calls": [action]})
        terminated, reward = False, 0.0
        if action not in self.action_space:
            result = f"error: no such call; the tools are {sorted(TOOLS)}"
            reward = -0.1
        elif action["name"] == "price":
            item = str(action["arguments"]["item"])
            result = str(PRICES.get(item, f"error: no {item!r}; there are {sorted(PRICES)}"))
        else:
            terminated = True
            reward = float(action["arguments"]["total"] == ANSWER)
            result = "right" if reward else "wrong"
        self.chat.append({"role": "tool", "name": action["name"], "content": result})
        return self.chat, reward, terminated, False, {"result": result}


def shopper(chat: Chat) -> ToolCall:
    """Look up what the task names, one item a turn, then add up; its first call is a mistake."""
    amounts = {item: int(n) for n, item in re.findall(r"(\d+) (\w+)", str(chat[0]["content"]))}
    if len(chat) == 1:
        return {"name": "buy", "arguments": {}}
    prices = {
        str(call["arguments"]["item"]): int(str(result["content"]))
        for message, result in zip(chat[1::2], chat[2::2], strict=True)
        for call in message.get("tool_calls", [])
        if call["name"] == "price"
    }
    for item in amounts:
        if item not in prices:
            return {"name": "price", "arguments": {"item": item}}
    return {
        "name": "submit",
        "arguments": {"total": sum(n * prices[item] for item, n in amounts.items())},
    }


def browser(chat: Chat) -> ToolCall:
    """Ask for one price for ever."""
    return {"name": "price", "arguments": {"item": "plum"}}


def show(trajectory: Trajectory[Chat, ToolCall]) -> None:
    """Print the calls, their results and how the episode ended."""
    for step in trajectory.steps:
        call = f"{step.action['name']}({json.dumps(step.action['arguments'])})"
        print(f"  {call} -> {step.info['result']}  [{step.reward:+.1f}]")
    end = "terminated" if trajectory.terminated else "truncated"
    lengths = [len(chat) for chat in trajectory.observations]
    print(f"  {end} with reward {trajectory.total_reward:.1f}; messages in view: {lengths}\n")


def main() -> None:
    """Roll out a policy that finishes, and one that the step limit has to stop."""
    print(TASK)
    for policy in (shopper, browser):
        print(policy.__name__)
        show(rollout(ShopEnv(), policy, max_steps=6))


if __name__ == "__main__":
    main()
