"""Proof that rows are fit to train on, and that they hold what was sampled."""

from __future__ import annotations

from collections.abc import Iterable

from rolloutlib.training._advantages import Rewards
from rolloutlib.training._coverage import Coverage, sampled_actions
from rolloutlib.training._episodes import Source
from rolloutlib.training._inspection import AnyRow, RowInspection
from rolloutlib.training._problems import InvalidRowsError, RowProblem


def verify_rows(
    rows: Iterable[AnyRow],
    source: Source | None = None,
    *,
    rewards: Rewards | None = None,
    logprobs: bool = True,
    aborted: bool = False,
    failed: bool = False,
) -> list[RowProblem]:
    """Return what is wrong with training rows: nothing, if they are fit to train on.

    Of each row by itself: the arrays have one type and length, the mask is 0 or 1 and nowhere 1 on
    padding, some token is trained, spans stand in order and cover the mask, log probabilities of
    trained tokens are finite and not positive beyond rounding, advantages are finite and 0 elsewhere.

    With the records that the rows came from, also: each sampled token is trained exactly once, in the
    context it was sampled in, with the log probability that was recorded, and nothing else is
    trained.

    Args:
        rows: `TokenSequence`s, or a trainer's own rows as mappings with "tokens" and "loss_mask", and
            if they have them "logprobs", "advantages", "spans" and "attention_mask" (0 is padding).
            Values may be lists, arrays or tensors. In rows without spans, actions are found by
            their tokens.
        source: The trajectory, the group or the groups that they were made from.
        rewards: As for `assemble_rows`; episodes whose reward is None are not expected.
        logprobs: Whether there must be log probabilities.
        aborted: As for `assemble_rows`.
        failed: As for `assemble_rows`.

    Raises:
        TypeError: The source has something else in it.
    """
    actions = None
    if source is not None:
        actions = Coverage(
            sampled_actions(
                source, rewards=rewards, logprobs=logprobs, aborted=aborted, failed=failed
            )
        )
    problems: list[RowProblem] = []
    for number, row in enumerate(rows):
        inspection = RowInspection(row, number, logprobs=logprobs)
        if actions is not None:
            actions.find(inspection)
        problems += inspection.problems
    if actions is not None:
        problems += actions.missing()
    return problems


def check_rows(
    rows: Iterable[AnyRow],
    source: Source | None = None,
    *,
    rewards: Rewards | None = None,
    logprobs: bool = True,
    aborted: bool = False,
    failed: bool = False,
) -> None:
    """Raise if `verify_rows` finds anything wrong; the arguments are the same.

    Raises:
        InvalidRowsError: Something is; `problems` tells all of it.
        TypeError: The source has something else in it.
    """
    if problems := verify_rows(
        rows, source, rewards=rewards, logprobs=logprobs, aborted=aborted, failed=failed
    ):
        raise InvalidRowsError(problems)
