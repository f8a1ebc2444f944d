"""Groups as rows of plain values: one row an attempt at an episode, and one for an empty group."""

from __future__ import annotations

import operator
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from pydantic_core import to_json

from rolloutlib.rollouts import PolicyOutput, RolloutError, Trajectory, TrajectoryGroup
from rolloutlib.rollouts._arrays import ArrayColumn
from rolloutlib.rollouts._codec import Encoder, UnstorableError, is_unicode
from rolloutlib.rollouts._forms import in_turn, write_facts, write_numbers
from rolloutlib.rollouts._steps import StepColumns
from rolloutlib.rollouts._versions import Versions
from rolloutlib.scores import Score
from rolloutlib.storage._arrow import COLUMNS, NUMBERS, Row


class RowWriter:
    """Writes groups as rows.

    What a column cannot hold goes to "exact", by the name of the column.

    Args:
        encoder: Writes values of any kind.
    """

    def __init__(self, encoder: Encoder) -> None:
        self._encoder = encoder
        self._row: Row = {}
        self._exact: dict[str, Any] = {}

    def rows(self, group: TrajectoryGroup[Any, Any, Any], number: int) -> Iterator[Row]:
        """Yield the rows of a group: its trajectories, its errors, then what was tried again.

        Args:
            group: The group.
            number: Which one of the table it is, from 0.

        Raises:
            UnstorableError: Something in it cannot be stored; the message tells its place.
        """
        place = ""
        try:
            _check_kind(group, TrajectoryGroup)
            self._row, self._exact = {**_BLANK, "group": number}, {}
            self._write_group(group)
            shared, exact = self._row, self._exact
            for row, (field, index, record, score) in enumerate(_members(group)):
                place = f".{field}[{index}]"
                self._row, self._exact = {**shared, "row": row}, {**exact}
                if isinstance(record, Trajectory):
                    self._write_ended(record, cast("Score", score))
                elif record is not None:
                    self._write_failed(record, "failed" if field == "errors" else "retried")
                else:
                    self._row["outcome"] = "empty"
                if self._exact:
                    self._row["exact"] = _json(self._exact)
                yield self._row
        except UnstorableError as error:
            error.path += [place, f"group {getattr(group, 'item_id', number)!r}"]
            raise

    def _write_group(self, group: TrajectoryGroup[Any, Any, Any]) -> None:
        self._put_text("item_id", group.item_id)
        item = self._form("item", group.item)
        self._row["item"] = item if type(item) is str else _json(item)
        self._row["item_format"] = "text" if type(item) is str else "json"
        self._put_int("group_seed", group.seed)
        self._put_facts("group_metadata", group.metadata)

    def _write_ended(self, trajectory: Trajectory[Any, Any], score: Score) -> None:
        row = self._row
        row["outcome"] = "completed" if trajectory.terminated else "truncated"
        self._put_int("member", trajectory.member)
        self._put_int("attempt", trajectory.attempt)
        self._put_int("seed", trajectory.seed)
        row["score"] = score.value
        if score.components or score.metadata or score.feedback is not None:
            row["score_details"] = _json(self._form("score", score.to_dict()))
        self._write_episode(trajectory)

    def _write_failed(self, error: RolloutError, outcome: str) -> None:
        _check_kind(error, RolloutError)
        self._row["outcome"] = outcome
        self._put_int("member", error.index)
        self._put_int("attempt", error.attempt)
        self._put_int("seed", error.seed)
        for name in ("error_type", "error_message", "phase", "traceback"):
            self._put_text(name, getattr(error, name))
        if error.output is not None:
            self._write_answer(error.output)
        trajectory = error.trajectory
        if trajectory is None:
            return
        names = {"member": "index", "attempt": "attempt", "seed": "seed"}
        others = {
            name: self._form(name, getattr(trajectory, name))
            for name, of_error in names.items()
            if getattr(trajectory, name) != getattr(error, of_error)
        }
        if others:
            self._exact["trajectory"] = others
        self._write_episode(trajectory)

    def _write_answer(self, output: PolicyOutput[Any]) -> None:
        try:
            _check_kind(output, PolicyOutput)
            form = output.to_dict(encode=self._encoder.encode)
        except UnstorableError as error:
            error.path.append(".output")
            raise
        self._exact["output"] = self._form("output", form)

    def _write_episode(self, trajectory: Trajectory[Any, Any]) -> None:
        _check_kind(trajectory, Trajectory)
        columns = trajectory.steps
        if not isinstance(columns, StepColumns):
            msg = "are of a subclass of Step, which is not stored in records"
            raise UnstorableError(msg)
        columns = cast("StepColumns[Any, Any]", columns)
        row = self._row
        self._put_flag("terminated", trajectory.terminated)
        self._put_flag("truncated", trajectory.truncated)
        seen = (trajectory.initial_observation, *columns.next_observations)
        row["observations"], row["observation_format"] = self._texts("observations", seen)
        if not all(map(operator.is_, columns.observations, seen)):
            texts, kind = self._texts("observations", columns.observations)
            if kind != row["observation_format"] or texts != row["observations"][:-1]:
                form = self._form("observations", list(columns.observations))
                self._exact["step_observations"] = form
        row["actions"], row["action_format"] = self._texts("actions", columns.actions)
        row["reward"] = float(sum(columns.rewards))
        row["num_steps"] = len(columns)
        row["rewards"] = columns.rewards
        row["step_terminated"] = columns.terminated
        row["step_truncated"] = columns.truncated
        self._put_facts("initial_info", trajectory.initial_info)
        self._put_facts("metadata", trajectory.metadata)
        self._put_infos("infos", columns.infos)
        self._put_infos("policy_infos", columns.policy_infos)
        self._put_texts("stop_reasons", columns.stop_reasons)
        self._put_versions(columns.versions)
        for name in NUMBERS:
            self._put_numbers(name, getattr(columns, name))

    def _form(self, name: str, value: Any) -> Any:
        try:
            return self._encoder.write(value)
        except UnstorableError as error:
            error.path.append(f".{name}")
            raise

    def _put_int(self, name: str, value: Any) -> None:
        if type(value) is int and -_LIMIT <= value < _LIMIT:
            self._row[name] = value
        elif value is not None:
            self._exact[name] = self._form(name, value)

    def _put_flag(self, name: str, value: Any) -> None:
        if type(value) is bool:
            self._row[name] = value
        else:
            self._exact[name] = self._form(name, value)

    def _put_text(self, name: str, value: Any) -> None:
        if type(value) is str and is_unicode(value):
            self._row[name] = value
        elif value is not None:
            self._exact[name] = self._form(name, value)

    def _texts(self, name: str, values: Sequence[Any]) -> tuple[list[str], str]:
        """Return texts for values, and whether they are the values or their JSON."""
        if _are_texts(values):
            return list(values), "text"
        try:
            forms = in_turn(values, self._encoder.write)
        except UnstorableError as error:
            error.path.append(f".{name}")
            raise
        return [_json(form) for form in forms], "json"

    def _put_facts(self, name: str, facts: Mapping[str, Any]) -> None:
        if facts:
            self._row[name] = _json(self._form(name, dict(facts)))

    def _put_infos(self, name: str, infos: Sequence[Mapping[str, Any] | None]) -> None:
        if any(infos):
            try:
                forms = in_turn(infos, lambda info: write_facts(info or {}, self._encoder))
            except UnstorableError as error:
                error.path.append(f".{name}")
                raise
            self._row[name] = [_json(form) if form else None for form in forms]

    def _put_texts(self, name: str, values: Sequence[Any]) -> None:
        known = [value for value in values if value is not None]
        if not _are_texts(known):
            self._exact[name] = self._form(name, list(values))
        elif known:
            self._row[name] = values

    def _put_versions(self, versions: Sequence[Versions | None]) -> None:
        known = set(versions) - {None}
        if not all(map(_is_plain_version, known)):
            self._exact["versions"] = self._form("versions", list(versions))
        elif known:
            texts = [str(version) if type(version) is int else version for version in versions]
            self._put_texts("versions", texts)

    def _put_numbers(self, name: str, column: Sequence[Any]) -> None:
        if not isinstance(column, ArrayColumn):
            return
        numbers = cast("ArrayColumn[Any]", column)
        parts = numbers.parts()
        if parts[0].itemsize == 4 or not parts[0].size:
            self._row[name] = parts
        else:
            form = write_numbers(numbers.joined())
            self._exact[name] = {"lengths": numbers.lengths(), **form}


