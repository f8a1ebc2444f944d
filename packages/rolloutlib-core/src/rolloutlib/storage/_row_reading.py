"""Groups out of rows."""

from __future__ import annotations

import contextlib
import operator
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from pydantic_core import from_json

from rolloutlib._values import to_bool, to_float
from rolloutlib.rollouts import PolicyOutput, RolloutError, Trajectory, TrajectoryGroup
from rolloutlib.rollouts._arrays import ArrayColumn, NumberArray
from rolloutlib.rollouts._codec import Decoder
from rolloutlib.rollouts._forms import read_facts
from rolloutlib.rollouts._step_forms import ARRAYS, read_array_column
from rolloutlib.rollouts._steps import StepColumns
from rolloutlib.scores import Score
from rolloutlib.storage._arrow import Numbers, Row
from rolloutlib.storage._row_writing import is_number

AnyGroup: TypeAlias = TrajectoryGroup[Any, Any, Any]


class RowReader:
    """Reads what a `RowWriter` wrote.

    Args:
        decoder: Reads values of any kind.
    """

    def __init__(self, decoder: Decoder) -> None:
        self._decoder = decoder

    def groups(self, rows: Iterable[Row]) -> Iterator[AnyGroup]:
        """Yield the groups of rows, each when all its rows were read.

        Raises:
            ValueError: The rows are not of the right form.
        """
        first: Row = {}
        last: Row = {}
        records: _Records = {}
        for row in rows:
            with _place_of(row):
                exact = self._facts(row["exact"])
                row.update(exact, exact=exact)
                goes_on = first and row["row"] > last["row"] and _identity(row) == _identity(first)
            if not goes_on:
                if first:
                    yield self._group(first, records)
                first, records = row, {}
            last = row
            with _place_of(row):
                self._add(row, records)
        if first:
            yield self._group(first, records)

    def _add(self, row: Row, records: _Records) -> None:
        match row["outcome"]:
            case "completed" | "truncated":
                ended = (self._trajectory(row, row), self._score(row))
                records.setdefault("ended", []).append(ended)
            case "failed" | "retried" as outcome:
                records.setdefault(outcome, []).append(self._error(row))
            case "empty":
                pass
            case outcome:
                msg = f"the outcome {outcome!r} is unknown"
                raise ValueError(msg)

    def _group(self, row: Row, records: _Records) -> AnyGroup:
        ended = records.get("ended", [])
        with _place_of(row):
            [item] = self._values([row["item"]], row["item_format"])
            return TrajectoryGroup(
                item,
                row["item_id"],
                [trajectory for trajectory, _ in ended],
                [score for _, score in ended],
                records.get("failed", ()),
                self._facts(row["group_metadata"]),
                seed=row["group_seed"],
                retried=records.get("retried", ()),
            )

    def _score(self, row: Row) -> Score:
        details = self._facts(row["score_details"])
        return Score.from_dict({**details, "value": row["score"]})  # which may have been changed

    def _error(self, row: Row) -> RolloutError:
        trajectory = None
        if row["observations"] is not None:
            trajectory = self._trajectory(row, {**row, **row.get("trajectory", {})})
        output = None
        if "output" in row:
            output = PolicyOutput[Any].from_dict(row["output"], decode=self._decoder.decode)
        return RolloutError(
            row["error_type"],
            row["error_message"],
            index=row["member"],
            attempt=row["attempt"],
            phase=row["phase"],
            traceback=row["traceback"],
            seed=row["seed"],
            trajectory=trajectory,
            output=output,
        )

    def _trajectory(self, row: Row, identity: Mapping[str, Any]) -> Trajectory[Any, Any]:
        seen = self._values(row["observations"], row["observation_format"])
        return Trajectory(
            seen[0],
            self._steps(row, seen),
            self._facts(row["initial_info"]),
            row["terminated"],
            row["truncated"],
            self._facts(row["metadata"]),
            seed=identity["seed"],
            member=identity["member"],
            attempt=identity["attempt"],
        )

    def _steps(self, row: Row, seen: tuple[Any, ...]) -> StepColumns[Any, Any]:
        columns = StepColumns[Any, Any]()
        columns.actions = self._values(row["actions"], row["action_format"])
        count = len(columns.actions)
        unknown = (None,) * count
        columns.observations = tuple(row.get("step_observations", seen[:-1]))
        columns.next_observations = seen[1:]
        columns.rewards = tuple([to_float(reward, "reward") for reward in row["rewards"]])
        columns.terminated = tuple([to_bool(flag, "terminated") for flag in row["step_terminated"]])
        columns.truncated = tuple([to_bool(flag, "truncated") for flag in row["step_truncated"]])
        columns.infos = tuple([self._facts(info) for info in row["infos"] or unknown])
        columns.policy_infos = tuple(
            [None if info is None else self._facts(info) for info in row["policy_infos"] or unknown]
        )
        columns.stop_reasons = tuple(row["stop_reasons"] or unknown)
        versions = row["versions"] or unknown
        if "versions" not in row["exact"]:
            versions = [_version(text) for text in versions]
        columns.versions = tuple(versions)
        for name, kind in ARRAYS.items():
            setattr(columns, name, _column(kind, row[name]) or unknown)
        columns.validate()
        return columns

    def _values(self, texts: Sequence[str], kind: str) -> tuple[Any, ...]:
        if kind == "text":
            return tuple(texts)
        return tuple([self._json(text) for text in texts])

    def _facts(self, text: str | None) -> dict[str, Any]:
        return {} if text is None else read_facts(from_json(text), self._decoder)

    def _json(self, text: str) -> Any:
        return self._decoder.read(from_json(text))


_Records: TypeAlias = dict[str, list[Any]]
_identity = operator.itemgetter(
    "group", "item_id", "item", "item_format", "group_seed", "group_metadata"
)
"""What the rows of a group have in common; groups of several tables may have the same number."""


@contextlib.contextmanager
def _place_of(row: Row) -> Generator[None]:
    """Let errors tell the row that is not of the right form."""
    try:
        yield
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        msg = f"row {row['row']} of group {row['group']} ({row['item_id']!r}): {error}"
        raise ValueError(msg) from error


def _column(
    kind: type[NumberArray[Any]], cell: Numbers | Mapping[str, Any] | None
) -> ArrayColumn[Any] | None:
    if cell is None:
        return None
    if isinstance(cell, Mapping):  # numbers of 64 bits
        return read_array_column(kind, cell)
    values, offsets, present = cell
    return ArrayColumn[Any].of_parts(kind.of(values, kind.__name__), offsets, present)


def _version(text: str | None) -> int | str | None:
    return int(text) if text is not None and is_number(text) else text
