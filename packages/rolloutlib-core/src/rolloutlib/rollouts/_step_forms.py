"""The form of a trajectory's steps: columns, and all tokens of all steps in one array."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from rolloutlib._values import to_bool, to_float
from rolloutlib.rollouts._arrays import ArrayColumn, Logprobs, NumberArray, TokenIds
from rolloutlib.rollouts._codec import Decoder, Encoder, UnstorableError
from rolloutlib.rollouts._forms import (
    Part,
    in_turn,
    read_facts,
    read_numbers,
    write_facts,
    write_numbers,
)
from rolloutlib.rollouts._steps import StepColumns

ARRAYS: Mapping[str, type[NumberArray[Any]]] = {
    "tokens": TokenIds,
    "logprobs": Logprobs,
    "prompt_tokens": TokenIds,
}
"""The columns of numbers."""

_OPTIONAL = ("policy_infos", "stop_reasons", "versions")
_REQUIRED = frozenset({"actions", "rewards", "next_observations", "terminated", "truncated"})
_ALL = _REQUIRED | {"observations", "infos", *_OPTIONAL, *ARRAYS}


def read_array_column(kind: type[NumberArray[Any]], form: Mapping[str, Any]) -> ArrayColumn[Any]:
    """Return the column of numbers that a form holds."""
    return ArrayColumn[Any].split(read_numbers(kind, form), form["lengths"])


def _write(steps: Sequence[Any], encoder: Encoder, trajectory: Any) -> dict[str, Any]:
    if not isinstance(steps, StepColumns):
        kinds = sorted({type(step).__qualname__ for step in steps} - {"Step"})
        msg = f"are of a subclass of Step, {', '.join(kinds)}, which is not stored in records"
        raise UnstorableError(msg)
    columns = cast("StepColumns[Any, Any]", steps)
    form: dict[str, Any] = {}
    # What a step shows is what the next one begins with: mostly, so it is written once.
    before = (trajectory.initial_observation, *columns.next_observations)
    if not all(map(_is_the_same, columns.observations, before)):
        form["observations"] = _column("observations", columns.observations, encoder)
    for name in ("actions", "next_observations"):
        form[name] = _column(name, getattr(columns, name), encoder)
    for name in ("rewards", "terminated", "truncated"):
        form[name] = list(getattr(columns, name))
    if any(columns.infos):
        form["infos"] = _column("infos", columns.infos, encoder)
    for name in _OPTIONAL:
        column = getattr(columns, name)
        if any(item is not None for item in column):
            form[name] = _column(name, column, encoder)
    for name in ARRAYS:
        column = getattr(columns, name)
        if isinstance(column, ArrayColumn):
            numbers = cast("ArrayColumn[Any]", column)
            form[name] = {"lengths": numbers.lengths(), **write_numbers(numbers.joined())}
    return form


def _is_the_same(one: object, two: object) -> bool:
    return one is two or (type(one) is type(two) is str and one == two)


def _column(name: str, values: Sequence[Any], encoder: Encoder) -> list[Any]:
    try:
        if name == "infos":
            return in_turn(values, lambda info: write_facts(info, encoder))
        if name == "policy_infos":
            return in_turn(
                values, lambda info: None if info is None else write_facts(info, encoder)
            )
        return in_turn(values, encoder.write)
    except UnstorableError as error:
        error.path.append(f".{name}")
        raise


def _read(form: Mapping[str, Any], decoder: Decoder, trajectory: Mapping[str, Any]) -> Any:
    if not _REQUIRED <= form.keys() <= _ALL:
        msg = f"steps have the columns {sorted(_ALL)}; got {sorted(form)}"
        raise ValueError(msg)
    columns = StepColumns[Any, Any]()
    columns.actions = tuple(decoder.read(form["actions"]))
    count = len(columns.actions)
    columns.next_observations = tuple(decoder.read(form["next_observations"]))
    before = (trajectory["initial_observation"], *columns.next_observations)
    columns.observations = (
        tuple(decoder.read(form["observations"])) if "observations" in form else before[:count]
    )
    columns.rewards = tuple([to_float(reward, "reward") for reward in form["rewards"]])
    columns.terminated = tuple([to_bool(flag, "terminated") for flag in form["terminated"]])
    columns.truncated = tuple([to_bool(flag, "truncated") for flag in form["truncated"]])
    columns.infos = tuple([read_facts(info, decoder) for info in form.get("infos", [{}] * count)])
    for name in _OPTIONAL:
        column = _read_optional(name, form[name], decoder) if name in form else (None,) * count
        setattr(columns, name, column)
    for name, kind in ARRAYS.items():
        column = read_array_column(kind, form[name]) if name in form else (None,) * count
        setattr(columns, name, column)
    columns.validate()
    return columns


def _read_optional(name: str, form: Sequence[Any], decoder: Decoder) -> tuple[Any, ...]:
    if name == "policy_infos":
        return tuple([None if info is None else read_facts(info, decoder) for info in form])
    return tuple(decoder.read(form))


STEPS = Part(_write, _read)
