"""Rows against the records they came from: each sampled token once, in the context it was sampled in."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
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
            for span in row.spans:
                self._find_span(row, row.tokens, span)
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

    def _find_span(self, row: RowInspection, tokens: NDArray[Any], span: TokenSpan) -> None:
        actions = self._by_place.get((span.item_id, span.member, span.step))
        if actions is None:
            row.note("coverage", f"{span} is of no action that is to be trained", span.start)
            return
        sampled = tokens[span.start : span.stop]
        left = [action for action in actions if not action.found]
        same = [action for action in left if np.array_equal(action.step.tokens, sampled)]
        if same:
            action = self._compare(row, tokens, span.start, same)
            recorded = (action.step.version, action.step.stop_reason)
            if recorded != (span.version, span.stop_reason):
                message = f"{span} was recorded with the version and stop reason {recorded}"
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
        for length in self._divide(tokens[start:stop]) or [stop - start]:
            content = _content(tokens[start : start + length])
            actions = self._by_tokens.get(content, [])
            left = [action for action in actions if not action.found]
            if left:
                self._compare(row, tokens, start, left)
            elif actions:
                row.note("coverage", f"a row trains these {length} tokens already", start)
            else:
                row.note("coverage", f"these {length} tokens were never sampled as one", start)
            start += length

    def _divide(self, run: NDArray[Any]) -> list[int] | None:
        """Return the lengths of sampled actions that make up a run of trained tokens."""
        if _content(run) in self._by_tokens:
            return [len(run)]
        ways: list[list[int]] = [[]]
        reached: set[int] = set()
        while ways:
            way = ways.pop()
            start = sum(way)
            if start == len(run):
                return way
            for length in reversed(self._lengths):  # so that the longest is tried first
                stop = start + length
                if (
                    stop <= len(run)
                    and stop not in reached
                    and _content(run[start:stop]) in self._by_tokens
                ):
                    reached.add(stop)
                    ways.append([*way, length])
        return None

    def _compare(
        self, row: RowInspection, tokens: NDArray[Any], start: int, actions: list[Action]
    ) -> Action:
        """Find one of several actions with the tokens of a span: that of its context, if any is."""
        context = tokens[:start] if row.present is None else tokens[:start][row.present[:start]]
        fitting = [action for action in actions if np.array_equal(action.step.prompt, context)]
        action = (fitting or actions)[0]
        action.found = True
        if not fitting:
            position = _difference(action.step.prompt, context)
            message = (
                f"its context is not the prompt it was sampled with: from {position} on, "
                f"{context[position:][:8].tolist()} in place of "
                f"{action.step.prompt[position:][:8].tolist()}"
            )
            _note(row, "context", message, action, start)
        recorded = action.step.logprobs
        if row.logprobs is not None and recorded is not None:
            given = row.logprobs[start : start + len(recorded)].astype(np.float32)
            differ = (given != recorded) & np.isfinite(given)  # others are noted already
            if differ.any():
                position = int(differ.argmax())
                message = f"the log probability is {given[position]}, not {recorded[position]}"
                _note(row, "logprobs", message, action, start + position)
        return action


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
