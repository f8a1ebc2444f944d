"""A chat of several turns in which the policy calls tools.

    uv run examples/tool_calls.py

The policies are scripted: a model of 135 million parameters does not call tools reliably, and here
the environment is the lesson. A mistake of the policy, be it a tool that is not there or arguments
that do not fit, comes back as an observation; it never ends the program.
"""

from __future__ import annotations

import json
import re
from typing import Any

from rolloutlib import ChatEnv, rollout
from rolloutlib.tools import EndEpisode, ToolError
from rolloutlib.types import Chat, Message

PRICES = {"apple": 30, "pear": 45, "plum": 20}
TASK = "What do 3 apple and 2 pear cost together, in cents?"
ANSWER = 3 * PRICES["apple"] + 2 * PRICES["pear"]


def price(item: str) -> int:
    """Look up what one item costs, in cents."""
    if item not in PRICES:
        msg = f"no {item!r}; there are {sorted(PRICES)}"
        raise ToolError(msg)
    return PRICES[item]


class ShopEnv(ChatEnv):
    """Asks for a total; `price` looks up one item, `submit` ends the episode."""

    def __init__(self) -> None:
        super().__init__(tools=[price, self.submit], max_turns=6)

    def initial_messages(self, *, options: dict[str, Any] | None = None) -> str:
        """State the task, of which nothing is submitted yet."""
        self.total: int | None = None
        return TASK

    def submit(self, total: int) -> EndEpisode:
        """Submit the total of all items, in cents."""
        self.total = total
        return EndEpisode("right" if total == ANSWER else "wrong")

    def grade(self, chat: Chat) -> float:
        """Return 1 for the right total."""
        return float(self.total == ANSWER)


def call(name: str, **arguments: object) -> Message:
    """Return the message that a model sends to call a tool."""
    return {
        "role": "assistant",
        "content": "",
        "tool_calls": [{"name": name, "arguments": arguments}],
    }


def shopper(chat: Chat) -> Message:
    """Look up what the task names, one item a turn, then add up; its first calls are mistakes."""
    if len(chat) == 1:
        return call("buy")
    if len(chat) == 3:
        return call("price", items=["apple", "pear"])
    amounts = {item: int(n) for n, item in re.findall(r"(\d+) (\w+)", str(chat[0]["content"]))}
    prices = [int(str(message["content"])) for message in chat[6::2]]
    for item in list(amounts)[len(prices) :]:
        return call("price", item=item)
    return call("submit", total=sum(n * p for n, p in zip(amounts.values(), prices, strict=True)))


def browser(chat: Chat) -> Message:
    """Ask for one price for ever."""
    return call("price", item="plum")


def main() -> None:
    """Roll out a policy that finishes, and one that the limit of turns has to stop."""
    print(TASK)
    for policy in (shopper, browser):
        print(policy.__name__)
        env = ShopEnv()
        trajectory = rollout(env, policy)
        for message in env.chat:
            for made in message.get("tool_calls", []):
                print(f"  {made['name']}({json.dumps(made['arguments'])})")
            if message["role"] == "tool":
                print(f"    -> {str(message['content']).replace(chr(10), ' ')}")
        end = "terminated" if trajectory.terminated else "truncated"
        counts = {key: trajectory.steps[-1].info[key] for key in ("num_turns", "num_mistakes")}
        print(f"  {end} with reward {trajectory.total_reward:.1f}; {counts}\n")


if __name__ == "__main__":
    main()
