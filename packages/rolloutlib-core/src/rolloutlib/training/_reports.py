"""What became of the sampled tokens on their way into rows."""

from __future__ import annotations

from dataclasses import dataclass

SHOWN = 8
"""How many tokens a break shows of either side."""

_LISTED = 10


@dataclass(frozen=True, slots=True)
class RowBreak:
    """Where a prompt does not begin with the tokens before it, so that a new row begins.

    Attributes:
        item_id: The name of the group's item, or None for a trajectory without a group.
        member: Which rollout of the group it is.
        step: The step whose prompt differs, the first of the new row.
        position: How many tokens of the row before and of the prompt are the same.
        expected: The first tokens of the row from there on; at most eight.
        found: The first tokens of the prompt from there on, none if it ends there.
        extra_tokens: How many tokens of the prompt the row before could have shared.
    """

    item_id: str | None
    member: int
    step: int
    position: int
    expected: tuple[int, ...]
    found: tuple[int, ...]
    extra_tokens: int

    def __str__(self) -> str:
        return (
            f"{describe(self.item_id, self.member, self.step)}: the prompt differs from the tokens so "
            f"far at {self.position}: {list(self.expected)} became {list(self.found)}, "
            f"{self.extra_tokens} extra tokens"
        )


@dataclass(frozen=True, slots=True)
class RowReport:
    """What rows were made of. Its text is a summary to print.

    Every step of an episode that was not left out is counted once: trained, plain, empty, aborted or
    missing.

    Attributes:
        num_rows: How many rows there are.
        num_tokens: How many tokens they have together.
        num_trainable: How many of those are to be trained.
        num_episodes: How many episodes there were, those left out included.
        num_failed: How many episodes failed and were left out.
        num_unscored: How many episodes have no reward and were left out.
        num_trained_steps: How many steps have their tokens in a row, to be trained.
        num_plain_steps: How many came from no model: there is nothing but an action.
        num_empty_steps: How many have no tokens, though a model was asked.
        num_aborted_steps: How many were broken off (aborted, timeout, error) and left out.
        num_missing_steps: How many lack token data and were left out, with `missing="skip"`.
        breaks: Where a row could not go on, in order.
    """

    num_rows: int = 0
    num_tokens: int = 0
    num_trainable: int = 0
    num_episodes: int = 0
    num_failed: int = 0
    num_unscored: int = 0
    num_trained_steps: int = 0
    num_plain_steps: int = 0
    num_empty_steps: int = 0
    num_aborted_steps: int = 0
    num_missing_steps: int = 0
    breaks: tuple[RowBreak, ...] = ()

    @property
    def extra_tokens(self) -> int:
        """How many tokens all breaks together cost."""
        return sum(each.extra_tokens for each in self.breaks)

    def __str__(self) -> str:
        episodes = (
            f"episodes: {self.num_episodes}; left out: {self.num_failed} failed, "
            f"{self.num_unscored} unscored"
        )
        steps = (
            f"steps: {self.num_trained_steps} trained; left out: {self.num_plain_steps} plain, "
            f"{self.num_empty_steps} empty, {self.num_aborted_steps} aborted, "
            f"{self.num_missing_steps} without token data"
        )
        lines = [
            f"rows: {self.num_rows} of {self.num_tokens} tokens, {self.num_trainable} trainable",
            episodes,
            steps,
            f"breaks: {len(self.breaks)}, {self.extra_tokens} extra tokens",
            *[f"  {each}" for each in self.breaks[:_LISTED]],
        ]
        if len(self.breaks) > _LISTED:
            lines.append(f"  and {len(self.breaks) - _LISTED} more")
        return "\n".join(lines)


def describe(item_id: str | None, member: int, step: int | None = None) -> str:
    """Return where something is, for messages."""
    place = f"member {member}" if item_id is None else f"item {item_id!r}, member {member}"
    return place if step is None else f"{place}, step {step}"
