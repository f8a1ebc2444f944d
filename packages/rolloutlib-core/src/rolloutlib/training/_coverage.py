"""Rows against the records they came from: each sampled token once, in the context it was sampled in."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rolloutlib.training._advantages import Rewards
from rolloutlib.training._episodes import SampledStep, Source, episodes_of, groups_of, sampled_steps
from rolloutlib.training._inspection import RowInspection
from rolloutlib.training._problems import ProblemKind, RowProblem
from rolloutlib.training._sequences import TokenSpan


@dataclass(slots=True, eq=False)
class Action:
    """What was sampled in a step, to be found in the rows once."""

    item_id: str | None
    member: int
    step: SampledStep
    found: bool = False


def sampled_actions(
    source: Source, *, rewards: Rewards | None, logprobs: bool, aborted: bool, failed: bool
) -> list[Action]:
    """Return all actions of the records that are to be trained."""
    return [
        Action(episode.item_id, episode.member, step)
        for group in groups_of(source)
        for episode in episodes_of(group, failed=failed)
        if rewards is None or rewards(episode.trajectory) is not None
        for step in sampled_steps(episode.trajectory, logprobs=logprobs, aborted=aborted)
        if step.fate == "trained"
    ]


class Coverage:
    """The actions that are to be found in rows.

    Two groups may have one item id, and two actions the same tokens, so there are several of a kind.
    """

    def __init__(self, actions: list[Action]) -> None:
        self._actions = actions
        self._by_place: defaultdict[tuple[Any, ...], list[Action]] = defaultdict(list)
        self._by_tokens: defaultdict[bytes, list[Action]] = defaultdict(list)
        for action in actions:
            self._by_place[action.item_id, action.member, action.step.number].append(action)
            self._by_tokens[_content(action.step.tokens)].append(action)
        self._lengths = sorted({len(content) // 8 for content in self._by_tokens}, reverse=True)

    def find(self, row: RowInspection) -> None:
        """Find the actions that a row trains, and note what is wrong with them."""
        if row.tokens is None or row.mask is None:
            return
        if row.spans is not None:
            for _, spans in groupby(row.spans, lambda span: (span.item_id, span.member, span.step)):
                self._find_spans(row, row.tokens, list(spans))
            return
        edges = np.flatnonzero(np.diff(row.mask, prepend=False, append=False)).tolist()
        for start, stop in zip(edges[::2], edges[1::2], strict=True):
            self._find_run(row, row.tokens, start, stop)

    def missing(self) -> list[RowProblem]:
        """Return a problem for each action that no row has."""
        return [
            _problem("coverage", f"no row trains its {len(action.step.tokens)} tokens", action)
            for action in self._actions
            if not action.found
        ]

    def _find_spans(self, row: RowInspection, tokens: NDArray[Any], spans: list[TokenSpan]) -> None:
        """Find the action of spans, of which there is one for each version that sampled some of it."""
        span = spans[0]
        actions = self._by_place.get((span.item_id, span.member, span.step))
        if actions is None:
            row.note("coverage", f"{span} is of no action that is to be trained", span.start)
            return
        sampled = tokens[span.start : spans[-1].stop]
        left = [action for action in actions if not action.found]
        same = [action for action in left if np.array_equal(action.step.tokens, sampled)]
        if same:
            action = self._compare(row, tokens, span.start, same)
            found = [(each.version, each.stop - each.start, each.stop_reason) for each in spans]
            recorded = [(*run, action.step.stop_reason) for run in action.step.runs()]
            if recorded != found:
                message = (
                    f"the versions, each with its tokens and the stop reason, are {found}, not "
                    f"{recorded} as recorded"
                )
                _note(row, "spans", message, action, span.start)
        elif left:
            action = left[0]
            action.found = True  # the fault is told here, and not that the action is missing
            position = _difference(action.step.tokens, sampled)
            message = f"{sampled[position:][:8].tolist()} stand where {action.step.tokens[position:][:8].tolist()} were sampled"
            _note(row, "coverage", message, action, span.start + position)
        else:
            row.note("coverage", f"{span} is an action that a row trains already", span.start)

    def _find_run(self, row: RowInspection, tokens: NDArray[Any], start: int, stop: int) -> None:
        for length in self._divide(row, tokens, start, stop):
            actions = self._by_tokens.get(_content(tokens[start : start + length]), [])
            left = [action for action in actions if not action.found]
            if left:
                self._compare(row, tokens, start, left)
            elif actions:
                row.note("coverage", f"a row trains these {length} tokens already", start)
            else:
                row.note("coverage", f"these {length} tokens were never sampled as one", start)
            start += length

    def _divide(self, row: RowInspection, tokens: NDArray[Any], start: int, stop: int) -> list[int]:
        """Return the lengths of the sampled actions that make up a run of trained tokens.

        Turns may follow each other with nothing in between, and be divided in several ways; so those
        come first whose actions fit in full.
        """
        for in_full in (True, False):
            ways: list[list[int]] = [[]]
            if self._known(row, tokens, start, stop, in_full=in_full):  # most runs are one action
                return [stop - start]
            reached: set[int] = set()
            while ways:
                way = ways.pop()
                here = start + sum(way)
                if here == stop:
                    return way
                for length in reversed(self._lengths):  # so that the longest is tried first
                    there = here + length
                    if (
                        there <= stop
                        and there not in reached
                        and self._known(row, tokens, here, there, in_full=in_full)
                    ):
                        reached.add(there)
                        ways.append([*way, length])
        return [stop - start]

    def _known(
        self, row: RowInspection, tokens: NDArray[Any], start: int, stop: int, *, in_full: bool
    ) -> bool:
        """Tell whether there is an action of these tokens; in full, one that is left and fits."""
        actions = self._by_tokens.get(_content(tokens[start:stop]), [])
        if not in_full:
            return bool(actions)
        return any(
            not action.found and _fit(row, tokens, start, action) == _IN_FULL for action in actions
        )

    def _compare(
        self, row: RowInspection, tokens: NDArray[Any], start: int, actions: list[Action]
    ) -> Action:
        """Find the one that fits best of several actions with the tokens of a span."""
        action = max(actions, key=lambda action: _fit(row, tokens, start, action))
        action.found = True
        context = _context(row, tokens, start)
        if not np.array_equal(action.step.prompt, context):
            position = _difference(action.step.prompt, context)
            message = (
                f"its context is not the prompt it was sampled with: from {position} on, "
                f"{context[position:][:8].tolist()} in place of "
                f"{action.step.prompt[position:][:8].tolist()}"
            )
            _note(row, "context", message, action, start)
        recorded = action.step.logprobs
        differ = _differing(row, start, action)
        if row.logprobs is not None and recorded is not None and differ.any():
            position = int(differ.argmax())
            given = row.logprobs[start + position]
            message = f"the log probability is {given}, not {recorded[position]}"
            _note(row, "logprobs", message, action, start + position)
        return action


_IN_FULL = 2


def _fit(row: RowInspection, tokens: NDArray[Any], start: int, action: Action) -> int:
    """Tell how well an action fits where its tokens stand: 0, 1 by its context, 2 in full."""
    if not np.array_equal(action.step.prompt, _context(row, tokens, start)):
        return 0
    return 1 if _differing(row, start, action).any() else _IN_FULL


def _context(row: RowInspection, tokens: NDArray[Any], start: int) -> NDArray[Any]:
    """Return the tokens before a position, without padding."""
    return tokens[:start] if row.present is None else tokens[:start][row.present[:start]]


def _differing(row: RowInspection, start: int, action: Action) -> NDArray[np.bool_]:
    """Tell which log probabilities are not as recorded; those not finite are noted elsewhere."""
    recorded = action.step.logprobs
    if row.logprobs is None or recorded is None:
        return np.zeros(len(action.step.tokens), np.bool_)
    given = row.logprobs[start : start + len(recorded)]
    return (given != recorded) & np.isfinite(given)


def _content(tokens: NDArray[Any]) -> bytes:
    return tokens.astype(np.int64).tobytes()


def _difference(one: NDArray[Any], other: NDArray[Any]) -> int:
    """Return the first position at which two arrays that are not equal differ."""
    shared = min(len(one), len(other))
    differ = one[:shared] != other[:shared]
    return int(differ.argmax()) if differ.any() else shared


def _problem(
    kind: ProblemKind,
    message: str,
    action: Action,
    row: int | None = None,
    position: int | None = None,
) -> RowProblem:
    place = (action.item_id, action.member, action.step.number)
    return RowProblem(kind, message, row, position, *place)


def _note(
    row: RowInspection, kind: ProblemKind, message: str, action: Action, position: int
) -> None:
    row.problems.append(_problem(kind, message, action, row.number, position))
