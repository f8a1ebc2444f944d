"""Episodes written down turn by turn, for the tests of training rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from hypothesis import strategies as st

from rolloutlib import RolloutError, Score, Step, Trajectory, TrajectoryGroup

Group = TrajectoryGroup[str, str, str]


@dataclass
class Turn:
    """What a policy told of one action; the defaults are those of a plain action."""

    prompt: Sequence[int] | None = None
    tokens: Sequence[int] | None = None
    logprobs: Sequence[float] | None = None
    stop: str | None = None
    version: int | str | None = None
    reward: float = 0.0
    info: dict[str, Any] = field(default_factory=dict[str, Any])


def sampled(prompt: Sequence[int], tokens: Sequence[int], **others: Any) -> Turn:
    """A turn with all its token data."""
    logprobs = [-(token % 7 + 1) / 8 for token in tokens]
    fields: dict[str, Any] = {"logprobs": logprobs, "stop": "stop", **others}
    return Turn(prompt, tokens, **fields)


def episode(*turns: Turn, member: int | None = None) -> Trajectory[str, str]:
    """A trajectory of turns."""
    steps = [
        Step(
            "o",
            "a",
            turn.reward,
            "o",
            index == len(turns) - 1,
            False,
            turn.info,
            {},
            turn.tokens,
            turn.logprobs,
            turn.stop,
            turn.prompt,
            turn.version,
        )
        for index, turn in enumerate(turns)
    ]
    return Trajectory("o", steps, terminated=True, member=member)


def group(
    *episodes: Trajectory[str, str],
    rewards: Sequence[float] = (),
    item_id: str = "i",
    errors: Sequence[RolloutError] = (),
) -> Group:
    """A group of episodes, with scores of its own if rewards are given."""
    return TrajectoryGroup(
        item_id, item_id, episodes, [Score(reward) for reward in rewards], errors
    )


tokens = st.lists(st.integers(0, 9), min_size=1, max_size=4)


@st.composite
def episodes(draw: st.DrawFn, member: int) -> Trajectory[str, str]:
    """An episode in which the tokens drift now and then, and some turns are odd."""
    turns: list[Turn] = []
    so_far: list[int] = []
    for step in range(draw(st.integers(0, 5))):
        # A fresh number at each place, so that a corruption is never by chance another truth.
        own = 1_000 * (10 * member + step + 1)
        prompt = [
            *so_far,
            *[own + token for token in draw(st.lists(st.integers(0, 9), max_size=4))],
        ]
        drift = draw(st.sampled_from(["none", "none", "changed", "dropped", "cut"]))
        if prompt and drift != "none":
            place = draw(st.integers(0, len(prompt) - 1))
            if drift == "changed":
                prompt[place] += 100
            elif drift == "dropped":
                del prompt[place]
            else:
                del prompt[place:]
        ids = [own + 500 + token for token in draw(tokens)]
        match draw(st.sampled_from(["sampled"] * 5 + ["plain", "empty", "aborted"])):
            case "sampled":
                turns.append(sampled(prompt, ids, version=step, reward=draw(st.floats(0, 1))))
            case "plain":
                turns.append(Turn())
                ids = []
            case "empty":
                turns.append(sampled(prompt, []))
                ids = []
            case _:
                turns.append(sampled(prompt, ids, stop="abort"))
        so_far = [*prompt, *ids]
    return episode(*turns, member=member)


@st.composite
def groups(draw: st.DrawFn, item_id: str = "i", min_size: int = 0) -> Group:
    """A group of such episodes."""
    size = draw(st.integers(min_size, 4))
    return group(*[draw(episodes(member)) for member in range(size)], item_id=item_id)
