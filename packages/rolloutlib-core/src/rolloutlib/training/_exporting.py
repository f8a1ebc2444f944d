"""What the exporters of rows share: prompts and responses, rewards, padding."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from rolloutlib._values import to_float
from rolloutlib.training._advantages import Rewards
from rolloutlib.training._episodes import Source, episodes_of, groups_of, rewards_of
from rolloutlib.training._reports import describe
from rolloutlib.training._sequences import TokenSequence


class SplitRow(NamedTuple):
    """A row of which the prompt is what comes before the first token to be trained.

    The response is all after it: what was sampled, and what the environment said in between.
    """

    prompt: NDArray[Any]
    response: NDArray[Any]
    mask: NDArray[np.bool_]
    logprobs: NDArray[np.float32] | None
    advantages: NDArray[np.float32] | None


def row_rewards(
    rows: Iterable[TokenSequence], source: Source, *, rewards: Rewards | None = None
) -> list[float]:
    """Return the reward of the episode that each row came from.

    Args:
        rows: Rows as `assemble_rows` makes them.
        source: The trajectory, the group or the groups that they were made from.
        rewards: Gives the reward of an episode; by default as for `assemble_rows`.

    Raises:
        TypeError: A reward is no number.
        ValueError: A row has no span, or its episode is not in the source, has no reward, or cannot
            be told from another: two groups have one item id, or there are several trajectories
            without a group.
    """
    known: dict[tuple[str | None, int], list[float | None]] = {}
    for group in groups_of(source):
        episodes = episodes_of(group, failed=True)
        for episode, value in zip(episodes, rewards_of(group, episodes, rewards), strict=True):
            known.setdefault((episode.item_id, episode.member), []).append(value)
    found: list[float] = []
    for number, row in enumerate(rows):
        item_id, member = place_of(row, number)
        values = known.get((item_id, member), [])
        value = values[0] if len(values) == 1 else None
        if value is None:
            why = f"is {len(values)} times in the source" if len(values) != 1 else "has no reward"
            msg = f"row {number} is of {describe(item_id, member)}, which {why}"
            raise ValueError(msg)
        found.append(to_float(value, f"the reward of {describe(item_id, member)}"))
    return found


def split_rows(rows: Sequence[TokenSequence]) -> list[SplitRow]:
    """Return the prompt and the response of each row.

    Raises:
        TypeError: A row is none.
        ValueError: There are no rows, a row has no token to train, or some rows have log
            probabilities or advantages and others have none.
    """
    if not rows:
        msg = "there are no rows to export"
        raise ValueError(msg)
    split: list[SplitRow] = []
    for number, row in enumerate(rows):
        if not isinstance(cast("object", row), TokenSequence):
            msg = f"row {number} must be a TokenSequence, got {row!r}"
            raise TypeError(msg)
        if not row.loss_mask.any():
            msg = f"row {number} has no token to train; leave it out"
            raise ValueError(msg)
        for name in ("logprobs", "advantages"):
            if (getattr(row, name) is None) != (getattr(rows[0], name) is None):
                msg = f"{name} must be given for all rows or for none: rows 0 and {number} differ"
                raise ValueError(msg)
        start = int(row.loss_mask.argmax())
        split.append(
            SplitRow(
                row.tokens[:start],
                row.tokens[start:],
                row.loss_mask[start:],
                None if row.logprobs is None else row.logprobs[start:],
                None if row.advantages is None else row.advantages[start:],
            )
        )
    return split


def check_rewards(rewards: Iterable[float], rows: Sequence[TokenSequence]) -> list[float]:
    """Return one reward a row, as floats.

    Raises:
        TypeError: A reward is no number.
        ValueError: There is not one a row, or one is not finite.
    """
    values = [to_float(value, f"reward {number}") for number, value in enumerate(rewards)]
    if len(values) != len(rows):
        msg = f"rewards must be one a row: got {len(values)} for {len(rows)} rows"
        raise ValueError(msg)
    return values


def place_of(row: TokenSequence, number: int) -> tuple[str | None, int]:
    """Return the item and the member that a row came from.

    Raises:
        ValueError: The row does not say.
    """
    if not row.spans:
        msg = f"row {number} has no span, which would tell where it came from"
        raise ValueError(msg)
    return row.spans[0].item_id, row.spans[0].member


def places_of(rows: Sequence[TokenSequence]) -> list[tuple[str | None, int]]:
    """Return the item and the member of each row, for trainers that compare the rows of an item.

    Raises:
        ValueError: A row does not say, or the rows are of several trajectories without a group, which
            would be compared as if they were of one item.
    """
    places = [place_of(row, number) for number, row in enumerate(rows)]
    last = [place for place, goes_on in zip(places, continued(rows), strict=True) if not goes_on]
    if sum(item_id is None for item_id, _ in last) > 1:
        msg = (
            "rows of several trajectories without a group cannot be told apart by item: make rows "
            "of a TrajectoryGroup with an item_id for each"
        )
        raise ValueError(msg)
    return places


def continued(rows: Sequence[TokenSequence]) -> Iterator[bool]:
    """Tell of each row whether the next one goes on with the same episode."""
    for number, row in enumerate(rows):
        here = place_of(row, number)
        last = number + 1 == len(rows)
        yield (
            not last
            and place_of(rows[number + 1], number + 1) == here
            and rows[number + 1].spans[0].step > row.spans[-1].step
        )


def pad(
    arrays: Sequence[NDArray[Any]],
    *,
    length: int | None,
    left: bool,
    value: int,
    dtype: Any = np.int64,
) -> NDArray[Any]:
    """Return arrays as the rows of one, of shape (rows, length), filled up on one side.

    Raises:
        ValueError: One is longer than `length`.
    """
    longest = max(map(len, arrays))
    width = longest if length is None else length
    if longest > width:
        number = next(number for number, array in enumerate(arrays) if len(array) > width)
        side = "prompt" if left else "response"
        msg = f"row {number} has a {side} of {len(arrays[number])} tokens, more than {width}"
        raise ValueError(msg)
    padded = np.full((len(arrays), width), value, dtype)
    for row, array in zip(padded, arrays, strict=True):
        if left:
            row[width - len(array) :] = array
        else:
            row[: len(array)] = array
    return padded