def is_number(version: str) -> bool:
    """Tell whether a text reads as that of an integer does."""
    digits = version.removeprefix("-")
    return digits.isascii() and digits.isdigit()


def _are_texts(values: Sequence[object]) -> bool:
    """Tell whether all values are texts that a column can hold."""
    return set(map(type, values)) <= {str} and is_unicode("".join(cast("Any", values)))


def _is_plain_version(version: Versions | None) -> bool:
    """Tell whether a version can be told from its text: "3" cannot, since 3 reads so too."""
    if type(version) is int:
        return version.bit_length() < 64
    return type(version) is str and not is_number(version)


_LIMIT = 2**63
_BLANK: Row = dict.fromkeys((*COLUMNS, *NUMBERS))


def _members(
    group: TrajectoryGroup[Any, Any, Any],
) -> Iterator[tuple[str, int, Trajectory[Any, Any] | RolloutError | None, Score | None]]:
    """Yield the records of a group, each with its field, its place there, and its score."""
    for index, trajectory in enumerate(group.trajectories):
        yield "trajectories", index, trajectory, group.scores[index]
    for field, errors in (("errors", group.errors), ("retried", group.retried)):
        for index, error in enumerate(errors):
            yield field, index, error, None
    if not (group.trajectories or group.errors or group.retried):
        yield "trajectories", 0, None, None


def _json(form: Any) -> str:
    return to_json(form).decode()


def _check_kind(record: object, kind: type[Any]) -> None:
    if type(record) is not kind:  # a subclass may have more fields, which reading would not know
        name = type(record).__qualname__
        msg = f"is no {kind.__name__}, but {name}, which is not stored in records"
        raise UnstorableError(msg)
